package app

import (
	"fmt"
	"strings"
	"testing"
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
