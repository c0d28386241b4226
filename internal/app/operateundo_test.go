package app

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/admin"
	"optimist/internal/enginetest"
)

// operate asks for journals as the admin listener does: target is the path of a lock, or nothing, and a query.
func (w *undoWorld) operate(status int, target string) gjson.Result {
	w.t.Helper()
	path, query, _ := strings.Cut(target, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		w.t.Fatal(err)
	}
	r := &admin.UndoRequest{Lock: []byte(path), Query: map[string]string{}}
	for name := range values {
		r.Query[name] = values.Get(name)
	}
	got, answer := w.app.operateUndo(w.t.Context(), r)
	text, err := json.Marshal(answer)
	if err != nil || got != status {
		w.t.Fatalf("%s: %d %s %v; want %d", target, got, text, err, status)
	}
	return gjson.ParseBytes(text)
}

// locks are the locks of the journals that are listed, with their states.
func (w *undoWorld) listed(query string) string {
	w.t.Helper()
	w.ask(200, "POST", "/optimist-undo/_refresh", "")
	var all []string
	for _, j := range w.operate(200, query).Get("journals").Array() {
		all = append(all, j.Get("lock").Str+" "+j.Get("state").Str)
	}
	return strings.Join(all, ", ")
}

func TestJournalsAreListedUntilNothingIsOpen(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	w.ask(201, "PUT", "/docs/_doc/a", `{"n":0}`)
	if r := w.operate(200, ""); r.Get("journals").Raw != "[]" {
		t.Error(r)
	}
	one, field := w.lock("/_lock/global/one", "job-1", "&ttl=10m")
	w.ask(200, "PUT", "/docs/_doc/a", `{"n":1,"secret":"s3cr3t"}`, field...)
	two, _ := w.lock("/docs/_lock/tree/a/b", "job-2", "&ttl=10m")
	w.ask(201, "PUT", "/_lock/global/plain?owner=job-1", "")
	for query, want := range map[string]string{
		"":                                   "/_lock/global/one open, /docs/_lock/tree/a/b open",
		"?owner=job-2":                       "/docs/_lock/tree/a/b open",
		"?owner=job*":                        "/_lock/global/one open, /docs/_lock/tree/a/b open",
		"?owner=other*":                      "",
		"?prefix=/_lock/global":              "/_lock/global/one open",
		"?older_than=1h":                     "",
		"?older_than=0s":                     "/_lock/global/one open, /docs/_lock/tree/a/b open",
		"?state=open":                        "/_lock/global/one open, /docs/_lock/tree/a/b open",
		"?state=lapsed":                      "",
		"?size=1":                            "/_lock/global/one open",
		"?size=1&after=" + w.next("?size=1"): "/docs/_lock/tree/a/b open",
	} {
		if got := w.listed(query); got != want {
			t.Errorf("%s: %s; want %s", query, got, want)
		}
	}
	r := w.operate(200, "/_lock/global/one")
	if text := r.Raw; strings.Contains(text, "s3cr3t") || r.Get("journals.0.writes").Int() != 1 || r.Get("journals.0.token").String() != one ||
		r.Get("entries.0.id").Str != "a" || r.Get("entries.0.operation").Str != "update" || r.Get("entries.0.state").Str != "applied" {
		t.Error(text)
	}
	if got := w.operate(200, "/_lock/global/one?documents=true").Get("entries.0.after").Str; got != `{"n":1,"secret":"s3cr3t"}` {
		t.Errorf("the document is %s", got)
	}
	w.lapse("/_lock/global/one")
	if got := w.listed("?owner=job-1"); got != "/_lock/global/one lapsed" && got != "" { // the sweep may have been there
		t.Error(got)
	}
	w.ask(201, "PUT", "/_lock/global/one?owner=next&wait=20s", "")
	w.ask(200, "POST", "/docs/_lock/tree/a/b/_commit?owner=job-2&token="+two, "")
	if got := w.listed(""); got != "" {
		t.Error(got)
	}
	w.operate(404, "/_lock/global/one")
}

// next is where the page behind a page begins.
func (w *undoWorld) next(query string) string {
	w.t.Helper()
	return w.operate(200, query).Get("next").Str
}

func TestAJournalThatHasLeftADeadLetterIsListed(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	for i := range 3 {
		w.ask(201, "PUT", fmt.Sprint("/docs/_doc/", i), `{"n":0}`)
	}
	token, field := w.lock("/_lock/global/x", "one", "&ttl=10m")
	for i := range 3 {
		w.ask(200, "PUT", fmt.Sprint("/docs/_doc/", i), `{"n":1}`, field...)
	}
	w.ask(200, "POST", "/docs/_update/1", `{"doc":{"n":8}}`)
	w.ask(200, "POST", "/_lock/global/x/_rollback?wait=5m&owner=one&token="+token, "")
	if got := w.listed("?state=left"); got != "/_lock/global/x left" {
		t.Error(got)
	}
	w.operate(404, "/_lock/global/y") // another lock's dead letters aren't its own
	again, field := w.lock("/_lock/global/x", "two", "&ttl=10m")
	w.ask(200, "PUT", "/docs/_doc/2", `{"n":5}`, field...)
	var all []string
	for after := ""; ; {
		r := w.operate(200, "/_lock/global/x?size=1&after="+after)
		if n := r.Get("journals.#").Int(); n != 2 || r.Get("journals.0.dead_letters").Int() != 1 {
			t.Errorf("the journals are %s", r)
		}
		for _, e := range r.Get("entries").Array() {
			all = append(all, e.Get("token").String()+" "+e.Get("id").Str+" "+e.Get("state").Str)
		}
		if after = r.Get("next").Str; after == "" {
			break
		}
	}
	if got, want := strings.Join(all, ", "), fmt.Sprintf("%s 0 undone, %[1]s 1 left, %[1]s 2 undone, %s 2 applied", token, again); got != want {
		t.Errorf("%s; want %s", got, want)
	}
}

func TestAQuestionForJournalsIsReadStrictly(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	for target, status := range map[string]int{"?state=asleep": 400, "?size=0": 400, "?size=x": 400, "?older_than=soon": 400, "?after=x": 400,
		"?documents=true": 400, "?ower=a": 400, "/_lock/global/x?owner=a": 400, "/_lock/global/x?documents=7": 400, "/_lock/global/x?after=7": 400,
		"/nothing": 400, "?owner=&prefix=&state=&older_than=&size=&after=": 200, "/docs/_lock/docs": 400, "/_lock/global/x": 404, "/": 200, "?pretty": 200} {
		w.operate(status, target)
	}
	off := newUndoWorld(t, enginetest.Serve(t), "undo: {grace: 1s}\n")
	if r := off.operate(404, ""); !strings.Contains(r.Get("error.reason").Str, "undo.auth") {
		t.Error(r)
	}
}
