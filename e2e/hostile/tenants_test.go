package hostile

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/e2e/engine"
	"optimist/internal/enginetest"
)

// tenancy is a way in which a gateway between optimist and the engines tells tenants apart.
type tenancy struct {
	config string
	// choose finds the tenant of a request at the gateway, "" for the one of requests that name none. It may change the request.
	choose func(r *http.Request) string
	// as says how a tenant's client makes a request.
	as func(tenant, path string) (string, []string)
	// unguarded says that optimist can't tell documents' writes there, so that only what crosses is looked at.
	unguarded bool
}

func byField(name string) tenancy {
	return tenancy{
		choose: func(r *http.Request) string { return r.Header.Get(name) },
		as:     func(tenant, path string) (string, []string) { return path, []string{name, tenant} },
	}
}

func (y tenancy) with(config string) tenancy { y.config = config; return y }

func tenancies() map[string]tenancy {
	addresses := tenancy{
		choose: func(r *http.Request) string {
			for tenant, address := range addressOf {
				if strings.HasPrefix(r.Header.Get("X-Forwarded-For"), address+":") {
					return tenant
				}
			}
			return ""
		},
		as: func(tenant, path string) (string, []string) {
			return path, []string{"X-Forwarded-For", addressOf[tenant] + ":" + strconv.Itoa(1024+rand.IntN(60000))}
		},
	}
	const trusting = "sessions: {trusted_proxies: [127.0.0.1/32]}\n"
	return map[string]tenancy{
		"header":             byField("X-Tenant"),
		"organisation":       byField("X-Scope-OrgID"),
		"configured header":  byField("X-Shop").with("identity: {fields: [X-Shop]}\n"),
		"named in no header": byField("X-Tenant").with("sessions: {infer: none}\n"),
		"credentials": {
			choose: func(r *http.Request) string {
				user, _, _ := r.BasicAuth()
				return user
			},
			as: func(tenant, path string) (string, []string) {
				r := http.Request{Header: http.Header{}}
				r.SetBasicAuth(tenant, "secret")
				return path, []string{"Authorization", r.Header.Get("Authorization")}
			},
		},
		"query": {
			choose: func(r *http.Request) string {
				q := r.URL.Query()
				tenant := q.Get("tenant")
				q.Del("tenant") // no engine knows it
				r.URL.RawQuery = q.Encode()
				return tenant
			},
			as: func(tenant, path string) (string, []string) {
				sep := "?"
				if strings.Contains(path, sep) {
					sep = "&"
				}
				return path + sep + "tenant=" + tenant, nil
			},
		},
		"prefix": {
			choose: func(r *http.Request) string {
				tenant, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
				if addressOf[tenant] == "" {
					return ""
				}
				r.URL.Path, r.URL.RawPath = "/"+rest, ""
				return tenant
			},
			as:        func(tenant, path string) (string, []string) { return "/" + tenant + path, nil },
			unguarded: true,
		},
		"address":                            addresses.with(trusting + "identity: {fields: [X-Forwarded-For]}\n"),
		"address, by default":                addresses,
		"address, of a trusted balancer":     addresses.with(trusting),
		"address, in sessions of names only": addresses.with("sessions: {infer: none}\n"),
	}
}

// addressOf are the tenants, and where their clients are.
var addressOf = map[string]string{"anna": "192.0.2.1", "bert": "192.0.2.2"}

// gateway sends each tenant's requests to the tenant's engine, and counts those that name no tenant.
type gateway struct {
	*target
	tenancy
	engines map[string]string // "" is the default tenant's
	lost    atomic.Int64
}

func newGateway(t *testing.T, y tenancy) *gateway {
	g := &gateway{tenancy: y, engines: map[string]string{}}
	forward := map[string]http.Handler{}
	for _, tenant := range []string{"", "anna", "bert"} {
		g.engines[tenant] = engine.Embedded(t)
		forward[tenant] = enginetest.Forward(t, g.engines[tenant])
		for id := range documents {
			a := enginetest.Ask(t, "PUT", g.engines[tenant]+"/shop/_doc/"+strconv.Itoa(id), fmt.Sprintf(`{"n":0,"direct":0,"owner":"of-%s"}`, tenant))
			if a.Status != http.StatusCreated {
				t.Fatal(a)
			}
		}
	}
	url := enginetest.Between(t, g.engines[""], func(w http.ResponseWriter, r *http.Request) bool {
		tenant := g.choose(r)
		if tenant == "" && strings.HasPrefix(r.URL.Path, "/shop") {
			g.lost.Add(1)
		}
		forward[tenant].ServeHTTP(w, r)
		return true
	})
	g.target = startAt(t, url, y.config+"rules: [{name: shop, match: {index: [shop]}, base: {reads: [get, mget, search]}, merge: {paths: {/n: sum, /direct: sum}}}]\n")
	return g
}

const documents = 3

// worker is a client of a tenant.
type worker struct {
	*gateway
	t      *testing.T
	rng    *rand.Rand
	tenant string
	name   string
	added  [documents]int // what it has added to n of each document, as far as that was acknowledged
	direct [documents]int // the same past optimist
	kinds  map[string]int // its writes by their outcome
}

// ask makes a request as the tenant's client, and looks whether the answer has anything of another tenant's.
func (k *worker) ask(method, path, body string) enginetest.Answer {
	target, fields := k.as(k.tenant, path)
	if k.name != "" {
		fields = append(fields, "Optimist-Session", k.name)
	}
	fields = append(fields, "X-Request-Id", strconv.Itoa(k.rng.Int()))
	a := enginetest.Try(k.t, method, k.URL+target, body, fields...)
	if a.Err != nil {
		k.t.Errorf("%s %s: %v", method, target, a.Err)
	}
	for tenant := range addressOf {
		if tenant != k.tenant && strings.Contains(a.Body, "of-"+tenant) {
			k.t.Errorf("%s %s: a client of %s was shown %s", method, target, k.tenant, a.Body)
		}
	}
	if kind, _, _ := strings.Cut(a.Outcome(), ";"); kind != "" {
		k.kinds[kind]++
	}
	return a
}

// mark is a value that nobody but the worker writes.
func (k *worker) mark() string { return fmt.Sprintf("of-%s %d", k.tenant, k.rng.Int()) }

// change makes one change of a document, in one of the ways in which clients do that.
func (k *worker) change() {
	id := k.rng.IntN(documents)
	at := "/shop/_doc/" + strconv.Itoa(id)
	slot := "w" + k.tenant + k.name
	switch k.rng.IntN(8) {
	case 0, 1:
		seen := k.ask("GET", at, "")
		if k.rng.IntN(2) == 0 {
			k.meddle(id)
		}
		doc := gjson.Get(seen.Body, "_source")
		if !doc.Exists() {
			return
		}
		body := fmt.Sprintf(`{"n":%d,"direct":%d,"owner":%s,%q:%q}`, doc.Get("n").Int()+1, doc.Get("direct").Int(), doc.Get("owner").Raw, slot, k.mark())
		if a := k.ask("PUT", at, body); a.Status == http.StatusOK {
			k.added[id]++
		}
	case 2, 3:
		patch := fmt.Sprintf(`[{"op":"add","path":"/%s","value":%q}]`, slot, k.mark())
		target, fields := k.as(k.tenant, at)
		enginetest.Try(k.t, "PATCH", k.URL+target, patch, append(fields, "Content-Type", "application/json-patch+json")...)
	case 4:
		k.ask("POST", "/shop/_mget", `{"ids":["0","1","2"]}`)
		k.ask("POST", "/shop/_search", `{"query":{"match_all":{}},"seq_no_primary_term":true}`)
	case 5:
		k.ask("POST", "/shop/_update/"+strconv.Itoa(id), fmt.Sprintf(`{"doc":{%q:%q}}`, slot, k.mark()))
	case 6, 7:
		k.changeInBulk(id, slot)
	}
}

// changeInBulk changes a document by requests whose paths don't name the index.
func (k *worker) changeInBulk(id int, slot string) {
	seen := k.ask("POST", "/_mget", fmt.Sprintf(`{"docs":[{"_index":"shop","_id":"%d"}]}`, id))
	doc := gjson.Get(seen.Body, "docs.0._source")
	if !doc.Exists() {
		return
	}
	if k.rng.IntN(2) == 0 {
		k.meddle(id)
	}
	body := fmt.Sprintf("{\"index\":{\"_index\":\"shop\",\"_id\":\"%d\"}}\n{\"n\":%d,\"direct\":%d,\"owner\":%s,%q:%q}\n", id,
		doc.Get("n").Int(), doc.Get("direct").Int(), doc.Get("owner").Raw, slot, k.mark())
	target, fields := k.as(k.tenant, "/_bulk")
	if k.name != "" {
		fields = append(fields, "Optimist-Session", k.name)
	}
	a := enginetest.Try(k.t, "POST", k.URL+target, body, append(fields, "Content-Type", "application/x-ndjson")...)
	if kind, _, _ := strings.Cut(a.Outcome(), ";"); kind != "" {
		k.kinds["bulk "+kind]++
	}
}

// meddle changes the document past optimist, so that whoever has read it conflicts.
func (k *worker) meddle(id int) {
	a := enginetest.Try(k.t, "POST", k.engines[k.tenant]+"/shop/_update/"+strconv.Itoa(id)+"?retry_on_conflict=100",
		fmt.Sprintf(`{"doc":{"past":%q}}`, k.mark()))
	if a.Status == http.StatusOK {
		k.direct[id]++
	}
}

// TestTenantsSeeAndWriteNothingOfEachOther has two tenants whose documents have the same names, and clients that use the same names of
// sessions, from one address, change the same documents at once.
func TestTenantsSeeAndWriteNothingOfEachOther(t *testing.T) {
	rounds := 40
	if long() {
		rounds = 2000
	}
	for name, y := range tenancies() {
		t.Run(name, func(t *testing.T) {
			g := newGateway(t, y)
			before := g.lost.Load()
			var workers []*worker
			var wg sync.WaitGroup
			for tenant := range addressOf {
				for _, session := range []string{"one", "two", "three"} {
					k := &worker{gateway: g, t: t, rng: rand.New(rand.NewPCG(uint64(len(workers)), 7)), tenant: tenant, name: session, kinds: map[string]int{}}
					workers = append(workers, k)
					wg.Go(func() {
						for range rounds {
							k.change()
						}
					})
				}
			}
			wg.Wait()
			kinds := map[string]int{}
			for _, k := range workers {
				for kind, n := range k.kinds {
					kinds[kind] += n
				}
			}
			t.Logf("writes by outcome: %v", kinds)
			g.check(t, workers)
			if n := g.lost.Load() - before; n > 0 {
				t.Errorf("%d requests named no tenant", n)
			}
			if !y.unguarded && kinds["merged"]+kinds["combined"] == 0 {
				t.Error("nothing was merged")
			}
		})
	}
}

// check holds the engines' documents against what the workers did.
func (g *gateway) check(t *testing.T, workers []*worker) {
	t.Helper()
	for tenant, url := range g.engines {
		for id := range documents {
			a := enginetest.Ask(t, "GET", url+"/shop/_doc/"+strconv.Itoa(id), "")
			for other := range g.engines {
				if other != tenant && other != "" && strings.Contains(a.Body, "of-"+other) {
					t.Errorf("tenant %q has what is another's: %s", tenant, a.Body)
				}
			}
			added := 0
			for _, k := range workers {
				if k.tenant == tenant {
					added += k.added[id]
				}
			}
			if n := int(gjson.Get(a.Body, "_source.n").Int()); n != added && !g.unguarded {
				t.Errorf("tenant %q, document %d: %d were added, and %d were acknowledged", tenant, id, n, added)
			}
		}
	}
}

// guarded has a client read a document, somebody else change it, and others do something. Then the client writes the document: nothing may
// be lost.
func (g *gateway) guarded(t *testing.T, client, of *worker, what string, do func()) {
	t.Helper()
	seen := client.ask("GET", "/shop/_doc/0", "")
	of.meddle(0)
	do()
	doc := gjson.Get(seen.Body, "_source")
	body := fmt.Sprintf(`{"n":%d,"direct":0,"owner":%s}`, doc.Get("n").Int()+1, doc.Get("owner").Raw)
	a := client.ask("PUT", "/shop/_doc/0", body)
	if !strings.HasPrefix(a.Outcome(), "merged") {
		t.Errorf("%s: %d %s, want it merged", what, a.Status, a.Outcome())
	}
}

// What a tenant sees of an index, or does with it, says nothing of another tenant's index of the same name.
func TestATenantsIndexEndsNothingInAnothers(t *testing.T) {
	g := newGateway(t, byField("X-Tenant"))
	newWorker := func(tenant string) *worker {
		return &worker{gateway: g, t: t, rng: rand.New(rand.NewPCG(1, 7)), tenant: tenant, kinds: map[string]int{}}
	}
	anna, bert := newWorker("anna"), newWorker("bert")
	anna.ask("PUT", "/shop/_doc/0", `{"n":0,"direct":0,"owner":"of-anna"}`)
	for _, c := range []struct{ what, method, path, body string }{
		{"a read", "GET", "/shop/_doc/0", ""},
		{"its end", "DELETE", "/shop", ""},
		{"a read of none", "GET", "/shop/_doc/0", ""},
		{"a second end", "DELETE", "/shop", ""},
		{"an index", "PUT", "/shop", ""},
		{"a write", "PUT", "/shop/_doc/0", `{"n":1}`},
		{"its end after that", "DELETE", "/shop", ""},
		{"an alias of that name", "PUT", "/b", `{"aliases":{"shop":{}}}`},
		{"the end of the alias", "DELETE", "/b/_alias/shop", ""},
	} {
		g.guarded(t, anna, anna, c.what, func() { bert.ask(c.method, c.path, c.body) })
	}
}

// Everybody can ask for names that no index has. More of them than there is room for must not give all later indices one fate.
func TestNamesThatNoIndexHasEndNothing(t *testing.T) {
	const names = 4200
	g := newGateway(t, byField("X-Tenant"))
	client := &worker{gateway: g, t: t, rng: rand.New(rand.NewPCG(1, 7)), tenant: "anna", kinds: map[string]int{}}
	other := &worker{gateway: g, t: t, rng: rand.New(rand.NewPCG(2, 7)), tenant: "anna", name: "other", kinds: map[string]int{}}
	for i := range names {
		other.ask("GET", "/none-"+strconv.Itoa(i)+"/_doc/1", "")
	}
	client.ask("PUT", "/shop/_doc/0", `{"n":0,"direct":0,"owner":"of-anna"}`)
	g.guarded(t, client, client, "a read of no index", func() { other.ask("GET", "/none/_doc/1", "") })
	g.guarded(t, client, client, "an index of its own", func() { other.ask("PUT", "/mine", "") })
}

// Behind a gateway that takes the path's first name for a tenant, an item's own index is the tenant's, and not the one that optimist would
// read without the prefix.
func TestABulkBehindAPathPrefixIsOfItsTenantAlone(t *testing.T) {
	for _, path := range []string{"/_bulk", "/shop/_bulk"} {
		g := newGateway(t, tenancies()["prefix"])
		before := g.lost.Load()
		anna := &worker{gateway: g, t: t, rng: rand.New(rand.NewPCG(1, 7)), tenant: "anna", kinds: map[string]int{}}
		other := &worker{gateway: g, t: t, rng: rand.New(rand.NewPCG(2, 7)), tenant: "", kinds: map[string]int{}}
		anna.ask("POST", "/_mget", `{"docs":[{"_index":"shop","_id":"0"}]}`)
		other.meddle(0)
		anna.meddle(0)
		a := enginetest.Try(t, "POST", g.URL+"/anna"+path, `{"index":{"_index":"shop","_id":"0"}}`+"\n"+`{"n":0,"direct":0,"owner":"of-anna","new":1}`+"\n",
			"Content-Type", "application/x-ndjson")
		if gjson.Get(a.Body, "items.0.index.status").Int() != http.StatusOK {
			t.Errorf("%s: %d %s %s", path, a.Status, a.Outcome(), a.Body)
		}
		now := gjson.Get(enginetest.Ask(t, "GET", g.engines["anna"]+"/shop/_doc/0", "").Body, "_source").Raw
		if now != `{"n":0,"direct":0,"owner":"of-anna","new":1}` || g.lost.Load() != before {
			t.Errorf("%s: stored is %s, and %d requests named no tenant", path, now, g.lost.Load()-before)
		}
	}
}
