// Package names_test has writes go by all the names that an index can have, and by who sends them, through the real program on the real
// engines. What rules do then is shown elsewhere.
package names_test

import (
	"net/http"
	"strings"
	"testing"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
)

// rules name indices by what stands behind a name, and what a name stands for. A write that one of them takes has an outcome; what none
// takes has none.
const rules = `rules:
  - {name: batch, match: {index: [INDEX-users], users: [batch], headers: {X-Run: "n*"}}, base: {unknown: reject}}
  - {name: concrete, match: {index: [INDEX-v1, ".ds-INDEX-stream*", "INDEX-dated-2*"]}, base: {unknown: reject}}
  - {name: named, match: {index: [INDEX-alias, INDEX-other-stream]}, base: {unknown: reject}}
  - {name: aside, match: {index: [INDEX-v2, "-INDEX-kept"]}, base: {unknown: reject}}
`

type names struct {
	t     *testing.T
	e     *engine.Engine
	p     *optimist.Process
	index string
}

func (n *names) engine(method, target, body string) {
	n.t.Helper()
	a, err := n.e.Do(n.t.Context(), method, strings.ReplaceAll(target, "INDEX", n.index), strings.ReplaceAll(body, "INDEX", n.index))
	if err != nil || a.Status > 201 {
		n.t.Fatalf("%s %s: %d %s %v", method, target, a.Status, a.Body, err)
	}
}

// put writes through optimist and reports whether a rule took it.
func (n *names) put(target string, fields ...string) bool {
	n.t.Helper()
	target = strings.ReplaceAll(target, "INDEX", n.index)
	req, err := http.NewRequestWithContext(n.t.Context(), http.MethodPut, n.p.URL+target, strings.NewReader(`{"@timestamp":"2026-01-01T00:00:00Z","n":1}`))
	if err != nil {
		n.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		n.t.Fatal(err)
	}
	_ = res.Body.Close()
	if res.StatusCode > 201 && res.StatusCode != 428 {
		n.t.Errorf("PUT %s: %s", target, res.Status)
	}
	return res.Header.Get("Optimist-Outcome") != ""
}

// clean deletes what the test has made: one by one, since some engines take no patterns.
func (n *names) clean() {
	a, err := n.e.Do(n.t.Context(), "GET", "/_cat/indices/"+n.index+"-*?h=index", "")
	if err != nil {
		n.t.Error(err)
	}
	for _, index := range strings.Fields(string(a.Body)) {
		n.engine("DELETE", "/"+index, "")
	}
}

// streams has data streams taken, by their names and by those of their backing indices. Not all of the engines here have them.
func (n *names) streams() {
	template := `{"index_patterns":["` + n.index + `-*stream"],"data_stream":{}}`
	if a, err := n.e.Do(n.t.Context(), "PUT", "/_index_template/"+n.index, template); err != nil || a.Status != 200 {
		n.t.Logf("no data streams here: %d %s %v", a.Status, a.Body, err)
		return
	}
	defer n.engine("DELETE", "/_index_template/INDEX", "")
	if a, err := n.e.Do(n.t.Context(), "GET", "/_data_stream", ""); err != nil || a.Status != 200 {
		n.t.Logf("no data streams here: %d %s %v", a.Status, a.Body, err)
		return
	}
	for target, want := range map[string]bool{"stream": true, "other-stream": true, "nobodys-stream": false} {
		n.engine("PUT", "/_data_stream/INDEX-"+target, "")
		defer n.engine("DELETE", "/_data_stream/INDEX-"+target, "")
		if got := n.put("/INDEX-" + target + "/_create/1"); got != want {
			n.t.Errorf("%s is taken by a rule: %v", target, got)
		}
	}
}

func TestRulesTakeWritesByEveryNameOfTheirIndex(t *testing.T) {
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		n := &names{t: t, e: e, index: e.Index(t)}
		n.p = optimist.Start(t, optimist.Options{Upstream: []string{e.URL}, Config: strings.ReplaceAll(rules, "INDEX", n.index)})
		for index, alias := range map[string]string{"v1": "first", "v0": "alias", "v2": "kept", "plain": "nobody"} {
			n.engine("PUT", "/INDEX-"+index, `{"aliases":{"INDEX-`+alias+`":{}}}`)
		}
		defer n.clean()
		for target, want := range map[string]bool{
			"/INDEX-v1/_doc/1":                    true,
			"/INDEX-first/_doc/1":                 true, // an alias of what a rule names
			"/INDEX-alias/_doc/1":                 true, // an alias that a rule names
			"/INDEX-v0/_doc/1":                    false,
			"/INDEX-plain/_doc/1":                 false,
			"/INDEX-nobody/_doc/1":                false,
			"/INDEX-v2/_doc/1":                    true,
			"/INDEX-kept/_doc/1":                  false, // taken out by its own name
			"/%3CINDEX-x-%7Bnow%2Fd%7D%3E/_doc/1": false,
			"/%3CINDEX-dated-%7Bnow%2Fy%7Byyyy%7D%7D%3E/_create/1": false, // not there yet: which index it is nobody knows
		} {
			if got := n.put(target); got != want {
				t.Errorf("%s is taken by a rule: %v", target, got)
			}
		}
		if !n.put("/%3CINDEX-dated-%7Bnow%2Fy%7Byyyy%7D%7D%3E/_doc/1") {
			t.Error("a date expression isn't taken by its index's name")
		}
		if n.put("/INDEX-users/_doc/1", "X-Run", "now") || n.put("/INDEX-users/_doc/1", "Authorization", "Basic YmF0Y2g6eA==") {
			t.Error("half of what a rule asks for was enough")
		}
		if !n.put("/INDEX-users/_doc/1", "Authorization", "Basic YmF0Y2g6eA==", "X-Run", "now") {
			t.Error("who sends it, and with what header, wasn't seen")
		}
		n.streams()
	})
}
