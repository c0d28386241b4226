package locks_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"optimist/e2e/engine"
)

func TestDocumentsOfAQueryAreLockedAllOrNone(t *testing.T) {
	eachEngine(t, 2, "", func(t *testing.T, e *engine.Engine, c []client) {
		index := e.Index(t)
		var bulk strings.Builder
		const files = 2500 // more than a page of hits, and than a chunk of locks
		for i := range files {
			fmt.Fprintf(&bulk, `{"index":{"_id":"/clinton/%d"}}`+"\n"+`{"dir":"clinton"}`+"\n", i)
		}
		fmt.Fprintf(&bulk, `{"index":{"_id":"/gore/1"}}`+"\n"+`{"dir":"gore"}`+"\n")
		if a, err := e.Do(t.Context(), "POST", "/"+index+"/_bulk", bulk.String()); err != nil || a.Status != 200 {
			t.Fatalf("%v %+v", err, a)
		}
		docs := "/" + index + "/_lock/docs"
		query := `"query":{"match":{"dir":"clinton"}}`
		one := c[0].do(201, "", "PUT", "/"+index+"/_lock/doc/%2Fclinton%2F7", `{"owner":"other"}`)
		c[1].do(409, "lock_held", "POST", docs, `{"owner":"job","wait":"0",`+query+`}`)
		if list := c[0].do(200, "", "GET", "/_lock?owner=job", ""); strings.Contains(list.body, "job") {
			t.Error(list.body)
		}
		c[0].release(one.Lock, "other", one.Token)
		all := c[1].do(201, "", "POST", docs, `{"owner":"job","ttl":"1m",`+query+`}`)
		var told struct {
			Locks []struct {
				ID    string
				Token int64
			}
		}
		if err := json.Unmarshal([]byte(all.body), &told); err != nil || len(told.Locks) != files {
			t.Fatalf("%v: %d locks", err, len(told.Locks))
		}
		c[0].do(409, "lock_held", "PUT", one.Lock, `{"owner":"other","wait":"0"}`)
		c[0].do(201, "", "PUT", "/"+index+"/_lock/doc/%2Fgore%2F1", `{"owner":"other","wait":"0"}`)
		c[0].do(200, "", "PUT", docs+"?renew", all.body)
		c[0].do(200, "", "DELETE", docs, all.body)
		c[1].do(201, "", "PUT", one.Lock, `{"owner":"other","wait":"0"}`)
		c[1].do(400, "parsing_exception", "POST", docs, `{"owner":"job","query":{"nonsense":{}}}`)
		c[1].do(404, "index_not_found_exception", "POST", "/absent-"+index+"/_lock/docs", `{"owner":"job","query":{"match_all":{}}}`)
	})
}
