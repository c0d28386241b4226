package session

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"optimist/internal/identity"
)

// heldBy counts anew what a client holds by an entry.
func heldBy(e *entry) int64 {
	n := documentCost + refLen(e.key.ref) + e.charged
	for _, r := range e.reads {
		if r.body != nil {
			n += r.body.cost()
		}
	}
	views := []view{e.view}
	for _, p := range e.past {
		views = append(views, p.view)
	}
	for _, v := range views {
		if v.storedBody != nil {
			n += v.storedBody.cost()
		}
		if v.sentBody != nil && v.sentBody != v.storedBody {
			n += v.sentBody.cost()
		}
	}
	return n
}

// auditHolders compares what the entries and digests of each holder take with its account.
func (sh *shard) auditHolders(t complainer, held map[*holder]int64) {
	t.Helper()
	hs := &sh.holders
	if len(hs.of) != len(held) || len(hs.heap) != len(held) {
		t.Errorf("%d holders, %d of them found, %d ordered", len(held), len(hs.of), len(hs.heap))
	}
	entries := 0
	for i, h := range hs.heap {
		if h.place != i || hs.of[h.sess] != h || i > 0 && h.bytes > hs.heap[(i-1)/2].bytes {
			t.Errorf("holder %d has the place %d", i, h.place)
		}
		if h.bytes != held[h]+holderCost {
			t.Errorf("a client holds %d bytes, counts %d", held[h]+holderCost, h.bytes)
		}
		var newer *entry
		for e := h.newest; e != nil; e, newer = e.older, e {
			if entries++; e.holder != h || e.newer != newer {
				t.Errorf("an entry isn't in its place")
			}
		}
		if newer != h.oldest {
			t.Errorf("the oldest entry isn't in its place")
		}
	}
	if entries != sh.lru.Len() {
		t.Errorf("clients hold %d entries of %d", entries, sh.lru.Len())
	}
}

func large(i int) string { return fmt.Sprintf(`{"n":%d,"a":"%s"}`, i, strings.Repeat("x", 4000)) }

func TestManyDocumentsOfOneClientEvictNothingOfAnother(t *testing.T) {
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	v6 := func(i int) netip.Addr { return netip.AddrFrom16([16]byte{0: 0x20, 14: byte(i >> 8), 15: byte(i)}) }
	for name, greedy := range map[string]func(i int) Session{
		"other credentials": func(int) Session { return identity.Inferred(bob, here) },
		"other address":     func(int) Session { return identity.Inferred(alice, there) },
		"no credentials":    func(int) Session { return identity.Inferred(Credentials{}, here) },
		"a session":         func(int) Session { return identity.Named(bob, []byte("thread")) },
		"many sessions":     func(i int) Session { return identity.Named(bob, []byte{byte(i >> 8), byte(i)}) },
		"an IPv6 network":   func(i int) Session { return identity.Inferred(bob, v6(i)) },
		"two that share":    func(i int) Session { return identity.Inferred(bob, addr(i%2)) },
	} {
		for _, victim := range []Session{pool, one} {
			t.Run(name, func(t *testing.T) {
				s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10 })
				s.Read(victim, ref, rev(5, `{"a":1}`), s.Epoch())
				for i := range 520 {
					s.Read(greedy(i), at(i/2), rev(5, large(i/2)), s.Epoch())
				}
				audit(t, s)
				if s.Stats().Evicted == 0 {
					t.Fatal("there was room for everybody")
				}
				want(t, take(t, s, victim, `{"a":2}`), KindRead, 5)
			})
		}
	}
}

// Writes, copies and guesses leave views, a history and digests: they count as reads do.
func TestManyWritesOfOneClientEvictNothingOfAnother(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10; o.Rank = nil })
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	greedy := identity.Inferred(bob, there)
	for i := range 260 {
		for n := range int64(3) {
			s.Read(greedy, at(i), rev(n+5, large(int(n))), s.Epoch())
		}
		b, err := s.Take(t.Context(), greedy, at(i), []byte(large(9)))
		if err != nil {
			t.Fatal(err)
		}
		b.Commit(Ack{Stored: rev(9, large(9)), Sent: []byte(large(9)), Copy: Copy{Numbers: num(9), Token: uint64(i + 1)}})
		audit(t, s)
	}
	want(t, take(t, s, pool, `{"a":2}`), KindRead, 5)
}

// A client with a single document larger than its fair share has that document's base: who holds more beside it makes room.
func TestTheOnlyDocumentOfAClientIsKept(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10 })
	for i := range 400 {
		sess := identity.Inferred(bob, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
		s.Read(sess, at(i), rev(5, `{"a":"`+strings.Repeat("x", 1000)+`"}`), s.Epoch())
	}
	body := `{"a":"` + strings.Repeat("x", 40_000) + `"}`
	s.Read(pool, ref, rev(5, body), s.Epoch())
	b := take(t, s, pool, `{"a":2}`)
	want(t, b, KindRead, 5)
	if string(b.View) != body {
		t.Fatalf("%d bytes", len(b.View))
	}
}

// Clients that hold equally much lose equally much, whoever comes last.
func TestFairShareIsKeptByEverybody(t *testing.T) {
	const clients = 8
	s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10 })
	sess := func(c int) Session { return identity.Inferred(Credentials{byte(c + 1)}, here) }
	for c := range clients {
		for i := range 260 {
			s.Read(sess(c), at(i), rev(5, large(i)), s.Epoch())
		}
	}
	audit(t, s)
	sh := s.shards[0]
	for _, h := range sh.holders.heap {
		if h.bytes < sh.bound/clients-8000 {
			t.Errorf("a client holds %d bytes, its fair share are %d", h.bytes, sh.bound/clients)
		}
	}
	if n := len(sh.holders.heap); n != clients {
		t.Errorf("%d clients", n)
	}
}
