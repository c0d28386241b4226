package app

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"optimist/internal/enginetest"
)

// twoTenants is a gateway in front of two engines. It sends requests of bert to the second one. How bert says who he is, the keys of asBert say.
func twoTenants(t *testing.T) (anna, bert, gateway string) {
	t.Helper()
	anna, bert = enginetest.Serve(t), enginetest.Serve(t)
	forward := enginetest.Forward(t, bert)
	return anna, bert, enginetest.Between(t, anna, func(w http.ResponseWriter, r *http.Request) bool {
		its := r.URL.Query().Get("tenant") == "bert" || strings.HasPrefix(r.Header.Get("X-Forwarded-For"), "192.0.2.2") ||
			r.Header.Get("X-Tenant") == "bert" || r.Header.Get("X-Shop") == "bert"
		query := r.URL.Query()
		query.Del("tenant")
		r.URL.RawQuery = query.Encode()
		if its {
			forward.ServeHTTP(w, r)
		}
		return its
	})
}

// asBert are requests of the tenant bert: its fields, or its parameter.
var asBert = map[string]struct {
	fields []string
	query  string
}{
	"field":            {fields: []string{"X-Tenant", "bert", "Authorization", "Basic YTpi"}},
	"configured field": {fields: []string{"X-Shop", "bert"}},
	"parameter":        {query: "?tenant=bert"},
	"address":          {fields: []string{"X-Forwarded-For", "192.0.2.2"}},
}

// TestWritesAreUndoneInTheTenantInWhichTheyWereMade: both tenants have documents of the same names, at the same revisions, and one lock covers
// writes in both. What can't be undone becomes a letter of the right tenant.
func TestWritesAreUndoneInTheTenantInWhichTheyWereMade(t *testing.T) {
	for name, as := range asBert {
		t.Run(name, func(t *testing.T) {
			anna, bert, gateway := twoTenants(t)
			w := newUndoWorld(t, gateway, "identity: {fields: [X-Shop]}\n")
			for _, engine := range []string{anna, bert} {
				for _, id := range []string{"1", "2", "left"} {
					enginetest.Ask(t, "PUT", engine+"/docs/_doc/"+id, `{"n":"old"}`)
				}
			}
			token, field := w.lock("/_lock/global/x", "one", "")
			both := append(field, as.fields...)
			w.ask(200, "PUT", "/docs/_doc/1"+as.query, `{"n":"bert"}`, both...)
			w.ask(200, "PUT", "/docs/_doc/1", `{"n":"anna"}`, field...)
			w.ask(200, "DELETE", "/docs/_doc/2"+as.query, "", both...)
			w.ask(201, "PUT", "/docs/_doc/new"+as.query, `{"n":"bert"}`, both...)
			w.ask(200, "PUT", "/docs/_doc/left"+as.query, `{"n":"bert"}`, both...)
			enginetest.Ask(t, "PUT", bert+"/docs/_doc/left", `{"n":"other"}`)
			w.ask(200, "POST", "/_lock/global/x/_rollback?wait=5m&owner=one&token="+token, "")
			for _, engine := range []string{anna, bert} {
				for _, id := range []string{"1", "2"} {
					if got := enginetest.Ask(t, "GET", engine+"/docs/_source/"+id, "").Body; got != `{"n":"old"}` {
						t.Errorf("%s of %s is %s", id, engine, got)
					}
				}
				if got := enginetest.Ask(t, "GET", engine+"/docs/_doc/new", ""); got.Status != 404 {
					t.Errorf("new of %s is %s", engine, got.Body)
				}
			}
			_, page := operate(t, w.app, "GET", "", "", "")
			letter := page.Get("letters.0.request").Raw
			for _, want := range []string{"/docs/_doc/left" + as.query, strings.Join(as.fields[:min(2, len(as.fields))], `","`)} {
				if !strings.Contains(letter, want) {
					t.Errorf("the letter is %s; want %s in it", letter, want)
				}
			}
			if strings.Contains(letter, "Authorization") {
				t.Errorf("the letter is %s", letter)
			}
		})
	}
}

// TestAKeyAnswersForNoOtherTenant: a gateway may choose the engine by what identifies nobody. A repeat is a repeat only if it takes the same way.
// Behind a trusted proxy, that is the client's address, whichever proxies the request passes. Where clients move, no address counts.
func TestAKeyAnswersForNoOtherTenant(t *testing.T) {
	login := []string{"Authorization", "Basic YTpi", "Idempotency-Key", "k"}
	for name, c := range map[string]struct {
		config       string
		first, other []string
		status       int
	}{
		"unlisted field":   {"", []string{"X-Env", "anna"}, []string{"X-Env", "bert"}, 422},
		"no field":         {"", nil, []string{"X-Env", "bert"}, 422},
		"address":          {"", []string{"X-Forwarded-For", "192.0.2.1"}, []string{"X-Forwarded-For", "192.0.2.2"}, 422},
		"port":             {"", []string{"X-Forwarded-For", "192.0.2.1:7"}, []string{"X-Forwarded-For", "192.0.2.1:8"}, 201},
		"trusted proxies":  {"sessions: {trusted_proxies: [127.0.0.1, 10.0.0.0/8]}\n", []string{"X-Forwarded-For", "192.0.2.1"}, []string{"X-Forwarded-For", "192.0.2.1, 10.0.0.1"}, 201},
		"trusted, another": {"sessions: {trusted_proxies: [127.0.0.1]}\n", []string{"X-Forwarded-For", "192.0.2.1"}, []string{"X-Forwarded-For", "192.0.2.2"}, 422},
		"moving clients":   {"sessions: {infer: credentials}\n", []string{"X-Forwarded-For", "192.0.2.1"}, []string{"X-Forwarded-For", "192.0.2.2"}, 201},
		"id of a request":  {"", []string{"X-Request-Id", "1"}, []string{"X-Request-Id", "2"}, 201},
		"host":             {"", []string{"Host", "a"}, []string{"Host", "b"}, 201},
	} {
		t.Run(name, func(t *testing.T) {
			app := running(t, configured(t, c.config, enginetest.Serve(t)))
			w := &world{t: t, proxied: app.URL(), app: app}
			first := w.ask(w.proxied, "PUT", doc1, `{"n":1}`, append(c.first, login...)...)
			other := w.ask(w.proxied, "PUT", doc1, `{"n":1}`, append(c.other, login...)...)
			again := w.ask(w.proxied, "PUT", doc1, `{"n":1}`, append(c.first, login...)...)
			if first.Status != 201 || other.Status != c.status || again.Status != 201 || again.Header.Get("Optimist-Idempotency") != "repeated" {
				t.Errorf("first %d, other %d %s, again %d", first.Status, other.Status, other.Body, again.Status)
			}
		})
	}
}

// TestADeadLetterIsReplayedInItsTenant: whoever replays it has credentials, and the client may have had none.
func TestADeadLetterIsReplayedInItsTenant(t *testing.T) {
	for name, as := range asBert {
		t.Run(name, func(t *testing.T) {
			anna, bert, gateway := twoTenants(t)
			var busy atomic.Bool
			full := enginetest.Between(t, gateway, func(w http.ResponseWriter, r *http.Request) bool {
				refused := busy.Load() && strings.HasPrefix(r.URL.Path, "/shop")
				if refused {
					w.WriteHeader(http.StatusTooManyRequests)
				}
				return refused
			})
			w := newWorldOn(t, "identity: {fields: [X-Shop]}\n"+letterRules, Identity{Infer: true, Address: true}, full)
			for _, engine := range []string{anna, bert} {
				enginetest.Ask(t, "PUT", engine+doc1, `{"n":1}`)
			}
			busy.Store(true)
			a := w.ask(w.proxied, "PUT", doc1+as.query, `{"n":2}`, as.fields...)
			busy.Store(false)
			id := a.Header.Get("Optimist-Dead-Letter")
			if a.Status != 202 {
				t.Fatal(a)
			}
			if len(as.fields) > 0 {
				if _, one := operate(t, w.app, "GET", "/"+id, "", ""); !strings.Contains(one.Get("request.fields").Raw, as.fields[0]) {
					t.Errorf("the letter is %s", one)
				}
			}
			_, r := operate(t, w.app, "POST", "/"+id+"/_replay", `{"unchecked":true,"overwrite":true}`, "Basic Yjpi")
			for engine, want := range map[string]string{anna: `{"n":1}`, bert: `{"n":2}`} {
				if got := enginetest.Ask(t, "GET", engine+"/shop/_source/1", "").Body; got != want {
					t.Errorf("%s is %s; want %s; replayed: %s", engine, got, want, r)
				}
			}
		})
	}
}
