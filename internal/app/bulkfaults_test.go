package app

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
)

const shopRule = "rules:\n- {name: r, match: {index: [shop]}}\n"

// Rules that refuse items leave the others alone, also where none of these is guarded.
func TestItemsThatAreRefusedLeaveTheOthersAlone(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, bulk: refuse}\n- {name: rest}\n", Identity{})
	a := w.ask(w.proxied, "POST", "/_bulk", lines(`{"index":{"_index":"shop","_id":"1"}}`, `{"a":1}`, `{"index":{"_index":"other","_id":"1"}}`, `{"b":1}`))
	w.bulked(a, "index 400 illegal_argument_exception, index 201 created", "refused;items=2;passed=1;refused=1")
	w.holds("/other/_doc/1", `{"b":1}`)
}

// Items of one document are written in their order, by whatever names they name it.
func TestItemsOfOneDocumentKeepTheirOrderUnderAllItsNames(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop, store, routed]}}\n", Identity{})
	w.put("/shop", `{"aliases":{"store":{},"routed":{"routing":"x"}}}`)
	for n := range 20 {
		for _, names := range [][2]string{{`"_index":"store"`, `"_index":"shop"`}, {`"_index":"routed"`, `"_index":"shop","routing":"x"`}} {
			for _, target := range []string{"/store/_doc/1", "/routed/_doc/1"} {
				w.ask(w.proxied, "GET", target, "", "Optimist-Session", "s")
			}
			w.ask(w.proxied, "POST", "/_bulk", lines(`{"index":{`+names[0]+`,"_id":"1"}}`, `{"a":"first"}`, `{"index":{`+names[1]+`,"_id":"1"}}`, `{"a":"last"}`),
				"Optimist-Session", "s")
			target := "/shop/_doc/1"
			if strings.Contains(names[1], "routing") {
				target += "?routing=x"
			}
			if got := w.stored(target); got != `{"a":"last"}` {
				t.Fatalf("turn %d: %s is %s", n, target, got)
			}
		}
	}
}

// Nor does an item that isn't guarded, by a name under which the session has read nothing, go before a guarded one of its document.
func TestAnItemUnderAnotherNameWaitsForTheOneBeforeIt(t *testing.T) {
	for range 20 {
		w := newWorld(t, "rules:\n- {name: r, match: {index: [shop, store]}}\n", Identity{})
		w.put("/shop", `{"aliases":{"store":{}}}`)
		w.put(doc1, `{"a":1}`)
		a := w.ask(w.proxied, "POST", "/shop/_bulk", lines(`{"create":{"_id":"1"}}`, `{}`, `{"delete":{"_id":"1"}}`, `{"index":{"_index":"store","_id":"1"}}`, `{"a":2}`),
			"Optimist-Session", "s")
		if got := w.stored(doc1); got != `{"a":2}` {
			t.Fatalf("%s, and stored is %s", a.Body, got)
		}
	}
}

// A small bulk can't have the engine do a hundred thousand requests, one after the other.
func TestABulkNamesADocumentSoManyTimes(t *testing.T) {
	const items = 3000
	for name, c := range map[string]struct{ held, least, most int }{"held": {1 << 20, 1001, 1001}, "in windows": {tinyBody, 1001, items / 2}} {
		w := newSizedWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}, transform: [{op: add, path: /c, value: 1}]}\n", Identity{}, enginetest.Serve(t), int64(c.held))
		w.put("/shop", `{}`)
		a := w.ask(w.proxied, "POST", "/shop/_bulk", strings.Repeat(lines(`{"index":{"_id":"1"}}`, `{"a":2}`), items), "Optimist-Session", "s")
		written, refused := 0, 0
		for _, item := range gjson.Get(a.Body, "items.#.index").Array() {
			switch status := item.Get("status").Int(); {
			case status == 429 && item.Get("error.type").Str == "es_rejected_execution_exception":
				refused++
			case refused > 0:
				t.Fatalf("%s: an item behind one that wasn't sent is %s", name, item)
			case status < 300:
				written++
			}
		}
		version := gjson.Get(w.ask(w.direct, "GET", doc1, "").Body, "_version").Int()
		if written < c.least || written > c.most || written+refused != items || version != int64(written) {
			t.Errorf("%s: %d were written, %d refused [%s]; version %d", name, written, refused, a.Outcome(), version)
		}
	}
}

// An item behind a guarded one of its document is guarded by what that left: others may write between the two.
func TestAnItemIsBasedOnWhatTheOneBeforeItLeft(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, transform: [{op: add, path: /c, value: 1}]}\n", Identity{})
	w.put(doc1, `{"a":1}`)
	a := w.ask(w.proxied, "POST", "/shop/_bulk", lines(`{"index":{"_id":"1"}}`, `{"a":2}`, `{"delete":{"_id":"1"}}`), "Optimist-Session", "s")
	w.bulked(a, "index 200 updated, delete 200 deleted", "guarded;items=2;passed=1;guarded=1")
}

// oddBulks are bulks that the engine takes, or partly takes, though they are odd; of document 1 each of them makes {"a":2,"b":1}, or nothing.
var oddBulks = map[string]string{
	"members that are null":              lines(`{"index":{"_index":null,"_id":"1","routing":null,"pipeline":null,"if_seq_no":null}}`, `{"a":2,"b":1}`),
	"an empty document behind it":        lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"index":{"_id":"2"}}`, ``, `{"create":{"_id":"3"}}`, `{}`),
	"a document that is none":            lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"index":{"_id":"2"}}`, `7`, `{"create":{"_id":"3"}}`, `{"a"`),
	"an id that is empty":                lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"index":{"_id":""}}`, `{}`),
	"names that can't be":                lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"index":{"_index":"a,b","_id":"1"}}`, `{}`, `{"delete":{"_index":"none","_id":"1"}}`),
	"a broken part":                      lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"update":{"_id":"1"}}`, `{"doc":`),
	"a part with what it can't have":     lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"update":{"_id":"2"}}`, `{"doc":{},"docs":{}}`),
	"an id that is too long":             lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"index":{"_id":"`+strings.Repeat("x", 513)+`"}}`, `{}`),
	"a member that there isn't":          lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"index":{"_id":"2","colour":"red"}}`, `{}`),
	"no newline at the end":              lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`) + `{"delete":{"_id":"2"}}`,
	"a number, and a truth, for an id":   lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"index":{"_id":7}}`, `{}`, `{"index":{"_id":true}}`, `{}`),
	"a create of what is there":          lines(`{"create":{"_id":"1"}}`, `{}`, `{"index":{"_id":"1"}}`, `{"a":2,"b":1}`),
	"a guard that can't be":              lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"index":{"_id":"2","if_seq_no":1}}`, `{}`),
	"a refresh that there isn't":         "?refresh=maybe " + lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`),
	"a parameter that there isn't":       "?colour=red " + lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`),
	"an alias that is wanted, and isn't": "?require_alias=true " + lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`),
	"a filter of the answer":             "?filter_path=items.*.status,errors " + lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"create":{"_id":"1"}}`, `{}`),
	"a filter that leaves nothing":       "?filter_path=none " + lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`),
	"the document in the answer":         "?_source=true " + lines(`{"update":{"_id":"1"}}`, `{"doc":{"a":2}}`),
	"the document in an item's answer":   lines(`{"update":{"_id":"1","_source":["a"]}}`, `{"doc":{"a":2}}`, `{"update":{"_id":"1"}}`, `{"doc":{"a":2},"_source":"b"}`),
	"a script":                           lines(`{"index":{"_id":"1"}}`, `{"a":2,"b":1}`, `{"update":{"_id":"1"}}`, `{"script":"ctx._source.a++"}`),
	"by an alias":                        lines(`{"create":{"_index":"store","_id":"1"}}`, `{}`, `{"index":{"_index":"store","_id":"1"}}`, `{"a":2,"b":1}`),
	"a pipeline over an upsert":          lines(`{"update":{"_id":"1","pipeline":"none"}}`, `{"doc":{"a":2},"upsert":{}}`, `{"update":{"_id":"1"}}`, `{"doc":{"a":2},"doc_as_upsert":true}`),
	"a pipeline over no upsert":          lines(`{"update":{"_id":"1","pipeline":"none"}}`, `{"doc":{"a":2}}`, `{"update":{"_id":"2","pipeline":"none"}}`, `{"doc":{"a":2},"doc_as_upsert":true}`),
	"a pipeline for all":                 "?pipeline=none " + lines(`{"update":{"_id":"1"}}`, `{"doc":{"a":2}}`, `{"update":{"_id":"1"}}`, `{"doc":{"a":3},"upsert":{}}`, `{"index":{"_id":"1"}}`, `{}`),
	"no pipeline":                        "?pipeline=_none " + lines(`{"update":{"_id":"1","pipeline":"_none"}}`, `{"doc":{"a":2},"upsert":{}}`),
	"date math":                          lines(`{"index":{"_index":"<shop>","_id":"1"}}`, `{"a":2,"b":1}`),
}

// TestOddBulksAreWhatTheyAreWithoutOptimist compares answers and documents, of a client that has read and of one that hasn't. What can be
// guarded is: others' change in between isn't lost.
func TestOddBulksAreWhatTheyAreWithoutOptimist(t *testing.T) {
	for name, text := range oddBulks {
		for _, read := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				var worlds [2]*world
				var answers [2]answer
				query, body, _ := strings.Cut(text, " ")
				if !strings.HasPrefix(text, "?") {
					query, body = "", text
				}
				for k := range worlds {
					w := newWorld(t, "rules:\n- {name: r, match: {index: [shop, store]}}\n", Identity{})
					w.put("/shop", `{"aliases":{"store":{}}}`)
					w.put(doc1, `{"a":1,"b":1}`)
					base := w.proxied
					if k == 0 {
						base = w.direct
					}
					if worlds[k] = w; read {
						w.ask(base, "GET", doc1, "", "Optimist-Session", "s")
						w.ask(base, "GET", doc2, "", "Optimist-Session", "s")
					}
					answers[k] = w.ask(base, "POST", "/shop/_bulk"+query, body, "Optimist-Session", "s")
				}
				direct, proxied := answers[0], answers[1]
				if direct.Status != proxied.Status || comparable(direct.Body) != comparable(proxied.Body) {
					t.Errorf("direct  %d %s\nproxied %d %s [%s]", direct.Status, direct.Body, proxied.Status, proxied.Body, proxied.Outcome())
				}
				for _, target := range []string{doc1, doc2, doc3, "/shop/_doc/7", "/shop/_doc/true"} {
					if a, b := worlds[0].stored(target), worlds[1].stored(target); a != b {
						t.Errorf("%s is %s, and directly %s", target, b, a)
					}
				}
				if direct.Status == 200 && read && strings.Contains(proxied.Outcome(), "reason=format") {
					t.Errorf("nothing of it is guarded: %s", proxied.Outcome())
				}
			})
		}
	}
}

// differing is what differs each time: the engine's own names, and in which order documents were written that are not the same.
var differing = regexp.MustCompile(`"_seq_no":\d+|seqNo \[\d+\]|"index_uuid":"[^"]*"|A{8}[0-9A-Za-z_-]{12}`)

func comparable(body string) string { return differing.ReplaceAllString(took(body), "") }

// TestWhatTheEngineSaysOfTheWholeIsTheAnswer where nothing of a guarded bulk was written.
func TestWhatTheEngineSaysOfTheWholeIsTheAnswer(t *testing.T) {
	for status, outcome := range map[int]string{400: "guarded", 401: "guarded", 403: "guarded", 413: "guarded", 503: "unknown"} {
		engine := enginetest.Serve(t)
		front := enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
			if !strings.HasSuffix(r.URL.Path, "_bulk") {
				return false
			}
			rw.Header().Set("Content-Type", "application/json")
			rw.Header().Set("WWW-Authenticate", "Basic")
			rw.WriteHeader(status)
			_, _ = rw.Write([]byte(`{"error":{"type":"some_exception","reason":"no"},"status":7}`))
			return true
		})
		w := newWorldOn(t, shopRule, Identity{}, front)
		w.put(doc1, `{"a":1}`)
		w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
		a := w.ask(w.proxied, "POST", "/shop/_bulk", lines(`{"index":{"_id":"1"}}`, `{"a":2}`, `{"create":{"_id":"2"}}`, `{}`), "Optimist-Session", "s")
		if a.Status != status || a.Body != `{"error":{"type":"some_exception","reason":"no"},"status":7}` || a.Header.Get("WWW-Authenticate") != "Basic" ||
			!strings.HasPrefix(a.Outcome(), outcome+";items=2;") {
			t.Errorf("%d: %d %s [%s]", status, a.Status, a.Body, a.Outcome())
		}
	}
}

// TestAnAnswerThatTellsTooLittleIsUnknown: which of the items it leaves out nobody can tell. A success with another status is no refusal of
// the bulk: something between may have made it up.
func TestAnAnswerThatTellsTooLittleIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
	}{
		"too few":  {200, `{"took":1,"errors":false,"items":[{"index":{"_index":"shop","_id":"1","_version":2,"result":"updated","_seq_no":1,"_primary_term":1,"status":200}}]}`},
		"too many": {200, `{"took":1,"errors":false,"items":[` + strings.Repeat(`{"index":{"_id":"1","status":200}},`, 3) + `{"index":{"_id":"1","status":200}}]}`},
		"no items": {200, `{"took":1}`},
		"no JSON":  {200, `<html>`},
		"a page":   {201, `{"ok":true}`},
		"nothing":  {204, ""},
	} {
		t.Run(name, func(t *testing.T) {
			engine := enginetest.Serve(t)
			var bulks atomic.Int32
			front := enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "_bulk") || bulks.Add(1) > 1 {
					return false
				}
				rw.Header().Set("Content-Type", "application/json")
				rw.WriteHeader(c.status)
				_, _ = rw.Write([]byte(c.answer)) // nothing of it was applied
				return true
			})
			w := newWorldOn(t, shopRule, Identity{}, front)
			w.put(doc1, `{"a":1}`)
			w.ask(w.proxied, "GET", doc1, "", "Optimist-Session", "s")
			a := w.ask(w.proxied, "POST", "/shop/_bulk", lines(`{"index":{"_id":"1"}}`, `{"a":2}`, `{"index":{"_id":"2"}}`, `{}`), "Optimist-Session", "s")
			// The guard shows that the first wasn't applied: it goes again. Of the second nothing is known.
			w.bulked(a, "index 200 updated, index 504 unknown_outcome", "unknown;items=2;guarded=1;unknown=1")
			w.holds(doc1, `{"a":2}`)
		})
	}
}

// TestAnAnswerThatIsLostIsLookedUp: what was applied is applied once, and what nobody can know is said.
func TestAnAnswerThatIsLostIsLookedUp(t *testing.T) {
	engine := enginetest.Serve(t)
	forward := enginetest.Forward(t, engine)
	var bulks atomic.Int32
	front := enginetest.Between(t, engine, func(rw http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "_bulk") || bulks.Add(1) > 1 {
			return false
		}
		forward.ServeHTTP(&cut{header: http.Header{}}, r)
		panic(http.ErrAbortHandler)
	})
	w := newWorldOn(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n", Identity{}, front)
	for _, target := range []string{doc1, doc2, doc3} {
		w.put(target, `{"n":1,"s":"a"}`)
		w.ask(w.proxied, "GET", target, "", "Optimist-Session", "s")
	}
	w.put(doc3, `{"n":5,"s":"a"}`)
	a := w.ask(w.proxied, "POST", "/shop/_bulk", lines(`{"index":{"_id":"1"}}`, `{"n":2,"s":"a"}`, `{"index":{"_id":"2"}}`, `{"n":1,"s":"b"}`, `{"index":{"_id":"3"}}`, `{"n":2,"s":"a"}`,
		`{"index":{"_id":"4"}}`, `{}`), "Optimist-Session", "s")
	// They may have been applied, and what is stored doesn't prove it: somebody else may have written that.
	w.bulked(a, "index 504 unknown_outcome, index 504 unknown_outcome, index 504 unknown_outcome, index 504 unknown_outcome", "unknown;items=4;unknown=4")
	w.holds(doc1, `{"n":2,"s":"a"}`, doc2, `{"n":1,"s":"b"}`, doc3, `{"n":5,"s":"a"}`, "/shop/_doc/4", `{}`)
}

// TestBulksOfTheSameDocumentsInAnyOrderEnd: each has items that wait for the other's, which wait to go with those.
func TestBulksOfTheSameDocumentsInAnyOrderEnd(t *testing.T) {
	const bulks, rounds, documents = 6, 10, 8
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n", Identity{})
	for k := range documents {
		w.put(fmt.Sprintf("/shop/_doc/%d", k), `{"n":0}`)
	}
	var wg sync.WaitGroup
	for b := range bulks {
		wg.Go(func() {
			session := fmt.Sprintf("s%d", b)
			for range rounds {
				var text strings.Builder
				for k := range documents {
					if b%2 == 1 {
						k = documents - 1 - k
					}
					got := enginetest.Try(t, "GET", fmt.Sprintf("%s/shop/_doc/%d", w.proxied, k), "", "Optimist-Session", session)
					fmt.Fprintf(&text, "{\"index\":{\"_id\":\"%d\"}}\n{\"n\":%d}\n", k, gjson.Get(got.Body, "_source.n").Int()+1)
				}
				a := enginetest.Try(t, "POST", w.proxied+"/shop/_bulk", text.String(), "Optimist-Session", session)
				if a.Status != 200 || gjson.Get(a.Body, "errors").Bool() {
					t.Errorf("%d %s %v", a.Status, a.Body, a.Err)
				}
			}
		})
	}
	wg.Wait()
	for k := range documents {
		w.holds(fmt.Sprintf("/shop/_doc/%d", k), fmt.Sprintf(`{"n":%d}`, bulks*rounds))
	}
}

// cut takes an answer that nobody gets.
type cut struct{ header http.Header }

func (c *cut) Header() http.Header         { return c.header }
func (c *cut) WriteHeader(int)             {}
func (c *cut) Write(p []byte) (int, error) { return len(p), nil }
