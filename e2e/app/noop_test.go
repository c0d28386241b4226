package app_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestNoopHasTheFormThatWasAskedFor: what changes nothing any more is answered as the engine answers an update that changes nothing, in
// whatever form the client wants its answers.
func TestNoopHasTheFormThatWasAskedFor(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index, p := e.index(t), optimistFor(t, e, "")
		forms := []string{"", "pretty", "filter_path=result,_id", "filter_path=-_shards,-_type", "filter_path=none", "human&pretty=false", "filter_path=**.total&pretty"}
		if e.name != "embedded" { // which speaks JSON only
			forms = append(forms, "format=yaml", "format=cbor", "format=smile&filter_path=_version")
		}
		for i, form := range forms {
			path := "/" + index + "/_doc/" + string(rune('a'+i))
			me := session("noop")
			e.send(t, http.StatusCreated, http.MethodPut, path, `{"n":1}`)
			request(t, http.StatusOK, http.MethodGet, p.URL+path, "", me)
			e.send(t, http.StatusOK, http.MethodPut, path, `{"n":2}`)
			got := request(t, http.StatusOK, http.MethodPut, p.URL+path+"?"+form, `{"n":2}`, me)
			want := e.send(t, http.StatusOK, http.MethodPost, strings.Replace(path, "/_doc/", "/_update/", 1)+"?"+form, `{"doc":{"n":2}}`)
			if got.body != want.body || !strings.HasPrefix(got.outcome(), "merged") {
				t.Errorf("%s: %q [%s], want %q", form, got.body, got.outcome(), want.body)
			}
			if a, b := got.header.Get("Content-Type"), want.header.Get("Content-Type"); form != "" && a != b {
				t.Errorf("%s: %q, want %q", form, a, b)
			}
		}
	})
}
