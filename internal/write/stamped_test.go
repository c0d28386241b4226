package write

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/stamp"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

const stampRule = "rules:\n- {name: r, match: {index: [shop]}, base: {stamp: _rev}, merge: {paths: {/n: sum}}}\n"

// served reads a document as the door would serve it: its source, and the stamp that goes with it.
func (c *client) served(id string, token uint64) (string, stamp.Stamp) {
	c.w.t.Helper()
	epoch := c.w.store.Epoch()
	_, body := c.w.direct("GET", "/shop/_doc/"+id, "")
	rev, ok := revisionIn(body)
	ix, err := c.w.s.catalog.Resolve(c.w.t.Context(), catalog.Asker{Credentials: c.sess.Credentials()}, "shop", 0)
	if !ok || err != nil || !ix.Exists() {
		c.w.t.Fatalf("no revision in %s", body)
	}
	c.w.store.Read(c.sess, docRef(id), rev, epoch)
	return string(rev.Source), stamp.Stamp{Numbers: rev.Numbers, Document: stamp.DocumentOf(ix.UUID, "", id), Copy: stamp.ID(token)}
}

// carry writes a document that had the stamp in it.
func (c *client) carry(method, target, body string, s stamp.Stamp) result {
	return c.carryContext(c.w.t.Context(), method, target, body, s)
}

func (c *client) carryContext(ctx context.Context, method, target, body string, s stamp.Stamp) result {
	var op api.Op
	api.Parse([]byte(method), []byte(target), &op)
	r := &Request{Method: []byte(method), Body: []byte(body), Route: c.route, Request: base.Request{
		Op: &op, Rule: c.w.rules.Match(string(op.Index), op.Kind), Session: c.sess, Anonymous: c.anonymous, Stamp: s,
		Fields: []wire.Field{{Name: []byte("Content-Type"), Value: []byte("application/json")}}}}
	a, err := c.w.s.Do(ctx, r)
	if err != nil {
		return result{err: err, outcome: string(r.change.Outcome.Append(nil))}
	}
	defer a.Release()
	return result{status: a.Status, body: string(a.Body), outcome: string(r.change.Outcome.Append(nil))}
}

func TestACopyIsMergedWhoeverHoldsIt(t *testing.T) {
	for name, who := range map[string]func(*world) *client{
		"inferred": (*world).stranger, "anonymous": (*world).nobody, "named": func(w *world) *client { return w.client("me") },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, stampRule)
			w.put("1", `{"n":10,"x":0}`)
			me := who(w)
			_, s := me.served("1", 1)
			w.put("1", `{"n":20,"x":1}`)
			has(t, me.carry("PUT", "/shop/_doc/1", `{"n":11,"x":0}`, s), 200, "merged;attempts=2;base=stamp")
			w.put("1", `{"n":31,"x":2}`)
			has(t, me.carry("PUT", "/shop/_doc/1", `{"n":13,"x":0}`, s), 200, "merged;attempts=2;base=stamp")
			same(t, w.stored("1"), `{"n":33,"x":2}`)
			if name == "anonymous" {
				return
			}
			// What comes without a stamp is counted from what was sent last, with or without one.
			has(t, me.save("1", `{"n":14,"x":0}`), 200, "merged")
			same(t, w.stored("1"), `{"n":34,"x":2}`)
		})
	}
}

// A client gives a write up and sends it again, while its first try is still out, and after its answer was lost.
func TestARepeatedWriteOfACopyCountsOnce(t *testing.T) {
	w := newWorld(t, stampRule)
	w.put("1", `{"n":10,"x":0}`)
	me := w.stranger()
	_, s := me.served("1", 1)
	_, other := me.served("1", 2)
	w.put("1", `{"n":20,"x":1}`)
	has(t, me.carry("PUT", "/shop/_doc/1", `{"n":11,"x":0}`, s), 200, "merged")
	has(t, me.carry("PUT", "/shop/_doc/1", `{"n":11,"x":0}`, s), 200, "merged;attempts=1;base=stamp")
	has(t, me.carry("PUT", "/shop/_doc/1", `{"n":11,"x":0}`, other), 200, "merged;attempts=2;base=stamp")
	same(t, w.stored("1"), `{"n":22,"x":1}`)

	_, s = me.served("1", 3)
	me.served("1", 4) // somebody else's
	w.engine.after = func(r *upstream.Request, _ *upstream.Response) error {
		if r.Method == "PUT" {
			w.engine.after = nil
			w.direct("PUT", "/shop/_doc/1", `{"n":50,"x":5}`) // so that nobody can tell
			return lostError
		}
		return nil
	}
	if r := me.carry("PUT", "/shop/_doc/1", `{"n":25,"x":1}`, s); r.err == nil {
		t.Fatalf("%v", r)
	}
	has(t, me.carry("PUT", "/shop/_doc/1", `{"n":25,"x":1}`, s), 409, "guarded;attempts=1;base=stamp;reason=numbers")
	same(t, w.stored("1"), `{"n":50,"x":5}`)
}

// Other bases than the stamp's count, but what was written from its copy was written from it.
func TestACopyThatWasWrittenUnderAnotherGuardIsNotFresh(t *testing.T) {
	w := newWorld(t, stampRule)
	for name, first := range map[string]func(me *client, s stamp.Stamp) result{
		"explicit": func(me *client, s stamp.Stamp) result {
			return me.carry("PUT", fmt.Sprintf("/shop/_doc/1?if_seq_no=%d&if_primary_term=1", s.SeqNo), `{"n":11}`, s)
		},
		"created": func(me *client, s stamp.Stamp) result {
			w.direct("DELETE", "/shop/_doc/1", "")
			return me.carry("PUT", "/shop/_create/1", `{"n":11}`, s)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w.put("1", `{"n":10}`)
			me := w.stranger()
			_, s := me.served("1", 1)
			me.served("1", 2) // its revision's body stays known
			if r := first(me, s); r.status > 201 {
				t.Fatal(r)
			}
			w.put("1", `{"n":20}`)
			has(t, me.carry("PUT", "/shop/_doc/1", `{"n":12}`, s), 200, "merged;attempts=2;base=stamp")
			same(t, w.stored("1"), `{"n":21}`)
		})
	}
}

func TestAStampsUpdateIsMerged(t *testing.T) {
	w := newWorld(t, stampRule)
	w.put("1", `{"n":10}`)
	me := w.nobody()
	_, s := me.served("1", 1)
	has(t, me.carry("POST", "/shop/_update/1", `{"doc":{"n":11}}`, s), 200, "guarded;attempts=1;base=stamp")
	has(t, me.carry("POST", "/shop/_update/1", `{"doc":{"n":12},"doc_as_upsert":true}`, s), 200, "guarded;attempts=1;base=stamp")
	w.put("1", `{"n":20,"x":1}`)
	has(t, me.carry("POST", "/shop/_update/1", `{"doc":{"n":13}}`, s), 200, "merged;attempts=2;base=stamp")
	same(t, w.stored("1"), `{"n":21,"x":1}`)
	has(t, me.carry("PUT", "/shop/_doc/1", `{"n":14}`, s), 200, "merged;attempts=1;base=stamp")
	same(t, w.stored("1"), `{"n":22,"x":1}`)
	w.direct("DELETE", "/shop/_doc/1", "")
	has(t, me.carry("POST", "/shop/_update/1", `{"doc":{"n":15},"upsert":{"n":0}}`, s), 409, "guarded;attempts=1;base=stamp")
	has(t, me.carry("POST", "/shop/_update/1?doc_as_upsert=true", `{"doc":{"n":15}}`, s), 409, "guarded;attempts=1;base=stamp")
	has(t, me.carry("POST", "/shop/_update/1", `{"doc":{"n":15}}`, s), 404, "merged;attempts=1;base=stamp")
	if got := w.stored("1"); got != "" {
		t.Errorf("stored %s", got)
	}
}

// A stamp is a guard, and the engine takes none beside retries of its own.
func TestAStampTakesThePlaceOfTheEnginesRetries(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: r, match: {index: [shop]}, base: {stamp: _rev}, update: engine}\n")
	w.put("1", `{"n":10}`)
	me := w.client("me")
	_, s := me.served("1", 1)
	sent := w.bodies()
	has(t, me.carry("POST", "/shop/_update/1?retry_on_conflict=3", `{"doc":{"n":11}}`, s), 200, "guarded;attempts=1;base=stamp")
	w.put("1", `{"n":20}`)
	has(t, me.carry("POST", "/shop/_update/1?retry_on_conflict=3", `{"doc":{"n":12}}`, s), 409, "guarded;attempts=1;base=stamp")
	same(t, w.stored("1"), `{"n":20}`)
	for _, got := range documents(*sent) {
		if strings.Contains(got, "retry_on_conflict") {
			t.Errorf("sent %q", got)
		}
	}
}

// An _update of the whole document doesn't put the old values back of what others changed before its copy was last saved.
func TestAStampsUpdateAfterAMergeKeepsOthersChanges(t *testing.T) {
	w := newWorld(t, stampRule)
	w.put("1", `{"n":10,"x":0}`)
	me := w.stranger()
	_, s := me.served("1", 1)
	w.put("1", `{"n":10,"x":1}`)
	has(t, me.carry("PUT", "/shop/_doc/1", `{"n":11,"x":0}`, s), 200, "merged")
	has(t, me.carry("POST", "/shop/_update/1", `{"doc":{"n":12,"x":0}}`, s), 200, "merged;attempts=1;base=stamp")
	same(t, w.stored("1"), `{"n":12,"x":1}`)
}

// TestAForgedStampIsAGuardOrNothing: whoever makes up stamps, of whatever numbers, copies, documents and lives of the index, gets
// a write under a guard that the engine compares, or one that is as if there had been no stamp. What he finds out, or merges
// from, is what he may read.
func TestAForgedStampIsAGuardOrNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(t, rapid.SampledFrom([]string{stampRule,
			"rules:\n- {name: r, match: {index: [shop]}, base: {stamp: _rev, from: [stamp]}, on_conflict: fail}\n"}).Draw(rt, "rules"))
		fails := w.rules.Match("shop", api.Index).FailConflict
		w.put("1", `{"n":0}`)
		victim := w.client("victim")
		forger := w.nobody()
		forger.sess = identity.Inferred(identity.CredentialsOf([]byte("Basic forger")), netip.Addr{})
		lives := []string{}
		secrets := 0
		used := map[stamp.Stamp]bool{} // what was written from them is known, and is the forger's own
		own := map[string]bool{}       // revisions that the forger has written
		rt.Repeat(map[string]func(*rapid.T){
			"": func(rt *rapid.T) {
				ix, _ := w.s.catalog.Resolve(t.Context(), catalog.Asker{}, "shop", 0)
				if len(lives) == 0 || lives[len(lives)-1] != ix.UUID {
					lives = append(lives, ix.UUID)
				}
			},
			"somebody": func(*rapid.T) {
				// Only the victim has seen this revision; another has written over it since.
				secrets++
				w.put("1", fmt.Sprintf(`{"n":%d,"secret":"s%d"}`, secrets, secrets))
				body, s := victim.served("1", uint64(secrets)<<1|1)
				victim.carry("PUT", "/shop/_doc/1", body, s)
				w.put("1", fmt.Sprintf(`{"n":%d}`, secrets))
			},
			"anew": func(*rapid.T) {
				w.direct("DELETE", "/shop", "")
				w.s.IndicesChanged([16]byte{}, "shop")
				w.put("1", `{"n":0}`)
			},
			"forged": func(rt *rapid.T) {
				_, current := w.direct("GET", "/shop/_doc/1", "")
				now := doc.Numbers{SeqNo: gjson.Get(current, "_seq_no").Int(), PrimaryTerm: 1}
				ix, _ := w.s.catalog.Resolve(t.Context(), catalog.Asker{}, "shop", 0)
				s := stamp.Stamp{
					Numbers: doc.Numbers{SeqNo: now.SeqNo + rapid.Int64Range(-min(now.SeqNo, 4), 2).Draw(rt, "off"), PrimaryTerm: rapid.Int64Range(1, 2).Draw(rt, "term")},
					Copy:    stamp.ID(rapid.Uint64Range(0, uint64(2*secrets+2)).Draw(rt, "copy")),
				}
				s.Document = stamp.DocumentOf(rapid.SampledFrom(append(lives, ix.UUID)).Draw(rt, "life"), rapid.SampledFrom([]string{"", "", "", "r"}).Draw(rt, "routing"),
					rapid.SampledFrom([]string{"1", "1", "1", "2"}).Draw(rt, "document"))
				ours := s.Document == stamp.DocumentOf(ix.UUID, "", "1")
				before := w.engine.writes()
				r := forger.carry("PUT", "/shop/_doc/1", fmt.Sprintf(`{"n":%d,"forged":true}`, rapid.IntRange(0, 9).Draw(rt, "n")), s)
				sent := w.engine.sent[before:]
				for _, line := range sent {
					if guarded := strings.Contains(line, "if_seq_no="); guarded != ours {
						rt.Fatalf("%+v, ours %v: %s", s, ours, line)
					}
				}
				stored := w.stored("1")
				stale := s.Numbers != now
				switch {
				case r.err != nil || r.status != 200 && r.status != 409:
					rt.Fatalf("%+v: %v", s, r)
				case strings.Contains(stored, "secret"):
					rt.Fatalf("%+v: %v stored %s", s, r, stored)
				case ours && stale && r.status != 409 && !used[s] && !own[ix.UUID+fmt.Sprint(s.Numbers)], ours && !stale && r.status != 200, !ours && r.status != 200:
					rt.Fatalf("%+v at %+v, ours %v, fails %v: %v", s, now, ours, fails, r)
				case r.status == 200:
					_, left := w.direct("GET", "/shop/_doc/1", "")
					used[s], own[ix.UUID+fmt.Sprint(doc.Numbers{SeqNo: gjson.Get(left, "_seq_no").Int(), PrimaryTerm: 1})] = s.Copy != 0, true
				case r.status == 409 && stored != gjson.Get(current, "_source").Raw:
					rt.Fatalf("refused, and stored %s", stored)
				}
			},
		})
	})
}
