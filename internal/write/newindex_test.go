package write

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"optimist/internal/upstream"
)

// An index that a write makes may come with an ingest pipeline, by a template: what it does to the first document is there for
// the next change.
func TestWhatThePipelineOfANewIndexDoesIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "")
		w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "PUT" {
				r.Body, _ = sjson.SetRawBytes(r.Body, "marks.-1", []byte(`"x"`)) // the embedded engine has no pipelines
			}
			return nil, nil
		}
		w.engine.after = func(r *upstream.Request, res *upstream.Response) (err error) {
			if strings.HasPrefix(string(r.Target), "/shop?") && res.Status == 200 {
				res.Payload, err = sjson.SetBytes(res.Payload, "shop.settings.index.final_pipeline", "p")
			}
			return err
		}
		for i, r := range w.queued(4, func(i int) result {
			return w.client(fmt.Sprint("c", i)).patch(target1+"?upsert=true", "steps", `[{"op":"increment","path":"/n","value":1}]`)
		}) {
			if r.status != 200 && r.status != 201 {
				t.Errorf("patch %d: %v", i, r)
			}
		}
		_, got := w.direct("GET", target1, "")
		if n := len(gjson.Get(got, "_source.marks").Array()); int64(n) != gjson.Get(got, "_version").Int() || gjson.Get(got, "_source.n").Int() != 4 {
			t.Errorf("%d marks in %s", n, got)
		}
	})
}

// madeMeanwhile has another client make an index whose _source isn't kept whole, with a document, after it was asked what the
// index is.
func (w *world) madeMeanwhile() {
	made := false
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		if !made && strings.Contains(string(r.Target), "/_") && !strings.Contains(string(r.Target), "optimist-probe") {
			made = true
			w.direct("PUT", "/shop", `{"mappings":{"_source":{"excludes":["x"]}}}`)
			w.put("1", `{"a":1,"x":1}`)
		}
		return nil, nil
	}
}

func TestADocumentOfANewIndexIsNotWrittenBackFromAPart(t *testing.T) {
	const transforms = "rules:\n- {name: r, match: {index: [shop]}, transform: [{op: add, path: /t, value: 1}]}\n"
	t.Run("PATCH", func(t *testing.T) {
		w := newWorld(t, "")
		w.madeMeanwhile()
		r := w.client("c").patch(target1, "merge", `{"b":1}`)
		if has(t, r, 400, "refused;attempts=0"); !strings.Contains(r.outcome, "reason=source") || w.engine.writes() != 0 {
			t.Errorf("%v, sent %q", r, w.engine.sent)
		}
	})
	t.Run("_update", func(t *testing.T) {
		w := newWorld(t, transforms)
		w.madeMeanwhile()
		r := w.client("c").send("POST", "/shop/_update/1", `{"doc":{"b":1}}`)
		has(t, r, 200, "retried;attempts=1")
		if sent := w.engine.sent; !strings.Contains(r.outcome, "untransformed") || len(sent) != 1 || !strings.HasPrefix(sent[0], "POST /shop/_update/1") {
			t.Errorf("%v, sent %q", r, sent)
		}
	})
	t.Run("PUT", func(t *testing.T) {
		w := newWorld(t, "")
		c := w.client("c")
		c.read("1")
		w.madeMeanwhile()
		r := c.save("1", `{"b":1}`)
		if has(t, r, 409, "guarded;attempts=1"); !strings.Contains(r.outcome, "reason=source") || len(w.engine.sent) != 1 {
			t.Errorf("%v, sent %q", r, w.engine.sent)
		}
	})
}
