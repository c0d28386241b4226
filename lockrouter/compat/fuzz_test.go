package compat_test

import (
	"encoding/json"
	"testing"

	"optimist/internal/api"
	"optimist/lockrouter"
	"optimist/lockrouter/compat"
	"optimist/lockrouter/memory"
)

// FuzzServe sends anything: what is answered is JSON, and what isn't answered with success leaves the engine and the locks alone.
func FuzzServe(f *testing.F) {
	for _, seed := range [][3]string{
		{"PUT", "/fs/lock/global/_create", "{}"}, {"DELETE", "/fs/lock/global?if_seq_no=1", ""}, {"POST", "/fs/lock/1/_update", printed},
		{"POST", "/fs/_update/%2Fclinton", up}, {"POST", "/fs/_update/%2Fclinton", down},
		{"GET", "/fs/lock/_search?scroll=1m&size=3", `{"query":{"match":{"process_id":123}}}`}, {"POST", "/_bulk", `{"index":{"_index":"fs"}}`},
		{"PUT", "/fs/lock/_bulk", "{\"create\":{\"_id\":1}}\n{\"process_id\":123}\n{\"delete\":{\"_id\":1}}"},
		{"POST", "/_search/scroll", `{"scroll_id":"eyJvcHRpbWlzdCI6ImZzIiwic2l6ZSI6LTF9"}`}, {"GET", "/fs/_mget", `{"ids":["1"]}`},
		{"DELETE", "/fs/lock/_query", `{"query":{"bool":{"filter":[{"term":{"process_id":{"value":1}}}]}}}`}, {"GET", "//fs/%zz/_doc", "\xff"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	locks := lockrouter.New(lockrouter.Options{Store: memory.New(nil)})
	f.Cleanup(locks.Close)
	c := compat.New(compat.Options{Locks: locks, Index: "fs", Type: "lock", TTL: 1e9})
	f.Fuzz(func(t *testing.T, method, target, body string) {
		op := new(api.Op)
		api.Parse([]byte(method), []byte(target), op)
		a, err := c.Serve(t.Context(), &compat.Request{Method: method, Op: op, Body: []byte(body), Session: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if a != nil && (!json.Valid(a.Body) || a.Status < 200 || a.Status > 499) {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
}
