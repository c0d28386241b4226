package write

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// scripting has the engine run two scripts, "delete" and "none": they set ctx.op to that.
func (w *world) scripting() {
	w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
		op := gjson.GetBytes(r.Body, "script").Str
		target := strings.NewReplacer("_update", "_doc", "?retry_on_conflict=3", "").Replace(string(r.Target))
		if op == "" {
			return nil, nil
		}
		method, shown := "DELETE", w.get("1")
		if op == "none" {
			method, target = "GET", "/shop/_doc/1"
		}
		res := w.engine.handle(&upstream.Request{Method: method, Target: []byte(target)})
		if res.Status != 200 {
			return res, nil
		}
		answer, result := res.Payload, gjson.GetBytes(res.Payload, "result").Str
		if result == "" {
			result = "noop"
		}
		n := gjson.GetManyBytes(answer, "_version", "_seq_no", "_primary_term")
		get := ""
		if gjson.GetBytes(r.Body, "_source").Bool() {
			get = `,"get":{"_seq_no":` + n[1].Raw + `,"_primary_term":1,"found":true,"_source":` + gjson.Get(shown, "_source").Raw + `}`
		}
		res.Payload = fmt.Appendf(nil, `{"_index":"shop","_id":"1","_version":%s, "result": %q,"_seq_no":%s,"_primary_term":%s%s}`,
			n[0].Raw, result, n[1].Raw, n[2].Raw, get)
		return res, nil
	}
}

func TestADocumentThatAScriptDeletesIsGoneForItsClient(t *testing.T) {
	for _, shows := range []string{"", `,"_source":true`} {
		for name, guard := range map[string]struct {
			query  string
			fields []wire.Field
		}{"no guard": {}, "If-Match": {fields: []wire.Field{ifMatch(`"1-1"`)}}, "a guard of its own": {query: "?if_seq_no=1&if_primary_term=1"}} {
			t.Run(name+shows, func(t *testing.T) {
				w := newWorld(t, "")
				w.put("1", `{"n":1}`)
				w.scripting()
				me := w.client("me")
				me.read("1")
				has(t, me.save("1", `{"n":2}`), 200, "guarded")
				r := me.send("POST", "/shop/_update/1"+guard.query, `{"script":"delete"`+shows+`}`, guard.fields...)
				if r.status != 200 || w.stored("1") != "" {
					t.Fatalf("%v left %s", r, w.stored("1"))
				}
				has(t, me.save("1", `{"n":3}`), 201, "guarded;attempts=1;base=absent")
				has(t, me.save("1", `{"n":4}`), 200, "guarded;attempts=1;base=view")
			})
		}
	}
}

func TestAScriptThatChangesNothingTakesNoBase(t *testing.T) {
	for name, fields := range map[string][]wire.Field{"no guard": nil, "If-Match": {ifMatch(`"0-1"`)}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"l":[1]}`)
			w.scripting()
			me := w.client("me")
			me.read("1")
			r := me.send("POST", "/shop/_update/1", `{"script":"none"}`, fields...)
			if r.status != 200 || gjson.Get(r.body, "result").Str != "noop" {
				t.Fatal(r)
			}
			w.put("1", `{"l":[1,2]}`)
			has(t, me.save("1", `{"l":[1,3]}`), 200, "merged;attempts=2;base=session")
			same(t, w.stored("1"), `{"l":[1,2,3]}`)
		})
	}
}
