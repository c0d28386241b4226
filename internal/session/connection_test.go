package session

import (
	"fmt"
	"net/netip"
	"testing"

	"optimist/internal/doc"
	"optimist/internal/identity"
)

// TestConnectionsTellClientsApart: two clients of one session read and write a counter in turns, each over a connection of its own. When
// one then saves unchanged what it has read, nothing but the connection tells that.
func TestConnectionsTellClientsApart(t *testing.T) {
	for name, c := range map[string]struct {
		over func(client, call int) uint64
		want int64
	}{
		"own":  {func(client, _ int) uint64 { return uint64(client + 1) }, 41},
		"none": {func(_, call int) uint64 { return uint64(call + 1) }, 40},
	} {
		t.Run(name, func(t *testing.T) {
			s, calls := New(Options{}), 0
			sess := func(client int) Session {
				calls++
				return identity.Inferred(Credentials{}, netip.IPv4Unspecified()).Over(c.over(client, calls))
			}
			ref := doc.Ref{Index: "i", ID: "1"}
			s.Wrote(Credentials{}, "i")
			rev := func(n int) doc.Revision {
				return doc.Revision{Numbers: doc.Numbers{SeqNo: int64(n), PrimaryTerm: 1}, Version: int64(n + 1), Source: fmt.Appendf(nil, `{"n":%d}`, n)}
			}
			write := func(client, base, n int) Base {
				b, err := s.Take(t.Context(), sess(client), ref, rev(n).Source)
				if err != nil || b.Numbers.SeqNo != int64(base) {
					t.Fatalf("%d has %+v, %v as its base", n, b.Numbers, err)
				}
				return b
			}
			n := 0
			for range 20 { // both have read, one before and one after a change of somebody's
				s.Read(sess(0), ref, rev(n), s.Epoch())
				s.Read(sess(1), ref, rev(n+1), s.Epoch())
				first, second := write(0, n, n+1), write(1, n+1, n+2)
				first.Release()
				second.Release()
				s.DropIndex(Credentials{}, "i")
				s.Wrote(Credentials{}, "i")
				n += 2
			}
			s.Read(sess(0), ref, rev(n), s.Epoch())
			s.Read(sess(1), ref, rev(n+1), s.Epoch())
			b, err := s.Take(t.Context(), sess(1), ref, rev(n+1).Source)
			if err != nil || b.Numbers.SeqNo != c.want || !b.Ambiguous {
				t.Errorf("%+v, %v, want %d", b, err, c.want)
			}
		})
	}
}
