package session

import (
	"testing"

	"optimist/internal/identity"
)

func TestABaseIsAGuessUnlessItIsNamed(t *testing.T) {
	named := identity.Named(Credentials{}, []byte("worker 7"))
	for name, c := range map[string]struct {
		reader, writer Session
		other          bool // somebody else of the session has read, too
		guess          bool
	}{
		"a pool":                          {pool, pool, false, true},
		"a pool of several readers":       {pool, pool, true, true},
		"a named session":                 {named, named, false, false},
		"a trace":                         {in(1), in(1), false, false},
		"a trace, and others have read":   {in(1), in(1), true, false},
		"a read outside of the trace":     {pool, in(1), false, true},
		"a trace, written outside of it":  {in(1), pool, false, true},
		"a read in another trace":         {in(2), in(1), false, true},
		"a named session, and a stranger": {named, named, true, false},
	} {
		s, _ := newTest(t)
		s.Read(c.reader, ref, rev(5, `{"n":5}`), s.Epoch())
		if c.other {
			s.Read(pool, ref, rev(4, `{"n":4}`), s.Epoch())
		}
		b := take(t, s, c.writer, `{"n":6}`)
		if b.View == nil || b.Guessed != c.guess {
			t.Errorf("%s: guessed %t, view %s", name, b.Guessed, b.View)
		}
		b.Release()
		if b = s.TakeAt(c.writer, ref, rev(5, "").Numbers, []byte(`{"n":6}`)); b.Guessed {
			t.Errorf("%s: guessed, and its client gave the numbers", name)
		}
		b.Release()
	}
	s, _ := newTest(t)
	s.Read(in(1), ref, rev(4, `{"n":4}`), s.Epoch())
	s.Read(in(1), ref, rev(5, `{"n":5}`), s.Epoch())
	if b := take(t, s, in(1), `{"n":6}`); !b.Guessed {
		t.Error("two threads of a trace have read, and it isn't a guess which of them writes")
	}
}
