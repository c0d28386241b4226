package guard

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

const doc1 = "/shop/_doc/1"

func TestEveryWatchedReadIsABase(t *testing.T) {
	rules := "rules:\n- {name: r, match: {index: [shop, store]}, base: {reads: [get, mget, search]}}\n"
	for name, read := range map[string]func(w *world) answer{
		"get":      func(w *world) answer { return w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s") },
		"source":   func(w *world) answer { return w.ask(w.proxied, "GET", "/shop/_source/1", "", "Optimist-Session", "s") },
		"by alias": func(w *world) answer { return w.ask(w.proxied, "GET", "/store/_doc/1", "", "Optimist-Session", "s") },
		"mget ids": func(w *world) answer {
			return w.ask(w.proxied, "POST", "/shop/_mget", `{"ids":["1"]}`, "Optimist-Session", "s")
		},
		"mget docs": func(w *world) answer {
			return w.ask(w.proxied, "POST", "/_mget", `{"docs":[{"_index":"shop","_id":"1"}]}`, "Optimist-Session", "s")
		},
		"search": func(w *world) answer {
			return w.ask(w.proxied, "POST", "/shop/_search", `{"query":{"match_all":{}}}`, "Optimist-Session", "s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules, Identity{})
			w.put("/shop", `{"aliases":{"store":{}}}`)
			w.put(doc1+"?refresh=true", `{"a":1,"b":1}`)
			if a := read(w); a.status != 200 || !strings.Contains(a.body, `{"a":1,"b":1}`) {
				t.Fatalf("%d %s", a.status, a.body)
			}
			w.put(doc1, `{"a":1,"b":2}`)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2,"b":1}`, "Optimist-Session", "s"), 200, "merged;attempts=2;base=session")
			if got := w.stored(doc1); got != `{"a":2,"b":2}` {
				t.Errorf("stored %s", got)
			}
		})
	}
}

func TestReadsAreServedAsTheEngineServesThem(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, mget, search]}}\n", Identity{Infer: true, Address: true})
	w.put(doc1+"?refresh=true", "{ \"a\" : 9007199254740993.0 ,\n \"\\u00e9\":\"x\"}")
	w.put("/shop/_doc/spaced?refresh=true", " \n {\"a\":1}\t ")
	for _, q := range []struct{ method, target, body string }{
		{"GET", doc1, ""}, {"GET", doc1 + "?pretty", ""}, {"GET", doc1 + "?_source_includes=a", ""}, {"GET", doc1 + "?filter_path=_id", ""},
		{"GET", "/shop/_doc/absent", ""}, {"HEAD", doc1, ""}, {"GET", "/none/_doc/1", ""},
		{"GET", "/shop/_source/1", ""}, {"GET", "/shop/_source/spaced", ""}, {"GET", "/shop/_source/absent", ""}, {"GET", "/shop/_source/1?pretty", ""}, {"HEAD", "/shop/_source/1", ""},
		{"POST", "/shop/_mget", `{"ids":["1","absent"]}`}, {"POST", "/shop/_mget", `{"docs":[{"_id":"1","_source":false}]}`},
		{"POST", "/shop/_search", `{"query":{"match_all":{}}}`}, {"GET", "/shop/_search", ""}, {"POST", "/shop/_search?seq_no_primary_term=true", `{}`},
		{"POST", "/shop/_search", `{"seq_no_primary_term":true}`}, {"POST", "/shop/_search", `{"_source":["a"]}`}, {"POST", "/shop/_search?version=true", `{}`},
	} {
		direct, proxied := w.ask(w.direct, q.method, q.target, q.body), w.ask(w.proxied, q.method, q.target, q.body)
		if direct.status != proxied.status || took(direct.body) != took(proxied.body) {
			t.Errorf("%s %s %s:\ndirect  %d %s\nproxied %d %s", q.method, q.target, q.body, direct.status, direct.body, proxied.status, proxied.body)
		}
	}
}

// took takes a search's time out of its answer.
func took(s string) string {
	if v := gjson.Get(s, "took"); v.Exists() {
		return s[:v.Index] + "T" + s[v.Index+len(v.Raw):]
	}
	return s
}

func TestADocumentReadHasAnETagThatGuardsAWrite(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"a":1}`)
	for _, target := range []string{doc1, "/shop/_source/1"} {
		if got := w.ask(w.proxied, "GET", target, "").header.Get("ETag"); got != `"0-1"` {
			t.Errorf("%s: ETag %q", target, got)
		}
	}
	for _, target := range []string{doc1 + "?_source=false", "/shop/_doc/2"} {
		if got := w.ask(w.proxied, "GET", target, "").header.Get("ETag"); got != "" {
			t.Errorf("%s: ETag %q for what isn't a whole document", target, got)
		}
	}
	w.put(doc1, `{"a":2}`)
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":3}`, "If-Match", `"0-1"`), 409, "guarded;attempts=1;base=if_match")
	a := w.ask(w.proxied, "PUT", doc1, `{"a":3}`, "If-Match", `"1-1"`)
	w.wants(a, 200, "guarded;attempts=1;base=if_match")
	if got := a.header.Get("ETag"); got != `"2-1"` {
		t.Errorf("ETag of the write: %q", got)
	}
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":3}`, "If-Match", `abc`), 400, "")
}

func TestPartialReadsAreNoBases(t *testing.T) {
	for _, target := range []string{doc1 + "?_source_includes=a", doc1 + "?_source=a", doc1 + "?filter_path=_source.a", doc1 + "?_source=false"} {
		w := newWorld(t, "", Identity{})
		w.put(doc1, `{"a":1,"b":1}`)
		w.ask(w.proxied, "GET", target, "", "Optimist-Session", "s")
		w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 200, "passed;attempts=1;base=none")
	}
}

func TestWhatCantBeGuardedIsPassedAndSaid(t *testing.T) {
	w := newWorld(t, "", Identity{Infer: true, Address: true})
	w.put(doc1, `{"a":1}`)
	big := `{"text":"` + strings.Repeat("x", 1<<20) + `"}`
	for _, c := range []struct {
		method, target, body, name, value, reason string
	}{
		{"PUT", doc1, `{"a":2}`, "Authorization", "AWS4-HMAC-SHA256 Credential=x", "signed"},
		{"PUT", doc1, `{"a":2}`, "Authorization", "Signature keyId=x", "signed"},
		{"PUT", doc1, `{"a":2}`, "Authorization", "Digest username=x", "signed"},
		{"PUT", doc1, `{"a":2}`, "Authorization", "Negotiate abc", "connection_auth"},
		{"PUT", doc1, `{"a":2}`, "Authorization", "ntlm abc", "connection_auth"},
		{"PUT", doc1, big, "X", "y", "too_large"},
		{"POST", "/_bulk", "{\"index\":{\"_index\":\"shop\",\"_id\":\"1\"}}\n{}\n", "X", "y", "bulk"},
		{"POST", "/shop/_bulk", "{\"index\":{\"_id\":\"1\"}}\n{}\n", "X", "y", "bulk"},
		{"POST", "/shop/_delete_by_query", `{"query":{"match_all":{}}}`, "X", "y", "by_query"},
	} {
		a := w.ask(w.proxied, c.method, c.target, c.body, c.name, c.value)
		if a.status != 200 && a.status != 201 || !strings.HasPrefix(a.outcome(), "passed;") || !strings.Contains(a.outcome(), "reason="+c.reason) {
			t.Errorf("%s %s: %d %.200s [%s], want the reason %s", c.method, c.target, a.status, a.body, a.outcome(), c.reason)
		}
	}
	if n := len(w.passed); n != 9 {
		t.Errorf("%d events, want 9: %v", n, w.passed)
	}
}

func TestWhatNoRuleTakesIsForwardedAsItIs(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [other]}}\n", Identity{Infer: true})
	for range 2 {
		if a := w.ask(w.proxied, "PUT", doc1, `{"a":1}`); a.outcome() != "" || a.header.Get("ETag") != "" {
			t.Errorf("%v", a.header)
		}
	}
	if a := w.ask(w.proxied, "GET", doc1, ""); a.header.Get("ETag") != "" {
		t.Errorf("%v", a.header)
	}
}

func TestAGzippedBodyMerges(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"a":1,"b":1}`)
	w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
	w.put(doc1, `{"a":1,"b":2}`)
	w.wants(w.ask(w.proxied, "PUT", doc1, zipped(`{"a":2,"b":1}`), "Optimist-Session", "s", "Content-Encoding", "gzip"), 200, "merged")
	if got := w.stored(doc1); got != `{"a":2,"b":2}` {
		t.Errorf("stored %s", got)
	}
	w.wants(w.ask(w.proxied, "PUT", doc1, "not gzip", "Optimist-Session", "s", "Content-Encoding", "gzip"), 400, "")
}

func TestObserveCountsWhatWasLostAndChangesNothing(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.sw.SetMode(rule.Observe)
	w.put(doc1, `{"a":1,"b":1}`)
	for _, s := range []string{"x", "y"} {
		if a := w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", s); a.header.Get("ETag") != "" {
			t.Errorf("observe changed an answer: %v", a.header)
		}
	}
	for i, s := range []string{"x", "y"} {
		if a := w.ask(w.proxied, "PUT", doc1, fmt.Sprintf(`{"a":%d,"b":1}`, i), "Optimist-Session", s); a.outcome() != "" || a.status != 200 {
			t.Errorf("observe changed an answer: %d %v", a.status, a.header)
		}
	}
	if len(w.observed) != 2 || w.observed[0] || !w.observed[1] {
		t.Errorf("observed %v: the second write lost the first one's change", w.observed)
	}
	if got := w.stored(doc1); got != `{"a":1,"b":1}` {
		t.Errorf("stored %s", got)
	}
	w.sw.SetMode(rule.Off)
	if a := w.ask(w.proxied, "PUT", doc1, `{}`); a.outcome() != "" {
		t.Errorf("off: %v", a.header)
	}
}

// Which of its reads a session writes from is told by what it sends, compressed or not.
func TestObserveReadsWhatIsSentCompressed(t *testing.T) {
	w := newWorld(t, "", Identity{Infer: true, Address: true})
	w.sw.SetMode(rule.Observe)
	w.put(doc1, `{"a":1,"b":1}`)
	w.ask(w.proxied, "GET", doc1, "") // for display
	w.put(doc1, `{"a":2,"b":2}`)
	w.ask(w.proxied, "GET", doc1, "")
	if a := w.ask(w.proxied, "PUT", doc1, zipped(`{"a":2,"b":3}`), "Content-Encoding", "gzip"); a.status != 200 {
		t.Fatal(a)
	}
	if len(w.observed) != 1 || w.observed[0] {
		t.Errorf("observed %v: nothing was lost", w.observed)
	}
	if a := w.ask(w.proxied, "PUT", doc1, "no gzip", "Content-Encoding", "gzip"); a.status != 400 && a.status != 500 || a.outcome() != "" {
		t.Errorf("it is the engine's to refuse: %+v", a)
	}
	if got := w.stored(doc1); got != `{"a":2,"b":3}` {
		t.Errorf("stored %s", got)
	}
}

func TestAReCreatedIndexKnowsNoOldBase(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"a":1}`)
	w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
	w.ask(w.proxied, "DELETE", "/shop", "")
	w.put(doc1, `{"a":"other"}`) // the same numbers again
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 200, "passed;attempts=1;base=lost;reason=index")
}

func TestAnIndexThatCouldNotBeMadeAgainKeepsItsBases(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"a":1,"b":1}`)
	w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
	if a := w.ask(w.proxied, "PUT", "/shop", "{}"); a.status != 400 {
		t.Fatalf("%d %s", a.status, a.body)
	}
	w.put(doc1, `{"a":1,"b":2}`)
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2,"b":1}`, "Optimist-Session", "s"), 200, "merged")
}

func TestClientsAreToldApart(t *testing.T) {
	peer := netip.MustParseAddrPort("10.0.0.1:4711")
	field := func(s ...string) []wire.Field {
		var f []wire.Field
		for i := 0; i+1 < len(s); i += 2 {
			f = append(f, wire.Field{Name: []byte(s[i]), Value: []byte(s[i+1])})
		}
		return f
	}
	both := Identity{Header: "Optimist-Session", Infer: true, Address: true, Trusted: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}
	base := both.who(field("Authorization", "Basic a"), peer)
	for name, c := range map[string]struct {
		fields []wire.Field
		peer   string
		same   bool
	}{
		"another port":                {field("authorization", "Basic a"), "10.0.0.1:1", true},
		"another address":             {field("authorization", "Basic a"), "10.0.0.2:1", false},
		"mapped into IPv6":            {field("authorization", "Basic a"), "[::ffff:10.0.0.1]:1", true},
		"other credentials":           {field("authorization", "Basic b"), "10.0.0.1:1", false},
		"an id of the request":        {field("authorization", "Basic a", "X-Opaque-Id", "7"), "10.0.0.1:1", true},
		"run as somebody":             {field("authorization", "Basic a", "es-security-runas-user", "x"), "10.0.0.1:1", false},
		"a session of its own":        {field("authorization", "Basic a", "Optimist-Session", "s"), "10.0.0.1:1", false},
		"forwarded for somebody":      {field("authorization", "Basic a", "X-Forwarded-For", "1.2.3.4"), "10.0.0.1:1", false},
		"forwarded by an untrusted":   {field("authorization", "Basic a", "X-Forwarded-For", "10.0.0.1"), "11.0.0.1:1", false},
		"forwarded along the trusted": {field("authorization", "Basic a", "X-Forwarded-For", "10.0.0.1, 10.9.9.9"), "10.1.1.1:1", true},
	} {
		got := both.who(c.fields, netip.MustParseAddrPort(c.peer))
		if (got.session == base.session) != c.same {
			t.Errorf("%s: same session %v", name, !c.same)
		}
	}
	moving := Identity{Header: "Optimist-Session", Infer: true}
	for addr, name := range map[string]string{"10.0.0.2:1": "a", "10.0.0.1:1": "b"} {
		a, b := moving.who(field("authorization", "Basic a"), peer), moving.who(field("authorization", "Basic "+name), netip.MustParseAddrPort(addr))
		if !a.known || (a.session == b.session) != (name == "a") {
			t.Errorf("by credentials alone, %s from %s: same session %v", name, addr, a.session == b.session)
		}
	}
	opaque := Identity{Header: "X-Opaque-Id"}
	if a, b := opaque.who(field("x-opaque-id", "7"), peer), opaque.who(field("x-opaque-id", "8"), peer); !a.known || a.inferred || a.session == b.session {
		t.Error("the header that is configured names no session")
	}
	none := Identity{Header: "Optimist-Session"}
	if c := none.who(nil, peer); c.known {
		t.Error("without inference there is no session without the header")
	}
	if c := none.who(field("optimist-session", "s"), peer); !c.known {
		t.Error("with the header there is one")
	}
}

// What became of a write is told by its status, too: who gets a 409 reads again, who gets a 504 must not take it for either.
func TestErrorsOfWritesHaveTheirStatus(t *testing.T) {
	for err, want := range map[error]string{
		write.ErrUnknownOutcome: "504 unknown_outcome", write.ErrTimeout: "503 timeout_exception", write.ErrPreconditionRequired: "428 precondition_required",
		write.ErrBaseLost: "409 version_conflict_engine_exception", write.ErrAmbiguous: "409 version_conflict_engine_exception",
		write.ErrNoMatch: "409 version_conflict_engine_exception", write.ErrBadMatch: "400 illegal_argument_exception",
		write.ErrContradiction: "400 illegal_argument_exception",
	} {
		var f *proxy.Failure
		if !errors.As(failure(fmt.Errorf("on the way: %w", err)), &f) || fmt.Sprint(f.Status, " ", f.Type) != want || !strings.Contains(f.Reason, err.Error()) {
			t.Errorf("%v: %v, want %s", err, f, want)
		}
	}
}

func TestARequestsPriorityIsStrongerThanItsRules(t *testing.T) {
	foreground, jobs := &rule.Rule{}, &rule.Rule{Priority: rule.Background}
	for _, c := range []struct {
		said string
		ru   *rule.Rule
		want bool
	}{{"", foreground, false}, {"", jobs, true}, {"Background", foreground, true}, {"foreground", jobs, false}} {
		var fields []wire.Field
		if c.said != "" {
			fields = []wire.Field{{Name: []byte("optimist-PRIORITY"), Value: []byte(c.said)}}
		}
		if background(fields, c.ru) != c.want {
			t.Errorf("%q under %v: background %v", c.said, c.ru.Priority, !c.want)
		}
	}
}

// What guarding would have done is said beside what was lost, for whoever decides by it.
func TestObserveSaysWhatGuardingWouldHaveDone(t *testing.T) {
	merge, refuse := &rule.Rule{}, &rule.Rule{OnConflict: rule.ConflictFail}
	for _, c := range []struct {
		base session.Base
		lost bool
		ru   *rule.Rule
		want outcome.Kind
	}{
		{session.Base{}, false, merge, outcome.Passed}, {session.Base{Kind: session.KindRead, Version: 3}, false, merge, outcome.Guarded},
		{session.Base{Kind: session.KindRead, Version: 3}, true, merge, outcome.Merged}, {session.Base{Kind: session.KindRead, Version: 3}, true, refuse, outcome.Guarded},
		{session.Base{Kind: session.KindAbsent}, false, merge, outcome.Guarded}, {session.Base{Kind: session.KindAbsent}, true, merge, outcome.Merged},
	} {
		if got := would(&c.base, c.lost, c.ru); got != c.want {
			t.Errorf("%v of version %d, lost %v: %v, want %v", c.base.Kind, c.base.Version, c.lost, got, c.want)
		}
	}
}

func TestCaptureReadsGzippedAnswers(t *testing.T) {
	z := []byte(zipped(`{"_index":"shop","_id":"1","_version":1,"_seq_no":7,"_primary_term":2,"found":true,"_source":{"a":1}}`))
	c := newCapture(1 << 20)
	h := &wire.Head{Status: 200, Length: int64(len(z)), Fields: []wire.Field{
		{Name: []byte("content-type"), Value: []byte("application/json")}, {Name: []byte("content-encoding"), Value: []byte("gzip")}}}
	said := c.withETag(h, z[:len(z)/2+20])
	ended := 0
	c.whole = func() { ended++ }
	c.copy(z[:10])
	c.copy(z[10:])
	c.end()
	c.end()
	body, ok := c.body()
	if !ok || gjson.GetBytes(body, "_source.a").Int() != 1 || ended != 1 {
		t.Errorf("%s %v, ended %d times", body, ok, ended)
	}
	if len(said) > 0 && string(said[0].Value) != `"7-2"` {
		t.Errorf("ETag %s", said[0].Value)
	}
}

func TestNumbersCutOffAreNoETag(t *testing.T) {
	whole := `{"_index":"shop","_id":"1","_version":1,"_seq_no":17,"_primary_term":23,"found":true,"_source":{"_seq_no":1,"_primary_term":1}}`
	for i := range whole {
		n, ok := numbers([]byte(whole[:i]))
		if ok && (n.SeqNo != 17 || n.PrimaryTerm != 23) {
			t.Errorf("cut at %d: %v from %s", i, n, whole[:i])
		}
	}
	if n, ok := numbers([]byte(whole)); !ok || n.SeqNo != 17 {
		t.Errorf("%v %v", n, ok)
	}
	if _, ok := numbers([]byte(`{"found":true,"_source":{"_seq_no":1,"_primary_term":1}}`)); ok {
		t.Error("a document's own field was taken for its number")
	}
}

// A new document whose id the engine makes needs no guard; what became of it is said all the same, as of every write that a rule takes.
func TestADocumentWithoutAnIDIsPassedAndSaid(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.wants(w.ask(w.proxied, "POST", "/shop/_doc", `{"n":1}`), 201, "passed;attempts=1;base=none")
	w.wants(w.ask(w.proxied, "POST", "/shop/_doc/?refresh=true", `{"n":`), 400, "passed;attempts=1;base=none")
	if len(w.passed) != 2 || w.passed[0] != "" {
		t.Errorf("counted: %q", w.passed)
	}
	if a := w.ask(w.proxied, "POST", "/.hidden/_doc", `{"n":1}`); a.status != 201 || a.outcome() != "" {
		t.Errorf("no rule takes it: %+v", a)
	}
	for _, m := range []rule.Mode{rule.Observe, rule.Off} {
		w.sw.SetMode(m)
		if a := w.ask(w.proxied, "POST", "/shop/_doc", `{"n":1}`); a.status != 201 || a.outcome() != "" {
			t.Errorf("%v: %+v", m, a)
		}
	}
}
