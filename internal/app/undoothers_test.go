package app

import (
	"net/http"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// step is a write of the document. Who names the client: the holder of the lock, or another one.
type step struct{ who, method, path, body string }

// adds changes a number by an operation.
func adds(who, by string) step {
	return step{who, "PATCH", "/_doc/1", `[{"op":"increment","path":"/n","value":` + by + `}]`}
}

func sets(who, doc string) step  { return step{who, "POST", "/_update/1", `{"doc":` + doc + `}`} }
func saves(who, doc string) step { return step{who, "PUT", "/_doc/1", doc} }
func makes(who, doc string) step { return step{who, "PUT", "/_create/1", doc} }
func removes(who string) step    { return step{who, "DELETE", "/_doc/1", ""} }

// take makes the write. Only that of "around" doesn't go through optimist.
func (s *step) take(t *testing.T, optimist, engine string, token []string) {
	t.Helper()
	fields := []string{"Content-Type", "application/json"}
	if s.method == "PATCH" {
		fields[1] = stepsType
	}
	switch s.who {
	case "holder":
		fields = append(fields, token...)
	case "around":
		optimist = engine
	}
	if a := enginetest.Ask(t, s.method, optimist+"/docs"+s.path, s.body, fields...); a.Status >= http.StatusMultipleChoices {
		t.Fatal(*s, a)
	}
}

// TestUndoJudgesByRevisions: equal bytes don't show that nobody else has written the document.
func TestUndoJudgesByRevisions(t *testing.T) {
	for name, c := range map[string]struct {
		was   string
		steps []step
		want  string // empty: no document
		left  string
	}{
		"a number is as it was": {`{"n":10}`, []step{adds("holder", "-1"), adds("other", "1")}, `{"n":11}`, "0"},
		"a number is as it was, another value not": {`{"n":10}`,
			[]step{adds("holder", "-1"), adds("other", "1"), sets("other", `{"z":1}`)},
			`{"n":11,"z":1}`, "0"},
		"a number is as between two writes": {`{"n":10}`,
			[]step{adds("holder", "-1"), adds("holder", "-1"), adds("other", "1")}, `{"n":11}`, "0"},
		"others add between two writes": {`{"n":10}`,
			[]step{adds("holder", "-1"), adds("other", "1"), adds("holder", "-1")}, `{"n":11}`, "0"},
		"a number is as the holder left it": {`{"n":10}`,
			[]step{adds("holder", "-1"), adds("other", "1"), adds("other", "-1")}, `{"n":10}`, "0"},
		"a value is as between two writes": {`{"v":"a"}`,
			[]step{sets("holder", `{"v":"b"}`), sets("holder", `{"v":"c"}`), sets("other", `{"v":"b"}`)},
			`{"v":"b"}`, "1"},
		"a value is as between two writes, and others wrote there, too": {`{"v":"a"}`, []step{sets("holder", `{"v":"b"}`),
			sets("other", `{"z":1}`), sets("holder", `{"v":"c"}`), sets("other", `{"v":"b"}`)}, `{"v":"b","z":1}`, "1"},
		"a value is as it was": {`{"v":"a"}`,
			[]step{sets("holder", `{"v":"b"}`), sets("other", `{"v":"a"}`)}, `{"v":"a"}`, "0"},
		"a value is as the holder left it": {`{"v":"a"}`,
			[]step{sets("holder", `{"v":"b"}`), sets("other", `{"v":"c"}`), sets("other", `{"v":"b"}`)}, `{"v":"b"}`, "1"},
		"others wrote what was there": {`{"v":"a"}`,
			[]step{sets("holder", `{"v":"b"}`), saves("around", `{"v":"b"}`)}, `{"v":"a"}`, "0"},
		"others wrote that between, too": {`{"v":"a"}`,
			[]step{sets("holder", `{"v":"b"}`), saves("around", `{"v":"b"}`), sets("holder", `{"v":"c"}`)}, `{"v":"a"}`, "0"},
		"a document that the holder removed": {`{"v":"a"}`,
			[]step{saves("holder", `{"v":"b"}`), removes("holder"), makes("other", `{"v":"b"}`)}, `{"v":"b"}`, "1"},
		"a document that others removed": {`{"v":"a"}`,
			[]step{saves("holder", `{"v":"b"}`), removes("other"), makes("other", `{"v":"b"}`)}, `{"v":"b"}`, "1"},
		"a document that the holder made": {"",
			[]step{makes("holder", `{"v":"a"}`), removes("other"), makes("other", `{"v":"a"}`)}, `{"v":"a"}`, "1"},
		"one that it made and removed": {"",
			[]step{makes("holder", `{"v":"a"}`), removes("holder"), makes("other", `{"v":"a"}`)}, `{"v":"a"}`, "0"},
	} {
		t.Run(name, func(t *testing.T) {
			engine := enginetest.Serve(t)
			w := newUndoWorld(t, engine, "rules: [{name: docs, match: {index: [docs]}, merge: {paths: {/n: sum}}}]\n")
			if w.ask(200, "PUT", "/docs", `{}`); c.was != "" {
				w.ask(201, "PUT", "/docs/_doc/1", c.was)
			}
			token, field := w.lock("/_lock/global/x", "one", "")
			for _, s := range c.steps {
				s.take(t, w.app.URL(), engine, field)
			}
			if r := w.ask(200, "POST", "/_lock/global/x/_rollback?wait=5m&owner=one&token="+token, ""); r.Get("left").Raw != c.left {
				t.Errorf("%s; want %s left", r, c.left)
			}
			if c.want == "" {
				w.wantsNone("/docs/_doc/1")
			} else if got := w.ask(200, "GET", "/docs/_source/1", "").Raw; strings.ReplaceAll(got, " ", "") != c.want {
				t.Errorf("the document is %s; want %s", got, c.want)
			}
		})
	}
}

// TestUndoLeavesAnIndexAloneThatWasMadeAnew: nothing of the holder is in it, whatever its documents are like.
func TestUndoLeavesAnIndexAloneThatWasMadeAnew(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	for _, id := range []string{"equal", "other", "gone"} {
		w.ask(201, "PUT", "/docs/_doc/"+id, `{"n":10}`)
	}
	token, field := w.lock("/_lock/global/x", "one", "")
	for _, id := range []string{"equal", "other", "gone"} {
		w.ask(200, "PUT", "/docs/_doc/"+id, `{"n":2}`, field...)
	}
	for _, id := range []string{"new", "away"} {
		w.ask(201, "PUT", "/docs/_doc/"+id, `{"n":2}`, field...)
	}
	w.ask(200, "DELETE", "/docs", "")
	anew := [][2]string{{"x", "{}"}, {"y", "{}"}, {"z", "{}"}, {"equal", `{"n":2}`}, {"other", `{"n":2,"z":1}`}, {"new", `{"n":2}`}}
	for _, d := range anew { // that of "equal" gets the numbers that the holder's had
		w.ask(201, "PUT", "/docs/_doc/"+d[0], d[1])
	}
	if r := w.ask(200, "POST", "/_lock/global/x/_rollback?wait=5m&owner=one&token="+token, ""); r.Get("left").Raw != "4" {
		t.Errorf("%s; want 4 left: one of each but what the holder had made, and nobody has made again", r)
	}
	for _, d := range anew {
		w.wants("/docs/_doc/"+d[0], d[1])
	}
	w.wantsNone("/docs/_doc/gone")
	w.wantsNone("/docs/_doc/away")
}

// TestUndoGoesOnWhereItsCredentialsMayNotAskWhatAnIndexIs: then what its documents are like says whose they are.
func TestUndoGoesOnWhereItsCredentialsMayNotAskWhatAnIndexIs(t *testing.T) {
	w := newUndoWorld(t, enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
		user, _, _ := r.BasicAuth()
		if user != "undo" || r.URL.Path != "/docs" {
			return false
		}
		rw.WriteHeader(http.StatusForbidden)
		return true
	}), "")
	w.ask(201, "PUT", "/docs/_doc/a", `{"n":10}`)
	token, field := w.lock("/_lock/global/x", "one", "")
	w.ask(200, "PUT", "/docs/_doc/a", `{"n":2}`, field...)
	w.ask(200, "POST", "/_lock/global/x/_rollback?wait=5m&owner=one&token="+token, "")
	w.wants("/docs/_doc/a", `{"n":10}`)
}
