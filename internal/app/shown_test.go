package app

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// ledger is a world in which session a has written /shop/_doc/1, and others after it.
type ledger struct {
	*world
}

// others are what engines answer to requests that the embedded one doesn't know.
var others = map[string]string{
	"/shop/_msearch":         `{"responses":[{"hits":{"hits":[{"_index":"shop","_id":"1","_source":{"log":["a","b"]}}]}}]}`,
	"/_msearch":              `{"responses":[]}`,
	"/shop/_search/template": `{"hits":{"hits":[{"_index":"shop","_id":"1","_source":{"log":["a","b"]}}]}}`,
	"/shop/_explain/1":       `{"get":{"_source":{"log":["a","b"]}}}`,
	"/shop/_termvectors/1":   `{"term_vectors":{}}`,
	"/_plugins/_sql":         `{"datarows":[["a"]]}`,
	"/shop/_new_in_2031":     `{}`,
	"/shop/_refused":         ``,
	"/shop/_analyze":         `{"tokens":[]}`,
	"/shop/_field_caps":      `{"fields":{}}`,
	"/_cat/indices":          `[]`,
}

// engineWithOthers answers these, too.
func engineWithOthers(t *testing.T) string {
	t.Helper()
	return enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
		found := `{"_index":"shop","_id":"1","_source":{"log":["a","b"]}}`
		answer, ok := others[r.URL.Path]
		around := r.URL.Query().Get("preference")
		switch {
		case r.Header.Get("Accept") == "application/yaml" || strings.Contains(r.URL.RawQuery, "format=yaml"):
			answer, ok = "---\nhits:\n  hits:\n  - _source:\n      log: [a, b]\n", true
			w.Header().Set("Content-Type", "application/yaml")
		case around != "": // documents elsewhere than among the hits
			answer, ok = `{"hits":{"hits":[]},"aggregations":{"t":{"hits":{"hits":[`+found+`]}}}}`, true
			if around == "before" {
				answer = `{"suggest":[` + found + `],"hits":{"hits":[]}}`
			}
			if around == "inner" {
				answer = `{"hits":{"hits":[{"_index":"shop","_id":"2","_seq_no":0,"_primary_term":1,"_source":{},"inner_hits":` + found + `}]}}`
			}
			fallthrough
		default:
			w.Header().Set("Content-Type", "application/json")
		}
		if !ok {
			w.Header().Del("Content-Type")
			return false
		}
		if r.URL.Path == "/shop/_refused" {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, answer)
		return true
	})
}

func newLedger(t *testing.T, rules string) *ledger {
	t.Helper()
	l := &ledger{newWorldOn(t, rules, Identity{}, engineWithOthers(t))}
	l.put("/shop/_doc/2?refresh=true", `{"log":[]}`)
	l.put(doc1, `{"log":[]}`)
	l.as("a", "GET", doc1, "")
	l.wants(l.as("a", "PUT", doc1, `{"log":["a"]}`), 200, "guarded;attempts=1;base=session")
	l.put(doc1+"?refresh=true", `{"log":["a","b"]}`)
	return l
}

func (l *ledger) as(who, method, target, body string, fields ...string) answer {
	l.t.Helper()
	return l.ask(l.proxied, method, target, body, append(fields, "Optimist-Session", who)...)
}

// A client that names its session may write from whatever an answer has shown it. Counted from what it had seen before, the change of
// others would be in its write once more.
func TestWhatANamedSessionIsShownUnwatchedIsNotMergedFromBefore(t *testing.T) {
	for name, c := range map[string]struct{ method, target, body, field, value string }{
		"several searches":        {"POST", "/shop/_msearch", "{}\n{}\n", "", ""},
		"searches anywhere":       {"POST", "/_msearch", "{}\n{}\n", "", ""},
		"a template":              {"POST", "/shop/_search/template", `{}`, "", ""},
		"an explanation":          {"POST", "/shop/_explain/1", `{}`, "", ""},
		"terms":                   {"GET", "/shop/_termvectors/1", ``, "", ""},
		"SQL":                     {"POST", "/_plugins/_sql", `{}`, "", ""},
		"nobody knows what":       {"GET", "/shop/_new_in_2031", ``, "", ""},
		"filtered":                {"GET", "/shop/_search?filter_path=hits.hits._source,-took", "", "", ""},
		"filtered, with ids":      {"GET", "/shop/_search?filter_path=hits.hits._source,hits.hits._i*,-took", "", "", ""},
		"fields of hits":          {"POST", "/shop/_search", `{"_source":["*"]}`, "", ""},
		"fields of hits, but one": {"POST", "/shop/_search", `{"_source":{"excludes":["zz"]}}`, "", ""},
		"fields of hits by query": {"GET", "/shop/_search?_source_includes=*", "", "", ""},
		"YAML":                    {"GET", "/shop/_search?format=yaml", "", "", ""},
		"YAML by Accept":          {"GET", "/shop/_search", "", "Accept", "application/yaml"},
		"behind the hits":         {"POST", "/shop/_search?preference=behind", `{"size":0}`, "", ""},
		"before the hits":         {"POST", "/shop/_search?preference=before", `{}`, "", ""},
		"behind watched hits":     {"POST", "/shop/_search?preference=behind", `{}`, "", ""},
		"below the hits":          {"POST", "/shop/_search?preference=inner", `{}`, "", ""},
		"several, filtered":       {"POST", "/shop/_mget?filter_path=docs._source", `{"ids":["1"]}`, "", ""},
		"several, as YAML":        {"POST", "/shop/_mget", `{"ids":["1"]}`, "Accept", "application/yaml"},
		"several, in part":        {"POST", "/shop/_mget", `{"docs":[{"_id":"1","_source":["*"]}]}`, "", ""},
		"part of one":             {"GET", doc1 + "?_source_includes=*", "", "", ""},
		"part of its source":      {"GET", "/shop/_source/1?_source_excludes=zz", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, "")
			var fields []string
			if c.field != "" {
				fields = []string{c.field, c.value}
			}
			if a := l.as("a", c.method, c.target, c.body, fields...); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			l.put(doc1, `{"log":["a","b","c"]}`)
			for range 2 {
				a := l.as("a", "PUT", doc1, `{"log":["a","b","a2"]}`)
				if a.Status != 409 || !strings.HasSuffix(a.Outcome(), ";base=view;reason=unclear") {
					t.Errorf("%d %s [%s]", a.Status, a.Body, a.Outcome())
				}
			}
			if got := l.stored(doc1); got != `{"log":["a","b","c"]}` {
				t.Errorf("stored %s", got)
			}
			l.as("a", "GET", doc1, "")
			l.put(doc1+"?refresh=true", `{"log":["a","b","c","d"]}`)
			l.as("a", c.method, c.target, c.body, fields...)
			if a := l.as("a", "PUT", doc1, `{"log":["a","b","c","d","a2"]}`); a.Status != 409 {
				t.Errorf("what it read before is no base, either: %d %s [%s]", a.Status, a.Body, a.Outcome())
			}
			l.as("a", "GET", doc1, "")
			l.put(doc1, `{"log":["a","b","c","d","e"]}`)
			l.wants(l.as("a", "PUT", doc1, `{"log":["a","b","c","d","a2"]}`), 200, "merged;attempts=2;base=session")
			if got := l.stored(doc1); got != `{"log":["a","b","c","d","e","a2"]}` {
				t.Errorf("stored %s", got)
			}
		})
	}
}

// Most requests show nothing that is written from, or show it to somebody else. They change nothing.
func TestWhatShowsNoDocumentEndsNoBase(t *testing.T) {
	for name, c := range map[string]struct{ who, method, target, body string }{
		"a count":                    {"a", "POST", "/shop/_count", `{}`},
		"whether it is there":        {"a", "HEAD", doc1, ``},
		"that it is there":           {"a", "GET", doc1 + "?_source=false", ``},
		"ids":                        {"a", "POST", "/shop/_search", `{"_source":false}`},
		"ids, filtered":              {"a", "GET", "/shop/_search?filter_path=hits.hits._id", ``},
		"aggregations":               {"a", "POST", "/shop/_search", `{"size":0,"aggs":{"by_source":{"value_count":{"field":"n"}}}}`},
		"another document":           {"a", "GET", "/shop/_doc/2?_source_includes=*", ``},
		"others, several":            {"a", "POST", "/shop/_mget", `{"docs":[{"_id":"2","_source":["log"]}]}`},
		"parts of others":            {"a", "POST", "/shop/_search", `{"query":{"ids":{"values":["2"]}},"_source":["log"]}`},
		"another index":              {"a", "GET", "/shop2/_search?_source_includes=log", ``},
		"a refresh":                  {"a", "POST", "/shop/_refresh", ``},
		"a mapping":                  {"a", "GET", "/shop/_mapping", ``},
		"the index":                  {"a", "GET", "/shop", ``},
		"the cluster":                {"a", "GET", "/", ``},
		"its health":                 {"a", "GET", "/_cluster/health", ``},
		"an analysis":                {"a", "POST", "/shop/_analyze", `{}`},
		"the fields":                 {"a", "GET", "/shop/_field_caps", ``},
		"a list":                     {"a", "GET", "/_cat/indices", ``},
		"what the engine refuses":    {"a", "GET", "/shop/_refused", ``},
		"a bulk":                     {"a", "POST", "/_bulk", "{\"index\":{\"_index\":\"shop\",\"_id\":\"3\"}}\n{}\n"},
		"searches by somebody else":  {"b", "POST", "/shop/_msearch", "{}\n{}\n"},
		"part for somebody else":     {"b", "GET", doc1 + "?_source_includes=*", ``},
		"searches of the same pool":  {"", "POST", "/shop/_msearch", "{}\n{}\n"},
		"whole documents, with size": {"a", "POST", "/shop/_search", `{"size":0}`},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, "")
			l.put("/shop2/_doc/1?refresh=true", `{"log":["a"]}`)
			l.ask(l.direct, "POST", "/shop/_refresh", "")
			l.as(c.who, c.method, c.target, c.body)
			l.wants(l.as("a", "PUT", doc1, `{"log":["a","a2"]}`), 200, "merged;attempts=2;base=view")
			if got := l.stored(doc1); got != `{"log":["a","b","a2"]}` {
				t.Errorf("stored %s", got)
			}
		})
	}
}

// A part of the revision that the client has read, or written, shows nothing else, whether an answer shows one document or several.
func TestAPartOfWhatTheSessionHasInHandEndsNoBase(t *testing.T) {
	for name, c := range map[string]struct{ method, target, body string }{
		"one":               {"GET", doc1 + "?_source_includes=n", ``},
		"one, filtered":     {"GET", doc1 + "?filter_path=_seq_no,_primary_term,_source.log", ``},
		"one, indented":     {"GET", doc1 + "?_source_includes=n&pretty", ``},
		"several":           {"POST", "/shop/_mget", `{"docs":[{"_id":"1","_source":["n"]}]}`},
		"several, by query": {"POST", "/shop/_mget?_source_includes=n", `{"ids":["1"]}`},
		"hits":              {"POST", "/shop/_search", `{"_source":["n"],"seq_no_primary_term":true}`},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, "")
			l.as("a", "GET", doc1, "")
			if a := l.as("a", c.method, c.target, c.body); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			l.put(doc1, `{"log":["a","b","c"]}`)
			l.wants(l.as("a", "PUT", doc1, `{"log":["a","b","a2"]}`), 200, "merged;attempts=2;base=session")
			if got := l.stored(doc1); got != `{"log":["a","b","c","a2"]}` {
				t.Errorf("stored %s", got)
			}
			// What it sent isn't what is stored: it has seen both.
			l.as("a", c.method, c.target, c.body)
			l.put(doc1, `{"log":["a","b","c","a2","d"]}`)
			if a := l.as("a", "PUT", doc1, `{"log":["a","b","a2","a3"]}`); a.Status != 409 {
				t.Errorf("%d %s [%s]", a.Status, a.Body, a.Outcome())
			}
		})
	}
}

// What a read of one index shows counts for that one, also if nobody writes there, or no rule takes it. Two indices may share a cell of
// package indexstate by chance. Then it counts for both. That they share one in two proxies is no chance.
func TestWhatIsShownOfAnotherIndexEndsNoBase(t *testing.T) {
	const off = "rules:\n- {name: off, match: {index: [audit]}, mode: off}\n- {name: rest}\n"
	for _, rules := range []string{"", off} {
		for _, target := range []string{"/audit/_doc/1", "/audit/_source/1", "/audit/_search?_source_includes=log", "/audit/_search"} {
			var l *ledger
			var saved answer
			for try := 0; try == 0 || try == 1 && saved.Status == http.StatusConflict; try++ {
				l = newLedger(t, rules)
				l.ask(l.direct, "PUT", "/audit/_doc/1?refresh=true", `{"log":["a"]}`)
				if a := l.as("a", "GET", target, ""); a.Status != 200 || !strings.Contains(a.Body, `"log"`) {
					t.Errorf("%s: %d %s", target, a.Status, a.Body)
				}
				saved = l.as("a", "PUT", doc1, `{"log":["a","a2"]}`)
			}
			l.wants(saved, 200, "merged;attempts=2;base=view")
		}
	}
}

// A client may ask for the numbers itself, and for a compressed answer. Its search is watched all the same.
func TestASearchForTheNumbersIsWatchedIfItsClientTakesGzip(t *testing.T) {
	asked := ""
	engine := enginetest.Between(t, enginetest.Serve(t), func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/_search") {
			asked = r.Header.Get("Accept-Encoding")
		}
		return false
	})
	w := newWorldOn(t, "", Identity{Infer: true, Address: true}, engine)
	w.put(doc1+"?refresh=true", `{"log":[]}`)
	w.ask(w.proxied, "GET", doc1, "")
	w.ask(w.proxied, "PUT", doc1, `{"log":["a"]}`) // whoever writes in an index has its searches watched
	for _, session := range []string{"a", ""} {
		a := w.ask(w.proxied, "POST", "/shop/_search?seq_no_primary_term&version", `{}`, "Accept-Encoding", "gzip", "Optimist-Session", session)
		if a.Status != 200 || strings.Contains(asked, "gzip") {
			t.Errorf("session %q: %d %s, the engine was asked for %q", session, a.Status, a.Body, asked)
		}
	}
}

// What an alias shows counts for its index, also if nobody has written by the alias yet.
func TestWhatAnAliasShowsCountsForItsIndex(t *testing.T) {
	for _, target := range []string{"/store/_source/1?_source_excludes=zz", "/store/_search?filter_path=hits.hits._source,-took"} {
		l := newLedger(t, "")
		l.ask(l.direct, "POST", "/_aliases", `{"actions":[{"add":{"index":"shop","alias":"store"}}]}`)
		if a := l.as("a", "GET", target, ""); a.Status != 200 {
			t.Fatalf("%s: %d %s", target, a.Status, a.Body)
		}
		l.put(doc1, `{"log":["a","b","c"]}`)
		if a := l.as("a", "PUT", doc1, `{"log":["a","b","a2"]}`); a.Status != 409 {
			t.Errorf("%s: %d %s [%s]", target, a.Status, a.Body, a.Outcome())
		}
	}
}

// A client that says that it wants no numbers gets none, and is guarded as the others are.
func TestASearchWhoseClientWantsNoNumbersIsWatched(t *testing.T) {
	for name, c := range map[string]struct{ target, body string }{
		"no numbers":             {"/shop/_search", `{"query":{"ids":{"values":["1"]}},"seq_no_primary_term":false}`},
		"no numbers, as a text":  {"/shop/_search", `{"query":{"ids":{"values":["1"]}},"seq_no_primary_term":"false"}`},
		"no numbers by query":    {"/shop/_search?seq_no_primary_term=false", `{"query":{"ids":{"values":["1"]}}}`},
		"the query is stronger":  {"/shop/_search?seq_no_primary_term=false&version=false", `{"seq_no_primary_term":true,"version":true}`},
		"neither":                {"/shop/_search?version=false", `{"seq_no_primary_term":false,"version":false}`},
		"numbers by query":       {"/shop/_search?seq_no_primary_term", `{"seq_no_primary_term":false}`},
		"numbers":                {"/shop/_search", `{"seq_no_primary_term":true,"version":false}`},
		"named where it isn't":   {"/shop/_search", `{"query":{"bool":{"must_not":{"term":{"version":"seq_no_primary_term"}}}}}`},
		"of another's documents": {"/shop/_search", `{"sort":["_doc"],"track_total_hits":false,"version":"true"}`},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, "")
			want, got := l.ask(l.direct, "POST", c.target, c.body), l.as("a", "POST", c.target, c.body)
			if got.Status != 200 || took(got.Body) != took(want.Body) {
				t.Errorf("%d %s, without optimist %s", got.Status, got.Body, want.Body)
			}
			l.put(doc1, `{"log":["a","b","c"]}`)
			l.wants(l.as("a", "PUT", doc1, `{"log":["a","b","a2"]}`), 200, "merged;attempts=2;base=session")
			if got := l.stored(doc1); got != `{"log":["a","b","c","a2"]}` {
				t.Errorf("stored %s", got)
			}
		})
	}
}

// In an inferred session, what the session wrote last may be another client's than the one that writes now, and that was shown the document
// by an answer that nobody here has read.
func TestAViewIsAmbiguousIfItsSessionWasShownDocumentsUnwatched(t *testing.T) {
	for name, c := range map[string]struct {
		method, target, body string
		ambiguous            bool
	}{
		"several searches":     {"POST", "/shop/_msearch", "{}\n{}\n", true},
		"searches anywhere":    {"POST", "/_msearch", "{}\n{}\n", true},
		"a template":           {"POST", "/shop/_search/template", `{}`, true},
		"filtered":             {"GET", "/shop/_search?filter_path=hits.hits._source,-took", "", true},
		"indented":             {"GET", "/shop/_search?pretty", "", true},
		"YAML":                 {"GET", "/shop/_search?format=yaml", "", true},
		"one of each":          {"POST", "/shop/_search?preference=inner", `{"collapse":{"field":"log"}}`, true},
		"several, filtered":    {"POST", "/shop/_mget?filter_path=docs._source", `{"ids":["1"]}`, true},
		"several, in part":     {"POST", "/shop/_mget?_source_includes=log", `{"ids":["1"]}`, false},
		"parts of hits":        {"POST", "/shop/_search", `{"_source":["log"]}`, false},
		"parts, by query":      {"GET", "/shop/_search?_source_includes=log", "", false},
		"ids":                  {"POST", "/shop/_search", `{"_source":false}`, false},
		"aggregations":         {"POST", "/shop/_search?filter_path=aggregations", `{"size":0}`, false},
		"a count":              {"POST", "/shop/_count", `{}`, false},
		"part of one document": {"GET", doc1 + "?_source_includes=log", "", false},
		"whether it is there":  {"HEAD", doc1, "", false},
		"nothing, for a fault": {"POST", "/shop/_search?pretty", `{"query":`, false},
		"what isn't there":     {"POST", "/_faulty", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, "", Identity{Infer: true, Address: true}, engineWithOthers(t))
			w.put(doc1+"?refresh=true", `{"log":[]}`)
			w.ask(w.proxied, "GET", doc1, "")
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a"]}`), 200, "guarded;attempts=1;base=session")
			w.ask(w.proxied, c.method, c.target, c.body)
			a := w.ask(w.proxied, "PUT", doc1, `{"log":["a","b"]}`)
			w.wants(a, 200, "guarded;attempts=1;base=view")
			if strings.Contains(a.Outcome(), ";ambiguous") != c.ambiguous {
				t.Errorf("the outcome is %s", a.Outcome())
			}
		})
	}
}

// A rule may have reads by id remembered only. Then a search shows documents that nobody here reads.
func TestAViewIsAmbiguousIfNoRuleHasSearchesRemembered(t *testing.T) {
	for name, rules := range map[string]string{
		"no rule does":      "rules:\n- {name: all, base: {reads: [get]}}\n",
		"another rule does": "rules:\n- {name: other, match: {index: [audit]}}\n- {name: all, base: {reads: [get]}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, rules, Identity{Infer: true, Address: true}, enginetest.Serve(t))
			w.put(doc1+"?refresh=true", `{"log":[]}`)
			w.ask(w.proxied, "GET", doc1, "")
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a"]}`), 200, "guarded;attempts=1;base=session")
			w.ask(w.proxied, "POST", "/shop/_search", `{}`)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b"]}`), 200, "guarded;attempts=1;base=view;ambiguous")
		})
	}
}

// What is found in an index whose rule takes no bases from sessions is the base of nothing.
func TestNoViewIsAmbiguousForASearchOfWhatHasNoBases(t *testing.T) {
	for name, logs := range map[string]string{"off": "mode: 'off'", "by If-Match": "base: {from: [if_match]}"} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, "rules:\n- {name: logs, match: {index: [logs]}, "+logs+"}\n- {name: all, base: {ambiguous: fail}}\n",
				Identity{Infer: true, Address: true}, enginetest.Serve(t))
			w.put(doc1, `{"log":[]}`)
			w.ask(w.direct, "PUT", "/logs/_doc/1?refresh=true", `{"a":1}`)
			w.ask(w.proxied, "GET", doc1, "")
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a"]}`), 200, "guarded;attempts=1;base=session")
			w.ask(w.proxied, "POST", "/logs/_search", `{}`)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b"]}`), 200, "guarded;attempts=1;base=view")
		})
	}
}

// A search may get stamps under a rule that has only other reads remembered.
func TestAViewIsAmbiguousIfHitsAreStampedAndNotRemembered(t *testing.T) {
	w := newWorldOn(t, "rules:\n- {name: all, base: {reads: [get], stamp: _rev}}\n", Identity{Infer: true, Address: true}, enginetest.Serve(t))
	w.put(doc1+"?refresh=true", `{"log":[]}`)
	w.ask(w.proxied, "GET", doc1, "")
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a"]}`), 200, "guarded;attempts=1;base=session")
	w.ask(w.proxied, "POST", "/shop/_search", `{}`)
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b"]}`), 200, "guarded;attempts=1;base=view;ambiguous")
}

// A named session that knows a document by an answer alone that nobody here has read, writes from something, and nobody knows what.
func TestWhatANamedSessionHasSeenUnwatchedAloneIsALostBase(t *testing.T) {
	for name, rules := range map[string]string{"passed": "", "refused": "rules:\n- {name: all, base: {lost: reject}}\n"} {
		t.Run(name, func(t *testing.T) {
			w := newWorldOn(t, rules, Identity{}, engineWithOthers(t))
			w.put(doc1, `{"log":["a"]}`)
			me := func(method, target, body string) answer {
				return w.ask(w.proxied, method, target, body, "Optimist-Session", "me")
			}
			if a := me("PUT", "/shop/_doc/2", `{"log":[]}`); strings.Contains(a.Outcome(), "lost") {
				t.Errorf("of what it hasn't seen: %d %s [%s]", a.Status, a.Body, a.Outcome())
			}
			me("POST", "/shop/_msearch", "{}\n{}\n")
			status, outcome := 200, "passed;attempts=1;base=lost;reason=unwatched"
			if name == "refused" {
				status, outcome = 409, "refused;attempts=0;base=lost;reason=unwatched"
			}
			w.wants(me("PUT", doc1, `{"log":["a","b"]}`), status, outcome)
			if a := me("PUT", "/shop/_doc/3", `{"log":[]}`); a.Status != 201 {
				t.Errorf("of what isn't there: %d %s [%s]", a.Status, a.Body, a.Outcome())
			}
			me("GET", doc1, "")
			w.wants(me("PUT", doc1, `{"log":["a","b","c"]}`), 200, "guarded;attempts=1;base=session")
		})
	}
}

// What nobody has read says nothing against what the session has read of the document in another index.
func TestABaseFollowsItsAliasAlsoBehindWhatNobodyHasRead(t *testing.T) {
	for _, target := range []string{"", "/_msearch"} {
		w := newWorldOn(t, "rules:\n- {name: r, match: {index: [al, blue, green]}}\n", Identity{}, engineWithOthers(t))
		w.put("/blue", `{"aliases":{"al":{}}}`)
		w.put("/green", `{}`)
		for _, doc := range []string{"/blue/_doc/1", "/green/_doc/0", "/green/_doc/1"} {
			w.put(doc, `{"l":["x"]}`)
		}
		me := func(method, target, body string) answer {
			return w.ask(w.proxied, method, target, body, "Optimist-Session", "me")
		}
		me("PUT", "/al/_doc/7", `{"l":["x"]}`)
		if target != "" {
			me("POST", target, "{}\n{}\n")
		}
		me("GET", "/al/_doc/1", "")
		w.move()
		w.put("/green/_doc/1", `{"l":["x","others"]}`)
		w.ask(w.proxied, "GET", "/al/_doc/1", "", "Optimist-Session", "o") // somebody else sees the move
		w.wants(me("PUT", "/al/_doc/1", `{"l":["x","mine"]}`), 200, "merged;attempts=2;base=session")
		if got := w.stored("/green/_doc/1"); got != `{"l":["x","others","mine"]}` {
			t.Errorf("after %q: stored %s", target, got)
		}
	}
}
