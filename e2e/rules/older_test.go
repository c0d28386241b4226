package rules_test

import (
	"net/http"
	"testing"

	"github.com/tidwall/gjson"
)

// olderRule is Inbot's older form: the object carries its version, and nothing else tells from which revision a write was made.
const olderRule = `rules:
- name: older
  base: {stamp: _rev, from: [stamp], unknown: reject}
  on_conflict: fail
`

// TestInbotOlderFormRefusesTheStaleWrite sends two clients through two proxies, neither of which knows what the other served.
func TestInbotOlderFormRefusesTheStaleWrite(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		a, b := optimistFor(t, e, olderRule), optimistFor(t, e, olderRule)
		path := "/" + e.index(t) + "/_doc/1"
		e.send(t, http.StatusCreated, http.MethodPut, path, `{"n":1}`)
		first, second := carried(t, a, path), carried(t, b, path)
		b.send(t, http.StatusOK, http.MethodPut, path, `{"n":2,"_rev":"`+first+`"}`)
		refused(t, a.try(t, http.MethodPut, path, `{"n":3,"_rev":"`+second+`"}`),
			http.StatusConflict, "version_conflict_engine_exception", "version conflict")
		if got, want := e.stored(t, path), (revision{`{"n":2}`, 1, 2}); got != want {
			t.Errorf("stored %+v, want %+v", got, want)
		}
		a.send(t, http.StatusOK, http.MethodPut, path, `{"n":4,"_rev":"`+carried(t, b, path)+`"}`)
		if got, want := e.stored(t, path), (revision{`{"n":4}`, 2, 3}); got != want {
			t.Errorf("stored %+v, want %+v", got, want)
		}
		a.send(t, http.StatusPreconditionRequired, http.MethodPut, path, `{"n":5}`)
	})
}

// carried reads the document and returns the revision that it carries.
func carried(t *testing.T, p target, path string) string {
	t.Helper()
	rev := gjson.Get(p.send(t, http.StatusOK, http.MethodGet, path, "").body, "_source._rev").Str
	if rev == "" {
		t.Fatal("the document carries no revision")
	}
	return rev
}
