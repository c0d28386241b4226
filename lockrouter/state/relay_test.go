package state

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// relays are proxies that hand a chain on by themselves, on one document that may lag behind each of them.
type relays struct {
	doc     Doc
	now     int64
	proxies []*relaying
	ids     int
	told    int64 // the highest token that anybody was told
	held    map[int64]*belief
	handed  int     // without asking the document
	late    int     // follow-up writes that came too late
	rest    []*Call // of proxies that have died: they may still be carried out
}

// belief is a client's: it has the lock until then, unless it gives it back before.
type belief struct {
	owner, rid string
	ttl, until int64
	gone       bool
}

type relaying struct {
	name    string
	relay   Relay
	waiters []*relayed
	tasks   []Op
	call    *Call // that is out
	asking  []*relayed
	sent    int64
	results []Result // once it was carried out
	doc     *Doc
}

type relayed struct {
	owner, rid string
	ttl, until int64
	class      Class
	promised   bool
	hold       Hold
	from       int64
	left       bool
}

func (w *relays) tell(t *rapid.T, h Hold, until int64) {
	if b := w.held[h.Token]; b != nil {
		if b.until < until && !b.gone {
			b.until = until
		}
		return
	}
	if h.Token <= w.told && until > w.now { // an answer may come when its lease has ended: it says so
		t.Fatalf("token %d was told after %d", h.Token, w.told)
	}
	w.told = max(w.told, h.Token)
	w.held[h.Token] = &belief{owner: h.Owner, rid: h.Rid, ttl: h.TTL, until: until}
	w.check(t)
}

// check holds what clients believe against each other and the document.
func (w *relays) check(t *rapid.T) {
	var live []int64
	for token, b := range w.held {
		if b.gone || b.until <= w.now {
			continue
		}
		live = append(live, token)
		i := slices.IndexFunc(append(slices.Clone(w.doc.Holds), w.doc.Chain...), func(h Hold) bool { return h.Token == token && h.Until >= b.until })
		if i < 0 {
			t.Fatalf("%s counts on token %d until %d, and the document doesn't acknowledge it: %+v", b.owner, token, b.until, w.doc)
		}
	}
	if len(live) > 1 {
		t.Fatalf("tokens %v are all counted on", live)
	}
	if len(w.doc.Holds) > 1 || len(w.doc.Holds) == 0 && len(w.doc.Chain) > 0 || (len(w.doc.Chain) == 0) != (w.doc.Promiser == "") {
		t.Fatalf("%+v", w.doc)
	}
	last := int64(0)
	for _, h := range append(slices.Clone(w.doc.Holds), w.doc.Chain...) {
		if h.Token <= last || h.Token > w.doc.Last {
			t.Fatalf("tokens of the chain: %+v", w.doc)
		}
		last = h.Token
	}
}

func (w *relays) apply(t *rapid.T, c *Call) ([]Result, *Doc) {
	d := w.doc.Clone()
	results, changed := d.Apply(c, Clock{Now: w.now})
	if changed {
		w.doc = *d
	}
	w.check(t)
	return results, w.doc.Clone()
}

const relayChain = 3

// send makes a call of what there is, as a lane does.
func (p *relaying) send(w *relays) {
	if p.call != nil {
		return
	}
	p.call = &Call{Lock: "/_lock/global/a", Kind: Global, Proxy: p.name, Ops: p.tasks, Bound: bound, Grace: grace}
	p.tasks, p.sent, p.asking = nil, w.now, nil
	for i, c := range p.waiters {
		if len(p.asking) > relayChain || c.promised && p.relay.Leads() {
			continue
		}
		op := Op{Do: Acquire, Owner: c.owner, Rid: c.rid, Mode: Exclusive, Class: c.class, TTL: c.ttl, Wait: true, Left: max(c.until-w.now, 1),
			Chain: relayChain}
		if rest := p.waiters[i+1:]; len(rest) > 0 {
			op.Behind = Behind{Count: int64(len(rest)), Owner: rest[0].owner, Rid: rest[0].rid, Left: 50}
		}
		p.asking = append(p.asking, c)
		p.call.Ops = append(p.call.Ops, op)
	}
}

// settle tells what became of a call.
func (p *relaying) settle(t *rapid.T, w *relays) {
	results := p.results[len(p.call.Ops)-len(p.asking):]
	for i, op := range p.call.Ops[:len(p.call.Ops)-len(p.asking)] {
		if s := p.results[i]; s.Verdict == Renewed {
			if b := w.held[op.Token]; b != nil && !b.gone {
				b.until = max(b.until, p.sent+b.ttl)
			}
		} else if op.Do == Release && s.Verdict == Expired {
			w.late++
		}
	}
	for i, c := range p.asking {
		s := results[i]
		if !slices.Contains(p.waiters, c) {
			if c.left && s.Verdict != Queued {
				p.tasks = append(p.tasks, Op{Do: Abandon, Rid: c.rid})
			}
			continue
		}
		switch s.Verdict {
		case Acquired, Reentered:
			h, _ := p.doc.Holding(s.Token)
			p.waiters = slices.DeleteFunc(p.waiters, func(o *relayed) bool { return o == c })
			p.relay.NoteGrant(h)
			w.tell(t, h, p.sent+h.TTL)
		case Promised:
			j := slices.IndexFunc(p.doc.Chain, func(h Hold) bool { return h.Token == s.Token })
			if j < 0 {
				continue
			}
			c.promised, c.hold, c.from = true, p.doc.Chain[j], p.sent
			p.relay.NotePromise(c.hold, p.sent)
		}
	}
	p.relay.NoteDoc(p.doc, p.name)
	p.sync()
	p.call, p.results, p.asking = nil, nil, nil
	p.hand(t, w)
}

// sync forgets promises that the document has dropped.
func (p *relaying) sync() {
	for _, c := range p.waiters {
		c.promised = c.promised && p.doc.Promiser == p.name && slices.ContainsFunc(p.doc.Chain, func(h Hold) bool { return h.Rid == c.rid })
	}
}

func (p *relaying) hand(t *rapid.T, w *relays) {
	for {
		h, ok := p.relay.Next(w.now)
		if !ok {
			return
		}
		i := slices.IndexFunc(p.waiters, func(c *relayed) bool { return c.rid == h.Rid })
		if i < 0 {
			t.Fatalf("a seat of nobody: %+v", h)
		}
		c := p.waiters[i]
		p.waiters = slices.Delete(p.waiters, i, i+1)
		w.handed++
		w.tell(t, h, c.from+h.TTL)
	}
}

// live draws the token of a client that has the lock, or has had it.
func (w *relays) live(t *rapid.T) (int64, *belief) {
	var tokens []int64
	for token, b := range w.held {
		if !b.gone {
			tokens = append(tokens, token)
		}
	}
	if len(tokens) == 0 {
		return 0, nil
	}
	slices.Sort(tokens)
	token := tokens[len(tokens)-1]
	if rapid.IntRange(0, 4).Draw(t, "which") == 0 {
		token = rapid.SampledFrom(tokens).Draw(t, "token")
	}
	return token, w.held[token]
}

func (w *relays) start(i int) {
	w.ids++
	w.proxies[i] = &relaying{name: fmt.Sprintf("p%d-%d", i, w.ids)}
}

// release has a client give back what it has, through a proxy.
func (w *relays) release(t *rapid.T, p *relaying, token int64, b *belief) {
	b.gone = true
	p.tasks = append(p.tasks, Op{Do: Release, Owner: b.owner, Token: token, Class: Foreground, Mode: Exclusive})
	if _, ok := p.relay.Release(b.owner, token); ok {
		p.hand(t, w)
	}
}

func (w *relays) actions(proxy func(*rapid.T) *relaying) map[string]func(*rapid.T) {
	settle := func(t *rapid.T, p *relaying) {
		if p.call != nil && p.results == nil {
			p.results, p.doc = w.apply(t, p.call)
		}
		if p.call != nil {
			p.settle(t, w)
		}
	}
	return map[string]func(*rapid.T){
		"come": func(t *rapid.T) {
			p := proxy(t)
			w.ids++
			p.waiters = append(p.waiters, &relayed{owner: rapid.SampledFrom([]string{"a", "b", "c", fmt.Sprint("o", w.ids)}).Draw(t, "owner"),
				rid: fmt.Sprint("r", w.ids), ttl: rapid.SampledFrom([]int64{30, 100, 400}).Draw(t, "ttl"), until: w.now + 300, class: Foreground})
		},
		"send":   func(t *rapid.T) { proxy(t).send(w) },
		"settle": func(t *rapid.T) { settle(t, proxy(t)) },
		"round": func(t *rapid.T) {
			p := proxy(t)
			settle(t, p)
			p.send(w)
			settle(t, p)
		},
		"reach": func(t *rapid.T) { // the engine, not yet the proxy
			if p := proxy(t); p.call != nil && p.results == nil {
				p.results, p.doc = w.apply(t, p.call)
			}
		},
		"go out and back": func(t *rapid.T) { // the next call, whatever came between
			p := proxy(t)
			settle(t, p)
			p.send(w)
		},
		"lose": func(t *rapid.T) { // the answer, or the call: everything is asked for again
			p := proxy(t)
			if p.call == nil {
				return
			}
			p.tasks = append(p.call.Ops[:len(p.call.Ops)-len(p.asking)], p.tasks...)
			for _, c := range p.asking {
				if c.left {
					p.tasks = append(p.tasks, Op{Do: Abandon, Rid: c.rid})
				}
			}
			p.call, p.results, p.asking = nil, nil, nil
		},
		"release": func(t *rapid.T) {
			if token, b := w.live(t); b != nil {
				w.release(t, proxy(t), token, b)
			}
		},
		"release where it leads": func(t *rapid.T) {
			p := proxy(t)
			if b := w.held[p.relay.lead.Token]; b != nil && !b.gone {
				w.release(t, p, p.relay.lead.Token, b)
			}
		},
		"renew": func(t *rapid.T) {
			if token, b := w.live(t); b != nil && b.until > w.now {
				p := proxy(t)
				p.tasks = append(p.tasks, Op{Do: Renew, Owner: b.owner, Token: token, Class: Foreground, Mode: Exclusive})
			}
		},
		"leave": func(t *rapid.T) {
			p := proxy(t)
			if len(p.waiters) == 0 {
				return
			}
			i := rapid.IntRange(0, len(p.waiters)-1).Draw(t, "waiter")
			c := p.waiters[i]
			p.waiters, c.left = slices.Delete(p.waiters, i, i+1), true
			p.relay.Leave(c.rid)
			if !slices.Contains(p.asking, c) {
				p.tasks = append(p.tasks, Op{Do: Abandon, Rid: c.rid}, Op{Do: Leave, Class: c.class, Mode: Exclusive})
			}
		},
		"look": func(t *rapid.T) {
			if p := proxy(t); p.call == nil {
				p.doc = w.doc.Clone()
				p.relay.NoteDoc(p.doc, p.name)
				p.sync()
			}
		},
		"die": func(t *rapid.T) {
			if rapid.IntRange(0, 3).Draw(t, "really") > 0 {
				return
			}
			i := rapid.IntRange(0, len(w.proxies)-1).Draw(t, "proxy")
			if p := w.proxies[i]; p.call != nil && p.results == nil {
				w.rest = append(w.rest, p.call)
			}
			w.start(i)
		},
		"from beyond": func(t *rapid.T) { // a call of a proxy that has died since
			if len(w.rest) > 0 {
				w.apply(t, w.rest[0])
				w.rest = w.rest[1:]
			}
		},
		"time":      func(t *rapid.T) { w.now += rapid.SampledFrom([]int64{1, 1, 2, 5, 40}).Draw(t, "ms") },
		"long time": func(t *rapid.T) { w.now += rapid.SampledFrom([]int64{1, 1, 1, 150, 450}).Draw(t, "ms") },
	}
}

func TestAChainThatIsHandedOnNeverHasTwoHolders(t *testing.T) {
	handed, late := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		w := &relays{now: 1_700_000_000_000, held: map[int64]*belief{}, proxies: make([]*relaying, 2)}
		for i := range w.proxies {
			w.start(i)
		}
		// Most happens at one: a chain is made where nobody else waits.
		t.Repeat(w.actions(func(t *rapid.T) *relaying { return w.proxies[min(rapid.IntRange(0, 5).Draw(t, "proxy")/5, 1)] }))
		handed, late = handed+w.handed, late+w.late
	})
	if handed == 0 || late == 0 {
		t.Errorf("%d leases were handed on, and %d releases came late: nothing was shown", handed, late)
	}
}

// A call that promised a lease and whose answer was lost: who waits there comes before those whose promises are known.
func TestASeatOfALostAnswerIsNotJumped(t *testing.T) {
	hold := func(token int64) Hold {
		return Hold{Owner: fmt.Sprint("o", token), Rid: fmt.Sprint("r", token), Token: token, TTL: 1000}
	}
	var r Relay
	r.NoteGrant(hold(1))
	r.NotePromise(hold(3), 0)
	d := &Doc{Beat: 3, Holds: []Hold{hold(1)}, Chain: []Hold{hold(2), hold(3)}, Promiser: "p"}
	r.NoteDoc(d, "p")
	if _, ok := r.Release("o1", 1); !ok {
		t.Fatal("not the one that has the lock")
	}
	if h, ok := r.Next(1); ok {
		t.Fatalf("%+v was handed over while %+v is before it", h, hold(2))
	}
	r.NotePromise(hold(2), 1) // asked again
	for _, want := range []int64{2, 3} {
		if h, ok := r.Next(2); !ok || h.Token != want {
			t.Fatalf("%+v %v, want token %d", h, ok, want)
		}
		r.Release(hold(want).Owner, want)
	}
	r.NotePromise(hold(4), 0)
	r.NoteDoc(&Doc{Beat: 2, Holds: []Hold{hold(1)}}, "p")
	if h, ok := r.Next(2); ok {
		t.Fatalf("%+v was handed over after the document went back", h)
	}
}
