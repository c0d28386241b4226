package app_test

import (
	"context"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

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

// rerouting are pipelines after which a document isn't where its client has written it.
var rerouting = map[string]string{
	"index":   `{"set":{"field":"_index","value":"other"}}`,
	"id":      `{"set":{"field":"_id","value":"2"}}`,
	"routing": `{"set":{"field":"_routing","value":"x"}}`,
	"drop":    `{"drop":{}}`,
	"some":    `{"set":{"if":"ctx.a == 4","field":"_index","value":"other"}}`,
	"none":    `{"set":{"field":"p","value":1}}`,
}

// TestWhatPipelinesRerouteIsWrittenAsItIsWithoutOptimist has a client read a document, or that there is none, and write it again and again. A
// guard is checked where the pipeline takes the document: there it doesn't hold, however often the client reads again.
func TestWhatPipelinesRerouteIsWrittenAsItIsWithoutOptimist(t *testing.T) {
	engine.Each(t, engine.Scripted(), func(t *testing.T, real *engine.Engine) {
		e := target{real.Kind.String(), real.URL}
		proxy := optimistFor(t, e, "").URL
		for name, processor := range rerouting {
			for _, how := range []string{"default", "final", "of the request"} {
				if how != "default" && name != "id" { // a final pipeline can't change the index
					continue
				}
				t.Run(name+" "+how, func(t *testing.T) {
					c := &comparison{T: t}
					for k, url := range []string{e.url, proxy} {
						shop, other := e.absent(t), e.absent(t)
						c.of[k] = side{url, session("s"), strings.NewReplacer("shop", shop, "other", other)}
						pipeline := c.of[k].names.Replace(`{"processors":[` + processor + `]}`)
						e.send(t, 200, "PUT", "/_ingest/pipeline/"+shop, pipeline)
						for _, index := range []string{shop, other} {
							e.send(t, 200, "PUT", "/"+index, `{"settings":{"number_of_shards":2,"number_of_replicas":0},"mappings":{"dynamic":false}}`)
						}
						t.Cleanup(func() {
							for _, target := range []string{"/" + shop, "/_ingest/pipeline/" + shop} {
								_, _ = do(context.Background(), http.MethodDelete, e.url+target, "", nil)
							}
						})
					}
					c.reroute(how)
				})
			}
		}
	})
}

func (c *comparison) reroute(how string) {
	query := ""
	for _, s := range c.of {
		shop := s.names.Replace("shop")
		send := func(method, target, body string) { request(c.T, 200, method, c.of[0].url+target, body, nil) }
		switch how {
		case "of the request":
			query = "?pipeline=shop"
		default:
			send("PUT", "/"+shop+"/_settings", `{"index":{"`+how+`_pipeline":"`+shop+`"}}`)
		}
		// A document that was there before the pipeline.
		send("PUT", "/"+shop+"/_settings", `{"index":{"final_pipeline":"_none"}}`)
		request(c.T, 201, "PUT", c.of[0].url+"/"+shop+"/_doc/1?pipeline=_none", `{"a":1}`, nil)
		if how == "final" {
			send("PUT", "/"+shop+"/_settings", `{"index":{"final_pipeline":"`+shop+`"}}`)
		}
	}
	for _, id := range []string{"1", "3"} { // which is there, and isn't
		for _, a := range []string{"2", "4"} {
			c.same("GET", "/shop/_doc/"+id, "")
			c.same("PUT", "/shop/_doc/"+id+query, `{"a":`+a+`}`)
			c.same("PUT", "/shop/_doc/"+id+query, `{"a":`+a+`,"again":true}`)
			c.same("GET", "/shop/_doc/"+id, "")
			c.same("POST", "/shop/_bulk"+query, `{"index":{"_id":"`+id+`"}}`+"\n"+`{"a":`+a+`,"bulk":true}`+"\n"+
				`{"update":{"_id":"`+id+`"}}`+"\n"+`{"doc":{"u":`+a+`}}`+"\n"+`{"create":{"_id":"`+id+`"}}`+"\n"+`{"a":1}`+"\n")
			c.same("GET", "/shop/_doc/"+id, "")
			c.same("POST", "/shop/_update/"+id+query, `{"doc":{"v":`+a+`}}`)
			c.same("PUT", "/shop/_create/"+id+a+query, `{"a":`+a+`}`)
			c.same("PUT", "/shop/_doc/"+id+a+query, `{"a":`+a+`,"c":true}`)
			for _, stored := range []string{"/shop/_doc/2", "/shop/_doc/" + id + "?routing=x", "/other/_doc/" + id, "/other/_doc/" + id + a} {
				c.same("GET", stored, "")
			}
		}
		c.same("DELETE", "/shop/_doc/"+id, "")
	}
}

// TestItemsThatPipelinesRefuseAreToldApart sends a bulk whose results OpenSearch gives in another order than that of the items.
func TestItemsThatPipelinesRefuseAreToldApart(t *testing.T) {
	engine.Each(t, engine.Scripted(), func(t *testing.T, real *engine.Engine) {
		e := target{real.Kind.String(), real.URL}
		proxy, fails, drops := optimistFor(t, e, "").URL, e.absent(t), e.absent(t)
		for pipeline, processor := range map[string]string{fails: `{"fail":{"message":"no"}}`, drops: `{"drop":{}}`} {
			e.send(t, 200, "PUT", "/_ingest/pipeline/"+pipeline, `{"processors":[`+processor+`]}`)
			t.Cleanup(func() {
				_, _ = do(context.Background(), http.MethodDelete, e.url+"/_ingest/pipeline/"+pipeline, "", nil)
			})
		}
		for _, read := range []bool{false, true} { // all documents, or only one: the items of the others aren't guarded
			index, body, header := e.index(t), "", session("s")
			for k, action := range []string{`{"index":{"pipeline":"nosuch",`, `{"delete":{`, `{"create":{"pipeline":"` + fails + `",`,
				`{"index":{"pipeline":"` + drops + `",`, `{"index":{`, `{"index":{"pipeline":"` + fails + `",`} {
				id := strconv.Itoa(k)
				e.send(t, 201, "PUT", "/"+index+"/_create/"+id, `{"a":0}`)
				if read || k == 4 {
					request(t, 200, "GET", proxy+"/"+index+"/_doc/"+id, "", header)
				}
				if body += action + `"_id":"` + id + `"}}` + "\n"; k != 1 {
					body += `{"a":1}` + "\n"
				}
			}
			a, got := request(t, 200, "POST", proxy+"/"+index+"/_bulk", body, header), ""
			gjson.Get(a.body, "items").ForEach(func(_, item gjson.Result) bool {
				item.ForEach(func(verb, result gjson.Result) bool {
					got += verb.Str + " " + result.Get("_id").Str + " " + result.Get("status").Raw + ", "
					return true
				})
				return true
			})
			if want := "index 0 400, delete 1 200, create 2 500, index 3 200, index 4 200, index 5 500, "; got != want {
				t.Errorf("read %t: %s, want %s [%s]", read, got, want, a.outcome())
			}
		}
	})
}
