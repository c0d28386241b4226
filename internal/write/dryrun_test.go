package write

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/explain"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// explain asks what a write would do.
func (c *client) explain(method, target, body string, fields ...wire.Field) (*explain.Account, error) {
	c.w.t.Helper()
	var op api.Op
	api.Parse([]byte(method), []byte(target), &op)
	ru := c.w.rules.Match(string(op.Index), op.Kind)
	if ru == nil {
		c.w.t.Fatalf("no rule takes %s %s", method, target)
	}
	fields = append(fields, wire.Field{Name: []byte("Content-Type"), Value: []byte("application/json")})
	r := &Request{Method: []byte(method), Body: []byte(body),
		Request: base.Request{Op: &op, Fields: fields, Rule: ru, Session: c.sess, Anonymous: c.anonymous}}
	sent, before := c.w.engine.writes(), c.w.stored(string(op.ID))
	a, err := c.w.s.Explain(c.w.t.Context(), r)
	if c.w.engine.writes() != sent || c.w.stored(string(op.ID)) != before {
		c.w.t.Fatalf("a dry run of %s %s wrote", method, target)
	}
	return a, err
}

func (c *client) account(method, target, body string, fields ...wire.Field) *explain.Account {
	c.w.t.Helper()
	a, err := c.explain(method, target, body, fields...)
	if err != nil {
		c.w.t.Fatal(err)
	}
	return a
}

// numbers are the document's in the engine.
func (w *world) numbers(id string) string {
	_, body := w.direct("GET", "/shop/_doc/"+id, "")
	return gjson.Get(body, "[_seq_no,_primary_term,_version]").Raw
}

func TestADryRunWritesNothingAndUsesUpNoBase(t *testing.T) {
	w := newWorld(t, sumRule)
	w.put("1", `{"n":10,"x":1,"y":1}`)
	c := w.client("c")
	c.read("1")
	w.put("1", `{"n":7,"x":1,"y":2}`)
	before := w.numbers("1")
	for range 3 {
		a := c.account("PUT", "/shop/_doc/1", `{"n":9,"x":2,"y":1}`)
		if string(a.Document) != `{"n":6,"x":2,"y":2}` || a.Outcome.Field != "merged;attempts=2;base=session" || a.Outcome.Status != 200 {
			t.Fatalf("%s %+v", a.Document, a.Outcome)
		}
	}
	if after := w.numbers("1"); after != before {
		t.Fatalf("the document's numbers were %s and are %s", before, after)
	}
	// The base is still there, and used up by the write itself.
	has(t, c.save("1", `{"n":9,"x":2,"y":1}`), 200, "merged;attempts=2;base=session")
	same(t, w.stored("1"), `{"n":6,"x":2,"y":2}`)
}

// TestADryRunShowsTheClientNothing: a dry run makes the answer up, so the client hasn't seen a part of the document in it.
func TestADryRunShowsTheClientNothing(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1,"b":1}`)
	c := w.client("c")
	c.read("1")
	w.put("1", `{"a":1,"b":2}`)
	c.account("POST", update1+"?_source=a", `{"doc":{"a":2}}`)
	has(t, c.save("1", `{"a":2,"b":1}`), 200, "merged;attempts=2;base=session")
}

// TestADryRunGivesBackTheOldestRead: in an inferred session the reads keep their order and their number.
func TestADryRunGivesBackTheOldestRead(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1,"b":1}`)
	c := w.stranger()
	c.read("1")
	c.read("1")
	for range 5 {
		if a := c.account("PUT", "/shop/_doc/1", `{"a":2,"b":1}`); a.Outcome.Base != "session" {
			t.Fatalf("%+v", a.Outcome)
		}
	}
	has(t, c.save("1", `{"a":2,"b":1}`), 200, "guarded;attempts=1;base=session")
	has(t, c.save("1", `{"a":1,"b":2}`), 200, "merged;attempts=2;base=session")
	same(t, w.stored("1"), `{"a":2,"b":2}`)
	if a := c.account("PUT", "/shop/_doc/1", `{"a":1,"b":3}`); a.Outcome.Base != "view" {
		t.Fatalf("both reads are used up, and the base is %+v", a.Outcome)
	}
}

func TestADryRunTellsWhyAndWhat(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: first, match: {index: [other]}}\n- name: stock\n  match: {index: [\"sh*\"]}\n  merge: {paths: {/n: sum, /t: current}}\n")
	w.put("1", `{"n":10,"t":"a","s":"a","u":1}`)
	c := w.client("c")
	c.read("1")
	w.put("1", `{"n":7,"t":"b","s":"b","u":1,"v":1}`)
	a := c.account("PUT", "/shop/_doc/1?refresh=true", `{"n":9,"t":"c","s":"c","u":2}`)
	if *a.Rule != (explain.Rule{Name: "stock", Place: 2, Index: "sh*"}) || a.Operation != "index" || a.Mode != "guard" {
		t.Errorf("%+v %s %s", a.Rule, a.Operation, a.Mode)
	}
	if a.Base.Kind != "session" || *a.Base.SeqNo != 0 || a.Base.Version != 1 || string(a.Base.Document) != `{"n":10,"t":"a","s":"a","u":1}` {
		t.Errorf("base %+v", a.Base)
	}
	if *a.Current.SeqNo != 1 || !a.Current.Exists {
		t.Errorf("current %+v", a.Current)
	}
	var decisions []string
	for _, d := range a.Merge {
		decisions = append(decisions, d.Path+" "+d.Decision+" "+d.Strategy+" "+d.Rule+" "+string(d.Result))
	}
	if want := []string{"/n sum sum /n 6", `/t kept current /t "b"`, `/s overwritten sent  "c"`, "/u taken   2", "/v kept   1"}; !slices.Equal(decisions, want) {
		t.Errorf("decisions %q, want %q", decisions, want)
	}
	if got := string(a.Change); !strings.HasPrefix(got, `[{"op":"test","path":"/n","value":10},{"op":"replace","path":"/n","value":9}`) {
		t.Errorf("change %s", got)
	}
	want := []explain.Request{
		{Method: "PUT", Target: "/shop/_doc/1?refresh=true&if_seq_no=0&if_primary_term=1", Guard: &explain.Guard{SeqNo: 0, PrimaryTerm: 1}, Status: 409},
		{Method: "PUT", Target: "/shop/_doc/1?refresh=true&if_seq_no=1&if_primary_term=1", Guard: &explain.Guard{SeqNo: 1, PrimaryTerm: 1}, Status: 200},
	}
	if got, _ := json.Marshal(a.Requests); string(got) != string(must(json.Marshal(want))) {
		t.Errorf("requests %s", got)
	}
	if !slices.Equal(a.Outcome.Overwrote, []string{"/s"}) || a.Outcome.Result != "updated" {
		t.Errorf("outcome %+v", a.Outcome)
	}
}

func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestADryRunOfEveryOperation(t *testing.T) {
	const rules = "rules:\n- name: shop\n  match: {index: [shop]}\n  merge: {paths: {/status: fail}}\n- {name: fetch, match: {index: [fetch]}, base: {unknown: fetch}}\n"
	for _, c := range []struct {
		name, base, current  string // "" is no document
		read                 bool
		method, target, body string
		status               int
		field, last          string // the outcome, and the last request
		document             string
	}{
		{"nobody wrote since", `{"a":1}`, `{"a":1}`, true, "PUT", "/shop/_doc/1", `{"a":2}`, 200, "guarded;attempts=1;base=session",
			"PUT /shop/_doc/1?if_seq_no=0&if_primary_term=1", `{"a":2}`},
		{"nothing known", `{"a":1}`, `{"a":1}`, false, "PUT", "/shop/_doc/1", `{"a":2}`, 200, "passed;attempts=1;base=none", "PUT /shop/_doc/1", `{"a":2}`},
		{"nothing was there", "", "", true, "PUT", "/shop/_doc/1", `{"a":2}`, 201, "guarded;attempts=1;base=absent", "PUT /shop/_doc/1?op_type=create", `{"a":2}`},
		{"nothing was there, and now is", "", `{"b":1}`, true, "PUT", "/shop/_doc/1", `{"a":2}`, 200, "merged;attempts=2;base=absent",
			"PUT /shop/_doc/1?if_seq_no=0&if_primary_term=1", `{"b":1,"a":2}`},
		{"deleted since", `{"a":1}`, "", true, "PUT", "/shop/_doc/1", `{"a":2}`, 409, "guarded;attempts=1;base=session",
			"PUT /shop/_doc/1?if_seq_no=0&if_primary_term=1", ""},
		{"nothing to write", `{"a":1}`, `{"a":2}`, true, "PUT", "/shop/_doc/1", `{"a":2}`, 200, "merged;attempts=1;base=session",
			"PUT /shop/_doc/1?if_seq_no=0&if_primary_term=1", ""},
		{"refused by a path", `{"status":"a"}`, `{"status":"b"}`, true, "PUT", "/shop/_doc/1", `{"status":"c"}`, 409, "guarded;attempts=1;base=session",
			"PUT /shop/_doc/1?if_seq_no=0&if_primary_term=1", ""},
		{"a create", `{"a":1}`, `{"a":1}`, false, "PUT", "/shop/_create/1", `{"a":2}`, 409, "passed;attempts=1;base=none", "PUT /shop/_create/1", ""},
		{"a create where nothing is", "", "", false, "PUT", "/shop/_doc/1?op_type=create", `{"a":2}`, 201, "passed;attempts=1;base=none",
			"PUT /shop/_doc/1?op_type=create", `{"a":2}`},
		{"the client's own guard", `{"a":1}`, `{"a":1}`, false, "PUT", "/shop/_doc/1?if_seq_no=7&if_primary_term=1", `{"a":2}`, 409,
			"guarded;attempts=1;base=explicit;reason=explicit", "PUT /shop/_doc/1?if_seq_no=7&if_primary_term=1", ""},
		{"a version of the client's", `{"a":1}`, `{"a":1}`, false, "PUT", "/shop/_doc/1?version=7&version_type=external", `{"a":2}`, 0,
			"guarded;attempts=1;base=explicit;reason=explicit", "PUT /shop/_doc/1?version=7&version_type=external", `{"a":2}`},
		{"an update of what wasn't read", `{"a":1}`, `{"a":1}`, false, "POST", "/shop/_update/1", `{"doc":{"a":2}}`, 200, "retried;attempts=1;base=none",
			"POST /shop/_update/1?retry_on_conflict=3", `{"a":2}`},
		{"a script", `{"a":1}`, `{"a":1}`, true, "POST", "/shop/_update/1", `{"script":"ctx._source.a++"}`, 0, "retried;attempts=1;base=none",
			"POST /shop/_update/1", ""},
		{"a part", `{"a":1}`, `{"a":1}`, true, "POST", "/shop/_update/1", `{"doc":{"a":2}}`, 200, "guarded;attempts=1;base=session",
			"POST /shop/_update/1?if_seq_no=0&if_primary_term=1", `{"a":2}`},
		{"a part of what others changed", `{"l":[1]}`, `{"l":[1,2],"b":1}`, true, "POST", "/shop/_update/1", `{"doc":{"l":[1,3]}}`, 200,
			"merged;attempts=2;base=session", "POST /shop/_update/1?if_seq_no=1&if_primary_term=1", `{"l":[1,2,3],"b":1}`},
		{"a part that others wrote, too", `{"a":1}`, `{"a":2}`, true, "POST", "/shop/_update/1", `{"doc":{"a":2}}`, 200,
			"merged;attempts=2;base=session", "POST /shop/_update/1?if_seq_no=1&if_primary_term=1", `{"a":2}`},
		{"a part refused by a path", `{"status":"a"}`, `{"status":"b"}`, true, "POST", "/shop/_update/1", `{"doc":{"status":"c"}}`, 409,
			"guarded;attempts=1;base=session", "POST /shop/_update/1?if_seq_no=0&if_primary_term=1", ""},
		{"a part of what is gone", `{"a":1}`, "", true, "POST", "/shop/_update/1", `{"doc":{"a":2}}`, 404, "guarded;attempts=1;base=session",
			"POST /shop/_update/1?if_seq_no=0&if_primary_term=1", ""},
		{"a part of nothing", "", "", true, "POST", "/shop/_update/1", `{"doc":{"a":2}}`, 404, "retried;attempts=1;base=none",
			"POST /shop/_update/1?retry_on_conflict=3", ""},
		{"a part that makes the document", "", "", true, "POST", "/shop/_update/1", `{"doc":{"a":2},"doc_as_upsert":true}`, 201,
			"guarded;attempts=1;base=absent", "POST /shop/_update/1", `{"a":2}`},
		{"a part that would have made it", "", `{"b":1}`, true, "POST", "/shop/_update/1", `{"doc":{"a":2},"doc_as_upsert":true}`, 200,
			"merged;attempts=2;base=absent", "POST /shop/_update/1?if_seq_no=0&if_primary_term=1", `{"b":1,"a":2}`},
		{"a delete", `{"a":1}`, `{"a":1}`, true, "DELETE", "/shop/_doc/1", "", 200, "guarded;attempts=1;base=session",
			"DELETE /shop/_doc/1?if_seq_no=0&if_primary_term=1", ""},
		{"a delete of what changed", `{"a":1}`, `{"a":2}`, true, "DELETE", "/shop/_doc/1", "", 200, `merged;attempts=2;base=session;overwrote="/"`,
			"DELETE /shop/_doc/1?if_seq_no=1&if_primary_term=1", ""},
		{"what can't be merged", `{"a":1}`, `{"a":1}`, true, "PUT", "/shop/_doc/1", `[1]`, 200, "guarded;attempts=1;base=session",
			"PUT /shop/_doc/1?if_seq_no=0&if_primary_term=1", `[1]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, rules)
			if c.base != "" {
				w.put("1", c.base)
			}
			client := w.client("c")
			if c.read {
				client.read("1")
			}
			switch {
			case c.current == "" && c.base != "":
				w.direct("DELETE", "/shop/_doc/1", "")
			case c.current != c.base:
				w.put("1", c.current)
			}
			before := w.numbers("1")
			a := client.account(c.method, c.target, c.body)
			if w.numbers("1") != before {
				t.Fatal("it wrote")
			}
			last := a.Requests[len(a.Requests)-1]
			if got := last.Method + " " + last.Target; a.Outcome.Status != c.status || a.Outcome.Field != c.field || got != c.last || string(a.Document) != c.document {
				t.Errorf("%d %s [%s] %s", a.Outcome.Status, got, a.Outcome.Field, a.Document)
			}
			if _, err := a.AppendJSON(nil); err != nil {
				t.Error(err)
			}
			if c.status == 0 || strings.HasPrefix(c.body, "[") {
				return // only the engine can tell
			}
			// And so it comes.
			r := client.send(c.method, c.target, c.body)
			if r.status != c.status || r.outcome != c.field || c.status < 300 && c.document != "" && w.stored("1") != c.document {
				t.Errorf("the write itself: %v %s", r, w.stored("1"))
			}
		})
	}
}

func TestADryRunIsRefusedAsTheWriteWouldBe(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: shop, match: {index: [shop]}, base: {unknown: reject}}\n")
	w.put("1", `{"a":1}`)
	a, err := w.client("c").explain("PUT", "/shop/_doc/1", `{"a":2}`)
	if !errors.Is(err, base.ErrPreconditionRequired) || a == nil || a.Rule.Name != "shop" || len(a.Requests) != 0 {
		t.Fatalf("%v %+v", err, a)
	}
}

func TestADryRunFetchesTheBaseWhereTheRuleDoes(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: shop, match: {index: [shop]}, base: {unknown: fetch}}\n")
	w.put("1", `{"a":1,"b":1}`)
	a := w.client("c").account("PUT", "/shop/_doc/1", `{"a":2}`)
	if a.Outcome.Field != "guarded;attempts=1;base=fetched" || string(a.Document) != `{"a":2}` || len(gjson.ParseBytes(a.Change).Array()) != 4 {
		t.Fatalf("%+v %s", a.Outcome, a.Change)
	}
}

// TestADryRunKeepsDigitsAndText: what an account shows can be copied.
func TestADryRunKeepsDigitsAndText(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"n":9007199254740993.10,"t":"<&>"}`)
	c := w.client("c")
	c.read("1")
	out, err := c.account("PUT", "/shop/_doc/1", `{"n":9007199254740993.20,"t":"<\u00e9>"}`).AppendJSON(nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"document":{"n":9007199254740993.10,"t":"<&>"}`, `"document":{"n":9007199254740993.20,"t":"<\u00e9>"}`} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %s in %s", want, out)
		}
	}
}

// TestADryRunOfAnEngineThatIsAwayIsAnError: there is nothing that it could tell.
func TestADryRunOfAnEngineThatIsAwayIsAnError(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"a":1}`)
	c := w.client("c")
	c.read("1")
	w.engine.before = func(*upstream.Request) (*upstream.Response, error) {
		return nil, &upstream.Error{Class: upstream.NotSent, Err: errors.New("connection refused")}
	}
	if a, err := c.explain("PUT", "/shop/_doc/1", `{"a":2}`); err == nil {
		t.Fatalf("%+v", a.Outcome)
	}
	w.engine.before = nil
	has(t, c.save("1", `{"a":2}`), 200, "guarded;attempts=1;base=session") // the base is still there
}

const dryTransform = `rules:
- name: shop
  match: {index: [shop]}
  merge: {paths: {/n: sum}}
  transform:
    - {op: increment, path: /edits, value: 1}
    - {op: default, path: /edits, value: 1}
    - {op: remove, path: /draft, when: 'incoming.n == 0'}
    - {op: test, path: /locked, value: false, when: 'current != null && has(current.locked)'}
`

func TestADryRunTellsWhatTheTransformDoes(t *testing.T) {
	w := newWorld(t, dryTransform)
	w.put("1", `{"n":10}`)
	c := w.client("c")
	c.read("1")
	w.put("1", `{"n":7}`)
	a := c.account("PUT", "/shop/_doc/1", `{"n":9,"draft":true}`)
	if string(a.Document) != `{"n":6,"draft":true,"edits":1}` || len(a.Merge) != 2 {
		t.Errorf("%s %+v", a.Document, a.Merge)
	}
	want := []explain.Step{
		{Step: 0, Op: "increment", Path: "/edits", Done: true},
		{Step: 1, Op: "default", Path: "/edits", Done: true, Why: "it changes nothing"},
		{Step: 2, Op: "remove", Path: "/draft", Why: "its condition doesn't hold: incoming.n == 0"},
		{Step: 3, Op: "test", Path: "/locked", Why: "its condition doesn't hold: current != null && has(current.locked)"},
	}
	if !slices.Equal(a.Transform, want) {
		t.Errorf("%+v", a.Transform)
	}
	has(t, c.save("1", `{"n":9,"draft":true}`), 200, "merged")
	same(t, w.stored("1"), `{"n":6,"draft":true,"edits":1}`)
}

func TestADryRunTellsWhichStepRefuses(t *testing.T) {
	w := newWorld(t, dryTransform)
	w.put("1", `{"n":10,"locked":true}`)
	c := w.client("c")
	c.read("1")
	a := c.account("PUT", "/shop/_doc/1", `{"n":9,"locked":true}`)
	if last := a.Transform[len(a.Transform)-1]; last.Done || !strings.Contains(last.Why, `test of "/locked" failed`) || a.Outcome.Status != 409 || a.Document != nil {
		t.Errorf("%+v %+v", a.Transform, a.Outcome)
	}
}

func TestADryRunOfAPatch(t *testing.T) {
	w := newWorld(t, "")
	w.put("1", `{"n":1}`)
	c := w.client("c")
	media := wire.Field{Name: []byte("Content-Type"), Value: []byte("application/vnd.optimist-patch+json")}
	before := w.numbers("1")
	a := c.account("PATCH", "/shop/_doc/1", `[{"op":"increment","path":"/n","value":2}]`, media)
	if string(a.Document) != `{"n":3}` || a.Outcome.Status != 200 || a.Outcome.Result != "updated" || w.numbers("1") != before ||
		string(a.Change) != `[{"op":"test","path":"/n","value":1},{"op":"replace","path":"/n","value":3}]` {
		t.Errorf("%s %s %+v", a.Document, a.Change, a.Outcome)
	}
	if a := c.account("PATCH", "/shop/_doc/1", `[{"op":"test","path":"/n","value":2}]`, wire.Field{Name: []byte("Content-Type"), Value: []byte("application/json-patch+json")}); a.Outcome.Status != 409 {
		t.Errorf("%+v", a.Outcome)
	}
	if a := c.account("PATCH", "/shop/_doc/2", `[{"op":"increment","path":"/n","value":2}]`, media); a.Outcome.Status != 404 {
		t.Errorf("%+v", a.Outcome)
	}
	if a := c.account("PATCH", "/shop/_doc/2?upsert=true", `[{"op":"increment","path":"/n","value":2}]`, media); a.Outcome.Status != 201 || string(a.Document) != `{"n":2}` {
		t.Errorf("%s %+v", a.Document, a.Outcome)
	}
}

// TestADryRunHasNothingInDoubt: what wasn't sent can't have been applied, whatever became of the primary, or whether there is
// one.
func TestADryRunHasNothingInDoubt(t *testing.T) {
	t.Run("another primary", func(t *testing.T) {
		w := newWorld(t, sumRule)
		w.put("1", `{"n":1}`)
		me := w.client("me")
		me.read("1")
		f := w.failover()
		f.term++
		w.put("1", `{"n":2}`)
		w.put("1", `{"n":3}`)
		a := me.account("PUT", "/shop/_doc/1", `{"n":2}`)
		if a.Outcome.Field != "merged;attempts=2;base=session" || a.Outcome.Status != 200 || string(a.Document) != `{"n":4}` || f.asked != 0 {
			t.Errorf("asked %d times: %+v %s", f.asked, a.Outcome, a.Document)
		}
	})
	for _, method := range []string{"PUT", "DELETE"} {
		t.Run("no index, "+method, func(t *testing.T) {
			w := newWorld(t, "")
			tag := wire.Field{Name: []byte("If-Match"), Value: []byte(`"0-1"`)}
			a := w.client("me").account(method, "/shop/_doc/1", `{"n":2}`, tag)
			if a.Outcome.Status != 409 || a.Outcome.Error == nil || a.Outcome.Error.Type != "version_conflict_engine_exception" {
				t.Errorf("%+v", a.Outcome)
			}
		})
	}
}
