package session

import (
	"net/netip"
	"testing"

	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/rank"
)

// What clients usually change in one document of an index is known for all of them: also for another address, but not for other credentials,
// to which the name of the index may mean another one.
func TestHabitsAreThoseOfTheIndex(t *testing.T) {
	const habit = 7
	var known *rank.Patterns
	s, _ := newTest(t, func(o *Options) {
		o.Rank = func(_ []rank.Candidate, sent rank.Sent) rank.Choice {
			known = sent.Patterns
			return rank.Choice{Certain: true, Pattern: habit}
		}
	})
	write := func(sess Session, ref doc.Ref) *rank.Patterns {
		s.Wrote(sess.Credentials(), ref.Index)
		s.Read(sess, ref, rev(5, `{"n":1}`), s.Epoch())
		s.Read(sess, ref, rev(6, `{"n":2}`), s.Epoch())
		known = new(rank.Patterns) // the ranking is to say what it knows
		b, err := s.Take(ended(), sess, ref, []byte(`{"n":3}`))
		if err != nil {
			t.Fatal(err)
		}
		b.Release()
		return known
	}
	elsewhere := identity.Inferred(pool.Credentials(), netip.MustParseAddr("127.0.0.9"))
	others := identity.Inferred(identity.CredentialsOf([]byte("other")), netip.MustParseAddr("127.0.0.1"))
	if p := write(pool, doc.Ref{Index: "shop", ID: "1"}); p != nil {
		t.Fatalf("%+v is known before anybody has changed anything", p)
	}
	one := write(pool, doc.Ref{Index: "shop", ID: "1"})
	for name, c := range map[string]struct {
		sess  Session
		ref   doc.Ref
		knows bool
	}{
		"another document": {pool, doc.Ref{Index: "shop", ID: "2"}, true},
		"another address":  {elsewhere, doc.Ref{Index: "shop", ID: "3"}, true},
		"another index":    {pool, doc.Ref{Index: "logs", ID: "1"}, false},
		"others":           {others, doc.Ref{Index: "shop", ID: "1"}, false},
	} {
		if p := write(c.sess, c.ref); (p != nil) != c.knows {
			t.Errorf("%s: it is known: %v, want %v", name, p != nil, c.knows)
		}
	}
	if one == nil {
		t.Fatal("the document's own habits aren't known")
	}
	if was := *one; was == *write(pool, doc.Ref{Index: "shop", ID: "1"}) || was != *one {
		t.Error("a ranking's patterns change, or nothing is learnt")
	}
}

// A dry run learns nothing.
func TestADryRunLearnsNoHabits(t *testing.T) {
	s, _ := newTest(t, func(o *Options) {
		o.Rank = func(_ []rank.Candidate, sent rank.Sent) rank.Choice {
			if sent.Patterns != nil {
				t.Errorf("%+v is known", sent.Patterns)
			}
			return rank.Choice{Certain: true, Pattern: 7}
		}
	})
	s.Wrote(Credentials{}, ref.Index)
	s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"n":2}`), s.Epoch())
	for range 2 {
		if _, err := s.Glance().Take(ended(), pool, ref, []byte(`{"n":3}`)); err != nil {
			t.Fatal(err)
		}
	}
}
