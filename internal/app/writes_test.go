package app

import (
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
	"optimist/internal/rule"
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
			if a := read(w); a.Status != 200 || !strings.Contains(a.Body, `{"a":1,"b":1}`) {
				t.Fatalf("%d %s", a.Status, a.Body)
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
		if direct.Status != proxied.Status || took(direct.Body) != took(proxied.Body) {
			t.Errorf("%s %s %s:\ndirect  %d %s\nproxied %d %s", q.method, q.target, q.body, direct.Status, direct.Body, proxied.Status, proxied.Body)
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
		if got := w.ask(w.proxied, "GET", target, "").Header.Get("ETag"); got != `"0-1"` {
			t.Errorf("%s: ETag %q", target, got)
		}
	}
	for _, target := range []string{doc1 + "?_source=false", "/shop/_doc/2"} {
		if got := w.ask(w.proxied, "GET", target, "").Header.Get("ETag"); got != "" {
			t.Errorf("%s: ETag %q for what isn't a whole document", target, got)
		}
	}
	w.put(doc1, `{"a":2}`)
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":3}`, "If-Match", `"0-1"`), 409, "guarded;attempts=1;base=if_match")
	a := w.ask(w.proxied, "PUT", doc1, `{"a":3}`, "If-Match", `"1-1"`)
	w.wants(a, 200, "guarded;attempts=1;base=if_match")
	if got := a.Header.Get("ETag"); got != `"2-1"` {
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
		{"POST", "/_bulk", "{\"index\":{\"_index\":\"shop\",\"_id\":\"1\"}}\n{}\n", "Authorization", "Negotiate abc", "connection_auth"},
		{"POST", "/shop/_bulk", "{\"index\":{\"_id\":\"1\"}}\n" + big + "\n", "X", "y", "too_large"},
		{"POST", "/shop/_delete_by_query", `{"query":{"match_all":{}}}`, "X", "y", "by_query"},
	} {
		a := w.ask(w.proxied, c.method, c.target, c.body, c.name, c.value)
		if a.Status != 200 && a.Status != 201 || !strings.HasPrefix(a.Outcome(), "passed;") || !strings.Contains(a.Outcome(), c.reason) {
			t.Errorf("%s %s: %d %.200s [%s], want the reason %s", c.method, c.target, a.Status, a.Body, a.Outcome(), c.reason)
		}
	}
	if n := w.counted("optimist_outcomes_total", "outcome", "passed"); n != 9 {
		t.Errorf("%d are counted, want 9", n)
	}
}

func TestWhatNoRuleTakesIsForwardedAsItIs(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [other]}}\n", Identity{Infer: true})
	for range 2 {
		if a := w.ask(w.proxied, "PUT", doc1, `{"a":1}`); a.Outcome() != "" || a.Header.Get("ETag") != "" {
			t.Errorf("%v", a.Header)
		}
	}
	if a := w.ask(w.proxied, "GET", doc1, ""); a.Header.Get("ETag") != "" {
		t.Errorf("%v", a.Header)
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
	w.app.rules.SetMode(rule.Observe)
	w.put(doc1, `{"a":1,"b":1}`)
	for _, s := range []string{"x", "y"} {
		if a := w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", s); a.Header.Get("ETag") != "" {
			t.Errorf("observe changed an answer: %v", a.Header)
		}
	}
	for i, s := range []string{"x", "y"} {
		if a := w.ask(w.proxied, "PUT", doc1, fmt.Sprintf(`{"a":%d,"b":1}`, i), "Optimist-Session", s); a.Outcome() != "" || a.Status != 200 {
			t.Errorf("observe changed an answer: %d %v", a.Status, a.Header)
		}
		w.observed(i+1, i) // the second write lost the first one's change
	}
	if got := w.stored(doc1); got != `{"a":1,"b":1}` {
		t.Errorf("stored %s", got)
	}
	w.app.rules.SetMode(rule.Off)
	if a := w.ask(w.proxied, "PUT", doc1, `{}`); a.Outcome() != "" {
		t.Errorf("off: %v", a.Header)
	}
}

// A part is held against what its client has read, as a document is.
func TestObserveCountsPartsThatLoseWhatOthersWrote(t *testing.T) {
	for name, c := range map[string]struct {
		session, body string
		others        string // is written between read and part; "": nothing
		lost, writes  int
	}{
		"a list":                        {"s", `{"doc":{"l":[1,2]}}`, `{"l":[1,9],"s":"a"}`, 1, 1},
		"by a session without a name":   {"", `{"doc":{"l":[1,2]}}`, `{"l":[1,9],"s":"a"}`, 1, 1},
		"that nobody has written since": {"s", `{"doc":{"l":[1,2]}}`, "", 0, 1},
		"a value":                       {"s", `{"doc":{"s":"b"}}`, `{"l":[1,9],"s":"a"}`, 0, 1},
		"a value that it kept":          {"s", `{"doc":{"s":"a","l":[1]}}`, `{"l":[1],"s":"c"}`, 1, 1},
		"nothing":                       {"s", `{"doc":{"l":[1,9]}}`, `{"l":[1,9],"s":"a"}`, 0, 1},
		"a script":                      {"s", `{"script":"ctx._source.l = 1"}`, `{"l":[1,9],"s":"a"}`, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", Identity{Headers: []string{"Optimist-Session"}, Infer: true, Address: true})
			w.app.rules.SetMode(rule.Observe)
			w.put(doc1, `{"l":[1],"s":"a"}`)
			header := []string{"Content-Type", "application/json"}
			if c.session != "" {
				header = append(header, "Optimist-Session", c.session)
			}
			w.ask(w.proxied, "GET", doc1, "", header...)
			if c.others != "" {
				w.put(doc1, c.others)
			}
			if a := w.ask(w.proxied, "POST", "/shop/_update/1", c.body, header...); a.Outcome() != "" || a.Header.Get("ETag") != "" {
				t.Errorf("observe changed an answer: %+v", a)
			}
			w.observed(c.writes, c.lost)
		})
	}
	// What the session has in hand then is its copy with the part in it: the next part is counted from that.
	w := newWorld(t, "", Identity{Headers: []string{"Optimist-Session"}})
	w.app.rules.SetMode(rule.Observe)
	w.put(doc1, `{"l":[1]}`)
	header := []string{"Content-Type", "application/json", "Optimist-Session", "s"}
	w.ask(w.proxied, "GET", doc1, "", header...)
	w.ask(w.proxied, "POST", "/shop/_update/1", `{"doc":{"l":[1,2]}}`, header...)
	w.ask(w.proxied, "POST", "/shop/_update/1", `{"doc":{"l":[1,2,3]}}`, header...)
	w.observed(2, 0)
	w.put(doc1, `{"l":[1,2,3,9]}`)
	w.ask(w.proxied, "POST", "/shop/_update/1", `{"doc":{"l":[1,2,3,4]}}`, header...)
	w.observed(3, 1)
}

// Under a rule with write_id, documents have the marks of proxies that guard. A client leaves them out, or sends old ones. They counted as
// content of the client's: updates were counted as lost that weren't, and a strategy was suggested for the field of the marks.
func TestObserveLooksPastMarks(t *testing.T) {
	const (
		rules = "rules: [{name: shop, match: {index: [shop]}, write_id: _writes}]"
		part  = "/shop/_update/1"
		old   = `"_writes":["00000000a1-0000000000"]`
		more  = `"_writes":["00000000a1-0000000000","00000000a2-0000000000-0-1"]`
	)
	for name, c := range map[string]struct {
		session       string
		first, second string // what is read; the client reads the second if its session has no name
		target, sent  string
		lost          int
	}{
		"an inferred session writes from its newer read, without the marks": {
			"", `{"a":1,"b":1}`, `{"a":2,"b":1,` + old + `}`, doc1, `{"a":2,"b":2}`, 0},
		"it writes from its older read": {
			"", `{"a":1,"b":1}`, `{"a":2,"b":1,` + old + `}`, doc1, `{"a":1,"b":2}`, 1},
		"a part with marks only sets a value": {
			"s", `{"a":1,"b":1,` + old + `}`, `{"a":2,"b":1,` + more + `}`, part, `{"doc":{"b":2,` + old + `}}`, 0},
		"a part with marks loses an entry": {
			"s", `{"l":[1],` + old + `}`, `{"l":[1,9],` + more + `}`, part, `{"doc":{"l":[1,2],` + old + `}}`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, rules, Identity{Headers: []string{"Optimist-Session"}, Infer: true, Address: true})
			w.app.rules.SetMode(rule.Observe)
			header := []string{"Content-Type", "application/json"}
			if c.session != "" {
				header = append(header, "Optimist-Session", c.session)
			}
			w.put(doc1, c.first)
			w.ask(w.proxied, "GET", doc1, "", header...)
			w.put(doc1, c.second)
			if c.session == "" {
				w.ask(w.proxied, "GET", doc1, "", header...)
			}
			method := map[string]string{doc1: "PUT", part: "POST"}[c.target]
			if a := w.ask(w.proxied, method, c.target, c.sent, header...); a.Status != 200 || a.Outcome() != "" {
				t.Errorf("observe changed an answer: %+v", a)
			}
			w.observed(1, c.lost)
		})
	}
	w := newWorld(t, rules, Identity{})
	w.app.rules.SetMode(rule.Observe)
	for i := range 3 {
		w.fight(fmt.Sprintf("/shop/_doc/%d", i), `{"n":1,"_writes":[]}`, `{"n":2,`+old+`}`, `{"n":2,`+more+`}`)
	}
	w.suggests("/n sum")
}

// Which of its reads a session writes from is told by what it sends, compressed or not.
func TestObserveReadsWhatIsSentCompressed(t *testing.T) {
	w := newWorld(t, "", Identity{Infer: true, Address: true})
	w.app.rules.SetMode(rule.Observe)
	w.put(doc1, `{"a":1,"b":1}`)
	w.ask(w.proxied, "GET", doc1, "") // for display
	w.put(doc1, `{"a":2,"b":2}`)
	w.ask(w.proxied, "GET", doc1, "")
	if a := w.ask(w.proxied, "PUT", doc1, zipped(`{"a":2,"b":3}`), "Content-Encoding", "gzip"); a.Status != 200 {
		t.Fatal(a)
	}
	w.observed(1, 0)
	if a := w.ask(w.proxied, "PUT", doc1, "no gzip", "Content-Encoding", "gzip"); a.Status != 400 && a.Status != 500 || a.Outcome() != "" {
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
	if a := w.ask(w.proxied, "PUT", "/shop", "{}"); a.Status != 400 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	w.put(doc1, `{"a":1,"b":2}`)
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2,"b":1}`, "Optimist-Session", "s"), 200, "merged")
}

// A new document whose id the engine makes needs no guard; what became of it is said all the same, as of every write that a rule
// takes.
func TestADocumentWithoutAnIDIsPassedAndSaid(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.wants(w.ask(w.proxied, "POST", "/shop/_doc", `{"n":1}`), 201, "passed;attempts=1;base=none")
	w.wants(w.ask(w.proxied, "POST", "/shop/_doc/?refresh=true", `{"n":`), 400, "passed;attempts=1;base=none")
	if n := w.counted("optimist_outcomes_total", "outcome", "passed", "reason", ""); n != 2 {
		t.Errorf("%d are counted", n)
	}
	if a := w.ask(w.proxied, "POST", "/.hidden/_doc", `{"n":1}`); a.Status != 201 || a.Outcome() != "" {
		t.Errorf("no rule takes it: %+v", a)
	}
	for _, m := range []rule.Mode{rule.Observe, rule.Off} {
		w.app.rules.SetMode(m)
		if a := w.ask(w.proxied, "POST", "/shop/_doc", `{"n":1}`); a.Status != 201 || a.Outcome() != "" {
			t.Errorf("%v: %+v", m, a)
		}
	}
}

// The answer to a read of a bare _source has no numbers. Observe didn't ask for them, lost updates were counted as writes of what nobody had
// read, and the log warned of a second optimist.
func TestObserveKnowsWhatABareSourceShows(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.app.rules.SetMode(rule.Observe)
	w.put(doc1, " {\"a\": 1,\t\"b\":1.0} ")
	source := strings.Replace(doc1, "_doc", "_source", 1)
	for _, s := range []string{"x", "y"} {
		for _, fields := range [][]string{nil, {"Accept-Encoding", "gzip"}, {"Accept-Encoding", "identity"}} {
			want := w.ask(w.direct, "GET", source, "", fields...)
			got := w.ask(w.proxied, "GET", source, "", append(fields, "Optimist-Session", s)...)
			want.Header.Del("Date")
			got.Header.Del("Date")
			if got.Status != want.Status || got.Body != want.Body || !reflect.DeepEqual(got.Header, want.Header) {
				t.Errorf("%v: got %d %v %q, the engine answers %d %v %q", fields, got.Status, got.Header, got.Body, want.Status, want.Header, want.Body)
			}
		}
	}
	for i, s := range []string{"x", "y"} {
		w.ask(w.proxied, "PUT", doc1, fmt.Sprintf(`{"a":%d,"b":1.0}`, 2+i), "Optimist-Session", s)
		w.observed(i+1, i) // the second write lost the first one's change
	}
	if n := w.counted("optimist_blind_writes_total"); n != 0 {
		t.Errorf("%d writes are called blind", n)
	}
	if n := w.counted("optimist_observed_writes_total", "would", "passed"); n != 0 {
		t.Errorf("%d would have passed", n)
	}
	missing := w.ask(w.proxied, "GET", source+"2", "", "Optimist-Session", "x")
	if want := w.ask(w.direct, "GET", source+"2", ""); missing.Status != 404 || missing.Body != want.Body {
		t.Errorf("of a missing document: %d %s, the engine answers %d %s", missing.Status, missing.Body, want.Status, want.Body)
	}
}

// The engines take a document with a byte order mark, and show it so. What can't be read can't be merged.
func TestAPartOfADocumentThatCannotBeReadIsLeftToTheEngine(t *testing.T) {
	for _, rules := range []string{"", "rules: [{name: r, transform: [{op: default, path: /x, value: 1}]}]"} {
		const answer = `{"_index":"shop","_id":"1","_version":%d,"_seq_no":%d,"_primary_term":1,"_shards":{"total":1,"successful":1,"failed":0},%s}`
		var updates atomic.Int64
		w := newWorldOn(t, rules, Identity{}, enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
			text := fmt.Sprintf(answer, 1, 0, `"found":true,"_source":`+"\ufeff"+`{"s":1}`)
			switch {
			case r.URL.Path == "/shop/_doc/1" && r.Method == "PUT":
				text = fmt.Sprintf(answer, 1, 0, `"result":"created"`)
			case r.URL.Path == "/shop/_update/1":
				n := updates.Add(1)
				text = fmt.Sprintf(answer, n+1, n, `"result":"updated"`)
			case r.URL.Path != "/shop/_doc/1":
				return false
			}
			out.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(out, text)
			return true
		}))
		w.put("/shop/_doc/2", `{}`)
		for _, body := range []string{"\ufeff" + `{"s":1}`, ""} {
			if body != "" {
				w.ask(w.proxied, "PUT", doc1, body, "Optimist-Session", "s")
			}
			w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
			a := w.ask(w.proxied, "POST", "/shop/_update/1", `{"doc":{"zz":1}}`, "Optimist-Session", "s")
			if a.Status != 200 || !strings.Contains(a.Body, "updated") {
				t.Errorf("%s: %d %s [%s]", rules, a.Status, a.Body, a.Outcome())
			}
		}
	}
}

// streaming is a world in which the index shop backs the data stream "stream". The engine takes no PUT there that names no revision.
func streaming(t *testing.T, rules string) *world {
	t.Helper()
	w := newSizedWorldOn(t, rules, Identity{}, enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
		switch guarded := r.URL.Query().Has("if_seq_no"); {
		case r.Method == "GET" && r.URL.Path == "/shop":
			out.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(out, `{"shop":{"data_stream":"stream","settings":{"index":{"uuid":"u","number_of_shards":"1"}}}}`)
		case r.Method == "PUT" && !guarded && strings.HasPrefix(r.URL.Path, "/shop/"):
			out.Header().Set("Content-Type", "application/json")
			out.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(out, `{"error":{"type":"illegal_argument_exception"},"status":400}`)
		default:
			return false
		}
		return true
	}), tinyBody)
	w.ask(w.direct, "POST", "/shop/_bulk", lines(`{"index":{"_id":"1"}}`, `{"a":1}`))
	return w
}

// In a data stream, the engine takes no write over a document that doesn't name the revision. optimist doesn't name one for a client that
// hasn't read it.
func TestADataStreamIsWrittenUnderAGuardOnlyFromARead(t *testing.T) {
	for _, more := range []string{"base: {unknown: fetch}", "transform: [{op: default, path: /x, value: 1, when: current.a == 1}]"} {
		w := streaming(t, "rules: [{name: r, match: {index: [shop]}, "+more+"}]")
		for _, target := range []string{doc1, "/shop/_doc/2"} {
			if a := w.ask(w.proxied, "PUT", target, `{"a":2}`, "Optimist-Session", "s"); a.Status != 400 {
				t.Errorf("%s: %d %s [%s]", more, a.Status, a.Body, a.Outcome())
			}
		}
		w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
		w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":3}`, "Optimist-Session", "s"), 200, "guarded")
	}
}

// A rule that names no index leaves data streams alone. Those that refuse items of bulks refused the events that all clients send by bulks.
func TestItemsForADataStreamAreNotRefusedByARuleForAnyIndex(t *testing.T) {
	for match, want := range map[string]string{"": "create 201 created", ", match: {index: [shop]}": "create 400 illegal_argument_exception"} {
		w := streaming(t, "rules: [{name: r, bulk: refuse"+match+"}]")
		large := `{"a":1` + strings.Repeat(" ", 300<<10) + `}` // more than is held of an item
		a := w.ask(w.proxied, "POST", "/shop/_bulk", lines(`{"create":{}}`, `{"a":1}`, `{"create":{}}`, large))
		w.bulked(a, want+", "+want, a.Outcome())
	}
}

// A part of a document in a data stream is a change as it is in any other index.
func TestAPartInADataStreamIsMerged(t *testing.T) {
	for kind, send := range map[string]func(w *world, id, part string) answer{
		"_update": func(w *world, id, part string) answer {
			return w.ask(w.proxied, "POST", "/shop/_update/"+id, part, "Optimist-Session", "s")
		},
		"_bulk": func(w *world, id, part string) answer {
			return w.ask(w.proxied, "POST", "/shop/_bulk", lines(`{"update":{"_id":"`+id+`"}}`, part), "Optimist-Session", "s")
		},
	} {
		t.Run(kind, func(t *testing.T) {
			w := streaming(t, "rules: [{name: r, match: {index: [stream]}}]")
			w.ask(w.direct, "POST", "/shop/_bulk", lines(`{"index":{"_id":"1"}}`, `{"l":["a"]}`))
			send(w, "1", `{"doc":{"x":1}}`) // without a read the engine merges it, and optimist learns what the index is
			w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
			w.ask(w.direct, "POST", "/shop/_bulk", lines(`{"index":{"_id":"1"}}`, `{"l":["a","b"]}`))
			w.wants(send(w, "1", `{"doc":{"l":["a","c"]}}`), 200, "merged")
			if got := w.stored(doc1); got != `{"l":["a","b","c"]}` {
				t.Error(got)
			}
			w.ask(w.proxied, "GET", "/shop/_doc/2", "", "Optimist-Session", "s")
			if a := send(w, "2", `{"doc":{"l":["c"]},"doc_as_upsert":true}`); a.Status/100 != 2 || strings.HasPrefix(a.Outcome(), "guarded") {
				t.Errorf("%d %s [%s]", a.Status, a.Body, a.Outcome())
			}
		})
	}
}

// A rule that names a data stream takes reads of the indices behind it. Which stream an index backs is known also when everything else about
// it has to be asked anew.
func TestAReadBehindADataStreamIsABaseAfterAnIndexWasChanged(t *testing.T) {
	for name, read := range map[string]func(w *world){
		"get":  func(w *world) { w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s") },
		"mget": func(w *world) { w.ask(w.proxied, "POST", "/shop/_mget", `{"ids":["1"]}`, "Optimist-Session", "s") },
		"search": func(w *world) {
			w.ask(w.direct, "POST", "/shop/_refresh", "")
			w.ask(w.proxied, "POST", "/_search", `{}`, "Optimist-Session", "s")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := streaming(t, "rules: [{name: r, match: {index: [stream]}}]")
			store := func(text string) { w.ask(w.direct, "POST", "/shop/_bulk", lines(`{"index":{"_id":"1"}}`, text)) }
			w.ask(w.proxied, "PUT", "/shop/_doc/other", `{}`, "Optimist-Session", "s") // optimist learns what the index is
			read(w)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"l":["a"]}`, "Optimist-Session", "s"), 200, "guarded")
			store(`{"l":["a","b"]}`)
			w.ask(w.proxied, "PUT", "/another", "") // and forgets it
			read(w)
			store(`{"l":["a","b","c"]}`)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"l":["a","b","d"]}`, "Optimist-Session", "s"), 200, "merged;attempts=2;base=session")
			if got := w.stored(doc1); got != `{"l":["a","b","c","d"]}` {
				t.Error(got)
			}
		})
	}
}
