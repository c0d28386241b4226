package session

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"optimist/internal/doc"
)

// TestNoReadServesTwoWrites has many clients read and write the same documents at once, in a store that is too small for
// them: no read may ever be the base of two writes that are in flight or acknowledged, nobody may wait for ever, and the
// accounts must be right at the end.
func TestNoReadServesTwoWrites(t *testing.T) {
	const clients, documents, revisions = 16, 8, 16
	s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10 })
	sessions := []Session{pool, Inferred(bob, here), one, Named(bob, []byte("x"))}
	type held struct{ reads, bases [revisions]atomic.Int64 }
	counts := make([][documents]held, len(sessions))
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			for range 1500 {
				i, d, n := rand.IntN(len(sessions)), rand.IntN(documents), rand.IntN(revisions)
				sess, h, r := sessions[i], &counts[i][d], at(d)
				switch rand.IntN(20) {
				case 0:
					s.DropIndex("shop")
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
				if b.Kind != KindRead {
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
		if len(sh.flights) != 0 {
			t.Errorf("%d writes in flight", len(sh.flights))
		}
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
				sess := Inferred(alice, netip.AddrFrom4([4]byte{byte(g)}))
				s.Read(sess, r, rev(1, `{}`), s.Epoch())
				if i%16 == 0 {
					s.DropIndex(r.Index)
				}
				b, _ := s.Take(t.Context(), sess, r, nil)
				b.Commit(Ack{Stored: rev(2, `{}`), Sent: []byte(`{}`)})
			}
		})
	}
	wg.Wait()
	audit(t, s)
	var n int64
	for i := range s.indices.buckets {
		n += int64(len(s.indices.buckets[i].load()))
	}
	if c := s.indices.count.Load(); c != n || n > maxIndices {
		t.Fatalf("%d indices, counts %d", n, c)
	}
}
