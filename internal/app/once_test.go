package app

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
)

const onceRules = "rules:\n- {name: marked, match: {index: [shop]}, write_id: _writes, merge: {paths: {/n: sum}}}\n- {name: plain, match: {index: [plain]}}\n"

// keyed are requests that would count twice if they were carried out twice; each on a document "1" with {"n":5}.
var keyed = map[string]struct {
	method, target, body string
	want                 int64 // of /n afterwards; -1: no document
}{
	"a document":            {"PUT", "/%/_doc/1", `{"n":6}`, 6},
	"a patch":               {"PATCH", "/%/_doc/1", `[{"op":"increment","path":"/n","value":1}]`, 6},
	"a part":                {"POST", "/%/_update/1", `{"doc":{"n":6}}`, 6},
	"a delete":              {"DELETE", "/%/_doc/1", ``, -1},
	"a create":              {"PUT", "/%/_create/2", `{"n":1}`, 5},
	"a document without id": {"POST", "/%/_doc", `{"n":1}`, 5},
	"a slash and no id":     {"POST", "/%/_doc/", `{"n":1}`, 5},
	"a bulk":                {"POST", "/%/_bulk", "{\"index\":{}}\n{\"n\":1}\n{\"update\":{\"_id\":\"1\"}}\n{\"doc\":{\"n\":6}}\n", 6},
	"a refused create":      {"PUT", "/%/_create/1", `{"n":1}`, 5},
	"a refused document":    {"PUT", "/%/_doc/1", `{"n":`, 5},
}

func keyFields(key string, more ...string) []string {
	f := append([]string{"Idempotency-Key", key, "Content-Type", "application/json"}, more...)
	return f
}

// contentType is that of operations for patches, and of JSON for everything else.
func fieldsFor(method, key string, more ...string) []string {
	f := keyFields(key, more...)
	if method == "PATCH" {
		f[3] = "application/vnd.optimist-patch+json"
	}
	return f
}

func (w *world) documents(index string) int64 {
	w.t.Helper()
	w.ask(w.direct, "POST", "/"+index+"/_refresh", "")
	return gjson.Get(w.ask(w.direct, "GET", "/"+index+"/_count", "").Body, "count").Int()
}

// TestARequestWithAKeyIsCarriedOutOnce: repeats get the same answer, also from another proxy.
func TestARequestWithAKeyIsCarriedOutOnce(t *testing.T) {
	engine := enginetest.Serve(t)
	one, two := newWorldOn(t, onceRules, Identity{}, engine), newWorldOn(t, onceRules, Identity{}, engine)
	for name, c := range keyed {
		for _, index := range []string{"shop", "plain", "logs-x"} { // no rule takes the last
			if c.method == "PATCH" && index == "logs-x" {
				continue // no engine knows that
			}
			t.Run(name+"/"+index, func(t *testing.T) {
				one.ask(one.direct, "DELETE", "/"+index, "")
				one.put("/"+index+"/_doc/1", `{"n":5}`)
				target := strings.Replace(c.target, "%", index, 1)
				key := `"` + strings.ReplaceAll(name, " ", "_") + index + `"`
				first := one.ask(one.proxied, c.method, target, c.body, fieldsFor(c.method, key)...)
				n := one.documents(index)
				for _, w := range []*world{one, two, two} {
					again := w.ask(w.proxied, c.method, target, c.body, fieldsFor(c.method, strings.Trim(key, `"`))...)
					if again.Status != first.Status || again.Body != first.Body ||
						again.Header.Get("Optimist-Outcome") != first.Header.Get("Optimist-Outcome") || again.Header.Get("ETag") != first.Header.Get("ETag") ||
						again.Header.Get("Optimist-Idempotency") != "repeated" {
						t.Errorf("first %d %s %v, then %d %s %v", first.Status, first.Body, first.Header, again.Status, again.Body, again.Header)
					}
				}
				if refused := strings.Contains(name, "refused"); refused != (first.Status >= 400) {
					t.Errorf("%d %s", first.Status, first.Body)
				}
				got := gjson.Get(one.ask(one.direct, "GET", "/"+index+"/_doc/1", "").Body, "_source.n")
				if c.want < 0 && got.Exists() || c.want >= 0 && got.Int() != c.want || one.documents(index) != n {
					t.Errorf("n is %s, and there are %d documents, before %d", got.Raw, one.documents(index), n)
				}
				other := one.ask(one.proxied, c.method, target+"?refresh=true", c.body, fieldsFor(c.method, key)...)
				if other.Status != http.StatusUnprocessableEntity || gjson.Get(other.Body, "error.type").Str != "idempotency_key_reused" {
					t.Errorf("another request: %d %s", other.Status, other.Body)
				}
			})
		}
	}
}

// A key is its client's: another client with the same key has another record.
func TestAKeyIsItsClients(t *testing.T) {
	w := newWorld(t, onceRules, Identity{})
	for i, user := range []string{"", "Basic YTph", "Basic Yjpi"} {
		fields := keyFields("k")
		if user != "" {
			fields = append(fields, "Authorization", user)
		}
		if a := w.ask(w.proxied, "POST", "/shop/_doc", `{"n":1}`, fields...); a.Status != 201 || w.documents("shop") != int64(i+1) {
			t.Errorf("%q: %d %s, %d documents", user, a.Status, a.Body, w.documents("shop"))
		}
	}
	fields := append(keyFields("k"), "Authorization", "Basic Yjpi", "Optimist-Session", "another of b's")
	if a := w.ask(w.proxied, "POST", "/shop/_doc", `{"n":1}`, fields...); a.Status != 201 || w.documents("shop") != 3 {
		t.Errorf("%d %s, %d documents", a.Status, a.Body, w.documents("shop"))
	}
}

// Requests with the same key at the same time, through two proxies: one is carried out, and the others get its answer or are told to wait.
func TestOneOfManyWithAKeyIsCarriedOut(t *testing.T) {
	engine := enginetest.Serve(t)
	worlds := []*world{newWorldOn(t, onceRules, Identity{}, engine), newWorldOn(t, onceRules, Identity{}, engine)}
	worlds[0].put("/shop/_doc/1", `{"n":5}`)
	for range 20 {
		was := gjson.Get(worlds[0].ask(worlds[0].direct, "GET", "/shop/_doc/1", "").Body, "_source.n").Int()
		var wg sync.WaitGroup
		answers := make([]answer, 8)
		key := `"` + strings.Repeat("x", int(was)) + `"`
		for k := range answers {
			w := worlds[k%2]
			wg.Go(func() {
				answers[k] = w.ask(w.proxied, "PATCH", "/shop/_doc/1", `[{"op":"increment","path":"/n","value":1}]`, fieldsFor("PATCH", key)...)
			})
		}
		wg.Wait()
		body := ""
		for _, a := range answers {
			switch kind := gjson.Get(a.Body, "error.type").Str; {
			case a.Status == http.StatusConflict && kind == "idempotency_key_in_use" && a.Header.Get("Retry-After") == "1":
			case a.Status != http.StatusOK, body != "" && body != a.Body:
				t.Fatalf("%d %s, and %s", a.Status, a.Body, body)
			default:
				body = a.Body
			}
		}
		if n := gjson.Get(worlds[0].ask(worlds[0].direct, "GET", "/shop/_doc/1", "").Body, "_source.n").Int(); n != was+1 || body == "" {
			t.Fatalf("n went from %d to %d; %q", was, n, body)
		}
	}
}

// Records are written with optimist's own credentials. A client with made-up ones could have as many written as it likes.
func TestNoRecordIsWrittenForAClientThatTheEngineRefuses(t *testing.T) {
	var records, asked atomic.Int64
	engine := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/optimist-idempotency") {
			records.Add(1)
			return false
		}
		if user, _, _ := r.BasicAuth(); user == "anna" {
			if r.URL.Path == "/" {
				asked.Add(1)
			}
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("WWW-Authenticate", `Basic realm="shop"`)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error":{"type":"security_exception","reason":"who?"},"status":401}`))
		return true
	})
	w := newWorldOn(t, onceRules, Identity{}, engine)
	for name, c := range keyed {
		for i, user := range []string{"", basic("nobody"), basic("anna2")} {
			fields := fieldsFor(c.method, fmt.Sprintf("k%d", i))
			if user != "" {
				fields = append(fields, "Authorization", user)
			}
			a := w.ask(w.proxied, c.method, strings.Replace(c.target, "%", "shop", 1), c.body, fields...)
			if a.Status != http.StatusUnauthorized || !strings.Contains(a.Body, "who?") || a.Header.Get("WWW-Authenticate") == "" {
				t.Errorf("%s, %q: %d %s %v", name, user, a.Status, a.Body, a.Header)
			}
		}
	}
	if n := records.Load(); n != 0 {
		t.Errorf("optimist has sent %d requests for records", n)
	}
	for i := range 3 {
		a := w.ask(w.proxied, "POST", "/shop/_doc", `{"n":1}`, append(keyFields(fmt.Sprintf("k%d", i)), "Authorization", basic("anna"))...)
		if a.Status != http.StatusCreated {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
	if records.Load() == 0 || asked.Load() != 1 {
		t.Errorf("%d requests for records, and the engine was asked %d times who anna is", records.Load(), asked.Load())
	}
}

func basic(user string) string {
	return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":secret"))
}

// Where the engine can't say who a client is, nothing is done, as where no record can be made.
func TestWhileTheEngineCannotSayWhoAClientIsNothingIsDone(t *testing.T) {
	for _, status := range []int{http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		engine := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Path == "/" {
				w.WriteHeader(status)
			}
			return r.URL.Path == "/"
		})
		w := newWorldOn(t, onceRules, Identity{}, engine)
		a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":1}`, keyFields("k")...)
		if a.Status != 503 || gjson.Get(a.Body, "error.type").Str != "idempotency_store_unavailable" ||
			w.ask(w.direct, "GET", "/shop/_doc/1", "").Status != 404 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	}
}

func TestWhatIsNoKeyIsRefused(t *testing.T) {
	w := newWorld(t, onceRules, Identity{})
	for _, key := range []string{`""`, `"`, `a b`, `a, b`, `"a"b"`, `"\x"`, strings.Repeat("k", 256), "\"é\""} {
		if a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{}`, keyFields(key)...); a.Status != 400 {
			t.Errorf("%q: %d %s", key, a.Status, a.Body)
		}
	}
	if a := w.ask(w.proxied, "PUT", "/shop/_doc/1", strings.Repeat(" ", 2<<20), keyFields("a")...); a.Status != 413 {
		t.Errorf("a body that isn't held: %d %s", a.Status, a.Body)
	}
	if a := w.ask(w.direct, "GET", "/shop/_doc/1", ""); a.Status != 404 {
		t.Errorf("%s", a.Body)
	}
	for _, target := range []string{"/shop/_search", "/shop/_doc/1"} { // a read needs no record
		w.ask(w.proxied, "GET", target, "", keyFields("a")...)
	}
	if a := w.ask(w.direct, "GET", "/optimist-idempotency", ""); a.Status != 404 {
		t.Errorf("there are records: %s", a.Body)
	}
}

// An answer that says that nothing was done isn't kept: the client may try again.
func TestARequestThatWasNotDoneMayBeRepeated(t *testing.T) {
	w := newWorld(t, onceRules+"- {name: strict, match: {index: [strict]}, base: {unknown: reject}}\n", Identity{})
	fields := keyFields("k")
	if a := w.ask(w.proxied, "PUT", "/strict/_doc/1", `{"n":1}`, fields...); a.Status != 428 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	w.app.metrics.Keys.Inc("first") // the metric is there
	if a := w.ask(w.proxied, "PUT", "/strict/_doc/1", `{"n":1}`, fields...); a.Header.Get("Optimist-Idempotency") == "" {
		t.Errorf("what the client has to mend stays: %d %s", a.Status, a.Body)
	}
}

// The engine refuses to read the document that a patch is made from: its index is closed, or its client may not read it yet. Nothing was
// done, and the repeat is carried out.
func TestAPatchWhoseReadWasRefusedMayBeRepeated(t *testing.T) {
	for _, status := range []int{400, 401, 403} {
		engine := enginetest.Serve(t)
		var refused atomic.Bool
		w := newWorldOn(t, onceRules, Identity{}, enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodGet || r.URL.Path != "/shop/_doc/1" || !refused.CompareAndSwap(false, true) {
				return false
			}
			rw.WriteHeader(status)
			return true
		}))
		w.ask(engine, "PUT", "/shop/_doc/1", `{"n":5}`)
		patch := func() answer {
			return w.ask(w.proxied, "PATCH", "/shop/_doc/1", `[{"op":"increment","path":"/n","value":1}]`, fieldsFor("PATCH", "k")...)
		}
		if a := patch(); a.Status != status {
			t.Errorf("%d: %d %s", status, a.Status, a.Body)
		}
		for range 2 {
			if a := patch(); a.Status != 200 {
				t.Errorf("%d, repeated: %d %s", status, a.Status, a.Body)
			}
		}
		if n := gjson.Get(w.ask(engine, "GET", "/shop/_doc/1", "").Body, "_source.n").Int(); n != 6 {
			t.Errorf("%d: n is %d", status, n)
		}
	}
}

// An operator has closed the index, or has deleted it and not yet made it anew. Then the index takes writes again: a repeat is carried out,
// and doesn't get the old refusal for a day.
func TestAWriteThatItsIndexRefusedMayBeRepeated(t *testing.T) {
	for kind, status := range map[string]int{"index_closed_exception": 400, "index_not_found_exception": 404} {
		engine := enginetest.Serve(t)
		var refused atomic.Bool
		w := newWorldOn(t, onceRules, Identity{}, enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPut || r.URL.Path != "/shop/_doc/1" || !refused.CompareAndSwap(false, true) {
				return false
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(status)
			fmt.Fprintf(rw, `{"error":{"type":%q,"reason":"now"},"status":%d}`, kind, status)
			return true
		}))
		for _, want := range []int{status, 201, 201} {
			if a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":6}`, keyFields("k")...); a.Status != want {
				t.Errorf("%s: %d %s, want %d", kind, a.Status, a.Body, want)
			}
		}
	}
}

// A status above 499 leaves the outcome open, whatever the error is called: the primary may have written. The repeat isn't carried out.
func TestAFailureNamedAsARefusalLeavesTheOutcomeOpen(t *testing.T) {
	engine := enginetest.Serve(t)
	writes := new(atomic.Int64)
	w := newWorldOn(t, onceRules, Identity{}, enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || r.URL.Path != "/plain/_doc/1" {
			return false
		}
		writes.Add(1)
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(rw, `{"error":{"type":"index_closed_exception","reason":"now"},"status":500}`)
		return true
	}))
	for _, want := range []int{500, 504} {
		if a := w.ask(w.proxied, "PUT", "/plain/_doc/1", `{"n":6}`, keyFields("k")...); a.Status != want || writes.Load() != 1 {
			t.Errorf("%d %s, want %d, after %d writes", a.Status, a.Body, want, writes.Load())
		}
	}
}

// Where records can't be kept nothing is done.
func TestWithoutARecordNothingIsDone(t *testing.T) {
	w := newWorld(t, onceRules, Identity{})
	w.put("/optimist-idempotency/_doc/x", `{}`) // an index that isn't ours
	a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":1}`, keyFields("k")...)
	if a.Status != 503 || gjson.Get(a.Body, "error.type").Str != "idempotency_store_unavailable" || w.ask(w.direct, "GET", "/shop/_doc/1", "").Status != 404 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	if a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":1}`); a.Status != 201 {
		t.Errorf("without a key: %d %s", a.Status, a.Body)
	}
}

// An answer that is too long to be kept is said to have been given.
func TestALongAnswerIsNotKept(t *testing.T) {
	c := configured(t, onceRules, enginetest.Serve(t))
	c.Idempotency.MaxAnswer = 1 << 10
	w := &world{t: t, direct: c.Upstream.URLs[0], app: running(t, c)}
	w.proxied = w.app.URL()
	body := strings.Repeat("{\"index\":{}}\n{\"n\":1}\n", 20)
	if a := w.ask(w.proxied, "POST", "/shop/_bulk", body, keyFields("k")...); a.Status != 200 {
		t.Fatal(a)
	}
	a := w.ask(w.proxied, "POST", "/shop/_bulk", body, keyFields("k")...)
	if a.Status != 409 || gjson.Get(a.Body, "error.type").Str != "idempotency_answer_not_kept" || w.documents("shop") != 20 {
		t.Errorf("%d %s, %d documents", a.Status, a.Body, w.documents("shop"))
	}
}
