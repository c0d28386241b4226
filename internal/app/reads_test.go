package app

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/identity"
	"optimist/internal/session"
	"optimist/internal/watch"
)

// base is what the session "s" would have as its base now.
func (w *world) base(index, id string) session.Base {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	cancel()
	b, err := w.app.sessions.Take(ctx, identity.Named(session.Credentials{}, []byte("s")), doc.Ref{Index: index, ID: id}, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	b.Release()
	return b
}

// A chunked answer doesn't say how much of it there is; compressed ones come so. Its client acts as soon as it has the JSON.
func TestAReadIsKnownBeforeItsClientCanAct(t *testing.T) {
	told := make(chan struct{})
	engine := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(out, `{"_index":"shop","_id":"1","_version":1,"_seq_no":7,"_primary_term":2,"found":true,"_source":{"a":1}}`)
		out.(http.Flusher).Flush()
		select { // the end comes a moment later
		case <-told:
		case <-time.After(200 * time.Millisecond):
		}
	}))
	defer engine.Close()
	w := newWorldOn(t, "", Identity{}, engine.URL)
	req, _ := http.NewRequest("GET", w.proxied+doc1, nil)
	req.Header.Set("Optimist-Session", "s")
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var got []byte
	buf := make([]byte, 1024)
	for !strings.HasSuffix(string(got), "}}") {
		n, err := res.Body.Read(buf)
		got = append(got, buf[:n]...)
		if err != nil {
			break
		}
	}
	b := w.base("shop", "1")
	close(told)
	if b.Kind != session.KindRead || b.Numbers.SeqNo != 7 {
		t.Errorf("the client has %s, its session %v %v", got, b.Kind, b.Numbers)
	}
}

// Two clients look for a document whose index isn't there either, and both make it.
func TestWhatIsNotThereIsABase(t *testing.T) {
	for name, look := range map[string]func(w *world, target string) int{
		"get": func(w *world, target string) int {
			return w.ask(w.proxied, "GET", target, "", "Optimist-Session", "s").Status
		},
		"head": func(w *world, target string) int {
			return w.ask(w.proxied, "HEAD", target, "", "Optimist-Session", "s").Status
		},
		"source": func(w *world, target string) int {
			return w.ask(w.proxied, "GET", strings.Replace(target, "_doc", "_source", 1), "", "Optimist-Session", "s").Status
		},
	} {
		for _, index := range []string{"nowhere", "shop"} {
			t.Run(name+" "+index, func(t *testing.T) {
				w := newWorld(t, "", Identity{})
				w.put(doc1, `{"z":1}`)
				target := "/" + index + "/_doc/new"
				if status := look(w, target); status != 404 {
					t.Fatal(status)
				}
				w.put(target, `{"a":1}`)
				w.wants(w.ask(w.proxied, "PUT", target, `{"b":1}`, "Optimist-Session", "s"), 200, "merged;attempts=2;base=absent")
			})
		}
	}
}

// The engine has a 404 for a document of which it keeps no _source, too.
func TestADocumentWithoutASourceIsThere(t *testing.T) {
	for _, c := range [][2]string{{"GET", ""}, {"HEAD", ""}, {"GET", "?pretty"}} {
		w := newWorldOn(t, "", Identity{}, enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
			answer := `{"_index":"shop","_id":"1","_version":1,"_seq_no":0,"_primary_term":1,"found":true}`
			switch source := strings.HasPrefix(r.URL.Path, "/shop/_source/"); {
			case r.Method != "GET" && r.Method != "HEAD" || r.URL.Path == "/shop":
				return false
			case source:
				answer = `{"error":{"type":"resource_not_found_exception","reason":"Source not found [shop]/[1]"},"status":404}`
				out.Header().Set("Content-Type", "application/json")
				out.WriteHeader(http.StatusNotFound)
			default:
				out.Header().Set("Content-Type", "application/json")
			}
			_, _ = io.WriteString(out, answer)
			return true
		}))
		w.put(doc1, `{"n":1}`)
		if a := w.ask(w.proxied, c[0], "/shop/_source/1"+c[1], "", "Optimist-Session", "s"); a.Status != 404 {
			t.Fatal(a)
		}
		w.wants(w.ask(w.proxied, "PUT", doc1, `{"n":2}`, "Optimist-Session", "s"), 200, "passed;attempts=1;base=none")
	}
}

func TestASourceThatIsMadeUpIsNoBase(t *testing.T) {
	for q, want := range map[string]bool{
		"force_synthetic_source=true": true, "force_synthetic_source": true, "_source_exclude_vectors=true": true,
		"force_synthetic_source=false&_source_exclude_vectors=false&_source=true": false,
	} {
		if watch.Partial([]byte(q)) != want {
			t.Errorf("%s: not %v", q, want)
		}
	}
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"a":1}`)
	w.ask(w.proxied, "GET", doc1+"?force_synthetic_source=true", "", "Optimist-Session", "s")
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 200, "passed;attempts=1;base=none")
}

// Clients say format=json where that is what they would get anyhow.
func TestAReadInPlainJSONIsABase(t *testing.T) {
	for _, who := range []string{"me", ""} {
		w := newWorld(t, "", Identity{Infer: true, Address: true})
		w.put(doc1, `{"a":1,"b":1}`)
		for i, target := range []string{doc1 + "?format=json", "/shop/_source/1?format=json"} {
			w.ask(w.proxied, "GET", target, "", "Optimist-Session", who)
			w.put(doc1, fmt.Sprintf(`{"a":%d,"b":%d}`, i+1, i+2))
			w.wants(w.ask(w.proxied, "PUT", doc1, fmt.Sprintf(`{"a":%d,"b":%d}`, i+2, i+1), "Optimist-Session", who), 200, "merged;attempts=2;base=session")
			if got := w.stored(doc1); got != fmt.Sprintf(`{"a":%d,"b":%d}`, i+2, i+2) {
				t.Errorf("%s: stored %s", target, got)
			}
		}
	}
}

func TestASignedQueryIsPassedAndSaid(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"a":1}`)
	a := w.ask(w.proxied, "PUT", doc1+"?X-Amz-Signature=abc", `{"a":2}`)
	if !strings.HasPrefix(a.Outcome(), "passed;attempts=1;base=none;reason=signed") {
		t.Errorf("%d [%s]", a.Status, a.Outcome())
	}
}

func TestObserveCountsACreateThatOverwroteAnother(t *testing.T) {
	w := newWorld(t, "mode: observe\nrules:\n- {name: shop, mode: observe, match: {index: [shop]}}\n", Identity{})
	w.put("/shop/_doc/0", `{}`)
	w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
	w.put(doc1, `{"theirs":1}`)
	w.ask(w.proxied, "PUT", doc1, `{"mine":1}`, "Optimist-Session", "s")
	w.observed(1, 1)
}

// What a session writes after it may be made from it: counted from what it had seen before, what others did since would be in it
// twice.
func TestAReadWhoseRevisionIsNotKnownEndsWhatTheSessionKnew(t *testing.T) {
	for _, who := range []string{"me", ""} {
		for _, target := range []string{doc1 + "?filter_path=-_id", doc1 + "?filter_path=_source.*", doc1 + "?filter_path=_source&format=",
			doc1 + "?format=", doc1 + "?force_synthetic_source=true"} {
			w := newWorld(t, "", Identity{Infer: true, Address: true})
			w.put(doc1, `{"log":[]}`)
			w.ask(w.direct, "POST", "/_aliases", `{"actions":[{"add":{"index":"shop","alias":"al"}}]}`)
			w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", who)
			w.wants(w.ask(w.proxied, "PUT", "/al/_doc/1", `{"log":["a"]}`, "Optimist-Session", who), 200, "guarded;attempts=1;base=session")
			w.put(doc1, `{"log":["a","b"]}`)
			w.ask(w.proxied, "GET", target, "", "Optimist-Session", who)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b","c"]}`, "Optimist-Session", who), 200, "passed;attempts=1;base=lost;reason=evicted")
			if got := w.stored(doc1); got != `{"log":["a","b","c"]}` {
				t.Errorf("%s: stored %s", target, got)
			}
		}
		// A part is nothing that a whole document is made of.
		for _, target := range []string{doc1 + "?_source_includes=a", doc1 + "?filter_path=_seq_no", doc1 + "?filter_path=_source.a", doc1 + "?_source=false&format=json"} {
			w := newWorld(t, "", Identity{Infer: true, Address: true})
			w.put(doc1, `{"log":[]}`)
			w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", who)
			w.ask(w.proxied, "GET", target, "", "Optimist-Session", who)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a"]}`, "Optimist-Session", who), 200, "guarded;attempts=1;base=session")
		}
	}
}

// A form that shows the whole document without its revision is a base all the same: the engine is asked for the revision, and the client gets
// the bytes that it asked for.
func TestAFormThatHidesTheRevisionIsABase(t *testing.T) {
	for _, target := range []string{"/shop/_source/1?pretty", "/al/_source/1?pretty", doc1 + "?filter_path=_source", "/al/_doc/1?filter_path=_source",
		doc1 + "?filter_path=_id,_s*", doc1 + "?filter_path=_version,%5Fsource", doc1 + "?pretty&filter_path=_source,found", doc1 + "?filter_path=**",
		doc1 + "?filter_path=_seq_no,_source,_primary_term", doc1 + "?filter_path=_source,%20_seq_no,%20found"} {
		for _, who := range []string{"me", ""} {
			w := newWorld(t, "", Identity{Infer: true, Address: true})
			w.put(doc1, `{"log":[], "n":1.50}`)
			w.ask(w.direct, "POST", "/_aliases", `{"actions":[{"add":{"index":"shop","alias":"al"}}]}`)
			w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", who)
			w.wants(w.ask(w.proxied, "PUT", "/al/_doc/1", `{"log":["a"], "n":1.50}`, "Optimist-Session", who), 200, "guarded;attempts=1;base=session")
			w.put(doc1, `{"log":["a","b"], "n":1.50}`)
			got, want := w.ask(w.proxied, "GET", target, "", "Optimist-Session", who), w.ask(w.direct, "GET", target, "")
			if got.Body != want.Body || got.Status != want.Status || got.Header.Get("Content-Type") != want.Header.Get("Content-Type") {
				t.Errorf("%s: the client gets %d %q, of the engine %d %q", target, got.Status, got.Body, want.Status, want.Body)
			}
			w.put(doc1, `{"log":["a","b","x"], "n":1.50}`)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b","c"], "n":1.5}`, "Optimist-Session", who), 200, "merged;attempts=2;base=session")
			if got := w.stored(doc1); got != `{"log":["a","b","x","c"], "n":1.50}` && got != `{"log":["a","b","c","x"], "n":1.50}` {
				t.Errorf("%s: stored %s", target, got)
			}
		}
	}
}

// What a filter shows of a document that isn't there, or of an index without one, is the engine's answer.
func TestAFilteredAnswerWithoutADocumentIsTheEngines(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"a":1}`)
	for _, target := range []string{"/shop/_doc/2", "/none/_doc/1", doc1, "/shop/_source/2"} {
		for _, query := range []string{"?filter_path=_source", "?filter_path=_source,error", "?filter_path=_source.a,*.type", "?filter_path=", "?filter_path=_source&pretty"} {
			got, want := w.ask(w.proxied, "GET", target+query, "", "Optimist-Session", "me"), w.ask(w.direct, "GET", target+query, "")
			if got.Body != want.Body || got.Status != want.Status {
				t.Errorf("%s: the client gets %d %q, of the engine %d %q", target+query, got.Status, got.Body, want.Status, want.Body)
			}
		}
	}
}

// In a trace, that is so whatever others of the session write meanwhile.
func TestAReadWhoseRevisionIsNotKnownIsNoBaseOfItsTrace(t *testing.T) {
	trace := func(id string) []string {
		return []string{"traceparent", "00-" + strings.Repeat(id, 16) + "-00f067aa0ba902b7-01"}
	}
	for _, target := range []string{doc1 + "?filter_path=-_id", doc1 + "?format="} {
		w := newWorld(t, "", Identity{Infer: true, Address: true, Traces: true})
		w.put(doc1, `{"log":["a","b"]}`)
		w.ask(w.proxied, "GET", target, "", trace("ab")...)
		w.ask(w.proxied, "GET", doc1, "", trace("cd")...)
		w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b","c"]}`, trace("cd")...), 200, "guarded;attempts=1;base=session")
		w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b","d"]}`, trace("ab")...), 200, "passed;attempts=1;base=lost;reason=evicted")
	}
}

func TestASearchThatIsNotWatchedLeavesItsSessionNoViewToMergeFrom(t *testing.T) {
	const found, unwatched = "/shop/_search", "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, mget]}}\n"
	for name, c := range map[string]struct{ rules, target, body string }{
		"not watched":          {unwatched, found, ""},
		"with a body":          {unwatched, found, `{"query":{"match_all":{}}}`},
		"filter_path":          {"", found + "?filter_path=hits.**,-took", ""},
		"watched, but pretty":  {"rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, search]}}\n", found + "?pretty", ""},
		"by another's address": {unwatched, "/_search", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.rules, Identity{})
			search := func() {
				w.ask(w.direct, "POST", "/shop/_refresh", "")
				method := "GET"
				if c.body != "" {
					method = "POST"
				}
				if a := w.ask(w.proxied, method, c.target, c.body, "Optimist-Session", "me"); a.Status != 200 || !strings.Contains(a.Body, `"_source"`) {
					t.Fatalf("%d %s", a.Status, a.Body)
				}
			}
			save := func(body string) answer { return w.ask(w.proxied, "PUT", doc1, body, "Optimist-Session", "me") }
			w.put(doc1, `{"log":[]}`)
			w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "me")
			search() // what was read is what is written from
			w.put(doc1, `{"log":["z"]}`)
			w.wants(save(`{"log":["a"]}`), 200, "merged;attempts=2;base=session")
			w.put(doc1, `{"log":["a"]}`)
			search() // shows what was sent
			w.put(doc1, `{"log":["a","b"]}`)
			w.wants(save(`{"log":["a","a2"]}`), 200, "merged;attempts=2;base=view")

			w.put(doc1, `{"log":["x"]}`)
			search()
			for range 3 { // nor does it go unguarded, however often its client looks
				w.wants(save(`{"log":["x","c"]}`), 409, "refused;attempts=0;base=view;reason=unclear")
				search()
			}
			w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "me")
			w.put(doc1, `{"log":["x","y"]}`)
			w.wants(save(`{"log":["x","c"]}`), 200, "merged;attempts=2;base=session")
			if got := w.stored(doc1); got != `{"log":["x","y","c"]}` {
				t.Errorf("stored %s", got)
			}
		})
	}
}

// Asked once more as the client put it, such a read may be answered; and then nobody knows with which revision.
func TestAReadWhoseNumbersCouldNotBeAskedForFails(t *testing.T) {
	for name, fail := range map[string]func(w http.ResponseWriter){
		"no answer": func(http.ResponseWriter) { panic(http.ErrAbortHandler) },
		"busy":      func(w http.ResponseWriter) { w.WriteHeader(http.StatusTooManyRequests) },
		"no shard":  func(w http.ResponseWriter) { w.WriteHeader(http.StatusServiceUnavailable) },
	} {
		t.Run(name, func(t *testing.T) {
			var failing atomic.Bool
			between := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
				// What is asked instead fails; what the client asked would not.
				fails := failing.Load() && (strings.HasPrefix(r.URL.Path, doc1) || strings.Contains(r.URL.RawQuery, "seq_no_primary_term"))
				if fails {
					fail(w)
				}
				return fails
			})
			w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, search]}}\n", Identity{Infer: true}, between)
			w.put(doc1, `{"log":["a"]}`)
			w.ask(w.proxied, "GET", doc1, "")
			w.put(doc1, `{"log":["a","b"]}`)
			failing.Store(true)
			for _, target := range []string{"/shop/_source/1", "/shop/_search"} {
				if a := w.ask(w.proxied, "GET", target, ""); a.Status != 429 && a.Status < 500 {
					t.Errorf("%s: %d %s", target, a.Status, a.Body)
				}
			}
			failing.Store(false)
			if a := w.ask(w.proxied, "GET", "/shop/_source/1", ""); a.Status != 200 || a.Body != `{"log":["a","b"]}` {
				t.Errorf("%d %s", a.Status, a.Body)
			}
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"log":["a","b","c"]}`), 200, "guarded")
			if got := w.stored(doc1); got != `{"log":["a","b","c"]}` {
				t.Errorf("stored %s", got)
			}
		})
	}
}

// Clients that compress what they send compress the requests for many documents, too: what is asked for is what counts, not how
// it travels.
func TestWhatIsAskedForCompressedIsWhatIsRead(t *testing.T) {
	const rules = "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, mget, search]}}\n"
	for name, c := range map[string]struct {
		target, body string
		base         bool // the answer is one
	}{
		"several":           {"/shop/_mget", `{"ids":["1"]}`, true},
		"several, in parts": {"/shop/_mget", `{"docs":[{"_id":"1","_source":["n"]}]}`, false},
		"several, escaped":  {"/shop/_mget", `{"docs":[{"_id":"1","\u005fsource":["n"]}]}`, false},
		"several, whole":    {"/shop/_mget", `{"docs":[{"_id":"1","_source":{"includes":[]}}]}`, true},
		"several, of nulls": {"/shop/_mget", `{"docs":[{"_index":"shop","_id":"1","routing":null,"stored_fields":null,"version":-3,` +
			`"version_type":"internal","_source":null}]}`, true}, // as Java's high-level client asks
		"several, as stored": {"/shop/_mget", `{"docs":[{"_id":"1","stored_fields":["n"],"_source":true}]}`, false},
		"hits":               {"/shop/_search", `{"query":{"match_all":{}}}`, true},
		"hits, in parts":     {"/shop/_search", `{"_source":["n"]}`, false},
		"hits, escaped":      {"/shop/_search", `{"\u005fsource":["n"]}`, false},
		"hits, pretty":       {"/shop/_search?pretty", `{}`, false}, // their bytes aren't those that are stored
		"hits with numbers":  {"/shop/_search", `{"seq_no_primary_term":true}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			for coding, body := range map[string]string{"": c.body, "gzip": zipped(c.body)} {
				w := newWorld(t, rules, Identity{})
				w.put(doc1+"?refresh=true", `{"log":["a"],"n":1}`)
				w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
				w.put(doc1+"?refresh=true", `{"log":["a","b"],"n":1}`)
				fields := []string{"Optimist-Session", "s"}
				if coding != "" {
					fields = append(fields, "Content-Encoding", coding)
				}
				direct, through := w.ask(w.direct, "POST", c.target, body, fields...), w.ask(w.proxied, "POST", c.target, body, fields...)
				if through.Status != 200 || took(through.Body) != took(direct.Body) {
					t.Errorf("%s: %d %s, without optimist %s", coding, through.Status, through.Body, direct.Body)
				}
				b := w.base("shop", "1")
				if want := map[bool]int64{true: 1, false: 0}[c.base]; b.Kind != session.KindRead || b.Numbers.SeqNo != want {
					t.Errorf("%s: the base is %v of %v, want that of %d", coding, b.Kind, b.Numbers, want)
				}
			}
		})
	}
}

// What a request in another format than JSON asks for isn't known, so that what it is answered may be a part.
func TestASearchThatCannotBeReadIsNoBase(t *testing.T) {
	engine := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		out.Header().Set("Content-Type", "application/json")
		if strings.Contains(r.URL.RawQuery, "seq_no_primary_term") {
			t.Error("the numbers are asked for: ", r.URL)
		}
		_, _ = io.WriteString(out, `{"hits":{"hits":[{"_index":"shop","_id":"1","_version":1,"_seq_no":7,"_primary_term":2,"_source":{"a":1}}]}}`)
	}))
	defer engine.Close()
	w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, mget, search]}}\n", Identity{}, engine.URL)
	for media, body := range map[string]string{
		"application/yaml": "_source: [a]\n", "application/json": "{_source:['a']}", "application/cbor": "\xa1\x67_source\x81\x61a",
	} {
		w.ask(w.proxied, "POST", "/shop/_search", body, "Optimist-Session", "s", "Content-Type", media)
		if b := w.base("shop", "1"); b.Kind != session.KindNone {
			t.Errorf("%s: the base is %v of %v", media, b.Kind, b.Numbers)
		}
	}
	w.ask(w.proxied, "POST", "/shop/_search", zipped("{}")[1:], "Optimist-Session", "s", "Content-Encoding", "gzip")
	w.ask(w.proxied, "POST", "/shop/_search", "{}", "Optimist-Session", "s", "Content-Encoding", "zstd")
	if b := w.base("shop", "1"); b.Kind != session.KindNone {
		t.Errorf("the base is %v of %v", b.Kind, b.Numbers)
	}
}

// Clients of Elasticsearch 7 name the type _doc in the paths of endpoints. These are no documents there, and are ones elsewhere.
func TestTheEngineSaysWhetherAPathIsAnEndpointOfAType(t *testing.T) {
	for version, typed := range map[string]bool{
		`{"number":"7.17.29"}`: true, `{"number":"9.1.0"}`: false, `{"number":"3.1.0","distribution":"opensearch"}`: false,
		`{"number":"1.3.0","distribution":"opensearch"}`: true,
	} {
		var got atomic.Pointer[string]
		w := newWorldOn(t, "rules: [{name: r, transform: [{op: default, path: /x, value: 1}]}]", Identity{},
			enginetest.Between(t, enginetest.Serve(t), func(out http.ResponseWriter, r *http.Request) bool {
				body := enginetest.Body(r)
				answer := `{"hits":{"hits":[]}}`
				switch r.URL.Path {
				case "/":
					answer = `{"version":` + version + `}`
				case "/shop/_doc/_search":
					got.Store(new(string(body)))
				default:
					return false
				}
				out.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(out, answer)
				return true
			}))
		enginetest.Wait(t, "the engine has said what it is", func() bool { return w.app.Ready() == nil })
		const query = `{"query":{"match_all":{}}}`
		a := w.ask(w.proxied, "POST", "/shop/_doc/_search", query)
		if sent := got.Load(); sent == nil || (*sent == query) != typed || (a.Outcome() == "") != typed {
			t.Errorf("%s: %v [%s]", version, sent, a.Outcome())
		}
	}
}

// TestAReadAsksNothingWhileItHoldsAConnection: somebody else has found another index of the name. Whether the client's own is still the same
// is asked over the only connection to the engine, and what the client has read before counts on.
func TestAReadAsksNothingWhileItHoldsAConnection(t *testing.T) {
	for name, read := range map[string][3]string{
		"a document":         {"GET", "/shop/_doc/2", ""},
		"none":               {"GET", "/shop/_doc/none", ""},
		"whether there is":   {"HEAD", "/shop/_doc/none", ""},
		"a bare one":         {"GET", "/shop/_source/2", ""},
		"several":            {"POST", "/shop/_mget", `{"ids":["2","none"]}`},
		"several, by a path": {"POST", "/_mget", `{"docs":[{"_index":"shop","_id":"2"}]}`},
		"a search":           {"POST", "/shop/_search", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			engine := enginetest.Serve(t)
			c := configured(t, "", engine)
			c.Upstream.MaxConnections = 1
			w := &world{t: t, direct: engine, app: running(t, c)}
			w.proxied = w.app.URL()
			w.put("/shop/_doc/1?refresh=true", `{"a":1}`)
			w.put("/shop/_doc/2?refresh=true", `{"a":1}`)
			s := []string{"Optimist-Session", "s"}
			w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/3", `{"a":1}`, s...), 201, "") // what the index is is known by now
			if a := w.ask(w.proxied, "GET", "/shop/_doc/1", "", s...); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			w.app.sessions.DropIndex(session.Credentials{1}, "shop")
			if a := w.ask(w.proxied, read[0], read[1], read[2], s...); a.Status != 200 && a.Status != 404 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"a":2}`, s...), 200, "guarded;attempts=1;base=session")
		})
	}
}
