package lockrouter_test

import (
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/memory"
)

// TestAProxyThatEndsGivesBackTheDocumentsOfWhomItGaveUp: some of them had been got.
func TestAProxyThatEndsGivesBackTheDocumentsOfWhomItGaveUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		staying := router(t, store, lockrouter.Options{})
		ask(t, staying, 201, "", "PUT", "/shop/_lock/doc/2", `{"owner":"b","ttl":"1h"}`)
		ending := lockrouter.New(lockrouter.Options{Store: &busy{store, 50 * time.Millisecond}})
		done := make(chan struct{})
		go func() {
			defer close(done)
			if got, err := request(t.Context(), ending, "POST", docs, `{"owner":"a","ttl":"1h","wait":"1m","ids":["1","2"]}`); err != nil || got.status != 503 {
				t.Errorf("%+v %v", got, err)
			}
		}()
		time.Sleep(10 * time.Millisecond)
		ending.Drain()
		ending.Close()
		<-done
		ask(t, staying, 201, "", "PUT", "/shop/_lock/doc/1", `{"owner":"b","wait":"0"}`)
	})
}
