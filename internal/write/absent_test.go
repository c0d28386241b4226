package write

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"
)

// Clients that nothing tells apart: some have found no document, and some have read the one that others made meanwhile. Each saves its own,
// as a cart: entries, their total, who was last.
func TestClientsThatFoundNothingAndClientsThatReadWhatOthersMade(t *testing.T) {
	for _, order := range []string{ // N and R read, n writes from nothing that was found, r from what was read; p sends parts
		"NNRnNrRnr", "NNNnnnRRrr", "NnNRRnrr", "NNnRnRrr", "NNnnRRRrrr", "pNNRnNrRnr", "pNNNnnnRRrr", "pNnNRRnrr", "pNNnnRRRrrr"} {
		t.Run(order, func(t *testing.T) {
			order, parts := strings.CutPrefix(order, "p")
			w := newWorld(t, cartRules)
			all := w.stranger()
			var found, read []string // what those have in hand who wait to write
			n, want := 0, []string{}
			for _, step := range order {
				switch step {
				case 'N', 'R':
					if body := all.read("1"); body == "" {
						found = append(found, "{}")
					} else {
						read = append(read, body)
					}
					continue
				}
				from := &read
				if step == 'n' && len(found) > 0 || len(read) == 0 {
					from = &found
				}
				if len(*from) == 0 {
					continue
				}
				base := (*from)[0]
				*from = (*from)[1:]
				n++
				entry := fmt.Sprintf("entry of client %d", n)
				want = append(want, entry)
				r, cart := result{}, withEntry(t, base, entry)
				if parts {
					r = all.send("POST", update1, `{"doc":`+cart+`,"doc_as_upsert":true}`)
				} else {
					r = all.save("1", cart)
				}
				if r.status > 299 {
					t.Fatalf("%v", r)
				}
			}
			got := w.stored("1")
			for _, entry := range want {
				if strings.Count(got, entry+`"`) != 2 { // in the list, and as who was there
					t.Errorf("%s isn't in %s once", entry, got)
				}
			}
			if total := fmt.Sprintf(`"total":%d`, len(want)); !strings.Contains(got, total) {
				t.Errorf("%s isn't in %s", total, got)
			}
		})
	}
}

// Client B found nothing, as client A did, whose document others have changed meanwhile. What B sends is made of the same defaults.
func TestDefaultsOfAClientThatFoundNothingUndoNothing(t *testing.T) {
	w := newWorld(t, cartRules)
	all := w.stranger()
	all.read("1")
	all.read("1")
	all.save("1", `{"state":"open","lines":["first","a"],"total":1}`)
	closed := strings.Replace(all.read("1"), "open", "closed", 1)
	all.save("1", closed)
	r := all.save("1", `{"state":"open","lines":["first","b"],"total":1}`)
	if got, want := w.stored("1"), `{"state":"closed","lines":["first","a","b"],"total":2}`; r.status != 200 || got != want {
		t.Errorf("%v: %s, want %s", r, got, want)
	}
	if !strings.Contains(r.outcome, "ambiguous") {
		t.Errorf("%s: what is a default, and what is a change, is a guess", r.outcome)
	}
}

// That there was no document is a view like any other: the session's own write ends it, whoever guards that write.
func TestAnUnguardedCreateEndsTheViewThatThereIsNoDocument(t *testing.T) {
	for name, create := range map[string]string{
		"a flag that is text": `{"doc":{"u":1},"doc_as_upsert":"true"}`,
	} {
		for saw, see := range map[string]func(w *world, me *client){
			"no document": func(_ *world, me *client) { me.read("1") },
			"its own delete": func(w *world, me *client) {
				w.put("1", `{"z":1}`)
				me.read("1")
				me.send("DELETE", "/shop/_doc/1", "")
			},
		} {
			w := newWorld(t, cartRules)
			me := w.client("me")
			see(w, me)
			has(t, me.send("POST", update1, create), 201, "retried;attempts=1;base=none")
			r := me.save("1", `{"x":1}`)
			if w.stored("1") != `{"x":1}` || r.outcome != "guarded;attempts=1;base=view" {
				t.Errorf("%s after %s: %v, stored %s", name, saw, r, w.stored("1"))
			}
		}
	}
}

// The engine says what is wrong with an op_type that it doesn't know, also if optimist would have the document made where there is none.
func TestAnUnknownOpTypeIsTheEnginesToRefuse(t *testing.T) {
	for _, query := range []string{"?op_type=x", "?op_type=", "?op_type", "?op_type=creat%65d&refresh=true"} {
		w := newWorld(t, cartRules)
		me := w.client("me")
		me.read("1")
		r := me.send("PUT", "/shop/_doc/1"+query, `{"a":1}`)
		if r.status != 400 || w.stored("1") != "" {
			t.Errorf("%s: %v, stored %s", query, r, w.stored("1"))
		}
		has(t, me.send("PUT", "/shop/_doc/1?op_type=INDEX", `{"a":1}`), 201, "guarded;attempts=1;base=absent")
	}
}

// withEntry is a cart with one more entry.
func withEntry(t *testing.T, cart, entry string) string {
	t.Helper()
	for _, set := range []func(string) (string, error){
		func(c string) (string, error) { return sjson.Set(c, "lines.-1", entry) },
		func(c string) (string, error) { return sjson.Set(c, "total", gjson.Get(c, "total").Int()+1) },
		func(c string) (string, error) { return sjson.Set(c, "by."+strings.ReplaceAll(entry, " ", "-"), entry) },
	} {
		var err error
		if cart, err = set(cart); err != nil {
			t.Fatal(err)
		}
	}
	return cart
}

// A document that was deleted and made again in between is another one. What a client changed of the first goes into the second, and what it
// had only read there doesn't.
func TestADocumentThatWasMadeAgainKeepsWhatOthersPutThere(t *testing.T) {
	for name, send := range map[string]func(c *client) result{
		"a document": func(c *client) result { return c.save("1", `{"lines":["a","b"],"total":2,"note":"old"}`) },
		"a part": func(c *client) result {
			return c.send("POST", update1, `{"doc":{"lines":["a","b"],"total":2},"doc_as_upsert":true}`)
		},
	} {
		for _, who := range []func(w *world) *client{(*world).stranger, func(w *world) *client { return w.client("me") }} {
			w := newWorld(t, cartRules)
			c := who(w)
			w.put("1", `{"lines":["a"],"total":1,"note":"old"}`)
			c.read("1")
			w.direct("DELETE", "/shop/_doc/1", "")
			w.put("1", `{"lines":["x"],"total":5}`)
			if r := send(c); r.status != 200 {
				t.Errorf("%s: %v", name, r)
			}
			same(t, w.stored("1"), `{"lines":["x","b"],"total":6}`)
			create := c.send("PUT", "/shop/_doc/1?op_type=create", `{"lines":["c"],"total":1}`)
			if create.status != 409 || !strings.Contains(create.body, "document already exists") {
				t.Errorf("a create is the engine's: %v", create)
			}
		}
	}
}
