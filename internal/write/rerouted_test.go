package write

import (
	"strings"
	"testing"

	"optimist/internal/upstream"
)

// rerouting has an ingest pipeline take what is written to "1" elsewhere: a document of the id to, or nowhere for "".
func (w *world) rerouting(to string) {
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		target := string(r.Target)
		if r.Method != "PUT" || !strings.HasPrefix(target, "/shop/_doc/1?pipeline=p") {
			return nil, nil
		}
		if to == "" {
			res := &upstream.Response{Payload: []byte(`{"_index":"shop","_id":"1","_version":-3,"result":"noop","_shards":{"total":0}}`)}
			res.Status = 200
			return res, nil
		}
		target = strings.Replace(strings.Replace(target, "/1?pipeline=p", "/"+to+"?", 1), "?&", "?", 1)
		r.Target = []byte(strings.TrimSuffix(target, "?"))
		return nil, nil
	}
}

func TestAGuardThatIsCheckedElsewhereIsNoConflict(t *testing.T) {
	for name, before := range map[string]string{"a document": `{"a":0}`, "none": ""} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("0", `{}`) // so that there is an index
			w.put("2", `{"other":true}`)
			w.put("2", `{"other":false}`)
			if before != "" {
				w.put("1", before)
			}
			w.rerouting("2")
			me := w.client("me")
			for range 2 { // what was written elsewhere is no base of the next write
				me.read("1")
				has(t, me.send("PUT", "/shop/_doc/1?pipeline=p", `{"a":1}`), 200, "passed;")
				has(t, me.send("PUT", "/shop/_doc/1?pipeline=p", `{"a":2}`), 200, "passed;")
				same(t, w.stored("2"), `{"a":2}`)
			}
			if before == "" {
				return
			}
			same(t, w.stored("1"), before)
			w.put("1", `{"a":5}`)
			r := me.send("PUT", "/shop/_doc/1?pipeline=p", `{"a":3}`)
			if has(t, r, 409, "guarded;"); !strings.Contains(r.outcome, "reason=pipeline") {
				t.Errorf("the document has changed since: %v", r)
			}
		})
	}
}

// The document comes, makes the create conflict, goes, and comes again. Once it has gone, the conflict looks like that of another document.
func TestADocumentThatIsDeletedAfterAConflictIsNotRerouted(t *testing.T) {
	w := newWorld(t, "")
	w.put("0", `{}`) // so that there is an index
	me := w.client("me")
	me.read("1")
	w.put("1", `{"first":true}`)
	w.rerouting("1") // the pipeline leaves it where it is
	w.engine.after = func(r *upstream.Request, res *upstream.Response) error {
		switch target := string(r.Target); {
		case res.Status == 409 && w.stored("1") == `{"first":true}`:
			w.direct("DELETE", "/shop/_doc/1", "")
		case res.Status == 404 && strings.HasPrefix(target, "/shop/_update/1"):
			w.put("1", `{"second":true}`)
		}
		return nil
	}
	has(t, me.send("PUT", "/shop/_doc/1?pipeline=p", `{"a":1}`), 409, "guarded;attempts=1;base=absent;reason=pipeline")
	same(t, w.stored("1"), `{"second":true}`)
}

func TestAGuardThatItsClientDemandsIsNeverLeftOut(t *testing.T) {
	w := newWorld(t, "")
	w.put("2", `{"other":true}`)
	w.put("1", `{"a":0}`)
	w.rerouting("2")
	me := w.client("me")
	me.read("1")
	has(t, me.send("PUT", "/shop/_doc/1?pipeline=p", `{"a":1}`, ifMatch(`"1-1"`)), 409, "guarded;attempts=1;base=if_match;reason=pipeline")
	same(t, w.stored("2"), `{"other":true}`)
}

func TestWhatAPipelineDropsIsNoBase(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"l":[]}`)
	w.rerouting("")
	me := w.client("me")
	me.read("1")
	has(t, me.send("PUT", "/shop/_doc/1?pipeline=p", `{"l":["a"]}`), 200, "passed;attempts=1;base=session;reason=pipeline")
	w.put("1", `{"l":["b"]}`)
	has(t, me.save("1", `{"l":["a"]}`), 200, "merged;")
	same(t, w.stored("1"), `{"l":["b","a"]}`)
}
