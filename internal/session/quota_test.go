package session

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"optimist/internal/identity"
)

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
	const fair = 240 << 10 / clients // markers take the rest
	shares := sh.Shares()
	for _, n := range shares {
		if n < fair-8000 {
			t.Errorf("a client holds %d bytes, its fair share are %d", n, fair)
		}
	}
	if n := len(shares); n != clients {
		t.Errorf("%d clients", n)
	}
}
