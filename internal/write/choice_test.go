package write

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"optimist/internal/base"
	"optimist/internal/stamp"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// A client may name its base in several ways at once, and mean different revisions by them: a library adds one, the document
// carries another. The strongest is the one that counts.
func TestTheStrongestBaseCounts(t *testing.T) {
	for _, c := range []struct {
		name            string
		explicit, match bool
		stamp           bool
		first           string // the guard of the first write
		outcome         string
	}{
		{"all of them", true, true, true, "if_seq_no=7&", "guarded;attempts=1;base=explicit"},
		{"explicit and stamp", true, false, true, "if_seq_no=7&", "guarded;attempts=1;base=explicit"},
		{"If-Match and stamp", false, true, true, "if_seq_no=1&", "merged;attempts=2;base=if_match"},
		{"If-Match", false, true, false, "if_seq_no=1&", "merged;attempts=2;base=if_match"},
		{"stamp", false, false, true, "if_seq_no=0&", "merged;attempts=2;base=stamp"},
		{"none but the session's", false, false, false, "if_seq_no=2&", "merged;attempts=2;base=session"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, stampRule)
			me, other := w.client("me"), w.client("other")
			w.put("1", `{"n":10}`)
			_, carried := me.served("1", 1)
			other.read("1") // the bodies stay known
			w.put("1", `{"n":20}`)
			w.client("third").read("1")
			w.put("1", `{"n":30}`)
			me.read("1")
			w.put("1", `{"n":40}`)

			target, r := "/shop/_doc/1", &Request{}
			if c.explicit {
				target += "?if_seq_no=7&if_primary_term=1"
			}
			if c.match {
				r.Fields = append(r.Fields, ifMatch(`"1-1"`))
			}
			if c.stamp {
				r.Stamp = carried
			}
			got := me.doRequest(t.Context(), r, "PUT", target, []byte(`{"n":31}`))
			if !strings.HasPrefix(got.outcome, c.outcome) {
				t.Errorf("%v, want %s", got, c.outcome)
			}
			if sent := w.engine.sent; len(sent) == 0 || !strings.Contains(sent[0], c.first) {
				t.Errorf("sent %q, want the first under %s", sent, c.first)
			}
		})
	}
}

func TestAGuessIsRefusedWhereTheRuleSaysSo(t *testing.T) {
	for policy, want := range map[string]string{"guess": "guarded;attempts=1;base=session;ambiguous", "fail": "refused;attempts=0;base=session;ambiguous"} {
		t.Run(policy, func(t *testing.T) {
			w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {ambiguous: "+policy+"}}\n")
			me := w.stranger()
			w.put("1", `{"a":1}`)
			me.read("1")
			w.put("1", `{"a":1,"b":1}`)
			me.read("1")
			r := me.save("1", `{"a":1,"b":1,"c":1}`)
			if r.outcome != want || errors.Is(r.err, base.ErrAmbiguous) != (policy == "fail") {
				t.Errorf("got %v, want %s", r, want)
			}
			if policy != "fail" {
				same(t, w.stored("1"), `{"a":1,"b":1,"c":1}`)
				return
			}
			if w.engine.writes() != 0 {
				t.Errorf("sent %q", w.engine.sent)
			}
			// The reads were given back, so that who says which is meant has it, with its body.
			has(t, me.send("PUT", "/shop/_doc/1", `{"a":2}`, ifMatch(`"0-1"`)), 200, "merged;attempts=2;base=if_match")
			same(t, w.stored("1"), `{"a":2,"b":1}`)
		})
	}
}

func TestALostBaseFollowsTheRule(t *testing.T) {
	for reason, lose := range map[string]func(w *world, me *client){
		"index":   func(w *world, me *client) { me.read("1"); w.store.DropIndex([16]byte{}, "shop") },
		"restart": func(w *world, _ *client) { w.store.Resume(false) },
	} {
		t.Run(reason, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"a":1}`)
			me := w.client("me")
			lose(w, me)
			has(t, me.save("1", `{"a":2}`), 200, "passed;attempts=1;base=lost;reason="+reason)
			same(t, w.stored("1"), `{"a":2}`)

			w = newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {lost: reject}}\n")
			w.put("1", `{"a":1}`)
			me = w.client("me")
			lose(w, me)
			r := me.save("1", `{"a":2}`)
			if !errors.Is(r.err, base.ErrLost) || r.outcome != "refused;attempts=0;base=lost;reason="+reason || w.engine.writes() != 0 {
				t.Errorf("got %v, sent %q", r, w.engine.sent)
			}
			me.read("1") // as the refusal says
			has(t, me.save("1", `{"a":2}`), 200, "guarded;attempts=1;base=session")
		})
	}
}

// Who may have read before the start is in doubt only where nothing else names its base: a copy that carries its own is known to
// be one.
func TestShortlyAfterTheStartWhoCarriesItsBaseHasIt(t *testing.T) {
	w := newWorld(t, strings.Replace(stampRule, "stamp: _rev", "stamp: _rev, lost: reject", 1))
	w.put("1", `{"n":10}`)
	me := w.stranger()
	_, before := me.served("1", 1)
	w.store.Resume(true)
	has(t, me.carry("PUT", "/shop/_doc/1", `{"n":11}`, before), 200, "guarded;attempts=1;base=stamp")
	_, after := me.served("1", 2)
	w.put("1", `{"n":20}`)
	has(t, me.carry("PUT", "/shop/_doc/1", `{"n":12}`, after), 200, "merged;attempts=2;base=stamp")
	same(t, w.stored("1"), `{"n":21}`)
	has(t, me.send("PUT", "/shop/_doc/2", `{}`, ifMatch(`"9-1"`)), 409, "guarded;attempts=1;base=if_match")
	w.put("3", `{"n":0}`)
	if r := me.carry("PUT", "/shop/_doc/3", `{"n":1}`, stamp.Stamp{}); !errors.Is(r.err, base.ErrLost) {
		t.Errorf("got %v", r)
	}
	// Where there is no document, nothing can be overwritten.
	has(t, me.carry("PUT", "/shop/_doc/4", `{"n":1}`, stamp.Stamp{}), 201, "guarded;attempts=1;base=fetched")
}

// What a client says to optimist is none of the engine's business, and a write whose answer is read here mustn't be answered in a
// form that can't be.
func TestFieldsForOptimistStayHere(t *testing.T) {
	field := func(name, value string) wire.Field { return wire.Field{Name: []byte(name), Value: []byte(value)} }
	own := []wire.Field{
		field("Optimist-Session", "me"), field("optimist-priority", "background"), field("Accept-Encoding", "gzip"), field("Expect", "100-continue"),
		field("content-length", "7"),
	}
	theirs := []wire.Field{field("Authorization", "Basic YTpi"), field("X-Opaque-Id", "7"), field("Optimistic", "yes")}
	for name, c := range map[string]struct {
		match bool
		want  string
	}{
		"guarded": {true, "Authorization X-Opaque-Id Optimistic Content-Type"},
		"passed":  {false, "Authorization X-Opaque-Id Optimistic Content-Type"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			w.put("1", `{"a":1}`)
			var got []string
			w.engine.before = func(r *upstream.Request) (*upstream.Response, error) {
				if r.Method == "PUT" {
					for _, f := range r.Fields {
						got = append(got, string(f.Name))
					}
				}
				return nil, nil
			}
			fields := append(append([]wire.Field(nil), own...), theirs...)
			if c.match {
				fields = append(fields, ifMatch(`"0-1"`))
			}
			has(t, w.client("me").send("PUT", "/shop/_doc/1", `{"a":2}`, fields...), 200, name)
			if s := strings.Join(got, " "); s != c.want {
				t.Errorf("the engine got %s, want %s", s, c.want)
			}
		})
	}
}

// The client's own read is forgotten, and another client's older one taken for it: with that, it would have put in what others have.
func TestAnEchoOfOthersCountsOnceAndIsSaid(t *testing.T) {
	const rules = "rules:\n- {name: r, match: {index: [shop]}, base: {ambiguous: %s}, merge: {paths: {/n: sum}}}\n"
	for _, c := range []struct {
		policy string
		named  bool
		want   string
	}{
		{"guess", false, `{"l":["a","b","c","e","d"],"n":4}`},
		{"guess", true, `{"l":["a","b","c","e","b","c","d"],"n":7}`},
		{"fail", false, `{"l":["a","b","c","e"],"n":4}`},
		{"fail", true, `{"l":["a","b","c","e","b","c","d"],"n":7}`},
	} {
		w := newWorld(t, fmt.Sprintf(rules, c.policy))
		me := w.stranger()
		if c.named {
			me = w.client("me")
		}
		for _, id := range []string{"1", "2"} { // the first teaches what is usual of n
			from := `{"l":[],"n":0}`
			if id == "2" {
				from = `{"l":["a"],"n":1}`
			}
			w.put(id, from)
			me.read(id)
		}
		w.put("1", `{"l":[],"n":0.1}`)
		has(t, me.save("1", `{"l":[],"n":0.1}`), 200, "merged;attempts=2;base=session")
		w.put("2", `{"l":["a","b","c","e"],"n":4}`)
		r := me.save("2", `{"l":["a","b","c","d"],"n":4}`)
		same(t, w.stored("2"), c.want)
		switch {
		case c.named:
			has(t, r, 200, "merged;attempts=2;base=session")
		case c.policy == "fail":
			if !errors.Is(r.err, base.ErrAmbiguous) || r.outcome != "guarded;attempts=1;base=session;ambiguous" {
				t.Errorf("%v", r)
			}
		default:
			has(t, r, 200, "merged;attempts=2;base=session;ambiguous")
		}
	}
}
