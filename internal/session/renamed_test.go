package session

import (
	"testing"

	"optimist/internal/rank"
)

// Once an index turns out to have lists in which names repeat, the digests of its documents are made anew, and kept. If the old ones stayed,
// each write would make all of them again until the last old revision is gone.
func TestDigestsThatAreMadeAnewAreKept(t *testing.T) {
	const kind = 7
	again := 0
	s, _ := newTest(t, func(o *Options) {
		o.Rank = func(cs []rank.Candidate, sent rank.Sent) rank.Choice {
			before := make([]*rank.Digest, len(cs))
			for i := range cs {
				before[i] = cs[i].Digest
			}
			c := rank.Likeliest(cs, sent)
			again = 0
			for i := range cs {
				if before[i] != nil && before[i] != cs[i].Digest {
					again++
				}
			}
			c.Repeats = kind
			return c
		}
	})
	write := func() int {
		b, err := s.Take(ended(), pool, ref, []byte(`{"n":4}`))
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		return again
	}
	s.Wrote(pool.Credentials(), ref.Index)
	for n, source := range []string{`{"n":1}`, `{"n":2}`, `{"n":3}`} {
		s.Read(pool, ref, rev(int64(n)+5, source), s.Epoch())
	}
	for n, want := range []int{0, 4, 0, 0} {
		if got := write(); got != want {
			t.Errorf("write %d makes %d digests again, want %d", n, got, want)
		}
		audit(t, s)
	}
}
