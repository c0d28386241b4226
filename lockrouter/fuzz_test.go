package lockrouter_test

import (
	"encoding/json"
	"testing"

	"optimist/lockrouter"
	"optimist/lockrouter/memory"
)

// FuzzRequest sends requests of any form: each is answered, with JSON, and a refusal with a type and a reason.
func FuzzRequest(f *testing.F) {
	f.Add("PUT", "/_lock/global/a", "renew&owner=a&token=1", `{"owner":"a","ttl":"30s","wait":"0"}`)
	f.Add("DELETE", "/s%2Fhop/_lock/doc/%zz", "owner=%zz;token=-1", `{`)
	f.Add("PUT", "/fs/_lock/tree//a/%2F/ü/..", "wait=0", `{"owner":"a","mode":"shared"}`)
	f.Add("POST", "/shop/_lock/docs", "", `{"owner":"a","wait":"0","ids":["2","1","1"]}`)
	f.Add("POST", "/_lock/_release", "", `{"owner":"a","tokens":[1]}`)
	f.Add("GET", "/_lock", "size=2&older_than=1d&prefix=/fs/_lock/tree/a&after=x", ``)
	f.Fuzz(func(t *testing.T, method, path, query, body string) {
		r := lockrouter.New(lockrouter.Options{Store: memory.New(nil), MaxWait: 1})
		defer r.Close()
		if !r.Takes([]byte(path)) {
			return
		}
		a, err := r.Serve(t.Context(), &lockrouter.Request{Method: method, Path: []byte(path), Query: []byte(query), Body: []byte(body)})
		if err != nil {
			t.Fatal(err)
		}
		var results struct {
			Error *struct{ Type, Reason string }
		}
		if err := json.Unmarshal(a.Body, &results); err != nil {
			t.Fatalf("%v: %s", err, a.Body)
		}
		if (a.Status >= 400) != (results.Error != nil) || results.Error != nil && (results.Error.Type == "" || results.Error.Reason == "") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
}
