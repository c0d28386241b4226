package names_test

import (
	"fmt"
	"strings"
	"testing"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/enginetest"
)

// Two tenants have an alias each of one index, which routes and filters, and each has a document of the same id, with the same numbers. A
// session that has read the one writes the other, and then its own.
func TestTenantsBehindAliasesThatRouteHaveDocumentsOfTheirOwn(t *testing.T) {
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		n := &names{t: t, e: e, index: e.Index(t)}
		n.p = optimist.Start(t, optimist.Options{Upstream: []string{e.URL}})
		n.engine("PUT", "/INDEX-shop", `{"settings":{"number_of_shards":5,"number_of_replicas":0}}`)
		defer n.clean()
		n.apart("one", "two")
		for round, read := range []string{"GET /%s/_doc/1", `POST /%s/_mget {"ids":["1"]}`, `POST /%s/_search {"seq_no_primary_term":true}`} {
			session := []string{"Optimist-Session", fmt.Sprint(round)}
			request, body, _ := strings.Cut(fmt.Sprintf(read, n.index+"-one"), " {")
			method, path, _ := strings.Cut(request, " ")
			if body != "" {
				body = "{" + body
			}
			if a := enginetest.Ask(t, method, n.p.URL+path, body, session...); !strings.Contains(a.Body, `"of":"one"`) || strings.Contains(a.Body, `"of":"two"`) {
				t.Fatal(a)
			}
			ask := func(alias, body string) enginetest.Answer {
				return enginetest.Ask(t, "PUT", n.p.URL+"/"+n.index+"-"+alias+"/_doc/1", body, session...)
			}
			if a := ask("two", `{"of":"two","a":2}`); a.Status != 200 || !strings.HasPrefix(a.Outcome(), "passed") {
				t.Errorf("%s: the other's is written from what was read of the one: %d %s %s", read, a.Status, a.Outcome(), a.Body)
			}
			if strings.HasPrefix(read, "POST /%s/_search") {
				continue // which rules don't have watched by themselves
			}
			n.engine("PUT", "/INDEX-one/_doc/1", `{"of":"one","a":1,"b":1}`)
			if a := ask("one", `{"of":"one","a":3}`); a.Status != 200 || !strings.HasPrefix(a.Outcome(), "merged") {
				t.Errorf("%s: the one's own: %d %s %s", read, a.Status, a.Outcome(), a.Body)
			}
			if a := enginetest.Ask(t, "GET", e.URL+"/"+n.index+"-one/_source/1", ""); a.Body != `{"of":"one","a":3,"b":1}` {
				t.Errorf("%s: %s", read, a.Body)
			}
			n.engine("PUT", "/INDEX-one/_doc/1?refresh=true", `{"of":"one","a":1}`)
		}
	})
}

// apart makes aliases whose documents are in different shards, with one of id 1 in each.
func (n *names) apart(one, two string) {
	n.t.Helper()
	alias := func(name, routing string) {
		n.engine("POST", "/_aliases", fmt.Sprintf(`{"actions":[{"add":{"index":"INDEX-shop","alias":"INDEX-%s","routing":%q,"filter":{"match":{"of":%q}}}}]}`, name, routing, name))
		n.engine("PUT", "/INDEX-"+name+"/_doc/1?refresh=true", fmt.Sprintf(`{"of":%q,"a":1}`, name))
	}
	alias(one, "r")
	for i := range 50 {
		alias(two, fmt.Sprint(i))
		a := enginetest.Ask(n.t, "GET", n.e.URL+"/"+n.index+"-"+one+"/_source/1", "")
		if strings.Contains(a.Body, `"of":"`+one+`"`) {
			return
		}
		n.engine("PUT", "/INDEX-"+one+"/_doc/1", fmt.Sprintf(`{"of":%q,"a":1}`, one)) // they are in one shard
	}
	n.t.Fatal("no routing leads elsewhere")
}
