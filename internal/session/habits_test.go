package session

import (
	"fmt"
	"testing"

	"optimist/internal/doc"
	"optimist/internal/rank"
)

// What one document has shown of its clients helps with the next one of the index, and with no other, and nobody else.
func TestTheDocumentsOfAnIndexShareTheirHabits(t *testing.T) {
	var known rank.Patterns
	s, _ := newTest(t, func(o *Options) {
		o.Rank = func(_ []rank.Candidate, sent rank.Sent) rank.Choice {
			known = *sent.Patterns
			return rank.Choice{Certain: true}
		}
	})
	write := func(sess Session, ref doc.Ref) {
		t.Helper()
		known = rank.Patterns{}
		for i := range 2 {
			s.Read(sess, ref, rev(int64(5+i), fmt.Sprintf(`{"a":%d}`, i)), s.Epoch())
		}
		b, err := s.Take(ended(), sess, ref, []byte(`{"a":7}`))
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
	}
	first, another, elsewhere := at(1), at(2), doc.Ref{Index: "other", ID: "1"}
	if write(pool, first); known != (rank.Patterns{}) {
		t.Error("the first document has habits")
	}
	if write(pool, another); known == (rank.Patterns{}) {
		t.Error("the second document of the index hasn't the habits of the first")
	}
	if write(pool, elsewhere); known != (rank.Patterns{}) {
		t.Error("another index has the habits")
	}
	if write(Inferred(bob, here), first); known != (rank.Patterns{}) {
		t.Error("others have the habits")
	}
}
