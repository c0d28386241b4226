package session

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/indexstate"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// TestNoReadServesTwoWrites has many clients read and write the same documents at once, in a store that is too small for
// them: no outstanding read may ever be the base of two writes that are in flight or acknowledged, nobody may wait for ever, and the
// accounts must be right at the end.
func TestNoReadServesTwoWrites(t *testing.T) {
	const clients, documents, revisions = 16, 8, 16
	s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10; o.Rank = nil })
	sessions := []Session{pool, identity.Inferred(bob, here), one, identity.Named(bob, []byte("x"))}
	type held struct{ reads, bases [revisions]atomic.Int64 }
	counts := make([][documents]held, len(sessions))
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range 1500 {
				i, d, n := rand.IntN(len(sessions)), rand.IntN(documents), rand.IntN(revisions)
				sess, h, r := sessions[i].By(identity.Program(rand.IntN(4))), &counts[i][d], at(d)
				switch rand.IntN(20) {
				case 0:
					s.DropIndex(Credentials{}, "shop")
				case 1:
					s.Stats()
				default:
					h.reads[n].Add(1)
					s.Read(sess, r, rev(int64(n), fmt.Sprintf(`{"n":%d,"x":"%s"}`, n, strings.Repeat("x", 40*n))), s.Epoch())
				}
				b, err := s.Take(t.Context(), sess, r, []byte(`{"n":1}`))
				if err != nil {
					t.Error(err)
					return
				}
				if b.Kind != KindRead || b.claim.took == choice.TakePast { // what was used up may be a base again, as a guess
					b.Commit(Ack{Stored: rev(1000, `{"n":1}`), Sent: []byte(`{"n":1}`), Created: true})
					continue
				}
				m := b.Numbers.SeqNo
				if bases, reads := h.bases[m].Add(1), h.reads[m].Load(); bases > reads {
					t.Errorf("%d writes from %d reads", bases, reads)
				}
				if !strings.HasPrefix(string(b.View), fmt.Sprintf(`{"n":%d,`, m)) {
					t.Errorf("revision %d has the bytes %q", m, b.View)
				}
				switch rand.IntN(3) {
				case 0:
					h.bases[m].Add(-1)
					b.Release()
				case 1:
					b.Delete()
				default:
					b.Commit(Ack{Stored: rev(1000, `{"n":1}`), Sent: []byte(`{"n":2}`)})
				}
			}
		})
	}
	wg.Wait()
	for _, sh := range s.shards {
		if sh.pending.Len() != 0 {
			t.Errorf("%d writes in flight", sh.pending.Len())
		}
	}
}

// TestClientsThatLeaveHoldUpNobody has many clients of one session leave at any moment and send the same again, of which there is
// little to choose from, while the index is dropped and what is known is evicted: nobody may wait for ever, nothing may be kept
// of a request that is over, and the accounts must be right.
func TestClientsThatLeaveHoldUpNobody(t *testing.T) {
	const clients, documents = 16, 4
	var ticks atomic.Int64 // time runs: a client that leaves has waited
	start := time.Unix(1, 0)
	s := New(Options{Memory: 96 << 10, MaxAge: 24 * time.Hour, Now: func() time.Time {
		return start.Add(time.Duration(ticks.Add(1)) * 5 * time.Millisecond)
	}})
	var seen [KindExplicit + 1]atomic.Int64
	var seq, left atomic.Int64
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range 800 {
				r, sent := at(rand.IntN(documents)), fmt.Sprintf(`{"n":%d}`, rand.IntN(3))
				elsewhere(s, r, seq.Load())
				pool := pool.By(identity.Program(rand.IntN(4)))
				s.Read(pool, r, rev(seq.Load(), `{"n":9,"x":"`+strings.Repeat("x", rand.IntN(4000))+`"}`), s.Epoch())
				for range rand.IntN(4) {
					ctx, leave := context.WithCancel(t.Context())
					if rand.IntN(2) == 0 {
						time.AfterFunc(time.Duration(rand.IntN(200))*time.Microsecond, leave)
					}
					b, err := s.Take(ctx, pool, r, []byte(sent))
					if err != nil {
						leave()
						left.Add(1)
						continue
					}
					seen[b.Kind].Add(1)
					if rand.IntN(4) == 0 {
						for range rand.IntN(100) { // the write, while others have their turns
							runtime.Gosched()
						}
					}
					endAnyhow(&b, rev(seq.Add(1), sent), sent)
					b.NoteAnswer()
					leave()
				}
			}
		})
	}
	wg.Wait()
	audit(t, s)
	for _, sh := range s.shards {
		if sh.pending.Len() != 0 {
			t.Errorf("%d documents in flight, or somebody waits", sh.pending.Len())
		}
		if err := sh.pending.Check(); err != nil {
			t.Error(err)
		}
	}
	for d := range documents {
		k := viewcache.KeyOf(pool, at(d))
		if e := s.shard(k).Peek(k); e != nil && slices.ContainsFunc(e.Repeats.Attempts(), func(o *repeat.Attempt) bool { return !o.IsOver() }) {
			t.Errorf("of a request that is over something is kept: %+v", e.Repeats.Attempts())
		}
	}
	if left.Load() == 0 || seen[KindView].Load() == 0 || seen[KindRead].Load() == 0 {
		t.Errorf("%d left, of others %d had read and %d had written: nothing was tested", left.Load(), seen[KindRead].Load(), seen[KindView].Load())
	}
}

// elsewhere does, now and then, what else happens to what is known of a document.
func elsewhere(s *Store, r doc.Ref, n int64) {
	switch rand.IntN(40) {
	case 0:
		s.DropIndex(Credentials{}, r.Index)
	case 1:
		s.ReadUnknown(pool, r)
	case 2:
		s.WroteForwarded(pool, r, rev(n, ""), true, s.Epoch())
	case 3:
		s.Read(identity.Inferred(bob, there), at(100+rand.IntN(20)), rev(n, `{"x":"`+strings.Repeat("x", 8000)+`"}`), s.Epoch())
	case 4, 5:
		_, _ = s.Glance().Take(ended(), pool, r, []byte(`{"n":1}`))
	case 6:
		b := s.TakeAt(pool, r, num(n), []byte(`{"n":1}`))
		b.Commit(Ack{Stored: rev(n+1, `{"n":1,"m":1}`), Sent: []byte(`{"n":1}`), AnswerNumbers: num(n)})
		b.NoteAnswer()
	}
}

// endAnyhow ends a reservation in one of the ways in which one ends.
func endAnyhow(b *Base, stored doc.Revision, sent string) {
	switch rand.IntN(8) {
	case 0, 1:
		b.Release()
	case 2:
		b.Doubt()
	case 3:
		b.Commit(Ack{Sent: []byte(sent)}) // the answer told no numbers
	default:
		b.Commit(Ack{Stored: stored, Sent: []byte(sent), Created: true})
	}
}

// TestIndicesAreMadeAndDroppedAtOnce has the states of indices made, dropped and purged while they are used.
func TestIndicesAreMadeAndDroppedAtOnce(t *testing.T) {
	s := New(Options{MaxAge: 1, Memory: 1 << 20})
	var wg sync.WaitGroup
	for g := range 4 {
		wg.Go(func() {
			for i := range 4000 {
				r := doc.Ref{Index: fmt.Sprint("index-", g%2, "-", i), ID: "1"}
				sess := identity.Inferred(alice, netip.AddrFrom4([4]byte{byte(g)}))
				s.Read(sess, r, rev(1, `{}`), s.Epoch())
				if i%16 == 0 {
					s.DropIndex(Credentials{}, r.Index)
				}
				b, _ := s.Take(t.Context(), sess, r, nil)
				b.Commit(Ack{Stored: rev(2, `{}`), Sent: []byte(`{}`)})
			}
		})
	}
	wg.Wait()
	audit(t, s)
	if n := s.indices.Len(); n > indexstate.MaxIndices {
		t.Fatalf("%d indices", n)
	}
}
