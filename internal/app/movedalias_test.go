package app

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
)

// blueGreen is a world in which the alias "al" stands for the index blue, and optimist knows that. Both indices have a document "1"; green's
// numbers are higher by pad.
func blueGreen(t *testing.T, rules string, pad int) *world {
	t.Helper()
	w := newWorld(t, rules, Identity{})
	w.put("/blue", `{"aliases":{"al":{}}}`)
	w.put("/green", `{}`)
	w.put("/blue/_doc/1", `{"of":"blue","l":[]}`)
	for i := range pad {
		w.put(fmt.Sprint("/green/_doc/pad", i), `{}`)
	}
	w.put("/green/_doc/1", `{"of":"green","l":[]}`)
	w.ask(w.proxied, "GET", "/al/_doc/1", "", "Optimist-Session", "first")
	w.wants(w.ask(w.proxied, "PUT", "/al/_doc/1", `{"of":"blue","l":[]}`, "Optimist-Session", "first"), 200, "guarded")
	return w
}

// move has the alias stand for green from now on, around optimist.
func (w *world) move() {
	w.t.Helper()
	w.wants(w.ask(w.direct, "POST", "/_aliases",
		`{"actions":[{"remove":{"index":"blue","alias":"al"}},{"add":{"index":"green","alias":"al"}}]}`), 200, "")
}

// become has blue become an alias of green.
func (w *world) become() {
	w.t.Helper()
	w.wants(w.ask(w.direct, "POST", "/_aliases",
		`{"actions":[{"remove_index":{"index":"blue"}},{"add":{"index":"green","alias":"blue"}}]}`), 200, "")
}

// A read shows that the name stands for another index than before: the write that is made from it has a base.
func TestAReadShowsThatItsNameWasMoved(t *testing.T) {
	reads := map[string]func(w *world, name, session string) answer{
		"get": func(w *world, name, session string) answer {
			return w.ask(w.proxied, "GET", "/"+name+"/_doc/1", "", "Optimist-Session", session)
		},
		"mget": func(w *world, name, session string) answer {
			return w.ask(w.proxied, "POST", "/"+name+"/_mget", `{"ids":["1"]}`, "Optimist-Session", session)
		},
		"mget by items": func(w *world, name, session string) answer {
			return w.ask(w.proxied, "POST", "/_mget", `{"docs":[{"_index":"`+name+`","_id":"1"}]}`, "Optimist-Session", session)
		},
		"search": func(w *world, name, session string) answer {
			return w.ask(w.proxied, "POST", "/"+name+"/_search", `{"query":{"ids":{"values":["1"]}}}`, "Optimist-Session", session)
		},
		"numbered search": func(w *world, name, session string) answer {
			return w.ask(w.proxied, "POST", "/"+name+"/_search", `{"seq_no_primary_term":true,"query":{"ids":{"values":["1"]}}}`,
				"Optimist-Session", session)
		},
	}
	writes := map[string]func(w *world, name, session, body string) answer{
		"PUT": func(w *world, name, session, body string) answer {
			return w.ask(w.proxied, "PUT", "/"+name+"/_doc/1", body, "Optimist-Session", session)
		},
		"_bulk": func(w *world, name, session, body string) answer {
			return w.ask(w.proxied, "POST", "/_bulk", `{"index":{"_index":"`+name+`","_id":"1"}}`+"\n"+body+"\n", "Optimist-Session", session)
		},
	}
	for how, read := range reads {
		for kind, write := range writes {
			for _, name := range []string{"al", "blue"} {
				t.Run(how+" "+kind+" "+name, func(t *testing.T) {
					w := blueGreen(t, "rules:\n- {name: r, match: {index: [al, blue, green]}, base: {reads: [get, mget, search]}}\n", 3)
					w.ask(w.proxied, "GET", "/blue/_doc/1", "", "Optimist-Session", "first")
					w.ask(w.proxied, "PUT", "/blue/_doc/1", `{"of":"blue","l":[]}`, "Optimist-Session", "first")
					if name == "al" {
						w.move()
					} else {
						w.become()
					}
					for _, s := range []string{"a", "b", "c"} {
						if a := read(w, name, s); a.Status != 200 || !strings.Contains(a.Body, `"of":"green"`) {
							t.Fatal(a)
						}
					}
					for _, s := range []string{"a", "b", "c"} {
						if a := write(w, name, s, `{"of":"green","l":["`+s+`"]}`); a.Status != 200 || strings.Contains(a.Outcome(), "passed") {
							t.Errorf("%s: %d %s [%s]", s, a.Status, a.Body, a.Outcome())
						}
					}
					if got := w.stored("/green/_doc/1"); got != `{"of":"green","l":["a","b","c"]}` {
						t.Error(got)
					}
				})
			}
		}
	}
}

// turnover is a way in which the name "al", or "blue", comes to stand for the index green.
type turnover struct {
	through bool   // optimist, not around it
	first   string // an index that a client makes through optimist before; "": none
	name    string
	gone    bool // the index before is deleted with it
	deleted bool // the index before is deleted afterwards
}

func (o *turnover) run(w *world) {
	w.t.Helper()
	if o.first != "" {
		w.wants(w.ask(w.proxied, "PUT", "/"+o.first, ""), 200, "")
	}
	base, action := w.direct, `{"remove":{"index":"blue","alias":"al"}}`
	if o.through {
		base = w.proxied
	}
	if o.gone {
		action = `{"remove_index":{"index":"blue"}}`
	}
	w.wants(w.ask(base, "POST", "/_aliases", `{"actions":[`+action+`,{"add":{"index":"green","alias":"`+o.name+`"}}]}`), 200, "")
	if o.deleted {
		w.wants(w.ask(base, "DELETE", "/blue", ""), 200, "")
	}
}

// seen reports whether optimist sees that the index before is deleted.
func (o *turnover) seen() bool { return o.through && (o.gone || o.deleted) }

var turnovers = map[string]turnover{
	"around":                               {name: "al"},
	"around, after a change":               {name: "al", first: "foo"},
	"around, and gone":                     {name: "al", gone: true},
	"around, and gone, after a change":     {name: "al", gone: true, first: "foo"},
	"around, in place":                     {name: "blue", gone: true},
	"around, in place, after a change":     {name: "blue", gone: true, first: "foo"},
	"through optimist":                     {name: "al", through: true},
	"through optimist, and gone":           {name: "al", through: true, gone: true},
	"through optimist, and gone then":      {name: "al", through: true, deleted: true},
	"through optimist, in place":           {name: "blue", through: true, gone: true},
	"through optimist, after a change too": {name: "al", through: true, first: "foo"},
}

// readAndTurned is a world in which clients have read a document by a name, which stands for another index now. Only in a world that is
// asked was there a write by the name before, so that optimist had asked what it is.
func readAndTurned(t *testing.T, o turnover, asked bool, rules string, clients ...[]string) *world {
	t.Helper()
	w := newWorld(t, rules, Identity{Infer: true})
	w.put("/blue", `{"aliases":{"al":{}}}`)
	w.put("/green", `{}`)
	w.put("/blue/_doc/1", `{"l":["o"]}`)
	w.put("/green/_doc/pad", `{}`) // so that the numbers of the two are others
	w.put("/green/_doc/1", `{"l":["o","g"]}`)
	if asked {
		w.ask(w.proxied, "PUT", "/"+o.name+"/_doc/other", `{}`, "Optimist-Session", "first")
	}
	for _, fields := range clients {
		if a := w.ask(w.proxied, "GET", "/"+o.name+"/_doc/1", "", fields...); a.Status != 200 || !strings.Contains(a.Body, `"blue"`) {
			t.Fatal(a)
		}
	}
	o.run(w)
	return w
}

// Clients read, the name comes to stand for another index, the clients write. Each names its session, or nobody can tell one from the other.
func TestAChangeFollowsItsName(t *testing.T) {
	for who, clients := range map[string][][]string{
		"named":    {{"Optimist-Session", "A"}, {"Optimist-Session", "B"}},
		"inferred": {nil, nil},
	} {
		for how, o := range turnovers {
			for _, asked := range []bool{true, false} {
				if o.seen() {
					continue // what its clients have read is forgotten
				}
				if asked && !o.through && o.first == "" {
					continue // a window of a second: see TestAReadShowsThatItsNameWasMoved
				}
				for kind, write := range map[string]func(w *world, body string, fields []string) answer{
					"PUT": func(w *world, body string, fields []string) answer {
						return w.ask(w.proxied, "PUT", "/"+o.name+"/_doc/1", body, fields...)
					},
					"_bulk": func(w *world, body string, fields []string) answer {
						return w.ask(w.proxied, "POST", "/_bulk", `{"index":{"_index":"`+o.name+`","_id":"1"}}`+"\n"+body+"\n", fields...)
					},
				} {
					t.Run(fmt.Sprintf("%s, %s, asked before %v, %s", who, how, asked, kind), func(t *testing.T) {
						w := readAndTurned(t, o, asked, "", clients...)
						w.wants(write(w, `{"l":["o","A"]}`, clients[0]), 200, "merged")
						w.wants(write(w, `{"l":["o","B"]}`, clients[1]), 200, "merged")
						if got := w.stored("/green/_doc/1"); got != `{"l":["o","g","A","B"]}` {
							t.Error(got)
						}
					})
				}
			}
		}
	}
}

// If optimist has seen that the index before is deleted, it has forgotten what clients have read there.
func TestAWriteIsRefusedWhoseBaseIsInAnIndexThatIsGone(t *testing.T) {
	const reject = "rules:\n- {name: r, match: {index: [al, blue, green]}, base: {lost: reject}}\n"
	for how, o := range turnovers {
		for _, asked := range []bool{true, false} {
			if !o.seen() {
				continue // it is merged
			}
			for _, fields := range [][]string{nil, {"Optimist-Session", "A"}} {
				t.Run(fmt.Sprintf("%s, asked before %v, named %v", how, asked, len(fields) > 0), func(t *testing.T) {
					w := readAndTurned(t, o, asked, reject, fields)
					for range 2 { // the client may send it again
						a := w.ask(w.proxied, "PUT", "/"+o.name+"/_doc/1", `{"l":["o","A"]}`, fields...)
						w.wants(a, 409, "refused;attempts=0;base=lost;reason=index")
					}
					if got := w.stored("/green/_doc/1"); got != `{"l":["o","g"]}` {
						t.Error(got)
					}
				})
			}
		}
	}
}

// If optimist finds out only by the engine's refusal, the write has been sent, under a guard. The base is lost, because what the client has
// seen in the other index before had to be forgotten.
func TestAWriteThatWasSentBeforeItsBaseWasLostIsNotSaidToHavePassed(t *testing.T) {
	const reject = "rules:\n- {name: r, match: {index: [blue, green]}, base: {lost: reject}}\n"
	for kind, c := range map[string]struct{ method, target, head, outcome string }{
		"PUT":   {"PUT", "/blue/_doc/1", "", "guarded;attempts=1;base=lost;reason=index"},
		"_bulk": {"POST", "/_bulk", `{"index":{"_index":"blue","_id":"1"}}` + "\n", "guarded;items=1;guarded=1"},
	} {
		t.Run(kind, func(t *testing.T) {
			me := []string{"Optimist-Session", "A"}
			w := newWorld(t, reject, Identity{Infer: true})
			w.put("/blue/_doc/1", `{"l":["o"]}`)
			w.put("/green/_doc/1", `{"l":["other"]}`)
			w.ask(w.proxied, "GET", "/green/_doc/1", "", me...)
			w.ask(w.proxied, "DELETE", "/green", "")
			w.put("/green/_doc/pad", `{}`)
			w.put("/green/_doc/1", `{"l":["o","g"]}`)
			w.ask(w.proxied, "PUT", "/blue/_doc/other", `{}`, me...)
			w.ask(w.proxied, "GET", "/blue/_doc/1", "", me...)
			w.become()
			a := w.ask(w.proxied, c.method, c.target, c.head+`{"l":["o","A"]}`+"\n", me...)
			if !strings.HasPrefix(a.Outcome(), c.outcome) || !strings.Contains(a.Body, "is not known any more") {
				t.Errorf("%d %s [%s], want %s", a.Status, a.Body, a.Outcome(), c.outcome)
			}
			if got := w.stored("/green/_doc/1"); got != `{"l":["o","g"]}` {
				t.Error(got)
			}
		})
	}
}

// So it is where optimist itself then answers for the index behind the name.
func TestAPatchThatWasSentBeforeItsNameWasMovedIsNotSaidToHavePassed(t *testing.T) {
	var moved atomic.Bool
	var w *world
	w = newWorldOn(t, "", Identity{Infer: true}, enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == "PUT" && r.URL.Query().Has("if_seq_no") && moved.CompareAndSwap(false, true):
			w.ask(w.direct, "POST", "/_aliases", `{"actions":[{"remove":{"index":"blue","alias":"al"}},{"add":{"index":"green","alias":"al"}}]}`)
			rw.Header().Set("Content-Type", "application/json")
			rw.WriteHeader(409)
			_, _ = io.WriteString(rw, `{"error":{"type":"version_conflict_engine_exception","reason":"[1]: version conflict"},"status":409}`)
		case r.Method == "GET" && moved.Load() && (r.URL.Path == "/al" || r.URL.Path == "/green"):
			rw.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(rw, `{"green":{"aliases":{"al":{}},"settings":{"index":{"uuid":"ggg","number_of_shards":"1",`+
				`"mapping":{"source":{"mode":"disabled"}}}}}}`)
		default:
			return false
		}
		return true
	}))
	w.put("/blue", `{"aliases":{"al":{}}}`)
	w.put("/green", `{}`)
	w.put("/blue/_doc/1", `{"n":1}`)
	w.put("/green/_doc/1", `{"n":5}`)
	a := w.ask(w.proxied, "PATCH", "/al/_doc/1", `{"x":1}`, "Content-Type", "application/merge-patch+json")
	if w.wants(a, 400, "guarded;attempts=1;base=none;reason=source"); w.stored("/green/_doc/1") != `{"n":5}` {
		t.Error(w.stored("/green/_doc/1"))
	}
}

// TestANameThatMovesAllTheTimeIsNoFaultOfOptimist: the client may send the write again.
func TestANameThatMovesAllTheTimeIsNoFaultOfOptimist(t *testing.T) {
	engine := enginetest.Between(t, enginetest.Serve(t), func(rw http.ResponseWriter, r *http.Request) bool {
		reads := r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, "/shop/_doc/")
		if reads {
			rw.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(rw, `{"_index":"other","_id":"1","_version":1,"_seq_no":0,"_primary_term":1,"found":true,"_source":{}}`)
		}
		return reads
	})
	w := newWorldOn(t, "rules: [{name: r, base: {unknown: fetch}}]", Identity{}, engine)
	w.put("/shop/_doc/1", `{}`)
	a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":1}`)
	if kind := gjson.Get(a.Body, "error.type").Str; a.Status != 503 || kind != "unavailable_shards_exception" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestANameThatIsTooLongIsItsClientsFault.
func TestANameThatIsTooLongIsItsClientsFault(t *testing.T) {
	w := newWorld(t, "rules: [{name: r, match: {index: [shop]}}]", Identity{})
	long := strings.Repeat("a", 1100)
	a := w.ask(w.proxied, "PUT", "/"+long+"/_doc/1", `{}`)
	if kind := gjson.Get(a.Body, "error.type").Str; a.Status != 400 || kind != "invalid_index_name_exception" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	a = w.ask(w.proxied, "POST", "/_bulk", `{"index":{"_index":"`+long+`","_id":"1"}}`+"\n{}\n"+`{"index":{"_index":"shop","_id":"1"}}`+"\n{}\n")
	items := gjson.GetMany(a.Body, "items.0.index.status", "items.0.index.error.type", "items.1.index.status")
	if items[0].Int() != 400 || items[1].Str != "invalid_index_name_exception" || items[2].Int() != 201 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}
