package write

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"optimist/internal/base"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// claimRules are those of an application with locks of its own: a version, and an owner.
const claimRules = "rules:\n- {name: r, match: {index: [shop]}, merge: {paths: {/version: fail, /owner: fail}}}\n"

const (
	free    = `{"version":7,"owner":null,"note":""}`
	claimed = `{"version":8,"owner":"x","note":""}`
)

// Two clients that set a field to the same value have both changed it: under `fail`, one of them has lost.
func TestAnEqualClaimIsRefused(t *testing.T) {
	steps := "- {name: r, match: {index: [shop]}, merge: {default: fail}, transform: [{op: add, path: /t, value: 1}]}\n"
	for rules, how := range map[string]string{claimRules: "", "rules:\n" + steps: "with steps, and as the default"} {
		for name, claim := range map[string]func(c *client) result{
			"a document": func(c *client) result { return c.save("1", claimed) },
			"a document that names its base": func(c *client) result {
				return c.send("PUT", "/shop/_doc/1", claimed, ifMatch(`"0-1"`))
			},
			"a part": func(c *client) result { return c.send("POST", update1, `{"doc":{"version":8,"owner":"x"}}`) },
			"a removal": func(c *client) result {
				return c.save("1", `{"version":7,"note":""}`)
			},
		} {
			t.Run(name+how, func(t *testing.T) {
				w := newWorld(t, rules)
				w.put("1", free)
				ann, bob := w.client("ann"), w.client("bob")
				ann.read("1")
				bob.read("1")
				has(t, claim(ann), 200, "guarded")
				stored := w.stored("1")
				has(t, claim(bob), 409, "")
				same(t, w.stored("1"), stored)
				has(t, bob.save("1", bob.read("1")), 200, "guarded") // it has seen that, and changes nothing
				same(t, w.stored("1"), stored)
			})
		}
	}
}

func TestOfEqualClaimsThatWaitTogetherOneIsPlaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, claimRules)
		w.put("1", free)
		clients := make([]*client, 5)
		for i := range clients {
			clients[i] = w.client(fmt.Sprint(i))
			clients[i].read("1")
		}
		results := w.queued(len(clients), func(i int) result { return clients[i].save("1", claimed) })
		has(t, results[0], 200, "guarded")
		for _, r := range results[1:] {
			has(t, r, 409, "guarded")
		}
	})
}

// Nobody else has changed what a client only sends again.
func TestAClaimIsNoConflictWithItself(t *testing.T) {
	for name, again := range map[string]struct {
		c      func(w *world) *client
		fields []wire.Field
	}{
		"named":           {func(w *world) *client { return w.client("me") }, nil},
		"named, If-Match": {func(w *world) *client { return w.client("me") }, []wire.Field{ifMatch(`"0-1"`)}},
		"inferred":        {(*world).stranger, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, claimRules)
			w.put("1", free)
			me := again.c(w)
			me.read("1")
			has(t, me.send("PUT", "/shop/_doc/1", claimed, again.fields...), 200, "guarded")
			w.put("1", `{"version":8,"owner":"x","note":"of somebody else"}`)
			has(t, me.send("PUT", "/shop/_doc/1", claimed, again.fields...), 200, "merged")
			same(t, w.stored("1"), `{"version":8,"owner":"x","note":"of somebody else"}`)
		})
	}
}

// Whether a claim whose answer was lost is the client's own, its mark shows. Without one, nobody knows whose an equal value is.
func TestALostClaimIsTheClientsOwnIfItsMarkSaysSo(t *testing.T) {
	marked := "rules:\n- {name: r, match: {index: [shop]}, write_id: _writes, merge: {paths: {/version: fail, /owner: fail}}}\n"
	for rules, found := range map[string]bool{claimRules: false, marked: true} {
		for _, applied := range []bool{false, true} {
			w := newWorld(t, rules)
			w.put("1", free)
			me := w.client("me")
			me.read("1")
			w.loseFirst(func(r *upstream.Request) {
				if applied {
					w.engine.handle(r)
				}
			})
			r := me.save("1", claimed)
			if found || !applied {
				has(t, r, 200, "guarded")
				continue
			}
			if !errors.Is(r.err, ErrUnknownOutcome) {
				t.Errorf("found %v, applied %v: %v", found, applied, r)
			}
			has(t, me.save("1", claimed), 409, "guarded")
			me.read("1")
			has(t, me.save("1", claimed), 200, "guarded")
		}
	}
}

// A part that only sets values means the same from any read. Under `on_conflict: fail` the read still tells whether the part is stale.
func TestAStalePartIsRefusedIfTheRuleSaysSo(t *testing.T) {
	const (
		strict = "rules:\n- {name: r, match: {index: [shop]}, on_conflict: fail}\n"
		sure   = "rules:\n- {name: r, match: {index: [shop]}, on_conflict: fail, base: {ambiguous: fail}}\n"
		usual  = "rules:\n- {name: r, match: {index: [shop]}}\n"
	)
	claim := func(c *client, owner string) result { return c.send("POST", update1, `{"doc":{"owner":"`+owner+`"}}`) }
	same := func(w *world, c *client, _ byte) *client { return c }
	inTrace := func(w *world, c *client, n byte) *client {
		return &client{w: w, sess: c.sess.In(session.Trace{n})}
	}
	for name, c := range map[string]struct {
		rules   string
		in      func(w *world, c *client, n byte) *client
		between bool // somebody reads what Ann has written, and doesn't write
		want    string
	}{
		"inferred":                                 {strict, same, false, "409 guarded;attempts=1;base=session"},
		"in traces":                                {strict, inTrace, false, "409 guarded;attempts=1;base=session"},
		"in traces, others have read":              {strict, inTrace, true, "409 guarded;attempts=1;base=session"},
		"other reads may be the base":              {strict, same, true, "200 retried;attempts=1;base=none;ambiguous"},
		"other reads may be the base, and mustn't": {sure, same, true, "ambiguous"},
		"without the rule":                         {usual, same, false, "200 retried;attempts=1;base=none"},
		"without the rule other reads say nothing": {usual, same, true, "200 retried;attempts=1;base=none"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.rules)
			w.put("1", `{"owner":null}`)
			pool := w.stranger()
			ann, bob := c.in(w, pool, 1), c.in(w, pool, 2)
			ann.read("1")
			bob.read("1")
			if r := claim(ann, "ann"); r.status != 200 {
				t.Fatal(r)
			}
			if c.between {
				pool.read("1")
			}
			r := claim(bob, "bob")
			if got := fmt.Sprint(r.status, " ", r.outcome); errors.Is(r.err, base.ErrAmbiguous) != (c.want == "ambiguous") || r.err == nil && got != c.want {
				t.Errorf("%v, want %s", r, c.want)
			}
			bob.read("1")
			if c.rules != sure {
				has(t, claim(bob, "bob"), 200, "")
			}
		})
	}
}

// Who claims from which read is a guess where others only look on. A client that names its base is never taken for another.
func TestAClaimWithANamedBaseIsExactWhoeverLooksOn(t *testing.T) {
	const free, taken = `{"owner":null,"status":"new"}`, `{"owner":%q,"status":"running"}`
	pool := func(w *world, _ string, n byte) *client {
		return &client{w: w, sess: w.stranger().sess.In(session.Trace{n})}
	}
	for name, c := range map[string]struct {
		client func(w *world, name string, n byte) *client
		match  string
	}{
		"a session": {func(w *world, name string, _ byte) *client { return w.client(name) }, ""},
		"a trace":   {pool, ""},
		"If-Match":  {func(w *world, _ string, _ byte) *client { return w.stranger() }, `"%d-1"`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, claimRules)
			w.put("1", free)
			save := func(who *client, owner string, from int) result {
				var fields []wire.Field
				if c.match != "" {
					fields = append(fields, ifMatch(fmt.Sprintf(c.match, from)))
				}
				return who.send("PUT", "/shop/_doc/1", fmt.Sprintf(taken, owner), fields...)
			}
			ann, bob, looker := c.client(w, "ann", 1), c.client(w, "bob", 2), w.stranger()
			ann.read("1")
			bob.read("1")
			has(t, save(ann, "ann", 0), 200, "guarded")
			looker.read("1")
			has(t, save(bob, "bob", 0), 409, "guarded")
			for i := range 10 {
				bob.read("1")
				looker.read("1")
				has(t, save(bob, fmt.Sprint("bob", i), i+1), 200, "guarded")
			}
		})
	}
}
