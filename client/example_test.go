package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"optimist/client"
)

// A job of which only one may run at a time, however many processes begin it.
func ExampleClient_DoInLock() {
	url, stop, err := start() // an optimist; yours is at http://127.0.0.1:9280, perhaps
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	c := client.New(url, client.Options{})
	err = c.DoInLock(context.Background(), client.Global("nightly"), client.LockOptions{TTL: 30 * time.Second, Wait: 10 * time.Second},
		func(ctx context.Context) error {
			token, ok := client.Token(ctx)
			fmt.Println("the job has a token:", ok && token > 0)
			return ctx.Err() // ctx ends when the lease is lost: stop then
		})
	fmt.Println("error:", err)
	// Output:
	// the job has a token: true
	// error: <nil>
}

// A counter, without any rule: the function runs again if somebody else has changed the document.
func ExampleClient_Update() {
	url, stop, err := start()
	if err != nil {
		fmt.Println(err)
		return
	}
	defer stop()
	c := client.New(url, client.Options{})
	for range 2 {
		w, err := c.Update(context.Background(), "shop", "1", func(source json.RawMessage) (json.RawMessage, error) {
			var d struct{ Visits int }
			if source != nil { // else there is no such document yet
				if err := json.Unmarshal(source, &d); err != nil {
					return nil, err
				}
			}
			d.Visits++
			return json.Marshal(d)
		})
		fmt.Println(w.Result, w.Version, err)
	}
	// Output:
	// created 1 <nil>
	// updated 2 <nil>
}
