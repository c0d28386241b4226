package state

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// world is several proxies on one document. Its time is the true one; by runs without a common clock each proxy has one of its own, and
// judges leases by what it has seen.
type world struct {
	doc     Doc
	now     int64
	clocks  bool // leases are judged by the document's clock
	skew    []int64
	watches []Watch
	tokens  []int64         // given, in their order
	ends    map[int64]int64 // by token: when its holder, by the true time, has stopped to count on its lease at the latest
	holders map[int64]Op    // by token: what was asked for
	rid     int
}

const (
	proxies = 3
	bound   = 3
	grace   = 50
)

func newWorld(t *rapid.T, clocks bool) *world {
	w := &world{clocks: clocks, now: 1_700_000_000_000, watches: make([]Watch, proxies), ends: map[int64]int64{}, holders: map[int64]Op{}}
	for range proxies {
		w.skew = append(w.skew, rapid.Int64Range(-100_000, 100_000).Draw(t, "skew"))
	}
	return w
}

func (w *world) clock(p int) Clock {
	if w.clocks {
		return Clock{Now: w.now}
	}
	return Clock{Now: w.now + w.skew[p], Unchanged: w.watches[p].Unchanged(w.now)}
}

func proxyName(p int) string { return fmt.Sprintf("p%d", p) }

// apply makes a call and checks what must hold after every one.
func (w *world) apply(t *rapid.T, p int, ops ...Op) []Result {
	w.watches[p].See(&w.doc, w.now)
	before := w.doc.Clone()
	c := &Call{Lock: "/_lock/global/a", Kind: Tree, Proxy: proxyName(p), Ops: ops, Bound: bound, Grace: grace}
	results, changed := w.doc.Apply(c, w.clock(p))
	w.watches[p].See(&w.doc, w.now)
	if len(results) != len(ops) {
		t.Fatalf("%d verdicts for %d operations", len(results), len(ops))
	}
	for i, s := range results {
		if s.Verdict.Positive() && s.Verdict != Left && ops[i].Do != Abandon && !changed {
			t.Fatalf("%s without a write: %+v", s.Verdict, ops[i])
		}
		w.check(t, before, &ops[i], s)
	}
	if changed && w.doc.Beat != before.Beat+1 || !changed && w.doc.Beat != before.Beat {
		t.Fatalf("beat %d after %d, changed %v", w.doc.Beat, before.Beat, changed)
	}
	if w.doc.Seen < before.Seen {
		t.Fatalf("the clock went back")
	}
	w.exclusive(t)
	return results
}

func (w *world) check(t *rapid.T, before *Doc, op *Op, s Result) {
	switch s.Verdict {
	case Acquired:
		if _, known := w.holders[s.Token]; known {
			break // the same request again
		}
		if n := len(w.tokens); n > 0 && s.Token <= w.tokens[n-1] {
			t.Fatalf("token %d after %d", s.Token, w.tokens[n-1])
		}
		w.tokens = append(w.tokens, s.Token)
		// Nobody whose lease excludes this one may still count on it.
		for token, held := range w.holders {
			if held.Owner != op.Owner && against(held.Path, held.Mode, op.Path, op.Mode) && w.ends[token] > w.now {
				t.Fatalf("%s got %q for token %d while %s counts on token %d for %d ms", op.Owner, op.Path, s.Token, held.Owner, token,
					w.ends[token]-w.now)
			}
		}
		w.holders[s.Token], w.ends[s.Token] = *op, w.now+op.TTL
	case Reentered, Renewed:
		h, ok := w.doc.Holding(s.Token)
		if !ok || h.Owner != op.Owner {
			t.Fatalf("%s of a lease that isn't there", s.Verdict)
		}
		w.ends[s.Token] = max(w.ends[s.Token], w.now+op.TTL)
		if s.Verdict == Renewed {
			w.ends[s.Token] = w.now + op.TTL // who asks for less has less
		}
		held := w.holders[s.Token]
		held.Mode = h.Mode
		w.holders[s.Token] = held
	case Released:
		if op.Do == Release {
			w.ends[op.Token] = 0
		} else {
			for token, held := range w.holders {
				if held.Rid == op.Rid {
					w.ends[token] = 0
				}
			}
		}
	case Expired, Missing, NotOwner, NoToken:
		// Whoever is refused must not have taken anything from the others.
		for _, h := range before.Holds {
			if _, still := w.doc.Holding(h.Token); !still && !slices.ContainsFunc(w.doc.Lapsed, func(l Hold) bool { return l.Token == h.Token }) &&
				!slices.Contains(w.doc.Freed, h.Token) {
				t.Fatalf("%s took the lease of %s", s.Verdict, h.Owner)
			}
		}
	}
}

// exclusive holds the leases of the document against each other.
func (w *world) exclusive(t *rapid.T) {
	for i, a := range w.doc.Holds {
		for _, b := range w.doc.Holds[i+1:] {
			if a.Owner != b.Owner && against(a.Path, a.Mode, b.Path, b.Mode) {
				t.Fatalf("%+v and %+v at once", a, b)
			}
		}
	}
}

func (w *world) acquire(t *rapid.T) Op {
	w.rid++
	return Op{
		Do: Acquire, Owner: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "owner"), Rid: fmt.Sprint("r", w.rid),
		Path:  rapid.SampledFrom([]string{"/", "/x/", "/x/y/", "/x/y/z/", "/v/"}).Draw(t, "path"),
		Mode:  rapid.SampledFrom([]Mode{Exclusive, Exclusive, Shared}).Draw(t, "mode"),
		Class: rapid.SampledFrom([]Class{Foreground, Background}).Draw(t, "class"),
		TTL:   rapid.Int64Range(1, 100).Draw(t, "ttl"),
	}
}

// known has an operation name a token: one that was given, mostly, and mostly by the path that it was given for.
func (w *world) known(t *rapid.T, op *Op) {
	if len(w.tokens) == 0 {
		op.Token = rapid.Int64Range(0, 3).Draw(t, "token")
		return
	}
	op.Token = rapid.SampledFrom(append([]int64{0, 1 << 60}, w.tokens[max(0, len(w.tokens)-6):]...)).Draw(t, "token")
	if held, ok := w.holders[op.Token]; ok && rapid.IntRange(0, 4).Draw(t, "elsewhere") > 0 {
		op.Path = held.Path
	}
}

func TestNoTwoLiveHoldersAndTokensOnlyGrow(t *testing.T) {
	for name, clocks := range map[string]bool{"by the clock": true, "by what was seen": false} {
		t.Run(name, func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { random(t, clocks) }) })
	}
}

func random(t *rapid.T, clocks bool) {
	w := newWorld(t, clocks)
	proxy := func() int { return rapid.IntRange(0, proxies-1).Draw(t, "proxy") }
	t.Repeat(map[string]func(*rapid.T){
		"acquire": func(t *rapid.T) { w.apply(t, proxy(), w.acquire(t)) },
		"acquire twice": func(t *rapid.T) {
			op, p := w.acquire(t), proxy()
			first := w.apply(t, p, op)
			if again := w.apply(t, p, op); again[0] != first[0] {
				t.Fatalf("%v, and repeated %v", first, again)
			}
		},
		"wait": func(t *rapid.T) {
			op := w.acquire(t)
			op.Wait, op.Age, op.Left = true, rapid.Int64Range(0, 20).Draw(t, "age"), rapid.Int64Range(1, 100).Draw(t, "left")
			if rapid.Bool().Draw(t, "others") {
				op.Behind = Behind{Count: 2, Owner: "z", Rid: "rz", Age: 1, Left: 30}
			}
			w.apply(t, proxy(), op)
		},
		"renew": func(t *rapid.T) {
			op := w.acquire(t)
			op.Do = Renew
			w.known(t, &op)
			w.apply(t, proxy(), op)
		},
		"release": func(t *rapid.T) {
			op, p := w.acquire(t), proxy()
			op.Do = Release
			w.known(t, &op)
			first := w.apply(t, p, op)
			if again := w.apply(t, p, op); first[0].Verdict == Released && again[0] != first[0] {
				t.Fatalf("%v, and repeated %v", first, again)
			}
		},
		"hand over": func(t *rapid.T) {
			release, next := w.acquire(t), w.acquire(t)
			release.Do = Release
			w.known(t, &release)
			next.Wait, next.Left = true, 50
			w.apply(t, proxy(), release, next)
		},
		"abandon": func(t *rapid.T) {
			op := w.acquire(t)
			op.Do, op.Rid = Abandon, fmt.Sprint("r", rapid.IntRange(0, w.rid).Draw(t, "rid"))
			w.apply(t, proxy(), op)
		},
		"leave": func(t *rapid.T) {
			op := w.acquire(t)
			op.Do = Leave
			w.apply(t, proxy(), op)
		},
		"time": func(t *rapid.T) { w.now += rapid.Int64Range(1, 60).Draw(t, "ms") },
		"look": func(*rapid.T) { w.watches[rapid.IntRange(0, proxies-1).Draw(t, "proxy")].See(&w.doc, w.now) },
		"step": func(t *rapid.T) {
			if clocks {
				t.Skip("a step of the engine's clock may end leases early: only the token decides then")
			}
			w.skew[0] += rapid.Int64Range(-1000, 1000).Draw(t, "by")
		},
	})
}
