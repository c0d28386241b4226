package write

import (
	"testing"

	"optimist/internal/session"
)

// After a 409 a client may send its write again without a read, as a library's retry does. Meanwhile another client of the session has read
// what the first one hasn't seen. That isn't overwritten: the body shows that its client hasn't seen it, and a trace says so.
func TestAWriteThatIsSentAgainAfterAConflictOverwritesNothing(t *testing.T) {
	type story struct{ rule, before, others, sent, later string } // later is sent in another form, with the time of the retry
	for name, v := range map[string]story{
		"fields": {"on_conflict: fail", `{"x":1,"y":1}`, `{"x":2,"y":1}`, `{"x":1,"y":2}`, `{"x":1,"y":2,"at":2}`},
		"a list": {"on_conflict: fail", `{"tags":["a"]}`, `{"tags":["a","b"]}`, `{"tags":["a","c"]}`, `{"tags":["a","c"],"at":2}`},
		"a new member": {
			"on_conflict: fail", `{"x":1}`, `{"x":1,"new":"what another client has put in"}`, `{"x":2}`, `{"x":2,"at":2}`,
		},
		"a text": {
			"merge: {default: fail}", `{"t":"old words"}`, `{"t":"old words and many of another client"}`,
			`{"t":"old words, corrected"}`, `{"t":"old words, corrected","at":2}`,
		},
	} {
		for how, traced := range map[string]bool{"": false, ", in traces": true} {
			for again, body := range map[string]string{"the same": v.sent, "with another time": v.later} {
				t.Run(name+how+", "+again, func(t *testing.T) {
					w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, "+v.rule+"}\n")
					w.put("1", v.before)
					one, two := w.stranger(), w.stranger()
					if traced {
						one.sess, two.sess = one.sess.In(session.Trace{1}), two.sess.In(session.Trace{2})
					}
					one.read("1")
					w.put("1", v.others)
					has(t, one.save("1", v.sent), 409, "")
					two.read("1")
					has(t, one.save("1", body), 409, "")
					same(t, w.stored("1"), v.others)
				})
			}
		}
	}
}

// A client that reads again after a 409 writes from what it finds, if it names its session or its base.
func TestANamedClientThatReadsAgainAfterAConflictIsntRefused(t *testing.T) {
	for name, c := range map[string]struct {
		who   func(w *world) *client
		match bool
	}{
		"a named session": {func(w *world) *client { return w.client("me") }, false},
		"If-Match":        {(*world).stranger, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, on_conflict: fail}\n")
			w.put("1", `{"v":"new"}`)
			me := c.who(w)
			me.read("1")
			w.put("1", `{"v":"paid"}`)
			save := func(tag string) result {
				if c.match {
					return me.send("PUT", "/shop/_doc/1", `{"v":"held"}`, ifMatch(tag))
				}
				return me.save("1", `{"v":"held"}`)
			}
			has(t, save(`"0-1"`), 409, "guarded")
			me.read("1")
			has(t, save(`"1-1"`), 200, "guarded")
			same(t, w.stored("1"), `{"v":"held"}`)
		})
	}
}
