package app

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"optimist/internal/enginetest"
)

// has a session read the document, and another client change it.
func (w *world) readAndChanged() {
	w.put(doc1, `{"a":1,"b":1}`)
	w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
	w.put(doc1, `{"a":1,"b":2}`)
}

// stillMerges reports whether the session's read is still the base of its write.
func (w *world) stillMerges(after string) {
	w.t.Helper()
	if a := w.ask(w.proxied, "PUT", doc1, `{"a":2,"b":1}`, "Optimist-Session", "s"); !strings.HasPrefix(a.Outcome(), "merged;attempts=2;base=session") {
		w.t.Errorf("after %s the write is %d [%s]", after, a.Status, a.Outcome())
	}
}

// One request of anybody's must not cost all others their bases: their next writes would go unguarded.
func TestWhatChangesNoIndexOfOthersLeavesThemTheirBases(t *testing.T) {
	for _, c := range []struct{ method, target, body string }{
		{"OPTIONS", "/_aliases", ""}, {"OPTIONS", "/_alias", ""}, {"OPTIONS", "/_all", ""}, {"OPTIONS", "/_snapshot/r/s/_restore", ""},
		{"TRACE", "/shop/_alias/x", ""}, {"POST", "/_aliases", ""}, {"POST", "/_aliases", `{"actions":[]}`}, {"PUT", "/_snapshot/r/s", "{}"},
		{"POST", "/_snapshot/r/s/_restore", "{}"}, {"DELETE", "/nothing-*", ""}, {"DELETE", "/nothing", ""}, {"DELETE", "/*,-*", ""},
		{"DELETE", "/other,nothing?ignore_unavailable=true", ""}, {"DELETE", "/shop,nothing", ""}, {"POST", "/_all/_search", "{}"},
		{"POST", "/_aliases", `{"actions":[{"add":{"index":"other","alias":"x"}}]}`}, {"PUT", "/other/_alias/x", ""},
		{"POST", "/_aliases", `{"actions":[{"remove":{"index":"other","alias":"m*"}}]}`},
		{"POST", "/_aliases", `{"actions":[{"remove_index":{"index":"other"}}]}`},
		{"POST", "/_aliases", `{"actions":[{"add":{"index":"shop","alias":"x"}}]}`}, {"DELETE", "/other", ""}, {"DELETE", "/oth*", ""},
		{"PUT", "/another", `{"aliases":{"x":{}}}`}, {"PUT", "/shop", "{}"}, {"PUT", "/other/_settings", `{"index":{"refresh_interval":"1s"}}`},
	} {
		t.Run(strings.ReplaceAll(c.method+" "+c.target+" "+c.body, "/", "|"), func(t *testing.T) {
			w := watched(t, byPattern)
			w.put("/other", `{"aliases":{"mine":{}}}`)
			w.readAndChanged()
			a := w.ask(w.proxied, c.method, c.target, c.body)
			w.stillMerges(fmt.Sprint(c, " ", a.Status))
		})
	}
}

// Engines cut a path at a number sign, or don't. What stands behind it is no index that was made or deleted.
func TestANumberSignInAPathCostsOthersNoBases(t *testing.T) {
	for _, c := range [][2]string{
		{"PUT", "/x#/shop"}, {"PUT", "/x#,shop"}, {"PUT", "/x?y#/shop"}, {"PUT", "/x/_clone#/shop"}, {"PUT", "/x/_alias/y#/shop"},
		{"DELETE", "/other#,shop"}, {"DELETE", "/other,shop*,-shop"},
	} {
		t.Run(strings.ReplaceAll(c[0]+" "+c[1], "/", "|"), func(t *testing.T) {
			w := newWorld(t, "", Identity{})
			w.put("/other", `{}`)
			w.readAndChanged()
			a := w.asIs(w.proxied, c[0], c[1], "", "hostile")
			w.stillMerges(fmt.Sprint(c, " ", a.Status))
		})
	}
}

func TestARequestThatNeverEndsChangesNothing(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.readAndChanged()
	nc, err := net.Dial("tcp", strings.TrimPrefix(w.proxied, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	fmt.Fprint(nc, "POST /_aliases HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n{\"actions\":[")
	_ = nc.(*net.TCPConn).CloseWrite()
	_, _ = io.Copy(io.Discard, nc) // the door is done with it
	w.stillMerges("a body that breaks off")
}

// The engine says which indices are other ones now, whatever way they were named.
func TestAnIndexThatIsMadeAnewLosesItsBasesHoweverItWasNamed(t *testing.T) {
	for _, c := range []struct{ method, target, body string }{
		{"DELETE", "/shop", ""}, {"DELETE", "/sho*", ""}, {"DELETE", "/*,-other", ""}, {"DELETE", "/_all", ""}, {"DELETE", "/other,shop", ""},
		{"DELETE", "/shop,nothing?ignore_unavailable=true", ""}, {"POST", "/_aliases", `{"actions":[{"remove_index":{"index":"shop"}}]}`},
		{"POST", "/_aliases", `{"actions":[{"remove_index":{"indices":["sh*"]}},{"add":{"index":"other","alias":"shop"}}]}`},
		{"POST", "/_aliases", zipped(`{"actions":[{"remove_index":{"index":"shop"}}]}`)},
	} {
		t.Run(strings.ReplaceAll(c.method+" "+c.target+" "+c.body, "/", "|"), func(t *testing.T) {
			w := watched(t, byPattern)
			w.put("/other", `{}`)
			w.readAndChanged()
			fields := []string{}
			if strings.HasPrefix(c.body, "\x1f") {
				fields = []string{"Content-Encoding", "gzip"}
			}
			if a := w.ask(w.proxied, c.method, c.target, c.body, fields...); a.Status != 200 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			w.ask(w.direct, "POST", "/_aliases", `{"actions":[{"remove":{"index":"other","alias":"shop"}}]}`)
			w.put(doc1, `{"a":"other"}`) // the same numbers again
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 200, "passed;attempts=1;base=lost;reason=index")
		})
	}
}

// watched is an engine behind a hand of the test's own: it may answer a request itself, before or after the engine has carried it
// out.
func watched(t *testing.T, hand func(w http.ResponseWriter, r *http.Request, carryOut func()) bool) *world {
	t.Helper()
	engine := enginetest.Serve(t)
	forward := enginetest.Forward(t, engine)
	return newWorldOn(t, "", Identity{}, enginetest.Between(t, engine, func(w http.ResponseWriter, r *http.Request) bool {
		return hand(w, r, func() { forward.ServeHTTP(httptest.NewRecorder(), r) })
	}))
}

// byPattern has the embedded engine delete indices by patterns, as engines do that are set up so.
func byPattern(w http.ResponseWriter, r *http.Request, _ func()) bool {
	means := map[string]string{"/sho*": "/shop", "/*,-other": "/shop", "/_all": "/shop,other", "/oth*": "/other", "/nothing-*": "", "/*,-*": ""}
	path, pattern := means[r.URL.Path]
	if r.Method != http.MethodDelete || !pattern {
		return false
	}
	if r.URL.Path = path; path == "" {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"acknowledged":true}`)
	}
	return path == ""
}

func refuse(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusForbidden)
	_, _ = io.WriteString(w, `{"error":{"type":"security_exception"},"status":403}`)
}

func TestAChangeWhoseAnswerIsLostIsTakenForDone(t *testing.T) {
	for name, carriedOut := range map[string]bool{"carried out": true, "carried out later": false} {
		t.Run(name, func(t *testing.T) {
			w := watched(t, func(_ http.ResponseWriter, r *http.Request, carryOut func()) bool {
				if r.Method != http.MethodDelete || r.Header.Get("X-Lost") == "" {
					return false
				}
				if carriedOut {
					carryOut()
				}
				panic(http.ErrAbortHandler)
			})
			w.readAndChanged()
			if a := w.ask(w.proxied, "DELETE", "/shop", "", "X-Lost", "true"); a.Status != 504 {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			w.ask(w.direct, "DELETE", "/shop", "")
			w.put(doc1, `{"a":"other"}`)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 200, "passed;attempts=1;base=lost;reason=index")
		})
	}
}

// Whoever may not change an index could send the request all the same, and leave before it is refused.
func TestAClientThatLeavesBeforeItIsRefusedChangesNothing(t *testing.T) {
	arrived, left := make(chan bool), make(chan bool)
	w := watched(t, func(w http.ResponseWriter, r *http.Request, _ func()) bool {
		if r.Method != http.MethodDelete {
			return false
		}
		arrived <- true
		<-left
		refuse(w)
		return true
	})
	w.readAndChanged()
	nc, err := net.Dial("tcp", strings.TrimPrefix(w.proxied, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(nc, "DELETE /shop HTTP/1.1\r\nHost: x\r\n\r\n")
	<-arrived
	_ = nc.(*net.TCPConn).CloseWrite()
	answered := make(chan bool)
	go func() {
		_, _ = bufio.NewReader(nc).ReadByte() // its answer, or the end of the connection
		close(answered)
	}()
	close(left)
	<-answered
	nc.Close()
	w.stillMerges("a refused request whose client left")
}

// An engine with users tells each what that user may see. What it answers to one says nothing of what others can rely on.
func TestWhoeverSeesNothingOfAnIndexEndsNothingOfIt(t *testing.T) {
	var asked atomic.Int32
	w := watched(t, func(w http.ResponseWriter, r *http.Request, _ func()) bool {
		switch {
		case r.Header.Get("Authorization") == "":
			return false
		case r.Method == http.MethodGet:
			asked.Add(1)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{}`)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"acknowledged":true}`)
		}
		return true
	})
	for _, c := range []struct{ method, target, body string }{
		{"DELETE", "/shop?ignore_unavailable=true", ""}, {"DELETE", "/*", ""}, {"POST", "/_aliases", "not JSON"}, {"DELETE", "/shop/_alias/*", ""},
	} {
		w.readAndChanged()
		w.ask(w.proxied, c.method, c.target, c.body, "Authorization", "Basic eDp5")
		w.stillMerges(fmt.Sprint(c))
	}
	if asked.Load() != 8 {
		t.Errorf("asked %d times as the client, want before and after each of 4 requests", asked.Load())
	}
}

// Roles may delete an index that they can't see.
func TestASuccessProvesThatTheIndexIsGone(t *testing.T) {
	w := watched(t, func(w http.ResponseWriter, r *http.Request, _ func()) bool {
		if r.Header.Get("Authorization") != "" && r.Method == http.MethodGet {
			refuse(w)
			return true
		}
		return false
	})
	w.readAndChanged()
	if a := w.ask(w.proxied, "DELETE", "/shop", "", "Authorization", "Basic eDp5"); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	w.put(doc1, `{"a":"other"}`)
	w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 200, "passed;attempts=1;base=lost;reason=index")
}

// A pretty answer shows numbers and texts in another form than they are stored in. That is no other document.
func TestAPrettyReadLeavesOthersTheirBases(t *testing.T) {
	for _, target := range []string{doc1 + "?pretty", "/shop/_source/1?pretty", "/shop/_mget?pretty"} {
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {reads: [get, mget, search]}}\n", Identity{})
		w.put(doc1, `{"a":9007199254740993.0,"b":"\u00e9"}`)
		w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
		method, body := "GET", ""
		if strings.Contains(target, "_mget") {
			method, body = "POST", `{"ids":["1"]}`
		}
		w.ask(w.proxied, method, target, body, "Optimist-Session", "t")
		w.put(doc1, `{"a":9007199254740993.0,"b":"\u00e9","c":1}`)
		w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":1,"b":"\u00e9"}`, "Optimist-Session", "s"), 200, "merged;attempts=2;base=session")
	}
}

// An index that was deleted around optimist, and made anew, has the old numbers again. Whoever reads in between is told that it is missing.
func TestAnIndexThatAReadFindsMissingIsForgotten(t *testing.T) {
	for name, look := range map[string]func(w *world) answer{
		"get": func(w *world) answer { return w.ask(w.proxied, "GET", "/shop/_doc/2", "", "Optimist-Session", "t") },
		"multiget": func(w *world) answer {
			return w.ask(w.proxied, "POST", "/shop/_mget", `{"ids":["2"]}`, "Optimist-Session", "t")
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "", Identity{})
			w.put(doc1, `{"a":1}`)
			w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
			w.ask(w.direct, "DELETE", "/shop", "")
			if a := look(w); !strings.Contains(a.Body, "index_not_found_exception") {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			w.put(doc1, `{"a":"other"}`)
			w.put("/shop/_doc/2", `{"theirs":1}`)
			w.wants(w.ask(w.proxied, "PUT", doc1, `{"a":2}`, "Optimist-Session", "s"), 200, "passed;attempts=1;base=lost;reason=index")
			w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/2", `{"mine":1}`, "Optimist-Session", "t"), 200, "merged;attempts=2;base=absent")
		})
	}
}

// Whoever makes and deletes an index of their own must not have others' reads go without stamps.
func TestReadsAreStampedWhileAnotherIndexIsMadeAnew(t *testing.T) {
	var w *world
	w = watched(t, func(_ http.ResponseWriter, r *http.Request, _ func()) bool {
		if r.URL.Path == doc1 && r.Method == http.MethodGet && r.Header.Get("Meanwhile") != "" {
			for _, method := range []string{"PUT", "DELETE"} {
				if a := w.ask(w.proxied, method, "/other", ""); a.Status != 200 {
					t.Errorf("%d %s", a.Status, a.Body)
				}
			}
		}
		return false
	})
	w.app.rules.SetRules(compiled(t, configured(t, stamping, w.direct)))
	w.put(doc1, `{"a":1}`)
	w.ask(w.proxied, "GET", doc1, "") // the index is known, or its name might share a cell with the other one's
	if a := w.ask(w.proxied, "GET", doc1, "", "Meanwhile", "yes"); len(stamps(a.Body)) != 1 {
		t.Errorf("%s %s", a.Body, a.Header.Get("Optimist-Stamp"))
	}
}
