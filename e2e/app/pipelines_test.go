package app_test

import (
	"context"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"optimist/e2e/engine"
)

// TestUpdatesGoThroughPipelinesAsTheyDoWithoutOptimist sends the same update items directly and through optimist, each of a session that has
// read the document. One index has a default pipeline, the other has none.
func TestUpdatesGoThroughPipelinesAsTheyDoWithoutOptimist(t *testing.T) {
	engine.Each(t, engine.Scripted(), func(t *testing.T, real *engine.Engine) {
		e := target{real.Kind.String(), real.URL}
		w := pipes{T: t, e: e, proxy: optimistFor(t, e, "").URL, pipeline: e.absent(t), plain: e.index(t), piped: e.absent(t)}
		t.Cleanup(func() { // an index goes before its pipeline; not the test's context: it has ended
			for _, target := range []string{"/" + w.piped, "/_ingest/pipeline/" + w.pipeline} {
				_, _ = do(context.Background(), http.MethodDelete, e.url+target, "", nil)
			}
		})
		e.send(t, 200, "PUT", "/_ingest/pipeline/"+w.pipeline, `{"processors":[{"set":{"field":"p","value":1}}]}`)
		e.send(t, 200, "PUT", "/"+w.piped, `{"settings":{"number_of_replicas":0,"default_pipeline":"`+w.pipeline+`"},"mappings":{"dynamic":false}}`)
		for _, own := range []string{"", w.pipeline, "none", "_none"} {
			for _, part := range []string{`{"doc":{"b":1}}`, `{"doc":{"b":1},"doc_as_upsert":true}`, `{"doc":{"b":1},"upsert":{"u":1}}`} {
				item := `{"update":{"_id":"1"}}`
				if own != "" {
					item = `{"update":{"_id":"1","pipeline":"` + own + `"}}`
				}
				item += "\n" + part + "\n"
				for _, there := range []bool{true, false} {
					w.compare(w.plain, "", item, there)
					w.compare(w.piped, "", item, there)
					if there || e.name != engine.ES7.String() || !strings.Contains(part, "doc_as_upsert") {
						// Elasticsearch 7 runs the request's pipeline over each upsert, whatever the action says: optimist makes such a
						// document by an upsert.
						w.compare(w.plain, "?pipeline="+w.pipeline, item, there)
					}
					w.compare(w.piped, "?pipeline="+w.pipeline, item, there)
				}
			}
		}
	})
}

type pipes struct {
	*testing.T
	e                      target
	proxy                  string
	pipeline, plain, piped string
}

var version = regexp.MustCompile(`"_version":\d+`)

// compare sends an item to a document that is there, or isn't.
func (p *pipes) compare(index, query, item string, there bool) {
	p.Helper()
	var got [2]string
	for k, url := range []string{p.e.url, p.proxy} {
		p.e.send(p.T, 200, "POST", "/"+index+"/_bulk?pipeline=_none", "{\"index\":{\"_id\":\"1\"}}\n{\"a\":1}\n")
		if !there {
			p.e.send(p.T, 200, "DELETE", "/"+index+"/_doc/1", "")
		}
		header := session("s")
		if _, err := do(p.Context(), "GET", url+"/"+index+"/_doc/1", "", header); err != nil {
			p.Fatal(err)
		}
		a := request(p.T, 200, "POST", url+"/"+index+"/_bulk"+query, item, header)
		stored, err := do(p.Context(), "GET", p.e.url+"/"+index+"/_source/1", "", nil)
		if err != nil {
			p.Fatal(err)
		}
		got[k] = version.ReplaceAllString(each.ReplaceAllString(a.body, "…"), "…") + " " + stored.body
	}
	if got[0] != got[1] {
		p.Errorf("%s%s %sthere: %t\ndirect  %s\nproxied %s", index, query, item, there, got[0], got[1])
	}
}
