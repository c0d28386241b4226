package session

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"optimist/internal/doc"
)

// after is the document of ref in the index for which the name stands later.
var after = doc.Ref{Index: "shop-2", ID: ref.ID}

// takeAfter takes the base of a write by the name, which stood for the index of ref before.
func takeAfter(t *testing.T, s *Store, sess Session, sent string) Base {
	t.Helper()
	if !s.Carry(sess, ref, after) {
		t.Fatal("nothing is known of the index before")
	}
	b, ok := s.TakeNow(sess, after, []byte(sent))
	if !ok {
		t.Fatal("TakeNow had to wait")
	}
	return b
}

func wantMoved(t *testing.T, b Base, k Kind, view string) {
	t.Helper()
	if want(t, b, k, -1); !b.Moved || string(b.View) != view || b.Stored != nil || b.OnlyGuards() {
		t.Fatalf("moved %v view %q stored %q", b.Moved, b.View, b.Stored)
	}
}

// Each read serves one write, there as here. Then there are no more.
func TestWhatASessionHasReadInTheIndexBeforeIsABase(t *testing.T) {
	for _, sess := range []Session{pool, one, in(1)} {
		s, _ := newTest(t)
		s.Read(sess, ref, rev(5, `{"n":1}`), s.Epoch())
		b := takeAfter(t, s, sess, `{"n":2}`)
		wantMoved(t, b, KindRead, `{"n":1}`)
		b.Release()
		b = takeAfter(t, s, sess, `{"n":2}`)
		wantMoved(t, b, KindRead, `{"n":1}`) // it was given back
		b.Commit(Ack{Stored: rev(0, `{"n":2}`), Sent: []byte(`{"n":2}`), Written: true})
		b = takeAfter(t, s, sess, `{"n":3}`)
		want(t, b, KindView, 0)
		b.Release()
	}
}

// What others have read here since isn't taken from them: the content tells the clients apart.
func TestWhatClientsHaveReadInBothIndicesIsCompared(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Rank = nil })
	s.Read(pool, ref, rev(5, `{"l":["a"]}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"l":["a","b"]}`), s.Epoch())
	s.Read(pool, after, rev(0, `{"l":["a","b","c"]}`), s.Epoch())
	b := takeAfter(t, s, pool, `{"l":["a","b","mine"]}`)
	wantMoved(t, b, KindRead, `{"l":["a","b"]}`)
	c := takeAfter(t, s, pool, `{"l":["a","b","c","mine"]}`)
	want(t, c, KindRead, 0)
	d := takeAfter(t, s, pool, `{"l":["a","mine"]}`)
	wantMoved(t, d, KindRead, `{"l":["a"]}`)
	b.Release()
	c.Release()
	d.Release()
}

// A client that saves what it sent before, or found no document, does so in the other index, too.
func TestWhatASessionHasWrittenInTheIndexBeforeIsABase(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.Read(sess, ref, rev(5, `{"n":1}`), s.Epoch())
		b := take(t, s, sess, `{"n":2}`)
		b.Commit(Ack{Stored: rev(6, `{"n":2,"o":1}`), Sent: []byte(`{"n":2}`), Written: true})
		b = takeAfter(t, s, sess, `{"n":3}`)
		wantMoved(t, b, KindView, `{"n":2}`)
		b.Release()

		s, _ = newTest(t)
		s.ReadAbsent(sess, ref, s.Epoch())
		b = takeAfter(t, s, sess, `{"n":3}`)
		want(t, b, KindAbsent, -1)
		b.Release()
	}
}

// Clients may write in the index before, too, by its own name: what they have read there still guards.
func TestWhatIsCarriedStillGuardsInTheIndexBefore(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.Read(sess, ref, rev(5, `{"n":1}`), s.Epoch())
		s.Carry(sess, ref, after)
		b := take(t, s, sess, `{"n":2}`)
		if want(t, b, KindRead, 5); !b.OnlyGuards() {
			t.Error("it may be merged twice")
		}
		b.Release()
	}
}

// Of a named session only what it has seen last is a base. What it has seen here, and optimist has forgotten, may be newer.
func TestANamedSessionWritesFromWhatItHasSeenLast(t *testing.T) {
	s, c := newTest(t)
	s.Read(one, after, rev(0, `{"n":9}`), s.Epoch())
	c.advance(time.Second)
	s.Read(one, ref, rev(5, `{"n":1}`), s.Epoch())
	b := takeAfter(t, s, one, `{"n":2}`)
	wantMoved(t, b, KindRead, `{"n":1}`)
	b.Release()
	c.advance(time.Second)
	s.Read(one, after, rev(0, `{"n":9}`), s.Epoch())
	b = takeAfter(t, s, one, `{"n":2}`)
	want(t, b, KindRead, 0)
	b.Release()

	s, c = newTest(t)
	s.Read(one, ref, rev(5, `{"n":1}`), s.Epoch())
	c.advance(time.Second)
	s.Read(one, after, rev(0, `{"n":9}`), s.Epoch())
	s.DropIndex(alice, after.Index)
	wantLost(t, takeAfter(t, s, one, `{"n":2}`), ReasonIndex)
}

// Whether the write was applied isn't known. The numbers of the index before are no guard, so nothing may be made of the base.
func TestWhatWasCarriedIsNotMergedAfterAnUnknownOutcome(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.Read(sess, ref, rev(5, `{"n":1}`), s.Epoch())
		b := takeAfter(t, s, sess, `{"n":2}`)
		b.Doubt()
		if b = takeAfter(t, s, sess, `{"n":2}`); !b.OnlyGuards() || !b.Moved || b.Numbers.Known() || b.View != nil {
			t.Errorf("%+v", b)
		}
		b.Release()
	}
}

// After a start, the numbers of the index before guard nothing. So the engine refuses the write, unless there is no document.
func TestWhatWasCarriedIsNoGuardAfterAStart(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		p := newProcesses(t)
		s := p.next()
		s.Read(sess, ref, rev(5, `{"n":1}`), s.Epoch())
		s.Carry(sess, ref, after)
		s = p.next()
		b, _ := s.TakeNow(sess, after, []byte(`{"n":2}`))
		wantRecollection(t, b, KindAbsent, doc.Numbers{})
		b.Release()
	}
}

// The name goes from one index to the other and back, in any state of what was seen. Nothing is counted wrong, and what is carried never
// guards.
func TestNothingIsCountedWrongWhereNamesMove(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 0))
		s, c := newTest(t)
		refs, bases, n := []doc.Ref{ref, after, {Index: "shop-3", ID: ref.ID}}, []Base(nil), int64(0)
		for range 60 {
			sess := []Session{pool, one, in(1), in(2)}[r.IntN(4)]
			i := r.IntN(len(refs))
			switch to := refs[i]; r.IntN(8) {
			case 0, 1:
				s.Read(sess, to, rev(n-r.Int64N(3)%(n+1), fmt.Sprintf(`{"n":%d}`, n)), s.Epoch())
			case 2:
				s.ReadAbsent(sess, to, s.Epoch())
			case 3, 4:
				s.Carry(sess, refs[(i+1)%len(refs)], to)
				if b, ok := s.TakeNow(sess, to, fmt.Appendf(nil, `{"n":%d,"m":%d}`, n, r.IntN(9))); ok {
					bases = append(bases, b)
				}
			case 5:
				c.advance(time.Duration(r.IntN(60)) * time.Second)
			default:
				if len(bases) == 0 {
					continue
				}
				b := bases[0]
				if bases = bases[1:]; b.Numbers.SeqNo < 0 || b.Moved && b.Numbers.Known() {
					t.Fatalf("seed %d: the guard is %v", seed, b.Numbers)
				}
				switch r.IntN(4) {
				case 0:
					b.Release()
				case 1:
					b.Doubt()
				default:
					n++
					sent := fmt.Sprintf(`{"n":%d}`, n)
					b.Commit(Ack{Stored: rev(n, sent), Sent: []byte(sent), Written: true})
				}
			}
			if audit(t, s); t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
		for _, b := range bases {
			b.Release()
		}
	}
}
