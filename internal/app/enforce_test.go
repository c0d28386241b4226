package app

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/config"
	"optimist/internal/enginetest"
)

// enforced is a world whose rule enforces locks in the index shop, in front of an engine, with what else the rule says.
func enforced(t *testing.T, engine, more string) *world {
	t.Helper()
	c, err := config.Parse("test.yaml", []byte("version: 1\nadmin: ''\nupstream: {health_interval: 0s}\nlocks: {wait: {foreground: 0s}}\n"+
		"rules: [{name: shop, match: {index: [shop]}, locks: enforce"+more+"}, {name: rest}]"),
		config.Overrides{Upstream: []string{engine}, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	c.Sessions.Infer = config.InferNone
	w := &world{t: t, direct: engine, app: running(t, c)}
	w.proxied = w.app.URL()
	return w
}

// acquire takes a lock and gives its token.
func (w *world) acquire(lock, owner string) string {
	w.t.Helper()
	a := w.ask(w.proxied, "PUT", lock+"?owner="+owner, "")
	if a.Status > 201 {
		w.t.Fatalf("PUT %s: %d %s", lock, a.Status, a.Body)
	}
	return gjson.Get(a.Body, "token").Raw
}

func (w *world) release(lock, owner, token string) {
	w.t.Helper()
	if a := w.ask(w.proxied, "DELETE", lock+"?owner="+owner+"&token="+token, ""); a.Status != 200 {
		w.t.Fatalf("DELETE %s: %d %s", lock, a.Status, a.Body)
	}
}

const lockOf1 = "/shop/_lock/doc/1"

// everyWrite is one request of each kind to the document 1 of shop.
var everyWrite = []struct{ name, method, target, body string }{
	{"a PUT", "PUT", "/shop/_doc/1", `{"n":2}`},
	{"a create", "PUT", "/shop/_create/1", `{"n":2}`},
	{"a PUT with a guard", "PUT", "/shop/_doc/1?if_seq_no=0&if_primary_term=1", `{"n":2}`},
	{"an _update", "POST", "/shop/_update/1", `{"doc":{"n":2}}`},
	{"a PATCH", "PATCH", "/shop/_doc/1", `{"n":2}`},
	{"a delete", "DELETE", "/shop/_doc/1", ``},
	{"an item of a bulk", "POST", "/shop/_bulk", lines(`{"index":{"_id":"1"}}`, `{"n":2}`)},
	{"a part in a bulk", "POST", "/_bulk", lines(`{"update":{"_index":"shop","_id":"1"}}`, `{"doc":{"n":2}}`)},
	{"a delete in a bulk of another index", "POST", "/other/_bulk", lines(`{"delete":{"_index":"shop","_id":"1"}}`)},
}

func (w *world) write(name, method, target, body string, fields ...string) (status int, kind string) {
	w.t.Helper()
	if method == "PATCH" && !slices.Contains(fields, "Content-Type") {
		fields = append(fields, "Content-Type", "application/merge-patch+json")
	}
	a := w.ask(w.proxied, method, target, body, fields...)
	if item := gjson.Get(a.Body, "items.0"); item.Exists() {
		item.ForEach(func(_, did gjson.Result) bool {
			a.Status, a.Body = int(did.Get("status").Int()), did.Raw
			return false
		})
	}
	return a.Status, gjson.Get(a.Body, "error.type").Str
}

func TestWhatSomebodyElseHasLockedIsNotWritten(t *testing.T) {
	for _, c := range everyWrite {
		t.Run(c.name, func(t *testing.T) {
			w := enforced(t, enginetest.Serve(t), "")
			w.put("/shop/_doc/1", `{"n":1}`)
			token := w.acquire(lockOf1, "anna")
			if status, kind := w.write(c.name, c.method, c.target, c.body); status != 423 || kind != "document_locked" {
				t.Errorf("without a token: %d %s", status, kind)
			}
			if status, kind := w.write(c.name, c.method, c.target, c.body, "Optimist-Lock-Token", "7"); status != 409 || kind != "stale_token" {
				t.Errorf("with a wrong token: %d %s", status, kind)
			}
			w.holds("/shop/_doc/1", `{"n":1}`)
			status, kind := w.write(c.name, c.method, c.target, c.body, "Optimist-Lock-Token", token)
			if c.name == "a create" {
				if status != 409 || kind != "version_conflict_engine_exception" {
					t.Errorf("a create by the holder: %d %s", status, kind)
				}
				return
			}
			if status != 200 {
				t.Errorf("with the holder's token: %d %s", status, kind)
			}
			w.put("/shop/_doc/1", `{"n":1}`)
			w.release(lockOf1, "anna", token)
			if status, kind := w.write(c.name, c.method, c.target, c.body, "Optimist-Lock-Token", token); status != 409 || kind != "stale_token" {
				t.Errorf("after the release, with its token: %d %s", status, kind)
			}
			w.holds("/shop/_doc/1", `{"n":1}`)
			if n := w.counted("optimist_writes_total", "reason", "locked") + w.counted("optimist_outcomes_total", "reason", "locked"); n == 0 {
				t.Error("nothing is counted")
			}
		})
	}
}

func TestALockedWriteSaysWhoHasTheLockAndForHowLong(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), "")
	w.acquire(lockOf1, "anna")
	a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{}`)
	v := gjson.GetMany(a.Body, "error.lock", "error.holder.owner", "error.holder.expires_at", "error.holder.token", "status", "error.root_cause.0.type")
	if a.Status != 423 || v[0].Str != lockOf1 || v[1].Str != "anna" || v[2].Str == "" || v[3].Exists() || v[4].Int() != 423 ||
		v[5].Str != "document_locked" || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Outcome(), "refused;attempts=0;base=") ||
		!strings.Contains(a.Outcome(), "reason=locked") {
		t.Errorf("%d %s [%s] %v", a.Status, a.Body, a.Outcome(), a.Header)
	}
}

func TestReadsAndOtherDocumentsAreNeverHeldUp(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), "")
	w.put("/shop/_doc/1", `{"n":1}`)
	w.acquire(lockOf1, "anna")
	for _, target := range []string{"/shop/_doc/1", "/shop/_source/1", "/shop/_search"} {
		if a := w.ask(w.proxied, "GET", target, ""); a.Status != 200 {
			t.Errorf("GET %s: %d %s", target, a.Status, a.Body)
		}
	}
	for _, target := range []string{"/shop/_doc/2", "/other/_doc/1", "/other/_doc/1?lock_token=7"} {
		if a := w.ask(w.proxied, "PUT", target, `{}`); a.Status != 201 && a.Status != 200 {
			t.Errorf("PUT %s: %d %s", target, a.Status, a.Body)
		}
	}
}

func TestEachItemOfABulkIsJudgedByItself(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), "")
	one, two := w.acquire(lockOf1, "anna"), w.acquire("/shop/_lock/doc/2", "anna")
	w.acquire("/shop/_lock/doc/3", "bert")
	bulk := func(n int, token string) string {
		return lines(fmt.Sprintf(`{"index":{"_index":"shop","_id":"%d"%s}}`, n, token), `{}`)
	}
	a := w.ask(w.proxied, "POST", "/_bulk", bulk(1, `,"lock_token":`+one)+bulk(1, "")+bulk(2, `,"lock_token":"`+two+`"`)+
		bulk(3, "")+bulk(3, `,"lock_token":`+one)+bulk(4, "")+lines(`{"index":{"_index":"other","_id":"1"}}`, `{}`))
	if got, want := told(a), "index 201 created, index 423 document_locked, index 201 created, index 423 document_locked, "+
		"index 409 stale_token, index 201 created, index 201 created"; got != want {
		t.Errorf("got  %s\nwant %s\n%s", got, want, a.Body)
	}
	a = w.ask(w.proxied, "POST", "/_bulk", bulk(1, "")+bulk(2, ""), "Optimist-Lock-Token", one+", "+two)
	if got := told(a); got != "index 200 updated, index 200 updated" {
		t.Errorf("with both tokens for all: %s", a.Body)
	}
}

func TestAWriteBelowALockedPathIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ rule, id string }{
		"by a field": {", lock_path: /at/path", "1"},
		"by the id":  {", lock_path: id", "%2Fa%2Fb%2Fc.txt"},
	} {
		t.Run(name, func(t *testing.T) {
			w := enforced(t, enginetest.Serve(t), c.rule)
			target, in := "/shop/_doc/"+c.id, func(path string) string { return `{"at":{"path":"` + path + `"}}` }
			w.put(target, in("/a/b/c.txt"))
			token := w.acquire("/shop/_lock/tree/a/b", "anna")
			if a := w.ask(w.proxied, "PUT", target, in("/a/b/c.txt")); a.Status != 423 {
				t.Errorf("below the lock: %d %s", a.Status, a.Body)
			}
			if a := w.ask(w.proxied, "PUT", target, in("/a/b/c.txt"), "Optimist-Lock-Token", token); a.Status != 200 {
				t.Errorf("by its holder: %d %s", a.Status, a.Body)
			}
			for _, free := range []string{"/a/bc.txt", "/a", "/x"} {
				other := strings.Replace("/shop/_doc/other", "other", strings.ReplaceAll(free, "/", "%2F"), 1)
				if a := w.ask(w.proxied, "PUT", other, in(free)); a.Status != 201 {
					t.Errorf("%s, which isn't locked: %d %s", free, a.Status, a.Body)
				}
			}
			if a := w.ask(w.proxied, "DELETE", target, ""); a.Status != 423 {
				t.Errorf("a delete below the lock: %d %s", a.Status, a.Body)
			}
			w.release("/shop/_lock/tree/a/b", "anna", token)
			w.acquire("/shop/_lock/tree/", "reader")
			if a := w.ask(w.proxied, "DELETE", target, ""); a.Status != 423 {
				t.Errorf("a delete below what is held for reading: %d %s", a.Status, a.Body)
			}
		})
	}
}

// TestNoSpellingOfAPathGetsPastALock: what nobody can place in the tree is refused, whether or not anything is locked.
func TestNoSpellingOfAPathGetsPastALock(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), ", lock_path: /at/path")
	token := w.acquire("/shop/_lock/tree/a/b", "anna")
	long := "/a/b/" + strings.Repeat("L", 1100)
	for body, want := range map[string]int{
		`{"at":{"path":"/a/b/` + strings.Repeat("d/", 70) + `x"}}`: 423,
		`{"at":{"path":"` + long + `"}}`:                           423,
		`{"at":{"path":["/a/b/x"]}}`:                               423,
		`{"at":{"path":["/x","/a/b/x"]}}`:                          423,
		`{"at":[{"path":"/x"},{"path":"/a/b/x"}]}`:                 423,
		`{"at.path":"/a/b/x"}`:                                     423,
		`{"at":{"path":"//a//b/x"}}`:                               423,
		`{"at":{"path":"/a/./b/x"}}`:                               400,
		`{"at":{"path":"/x/../a/b/x"}}`:                            400,
		`{"at":{"path":["/x",7]}}`:                                 400,
		`{"at":{"path":["/x","/y"]}}`:                              201,
		`{"at":{"path":"/x/` + strings.Repeat("d/", 70) + `x"}}`:   201,
	} {
		a := w.ask(w.proxied, "POST", "/shop/_doc", body)
		if typ := gjson.Get(a.Body, "error.type").Str; a.Status != want || (typ == "unguardable_write") != (want == 400) {
			t.Errorf("%.60s: %d %s; want %d", body, a.Status, a.Body, want)
		}
		if want == 400 && !strings.Contains(a.Outcome(), "unguardable") {
			t.Errorf("%.60s: %s", body, a.Outcome())
		}
	}
	if a := w.ask(w.proxied, "PUT", "/shop/_doc/long", `{"at":{"path":"`+long+`"}}`, "Optimist-Lock-Token", token); a.Status != 201 {
		t.Errorf("by the holder: %d %s", a.Status, a.Body)
	}
	if a := w.ask(w.proxied, "DELETE", "/shop/_doc/long", ""); a.Status != 423 {
		t.Errorf("a delete: %d %s", a.Status, a.Body)
	}
}

func TestAMoveIsAWriteToBothPaths(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), ", lock_path: /path")
	w.put("/shop/_doc/1", `{"path":"/from/x"}`)
	for _, lock := range []string{"/shop/_lock/tree/from", "/shop/_lock/tree/to"} {
		token := w.acquire(lock, "anna")
		for _, c := range everyMove {
			if status, kind := w.write(c.name, c.method, c.target, c.body); status != 423 {
				t.Errorf("%s with %s locked: %d %s", c.name, lock, status, kind)
			}
		}
		w.release(lock, "anna", token)
	}
	w.holds("/shop/_doc/1", `{"path":"/from/x"}`)
	for _, c := range everyMove {
		if status, kind := w.write(c.name, c.method, c.target, c.body); status != 200 {
			t.Errorf("%s with nothing locked: %d %s", c.name, status, kind)
		}
		w.put("/shop/_doc/1", `{"path":"/from/x"}`)
	}
}

var everyMove = []struct{ name, method, target, body string }{
	{"a PUT", "PUT", "/shop/_doc/1", `{"path":"/to/x"}`},
	{"an _update", "POST", "/shop/_update/1", `{"doc":{"path":"/to/x"}}`},
	{"a PATCH", "PATCH", "/shop/_doc/1", `{"path":"/to/x"}`},
	{"an item of a bulk", "POST", "/shop/_bulk", lines(`{"index":{"_id":"1"}}`, `{"path":"/to/x"}`)},
}

func TestAGlobalLockProtectsAllDocumentsOfItsRule(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), ", lock_global: nightly")
	token := w.acquire("/_lock/global/nightly", "anna")
	w.acquire("/_lock/global/other", "bert")
	if a := w.ask(w.proxied, "POST", "/shop/_doc", `{}`); a.Status != 423 || gjson.Get(a.Body, "error.lock").Str != "/_lock/global/nightly" {
		t.Errorf("a new document: %d %s", a.Status, a.Body)
	}
	for _, target := range []string{"/shop/_doc/1", "/shop/_doc"} {
		if a := w.ask(w.proxied, "POST", target+"?lock_token="+token, `{}`); a.Status != 201 {
			t.Errorf("%s by the holder: %d %s", target, a.Status, a.Body)
		}
	}
}

func TestWhatCantBeGuardedIsRefusedWhereLocksAreEnforced(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), "")
	w.put("/shop/_doc/1", `{"n":1}`)
	for _, c := range []struct{ method, target, body string }{
		{"POST", "/shop/_update/1", `{"script":{"source":"ctx._source.n++"}}`},
		{"PUT", "/shop/_doc/1?version=7&version_type=external", `{}`},
		{"POST", "/shop/_delete_by_query", `{"query":{"match_all":{}}}`},
		{"POST", "/sh*/_update_by_query", `{"query":{"match_all":{}}}`},
		{"POST", "/_all/_delete_by_query", `{"query":{"match_all":{}}}`},
		{"POST", "/other,shop/_delete_by_query", `{"query":{"match_all":{}}}`},
	} {
		a := w.ask(w.proxied, c.method, c.target, c.body)
		if a.Status != 400 || gjson.Get(a.Body, "error.type").Str != "unguardable_write" || !strings.Contains(a.Outcome(), "refused") {
			t.Errorf("%s %s: %d %s [%s]", c.method, c.target, a.Status, a.Body, a.Outcome())
		}
	}
	w.holds("/shop/_doc/1", `{"n":1}`)
	if a := w.ask(w.proxied, "POST", "/other/_delete_by_query", `{"query":{"match_all":{}}}`); strings.Contains(a.Body, "unguardable_write") {
		t.Errorf("by query in another index: %d %s", a.Status, a.Body)
	}
}

// TestACreateWithAGuardIsRefusedByTheEngine: there is no document whose path could be read first, and none has the id of a new one.
func TestACreateWithAGuardIsRefusedByTheEngine(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), ", lock_path: /path")
	for _, guard := range []string{"?if_seq_no=1&if_primary_term=1", "?version=3&version_type=external"} {
		for method, target := range map[string]string{"POST": "/shop/_doc", "PUT": "/shop/_create/1"} {
			if a := w.ask(w.proxied, method, target+guard, `{"path":"/a"}`); a.Status != 400 || !strings.Contains(a.Body, "create operations") {
				t.Errorf("%s %s: %d %s [%s]", target, guard, a.Status, a.Body, a.Outcome())
			}
		}
	}
}

func TestWithoutLocksEverythingGoesAsAlways(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), "")
	for _, c := range everyWrite {
		w.put("/shop/_doc/1", `{"n":1}`)
		if c.name == "a create" || c.name == "a PUT with a guard" {
			continue
		}
		if status, kind := w.write(c.name, c.method, c.target, c.body); status != 200 {
			t.Errorf("%s: %d %s", c.name, status, kind)
		}
	}
	if a := w.ask(w.proxied, "DELETE", "/shop/_doc/none", ""); a.Status != 404 || gjson.Get(a.Body, "result").Str != "not_found" {
		t.Errorf("a delete of what isn't there: %d %s", a.Status, a.Body)
	}
	if a := w.ask(w.proxied, "PUT", "/shop/_create/2", `{}`); a.Status != 201 {
		t.Errorf("a create: %d %s", a.Status, a.Body)
	}
}

func TestATouchedDocumentKeepsItsBytesAndGetsANewNumber(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), "")
	const stored = `{"n": 0.30000000000000000001,  "b":1e5, "a":"\u00e9"}`
	for _, id := range []string{"1", "2"} {
		w.put("/shop/_doc/"+id, stored)
	}
	number := func(id string) int64 {
		return gjson.Get(w.ask(w.direct, "GET", "/shop/_doc/"+id, "").Body, "_seq_no").Int()
	}
	before := []int64{number("1"), number("2")}
	if a := w.ask(w.proxied, "PUT", lockOf1+"?owner=anna&fence=touch", ""); a.Status != 201 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if n := number("1"); n <= before[0] || number("2") != before[1] {
		t.Errorf("the numbers are %d and %d, and were %d", n, number("2"), before)
	}
	if a := w.ask(w.proxied, "POST", "/shop/_lock/docs", `{"owner":"bert","ids":["2","none"],"fence":"touch"}`); a.Status != 201 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if n := number("2"); n <= before[1] {
		t.Errorf("the number is %d, and was %d", n, before[1])
	}
	w.holds("/shop/_doc/1", stored, "/shop/_doc/2", stored)
	for _, target := range []string{"/_lock/global/a", "/shop/_lock/tree/a"} {
		if a := w.ask(w.proxied, "PUT", target+"?owner=anna&fence=touch", ""); a.Status != 400 {
			t.Errorf("%s: %d %s", target, a.Status, a.Body)
		}
	}
	if a := w.ask(w.proxied, "PUT", "/shop/_lock/doc/9?owner=anna&fence=x", ""); a.Status != 400 {
		t.Errorf("another fence: %d %s", a.Status, a.Body)
	}
}

// TestADocumentWithARoutingIsTouchedWhereItIs: the request for the lock names no routing.
func TestADocumentWithARoutingIsTouchedWhereItIs(t *testing.T) {
	for name, index := range map[string]string{
		"of several shards":         `{"settings":{"number_of_shards":5}}`,
		"of one shard":              `{"settings":{"number_of_shards":1}}`,
		"that demands a routing":    `{"mappings":{"_routing":{"required":true}}}`,
		"with an alias that routes": `{"settings":{"number_of_shards":5},"aliases":{"routed":{"routing":"c"}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := enforced(t, enginetest.Serve(t), "")
			w.put("/shop", index)
			w.put("/shop/_doc/1?routing=b", `{"n": 1}`)
			for _, lock := range []string{
				"PUT " + lockOf1 + `?owner=a&ttl=1h {"fence":"touch"}`,
				`POST /shop/_lock/docs {"owner":"a","ids":["1","none"],"fence":"touch"}`,
				`PUT /routed/_lock/doc/1?owner=b {"fence":"touch"}`,
			} {
				if strings.Contains(lock, "routed") && !strings.Contains(index, "routed") {
					continue
				}
				before := w.ask(w.direct, "GET", "/shop/_doc/1?routing=b", "").Body
				method, rest, _ := strings.Cut(lock, " ")
				target, body, _ := strings.Cut(rest, " ")
				if a := w.ask(w.proxied, method, target, body); a.Status > 201 {
					t.Errorf("%s: %d %s", lock, a.Status, a.Body)
				}
				after := w.ask(w.direct, "GET", "/shop/_doc/1?routing=b", "").Body
				if gjson.Get(after, "_seq_no").Int() <= gjson.Get(before, "_seq_no").Int() || gjson.Get(after, "_routing").Str != "b" ||
					gjson.Get(after, "_source").Raw != `{"n": 1}` {
					t.Errorf("%s: %s became %s", lock, before, after)
				}
			}
		})
	}
}

// TestADocumentThatCantBeSearchedForIsNotFenced: else a success would promise that no late write lands on a document with a routing.
func TestADocumentThatCantBeSearchedForIsNotFenced(t *testing.T) {
	for _, c := range []struct {
		path           string
		engine, client int
		body           string
	}{
		{"/shop/_refresh", 403, 400, `{"error":{"type":"security_exception","reason":"no"},"status":403}`},
		{"/shop/_search", 401, 401, `{"error":{"type":"security_exception","reason":"who?"},"status":401}`},
		{"/shop/_search", 200, 503, `{"_shards":{"total":5,"successful":4,"failed":1},"hits":{"hits":[]}}`},
	} {
		engine := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path != c.path {
				return false
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("WWW-Authenticate", "Basic")
			w.WriteHeader(c.engine)
			_, _ = w.Write([]byte(c.body))
			return true
		})
		w := enforced(t, engine, "")
		w.ask(engine, "PUT", "/shop", `{"settings":{"number_of_shards":5}}`)
		if a := w.ask(w.proxied, "PUT", lockOf1+"?owner=anna&fence=touch", ""); a.Status != c.client || (a.Header.Get("WWW-Authenticate") == "Basic") != (a.Status == 401) {
			t.Errorf("%s: %d %s %v", c.path, a.Status, a.Body, a.Header)
		}
		if a := w.ask(w.proxied, "GET", lockOf1, ""); a.Status != 404 {
			t.Errorf("%s: the lock: %d %s", c.path, a.Status, a.Body)
		}
	}
}

// TestTheDocumentsOfADataStreamAreTouchedInTheIndicesBehindIt: the engine neither reads nor overwrites them by the stream's name.
func TestTheDocumentsOfADataStreamAreTouchedInTheIndicesBehindIt(t *testing.T) {
	const settings = `"settings":{"index":{"uuid":"u","number_of_shards":"1"}}`
	engine := enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
		body, status := "", 200
		switch {
		case r.Method == http.MethodGet && (r.URL.Path == "/stream" || r.URL.Path == "/part"):
			body = `{"shop-1":{"data_stream":"stream",` + settings + `},"shop-2":{"data_stream":"stream",` + settings + `}}`
		case r.URL.Path == "/part/_search": // the alias has a filter
			body = `{"_shards":{"total":1,"failed":0},"hits":{"hits":[]}}`
		case strings.HasPrefix(r.URL.Path, "/stream/_doc/"):
			body, status = `{"error":{"type":"illegal_argument_exception"},"status":400}`, 400
		default:
			return false
		}
		out.Header().Set("Content-Type", "application/json")
		out.WriteHeader(status)
		_, _ = io.WriteString(out, body)
		return true
	})
	w := enforced(t, engine, "")
	w.ask(engine, "PUT", "/shop-1", `{"aliases":{"stream":{},"part":{}}}`)
	w.ask(engine, "PUT", "/shop-2", `{"aliases":{"stream":{"is_write_index":true},"part":{"is_write_index":true}}}`)
	w.put("/shop-1/_doc/1", `{}`)
	w.put("/shop-2/_doc/2", `{}`)
	for i, name := range []string{"stream", "part"} {
		if a := w.ask(w.proxied, "POST", "/"+name+"/_lock/docs", `{"owner":"bert","ids":["1","2"],"fence":"touch"}`); a.Status != 201 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		for _, target := range []string{"/shop-1/_doc/1", "/shop-2/_doc/2"} {
			if a := w.ask(engine, "GET", target, ""); gjson.Get(a.Body, "_version").Int() != int64(2+i) {
				t.Errorf("%s wasn't touched by %s: %s", target, name, a.Body)
			}
		}
	}
}

func TestALockWhoseDocumentCantBeTouchedIsGivenBack(t *testing.T) {
	engine := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.HasPrefix(r.URL.Path, "/shop/_doc/1") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"error":{"type":"security_exception","reason":"no"},"status":403}`))
		return true
	})
	w := enforced(t, engine, "")
	if a := w.ask(engine, "POST", "/shop/_doc/1", `{}`); a.Status != 201 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if a := w.ask(w.proxied, "PUT", lockOf1+"?owner=anna&fence=touch", ""); a.Status != 403 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := w.ask(w.proxied, "GET", lockOf1, ""); a.Status != 404 {
		t.Errorf("the lock: %d %s", a.Status, a.Body)
	}
}

// TestAWriteThatALockHasRefusedMayBeRepeatedWithItsKey: nothing was sent, and so the key isn't used up.
func TestAWriteThatALockHasRefusedMayBeRepeatedWithItsKey(t *testing.T) {
	w := enforced(t, enginetest.Serve(t), "")
	w.put("/shop/_doc/1", `{"n":1}`)
	token := w.acquire(lockOf1, "anna")
	write := func(status int, body string, fields ...string) {
		t.Helper()
		a := w.ask(w.proxied, "PUT", "/shop/_doc/1", body, append(fields, "Idempotency-Key", "k"+body[5:6])...)
		if a.Status != status || a.Header.Get("Optimist-Idempotency") != "" {
			t.Errorf("%d %s %v; want %d, as the first answer", a.Status, a.Body, a.Header, status)
		}
	}
	write(423, `{"n":2}`)
	write(423, `{"n":2}`)
	write(409, `{"n":3}`, "Optimist-Lock-Token", "7")
	w.holds("/shop/_doc/1", `{"n":1}`)
	write(200, `{"n":3}`, "Optimist-Lock-Token", token)
	w.release(lockOf1, "anna", token)
	write(200, `{"n":2}`)
	w.holds("/shop/_doc/1", `{"n":2}`)
	if a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":3}`, "Idempotency-Key", "k3"); a.Header.Get("Optimist-Idempotency") != "repeated" {
		t.Errorf("what was written is written again: %d %s", a.Status, a.Body)
	}
	w.holds("/shop/_doc/1", `{"n":2}`)
}

// TestNamesThatNoIndexHasLeaveNoGates: the client may read everything, and write nothing.
func TestNamesThatNoIndexHasLeaveNoGates(t *testing.T) {
	url := enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || !strings.HasPrefix(r.URL.Path, "/made-up") {
			return false
		}
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(rw, `{"error":{"type":"security_exception"},"status":403}`)
		return true
	})
	w := enforced(t, url, "}, {name: all, match: {index: ['made-up*']}, locks: enforce")
	w.acquire(lockOf1, "anna")
	for i := range 20 {
		if a := w.ask(w.proxied, "PUT", fmt.Sprint("/made-up", i, "/_doc/1"), `{}`); a.Status != http.StatusForbidden {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	if n := len(gates(w)); n > 0 {
		t.Errorf("%d gates are in the store", n)
	}
}

// gates are the gates of names that are made up.
func gates(w *world) (found []string) {
	w.t.Helper()
	w.ask(w.direct, "POST", "/optimist-locks/_refresh", "")
	hits := gjson.Get(w.ask(w.direct, "GET", "/optimist-locks/_search?size=1000", "").Body, "hits.hits.#._id")
	for _, id := range hits.Array() {
		if strings.HasPrefix(id.Str, "gate:index:made-up") {
			found = append(found, id.Str)
		}
	}
	return found
}
