package locks_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/enginetest"
)

// TestSystem4ContentservWhole has all of it together: a lock in ZooKeeper, a background job that works under it on a document that others
// change all the time, elastic.request.retry.count tries more, and then a dead letter in a Kafka topic, from where the write is replayed.
func TestSystem4ContentservWhole(t *testing.T) {
	engine.Long(t)
	z, e := zooKeeper(t), engine.Shared(t, engine.OpenSearch38)
	k, err := engine.StartKafka(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = k.Stop() })
	const retryCount = 3
	products := e.Index(t)
	target := "/" + products + "/_doc/4711"
	var tries atomic.Int64
	var busy atomic.Bool // somebody else is always faster
	between := engine.Between(t, e.URL, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if busy.Load() && r.Method == http.MethodPut && r.URL.Path == target {
			n := tries.Add(1)
			if a, err := e.Do(context.Background(), http.MethodPut, target, fmt.Sprintf(`{"kpi":0,"by":"others","n":%d}`, n)); err != nil || a.Status != 200 {
				t.Errorf("%v %+v", err, a)
			}
		}
		pass.ServeHTTP(w, r)
	})
	p := optimist.Start(t, optimist.Options{Upstream: []string{between}, Config: fmt.Sprintf(
		"locks: {store: zookeeper, zookeeper: {servers: [%q], session_timeout: 1m}, wait: {foreground: 20s, background: 300ms}}\n"+
			"dead_letters: {sink: kafka, timeout: 20s, kafka: {brokers: [%q]}}\n"+
			"rules: [{name: products, match: {index: [%s]}, priority: background, on_exhausted: dead_letter, retry: {max_attempts: %d, max_elapsed: 1m}}]\n",
		z.Addr, k.Addr, products, retryCount+1)})
	c := client{t, p.URL}
	lock := "/" + products + "/_lock/doc/4711"
	if a := enginetest.Ask(t, "PUT", e.URL+target, `{"kpi":0}`); a.Status != 201 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}

	job := c.do(201, "", "PUT", lock, `{"owner":"kpi","priority":"background","note":"KPI update","ttl":"1m"}`)
	if late := c.do(409, "lock_wait_timeout", "PUT", lock, `{"owner":"bulk","priority":"background"}`); late.Error.Holder.Note != "KPI update" {
		t.Errorf("%+v", late)
	}
	session := []string{"Optimist-Session", "kpi"}
	enginetest.Ask(t, "GET", p.URL+target, "", session...)
	busy.Store(true)
	a := enginetest.Ask(t, "PUT", p.URL+target, `{"kpi":7}`, session...)
	busy.Store(false)
	id := gjson.Get(a.Body, "dead_letter.id").Str
	if a.Status != http.StatusAccepted || id == "" || tries.Load() != retryCount+1 {
		t.Fatalf("after %d tries: %d %s", tries.Load(), a.Status, a.Body)
	}
	c.release(lock, "kpi", job.Token)
	editor := c.do(201, "", "PUT", lock, `{"owner":"editor-1","note":"Save Content"}`)
	c.release(lock, "editor-1", editor.Token)

	letter := enginetest.Ask(t, "GET", p.Admin+"/_optimist/dead-letters/"+id, "")
	if gjson.Get(letter.Body, "request.body").Str != `{"kpi":7}` || gjson.Get(letter.Body, "state").Str != "waiting" {
		t.Errorf("in the topic: %d %s", letter.Status, letter.Body)
	}
	if r := enginetest.Ask(t, "POST", p.Admin+"/_optimist/dead-letters/"+id+"/_replay", "{}"); gjson.Get(r.Body, "status").Int() != 200 {
		t.Errorf("replayed: %d %s", r.Status, r.Body)
	}
	if stored := enginetest.Ask(t, "GET", e.URL+target+"?_source_includes=*", "").Body; !strings.Contains(stored, `"kpi":7`) ||
		!strings.Contains(stored, `"by":"others"`) {
		t.Errorf("stored is %s", stored)
	}
}
