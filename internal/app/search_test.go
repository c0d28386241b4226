package app

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
	"optimist/internal/session"
)

// asked are the searches that get to the engine.
type asked struct {
	mu   sync.Mutex
	list []url.Values
}

func (a *asked) last() url.Values {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.list) == 0 {
		return nil
	}
	return a.list[len(a.list)-1]
}

// searching is a world whose searches are noted. Its client has written in the index.
func searching(t *testing.T, rules string) (*world, *asked) {
	t.Helper()
	seen := &asked{}
	w := newWorldOn(t, rules, Identity{Infer: true, Address: true}, enginetest.Between(t, enginetest.Serve(t), func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/_search") {
			seen.mu.Lock()
			defer seen.mu.Unlock()
			seen.list = append(seen.list, r.URL.Query())
		}
		return false
	}))
	w.put("/shop/_doc/0", `{}`)
	w.ask(w.proxied, "GET", "/shop/_doc/0", "")
	if a := w.ask(w.proxied, "PUT", "/shop/_doc/0", `{"log":["first"]}`); a.Status != 200 {
		t.Fatal(a)
	}
	return w, seen
}

// What a search shows is what its client writes from, though nothing says so; and it sees the bytes that the engine has without optimist.
func TestWhatASearchFindsIsWhatItsClientWritesFrom(t *testing.T) {
	for name, c := range map[string]struct{ target, body string }{
		"all":                       {"/shop/_search", ""},
		"with a body":               {"/shop/_search", `{"query":{"match_all":{}}}`},
		"with a query":              {"/shop/_search?size=20", `{"query":{"match_all":{}}}`},
		"of any index":              {"/_search", `{}`},
		"by a pattern":              {"/sh*/_search", ``},
		"by two names":              {"/shop,shop/_search", ``},
		"by an alias":               {"/al/_search", ``},
		"its client wants versions": {"/shop/_search?version=true", `{}`},
		"its client wants numbers":  {"/shop/_search", `{"seq_no_primary_term":true}`},
		"both":                      {"/shop/_search", `{"seq_no_primary_term":true,"version":true}`},
		"also with vectors":         {"/shop/_search", `{"from":0,"size":5,"_source":{"exclude_vectors":false}}`}, // as elasticsearch.dsl of Python asks
		"a filter of nothing":       {"/shop/_search", `{"_source":{"includes":[],"excludes":[]}}`},
		"no filter":                 {"/shop/_search", `{"_source":{}}`},
		"by a helper":               {"/shop/_search?filter_path=hits.hits._source", `{}`}, // as helpers.search of JavaScript asks
		"by a helper, and an alias": {"/al/_search?filter_path=hits.hits._source", `{}`},
		"by a helper, some members": {"/shop/_search?filter_path=hits.hits._id%2Chits.hits._source,took", `{"version":true,"seq_no_primary_term":true}`},
		"the list of hits":          {"/shop/_search?filter_path=hits.hits", `{"version":true}`},
		"all hits, by stars":        {"/shop/_search?filter_path=*.h*&size=3", ``},
	} {
		t.Run(name, func(t *testing.T) {
			w, _ := searching(t, "")
			w.ask(w.direct, "POST", "/_aliases", `{"actions":[{"add":{"index":"shop","alias":"al"}}]}`)
			w.put(doc1+"?refresh=true", `{"log": ["a"],"n":1234567890123456789}`)
			direct, through := w.ask(w.direct, "POST", c.target, c.body), w.ask(w.proxied, "POST", c.target, c.body)
			if through.Status != 200 || took(through.Body) != took(direct.Body) {
				t.Errorf("%d %s, without optimist %s", through.Status, through.Body, direct.Body)
			}
			w.put(doc1, `{"log": ["a","b"],"n":1234567890123456789}`)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log": ["a","c"],"n":1234567890123456789}`), 200, "merged;attempts=2;base=session")
			if got := w.stored(doc1); got != `{"log": ["a","b","c"],"n":1234567890123456789}` {
				t.Errorf("stored %s", got)
			}
		})
	}
}

// A filter_path leaves out hits without a _source. Whoever searches such an index gets that, though the engine is asked for more members.
func TestAFilteredSearchShowsNoHitThatItsFilterLeavesOut(t *testing.T) {
	w, _ := searching(t, "")
	w.ask(w.direct, "PUT", "/bare", `{"mappings":{"_source":{"enabled":false}}}`)
	w.put("/bare/_doc/1?refresh=true", `{"log":["a"]}`)
	w.ask(w.direct, "POST", "/_aliases", `{"actions":[{"add":{"index":"shop","alias":"al"}},{"add":{"index":"bare","alias":"al"}}]}`)
	for _, target := range []string{"/bare", "/shop", "/al", "/*", "/none", ""} {
		for _, query := range []string{"hits.hits._source", "hits.hits._source,took", "hits.hits._source,hits.hits._score", "hits.hits", "hits.hits._source,error"} {
			for _, body := range []string{"", `{"query":{"match_none":{}}}`, `{"_source":false}`, `{"sort":"_id"}`} {
				direct := w.ask(w.direct, "POST", target+"/_search?filter_path="+query, body)
				through := w.ask(w.proxied, "POST", target+"/_search?filter_path="+query, body, "Optimist-Session", "me")
				if through.Status != direct.Status || took(through.Body) != took(direct.Body) {
					t.Errorf("%s %s: %d %s, without optimist %s", target, query, through.Status, through.Body, direct.Body)
				}
			}
		}
	}
}

// Nothing is asked for where nobody may write what is found, or nothing of it could be a base.
func TestASearchIsLeftAloneWhereNothingOfItCanBeABase(t *testing.T) {
	for name, c := range map[string]struct{ rules, target, body, field, value string }{
		"a part":                   {"", "/shop/_search?_source=log", "", "", ""},
		"a part, by body":          {"", "/shop/_search", `{"_source":["log"]}`, "", ""},
		"a part, included":         {"", "/shop/_search", `{"_source":{"includes":["log"],"excludes":[]}}`, "", ""},
		"no vectors":               {"", "/shop/_search", `{"_source":{"exclude_vectors":true}}`, "", ""},
		"no source":                {"", "/shop/_search", `{"_source":false}`, "", ""},
		"stored fields":            {"", "/shop/_search", `{"stored_fields":["log"],"_source":true}`, "", ""},
		"collapsed":                {"", "/shop/_search", `{"collapse":{"field":"k"}}`, "", ""},
		"filtered":                 {"", "/shop/_search?filter_path=hits.hits._source.log", "", "", ""},
		"filtered by name":         {"", "/shop/_search?filter_path=hits.hits,-hits.hits._id", "", "", ""},
		"filtered away":            {"", "/shop/_search?filter_path=hits.total", "", "", ""},
		"a helper's, of any index": {"", "/_search?filter_path=hits.hits._source", "", "", ""},
		"beside script fields":     {"", "/shop/_search?filter_path=hits.hits._source", `{"script_fields":{}}`, "", ""},
		"pretty":                   {"", "/shop/_search?pretty", "", "", ""},
		"no JSON":                  {"", "/shop/_search", "", "Accept", "application/yaml"},
		"many":                     {"", "/shop/_search?size=1000", "", "", ""},
		"many, by body":            {"", "/shop/_search", `{"size":1000}`, "", ""},
		"no hits":                  {"rules: [{name: r, base: {reads: [search]}}]", "/shop/_search", `{"size":0}`, "", ""},
		"not by this rule":         {"rules: [{name: r, base: {reads: [get, mget]}}]", "/shop/_search", "", "", ""},
		"off":                      {"rules: [{name: r, mode: off, match: {index: [shop]}}]", "/shop/_search", "", "", ""},
		"If-Match alone":           {"rules: [{name: r, base: {from: [if_match]}}]", "/shop/_search", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w, seen := searching(t, c.rules)
			w.put("/other/_doc/1?refresh=true", `{"log":["a"]}`)
			var fields []string
			if c.field != "" {
				fields = []string{c.field, c.value}
			}
			w.ask(w.proxied, "PUT", "/other/_doc/2", `{}`) // a create says nothing of searches
			w.ask(w.proxied, "POST", c.target, c.body, fields...)
			if got := seen.last(); got.Has("seq_no_primary_term") || got.Has("version") {
				t.Errorf("the engine was asked %v", got)
			}
		})
	}
}

// A client that begins to search may write what it finds. Whether it does isn't known yet, so its first write is guarded, too.
func TestTheFirstWriteOfAClientThatSearchesIsGuarded(t *testing.T) {
	w := newWorld(t, "", Identity{Infer: true, Address: true})
	w.put(doc1+"?refresh=true", `{"log":["a"]}`)
	for _, target := range []string{"/shop/_search", "/_search"} {
		w.ask(w.proxied, "GET", target, "", "Authorization", "Basic eDp5")
		w.put(doc1+"?refresh=true", `{"log":["a","x"]}`)
		w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b"]}`, "Authorization", "Basic eDp5"), 200, "merged;attempts=2;base=session")
		w.put(doc1+"?refresh=true", `{"log":["a"]}`)
	}
}

// A client that names its session is guarded from its first search on, however many hits that asks for.
func TestEachSearchOfANamedSessionIsABase(t *testing.T) {
	for _, target := range []string{"/shop/_search", "/shop/_search?size=1000", "/_search?size=10000"} {
		w := newWorld(t, "", Identity{Infer: true, Address: true})
		w.put(doc1+"?refresh=true", `{"log":["a"]}`)
		direct := w.ask(w.direct, "GET", target, "")
		if through := w.ask(w.proxied, "GET", target, "", "Optimist-Session", "cron"); took(through.Body) != took(direct.Body) {
			t.Errorf("%d %s, without optimist %s", through.Status, through.Body, direct.Body)
		}
		w.put(doc1, `{"log":["a","x"]}`)
		w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b"]}`, "Optimist-Session", "cron"), 200, "merged;attempts=2;base=session")
		if got := w.stored(doc1); got != `{"log":["a","x","b"]}` {
			t.Errorf("stored %s", got)
		}
	}
}

// A search that names no index, such as that of a point in time, may find documents of a rule that has all searches watched.
func TestASearchOfAnyIndexIsWatchedForTheRuleThatWantsAllSearches(t *testing.T) {
	for rules, want := range map[string]string{
		"{name: r, match: {index: [shop]}, base: {reads: [get, search]}}":            "merged;attempts=2;base=session",
		"{name: r, match: {index: [shop]}}":                                          "passed;attempts=1;base=none",
		"{name: r, match: {index: [shop]}}, {name: o, base: {reads: [get, search]}}": "merged;attempts=2;base=session",
	} {
		t.Run(rules, func(t *testing.T) {
			w := newWorld(t, "rules: ["+rules+"]", Identity{Infer: true, Address: true})
			w.put(doc1+"?refresh=true", `{"log":["a"]}`)
			direct := w.ask(w.direct, "GET", "/_search?size=1000", "")
			if through := w.ask(w.proxied, "GET", "/_search?size=1000", ""); took(through.Body) != took(direct.Body) {
				t.Errorf("%d %s, without optimist %s", through.Status, through.Body, direct.Body)
			}
			w.put(doc1, `{"log":["a","x"]}`)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b"]}`), 200, want)
		})
	}
}

// A search may show what is older than what the thread of work has in hand. Nobody knows which of the two it writes from.
func TestAStaleHitIsNoBaseOfAThreadThatHasSomethingNewer(t *testing.T) {
	for name, fields := range map[string][]string{
		"named":      {"Optimist-Session", "me"},
		"in a trace": {"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	} {
		t.Run(name, func(t *testing.T) {
			var stale atomic.Int64 // the number of the revision that searches show
			w := newWorldOn(t, "rules: [{name: r, merge: {paths: {/n: sum}}, base: {reads: [get, search]}}]", Identity{Infer: true, Address: true},
				enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
					if !strings.HasSuffix(r.URL.Path, "/_search") {
						return false
					}
					out.Header().Set("Content-Type", "application/json")
					_, _ = fmt.Fprintf(out, `{"hits":{"hits":[{"_index":"shop","_id":"1","_version":1,"_seq_no":%d,"_primary_term":1,"_source":{"n":5}}]}}`, stale.Load())
					return true
				}))
			w.put(doc1, `{"n":5}`)
			stale.Store(gjson.Get(w.ask(w.direct, "GET", doc1, "").Body, "_seq_no").Int())
			w.ask(w.proxied, "GET", doc1, "", fields...)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"n":6}`, fields...), 200, "guarded;attempts=1;base=session")
			w.ask(w.proxied, "GET", "/shop/_search", "", fields...)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"n":7}`, fields...), 200, "guarded;attempts=1;base=view")
			if got := w.stored(doc1); got != `{"n":7}` {
				t.Errorf("stored %s", got)
			}
			w.put(doc1, `{"n":17}`)
			w.ask(w.proxied, "GET", "/shop/_search", "", fields...)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"n":8}`, fields...), 409, "guarded;attempts=1;base=view;reason=unclear")
			// Who looks again after that writes from what it finds.
			w.ask(w.proxied, "GET", "/shop/_search", "", fields...)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"n":6}`, fields...), 200, "merged;attempts=2;base=session")
			if got := w.stored(doc1); got != `{"n":18}` {
				t.Errorf("stored %s", got)
			}
		})
	}
}

// Who writes from a stale hit would take back what the hit doesn't show yet: its own last write, and what others have written before that.
func TestAWriteFromAStaleHitTakesNothingBack(t *testing.T) {
	threads := map[string][]string{
		"named":      {"Optimist-Session", "me"},
		"in a trace": {"traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
	}
	writes := map[string]struct {
		method, target, body string
		reads                bool // the thread has read the newer copy, and not written it
	}{
		"a document":                    {"PUT", doc1, `{"l":["b"]}`, false},
		"a document that was only read": {"PUT", doc1, `{"l":["b"]}`, true},
		"an item of a bulk":             {"POST", "/_bulk", `{"index":{"_index":"shop","_id":"1"}}` + "\n" + `{"l":["b"]}` + "\n", false},
		"a part":                        {"POST", "/shop/_update/1", `{"doc":{"l":["b"]}}`, false},
	}
	for name, fields := range threads {
		for what, write := range writes {
			if write.reads && name != "named" {
				continue // the reads of a trace are candidates, all of them
			}
			t.Run(what+", "+name, func(t *testing.T) {
				w := newWorldOn(t, "rules: [{name: r, base: {reads: [get, search]}}]", Identity{Infer: true, Address: true},
					enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
						if !strings.HasSuffix(r.URL.Path, "/_search") {
							return false
						}
						out.Header().Set("Content-Type", "application/json")
						_, _ = io.WriteString(out, `{"hits":{"hits":[{"_index":"shop","_id":"1","_version":1,"_seq_no":0,"_primary_term":1,"_source":{"l":[]}}]}}`)
						return true
					}))
				w.put(doc1, `{"l":[]}`)
				w.put(doc1, `{"l":["x"]}`)
				w.ask(w.proxied, "GET", doc1, "", fields...)
				if write.reads {
					w.put(doc1, `{"l":["x","a"]}`)
					w.ask(w.proxied, "GET", doc1, "", fields...)
				} else {
					w.wants(w.ask(w.proxied, "PUT", doc1, `{"l":["x","a"]}`, fields...), 200, "guarded;attempts=1;base=session")
				}
				w.ask(w.proxied, "GET", "/shop/_search", "", fields...)
				if a := w.ask(w.proxied, write.method, write.target, write.body, fields...); !strings.Contains(a.Body, "version_conflict_engine_exception") {
					t.Errorf("%d %s", a.Status, a.Body)
				}
				w.ask(w.proxied, "GET", "/shop/_search", "", fields...) // and writes from what it finds now
				if a := w.ask(w.proxied, write.method, write.target, write.body, fields...); a.Status != 200 || gjson.Get(a.Body, "errors").Bool() {
					t.Errorf("%d %s", a.Status, a.Body)
				}
				if got := w.stored(doc1); got != `{"l":["x","a","b"]}` {
					t.Errorf("stored %s", got)
				}
			})
		}
	}
}

// A read that needn't show what is stored now is no base, either, if its thread has something newer in hand: whichever read it is, and also
// where its documents are stamped.
func TestAReadOfTheLastRefreshIsNoBaseOfAThreadThatHasSomethingNewer(t *testing.T) {
	const stamping = "base: {stamp: _rev, reads: [get, mget, search]}"
	for _, rules := range []string{"base: {reads: [get, mget, search]}", stamping, "base: {stamp: _rev, reads: [get]}", stamping + " # and written"} {
		stamped := strings.HasSuffix(rules, "written")
		for _, read := range [][3]string{
			{"GET", "/shop/_doc/1?realtime=false"}, {"GET", "/shop/_doc/1?preference=_local"}, {"GET", "/shop/_source/1?realtime=false"},
			{"POST", "/shop/_mget?realtime=false", `{"ids":["1"]}`}, {"POST", "/shop/_search", `{}`},
		} {
			engine := enginetest.Serve(t)
			before := enginetest.Serve(t) // as it was at the last refresh
			forward := enginetest.Forward(t, before)
			w := newWorldOn(t, "rules:\n- name: r\n  merge: {paths: {/n: sum}}\n  "+rules+"\n", Identity{},
				enginetest.Between(t, engine, func(out http.ResponseWriter, r *http.Request) bool {
					if q := r.URL.Query(); !q.Has("realtime") && !q.Has("preference") && !strings.HasSuffix(r.URL.Path, "_search") {
						return false
					}
					forward.ServeHTTP(out, r)
					return true
				}))
			for _, url := range []string{engine, before} {
				w.ask(url, "PUT", "/shop/_doc/1?refresh=true", `{"n":2}`)
			}
			do := func(method, target, body string) answer {
				return w.ask(w.proxied, method, target, body, "Optimist-Session", "s")
			}
			do("GET", doc1, "")
			w.wants(do("PUT", doc1, `{"n":4}`), 200, "guarded")
			a := do(read[0], read[1], read[2])
			if a.Status != 200 || !strings.Contains(a.Body, `"n":2`) {
				t.Fatal(a)
			}
			body, base := `{"n":5}`, "base=view"
			if rev := stamps(a.Body); len(rev) == 1 && stamped {
				body, base = fmt.Sprintf(`{"n":3,"_rev":%q}`, rev[0]), "base=stamp" // which says from what the client writes
			}
			if a = do("PUT", doc1, body); a.Status != 200 || !strings.HasSuffix(a.Outcome(), base) {
				t.Errorf("%s, %s: %d [%s]", rules, read[1], a.Status, a.Outcome())
			}
			if got := w.stored(doc1); got != `{"n":5}` {
				t.Errorf("%s, %s: stored %s", rules, read[1], got)
			}
		}
	}
}

// scrolling is an engine with a scroll of three pages, each of a document.
func scrolling(t *testing.T) (engine string, numbered func() bool) {
	var with atomic.Bool
	s := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		page := 2
		if r.URL.Query().Has("seq_no_primary_term") {
			with.Store(true)
		}
		if r.URL.Query().Has("scroll") && strings.HasSuffix(r.URL.Path, "/_search") {
			page = 1
		}
		if strings.Contains(r.URL.Path+string(body)+r.URL.RawQuery, "page3") {
			page = 3
		}
		numbers := ""
		if with.Load() {
			numbers = fmt.Sprintf(`"_version":1,"_seq_no":%d,"_primary_term":2,`, page)
		}
		out.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(out, `{"_scroll_id":"page%d==","took":1,"hits":{"total":3,"hits":[{"_index":"shop","_id":"%d",%s"_score":1.0,"_source":{"a": 1}} ] }}`, page+1, page, numbers)
	}))
	t.Cleanup(s.Close)
	return s.URL, with.Load
}

func TestLaterPagesOfAScrollAreAsTheFirst(t *testing.T) {
	const all = "rules: [{name: r, match: {index: [shop]}, base: {reads: [search]}}]"
	pages := []struct{ method, target, body string }{
		{"POST", "/shop/_search?scroll=1m", `{}`},
		{"POST", "/_search/scroll", `{"scroll":"1m","scroll_id":"page2=="}`},
		{"GET", "/_search/scroll?scroll=1m&scroll_id=page3%3D%3D", ``},
		{"GET", "/_search/scroll/page3==?scroll=1m", ``},
		{"POST", "/_search/scroll?filter_path=_scroll_id,hits.hits", `{"scroll":"1m","scroll_id":"page3=="}`},
	}
	plain, _ := scrolling(t)
	engine, numbered := scrolling(t)
	w := newWorldOn(t, all, Identity{}, engine)
	for i, p := range pages {
		want, got := w.ask(plain, p.method, p.target, p.body), w.ask(w.proxied, p.method, p.target, p.body, "Optimist-Session", "s")
		if got.Status != 200 || got.Body != want.Body {
			t.Errorf("page %d: %d %s, want %s", i, got.Status, got.Body, want.Body)
		}
		id := min(i+1, 3)
		if b := w.base("shop", fmt.Sprint(id)); b.Kind != session.KindRead || b.Numbers.SeqNo != int64(id) || b.Version != 1 {
			t.Errorf("page %d: the base is %v of %v", i, b.Kind, b.Numbers)
		}
	}
	if !numbered() {
		t.Error("the numbers weren't asked for")
	}
	// of a scroll that isn't known, nothing is taken out
	other := newWorldOn(t, all, Identity{}, engine)
	want, got := w.ask(engine, pages[1].method, pages[1].target, pages[1].body), other.ask(other.proxied, pages[1].method, pages[1].target, pages[1].body, "Optimist-Session", "s")
	if got.Body != want.Body {
		t.Errorf("%s, want %s", got.Body, want.Body)
	}
}

// Before its hits an answer may say much, of shards that failed, say. If it is too much, the hits pass as they are, and may be what the client
// writes from next.
func TestHitsBehindMuchElseAreWatched(t *testing.T) {
	for pad, outcome := range map[int]string{10: "guarded;attempts=1;base=session", 1 << 20: "guarded;attempts=1;base=session",
		17 << 20: "guarded;attempts=1;base=view;ambiguous"} {
		w := newWorldOn(t, "", Identity{Infer: true, Address: true}, enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "/_search") {
				return false
			}
			more := ""
			if r.URL.Query().Has("seq_no_primary_term") {
				more = `"_seq_no":1,"_primary_term":1,`
			}
			rw.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(rw, `{"_shards":{"failures":["%s"]},"hits":{"hits":[{"_index":"shop","_id":"0",%s"_source":{"log":["a"]}}]}}`,
				strings.Repeat("x", pad), more)
			return true
		}))
		w.put("/shop/_doc/0", `{}`)
		w.ask(w.proxied, "GET", "/shop/_doc/0", "")
		w.ask(w.proxied, "PUT", "/shop/_doc/0", `{"log":["first"]}`)
		p := w.ask(w.proxied, "POST", "/shop/_search", "")
		if leaks := strings.Contains(p.Body, "_seq_no"); leaks != (pad > 16<<20) {
			t.Errorf("behind %d bytes: numbers that nobody asked for: %v", pad, leaks)
		}
		if a := w.ask(w.proxied, "PUT", "/shop/_doc/0", `{"log":["first","x"]}`); a.Outcome() != outcome {
			t.Errorf("behind %d bytes: %s, want %s", pad, a.Outcome(), outcome)
		}
	}
}
