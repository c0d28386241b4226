package session

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"optimist/internal/identity"
)

// comes is a client at an address, as a request comes from it.
func comes(c Credentials, a netip.Addr) Session {
	return identity.Inferred(c, a).At(identity.NetworkOf(a))
}

func large(i int) string { return fmt.Sprintf(`{"n":%d,"a":"%s"}`, i, strings.Repeat("x", 4000)) }

func TestManyDocumentsOfOneClientEvictNothingOfAnother(t *testing.T) {
	addr := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}) }
	v6 := func(i int) netip.Addr { return netip.AddrFrom16([16]byte{0: 0x20, 14: byte(i >> 8), 15: byte(i)}) }
	for name, greedy := range map[string]func(i int) Session{
		"other credentials":  func(int) Session { return comes(bob, here) },
		"other address":      func(int) Session { return comes(alice, there) },
		"no credentials":     func(int) Session { return comes(Credentials{}, here) },
		"a session":          func(int) Session { return identity.Named(bob, []byte("thread")) },
		"many sessions":      func(i int) Session { return identity.Named(bob, []byte{byte(i >> 8), byte(i)}) },
		"an IPv6 network":    func(i int) Session { return comes(bob, v6(i)) },
		"two that share":     func(i int) Session { return comes(bob, addr(i%2)) },
		"made-up identities": func(i int) Session { return comes(Credentials{byte(i >> 8), byte(i), 1}, there) },
		"made-up threads": func(i int) Session {
			c := Credentials{byte(i >> 8), byte(i), 1}
			return identity.Named(c, []byte("thread")).At(identity.NetworkOf(there))
		},
	} {
		for _, victim := range []Session{comes(alice, here), one.At(identity.NetworkOf(here))} {
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
	victim, greedy := comes(alice, here), comes(bob, there)
	s.Read(victim, ref, rev(5, `{"a":1}`), s.Epoch())
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
	want(t, take(t, s, victim, `{"a":2}`), KindRead, 5)
}

// A client with a single document larger than its fair share has that document's base: who holds more beside it makes room.
func TestTheOnlyDocumentOfAClientIsKept(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10 })
	for i := range 400 {
		sess := comes(bob, netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)}))
		s.Read(sess, at(i), rev(5, `{"a":"`+strings.Repeat("x", 1000)+`"}`), s.Epoch())
	}
	body := `{"a":"` + strings.Repeat("x", 40_000) + `"}`
	s.Read(comes(alice, here), ref, rev(5, body), s.Epoch())
	b := take(t, s, comes(alice, here), `{"a":2}`)
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
	const fair = 240 << 10 / clients // markers take the rest
	shares := s.shards[0].Audit(t.Errorf)
	for _, n := range shares {
		if n < fair-8000 {
			t.Errorf("a client holds %d bytes, its fair share are %d", n, fair)
		}
	}
	if n := len(shares); n != clients {
		t.Errorf("%d clients", n)
	}
}

// Many people may work behind one address, that of a gateway. They lose nothing to one who holds much there, or elsewhere, as long as they
// hold less than their fair share.
func TestPeopleBehindOneAddressLoseNothingToTheGreedy(t *testing.T) {
	for name, greedy := range map[string]Session{"beside them": comes(bob, here), "elsewhere": comes(bob, there)} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10 })
			person := func(i int) Session { return comes(Credentials{1, byte(i)}, here) }
			for i := range 20 {
				s.Read(person(i), at(i), rev(5, large(i)), s.Epoch())
			}
			for i := range 520 {
				s.Read(greedy, at(i), rev(5, large(i)), s.Epoch())
			}
			audit(t, s)
			for i := range 20 {
				b, err := s.Take(t.Context(), person(i), at(i), []byte(`{"a":2}`))
				if err != nil {
					t.Fatal(err)
				}
				want(t, b, KindRead, 5)
			}
		})
	}
}

// That a base was lost is kept as bases are: else a write that base.lost refuses would pass.
func TestMadeUpIdentitiesLeaveOthersTheirLostBases(t *testing.T) {
	s, c := newTest(t, func(o *Options) { o.Memory = 256 << 10 })
	victim := comes(alice, here)
	s.Read(victim, ref, rev(5, `{"a":1}`), s.Epoch())
	c.advance(maxAge)
	for i := range 5000 {
		s.Read(comes(Credentials{byte(i >> 8), byte(i), 1}, there), at(i%260), rev(5, large(i)), s.Epoch())
	}
	audit(t, s)
	b := take(t, s, victim, `{"a":2}`)
	if b.Kind != KindLost || b.Reason != ReasonAged {
		t.Errorf("%v %v", b.Kind, b.Reason)
	}
}

// Two networks use the entry of one session. It stays where less is held, so that what the other one holds beside it doesn't push it out.
func TestAnEntryOfTwoNetworksCountsAgainstTheSmaller(t *testing.T) {
	for name, first := range map[string]netip.Addr{"the larger one came first": there, "the smaller one came first": here} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10 })
			shared := func(a netip.Addr) Session { return identity.Inferred(alice, netip.Addr{}).At(identity.NetworkOf(a)) }
			s.Read(shared(first), ref, rev(5, `{"a":1}`), s.Epoch())
			for i := range 20 {
				s.Read(comes(bob, there), at(i), rev(5, large(i)), s.Epoch())
			}
			s.Read(shared(here), ref, rev(5, `{"a":1}`), s.Epoch())
			s.Read(shared(there), ref, rev(5, `{"a":1}`), s.Epoch())
			for i := range 520 {
				s.Read(comes(Credentials{byte(i >> 8), byte(i), 1}, there), at(i/2), rev(5, large(i/2)), s.Epoch())
			}
			audit(t, s)
			want(t, take(t, s, shared(here), `{"a":2}`), KindRead, 5)
		})
	}
}

// An export shows more documents than there is room for. What its client has in hand, or reads otherwise meanwhile, stays. Only what nobody
// but the export has read makes room.
func TestAnExportEvictsNothingThatItsClientHasInHand(t *testing.T) {
	for name, client := range map[string]Session{
		"inferred": comes(alice, here),
		"named":    one.At(identity.NetworkOf(here)),
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := newTest(t, func(o *Options) { o.Memory = 256 << 10 })
			exported := client.ShowingMany()
			s.ReadWithTicket(client, at(1000), rev(5, `{"a":1}`), s.Epoch(), s.Ticket())
			s.Found(exported, at(1001), rev(5, `{"a":1}`), s.Epoch())
			s.ReadWithTicket(client, at(1001), rev(5, `{"a":1}`), s.Epoch(), s.Ticket())
			for i := range 520 {
				s.Found(exported, at(i), rev(5, large(i)), s.Epoch())
			}
			audit(t, s)
			if s.Stats().Evicted == 0 {
				t.Fatal("there was room for everything")
			}
			for _, id := range []int{1000, 1001, 519} {
				b, err := s.Take(ended(), client, at(id), []byte(`{"a":2}`))
				if err != nil {
					t.Fatal(err)
				}
				want(t, b, KindRead, 5)
				b.Release()
			}
		})
	}
}
