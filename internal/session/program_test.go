package session

import (
	"testing"

	"optimist/internal/identity"
)

// from is the pool of threads, with the program of that User-Agent.
func from(userAgent string) Session { return pool.By(identity.ProgramOf([]byte(userAgent))) }

// A dashboard has read revision 5. To that, the program would have changed one number less.
func TestAProgramSeldomChangesWhatOnlyAnotherHasRead(t *testing.T) {
	const old, newest, sent = `{"n":1,"flag":false}`, `{"n":2,"flag":true}`, `{"n":3,"flag":false}`
	for name, c := range map[string]struct {
		looks, reads, writes Session
		base                 int64
	}{
		"nobody says who it is":              {pool, pool, pool, 5},
		"another program looks":              {from("dashboard/1"), from("app/2"), from("app/2"), 6},
		"the same program looks":             {from("app/2"), from("app/2"), from("app/2"), 5},
		"the writer says nothing":            {from("dashboard/1"), from("app/2"), pool, 5},
		"who looks says nothing":             {pool, from("app/2"), from("app/2"), 5},
		"the writer has read nothing itself": {from("dashboard/1"), from("app/2"), from("saver/3"), 5},
	} {
		s, _ := newTest(t, func(o *Options) { o.Rank = nil })
		s.Read(c.looks, ref, rev(5, old), s.Epoch())
		s.Read(c.reads, ref, rev(6, newest), s.Epoch())
		for range 2 { // what is given back is still of its program
			b := take(t, s, c.writes, sent)
			if b.Numbers.SeqNo != c.base || !b.Ambiguous || !b.Guessed {
				t.Errorf("%s: base %d, ambiguous %t, guessed %t; want %d", name, b.Numbers.SeqNo, b.Ambiguous, b.Guessed, c.base)
			}
			b.Release()
		}
	}
}

// The dashboard and the program have read the same revision. The program's write takes its own read, and what is left is the dashboard's.
func TestAWriteTakesTheReadOfItsProgram(t *testing.T) {
	for _, first := range []Session{from("dashboard/1"), from("app/2")} {
		s, _ := newTest(t, func(o *Options) { o.Rank = nil })
		s.Read(first, ref, rev(5, `{"n":1,"flag":false}`), s.Epoch())
		for _, r := range []Session{from("dashboard/1"), from("app/2")} {
			if r != first {
				s.Read(r, ref, rev(5, `{"n":1,"flag":false}`), s.Epoch())
			}
		}
		b := take(t, s, from("app/2"), `{"n":2,"flag":true}`)
		want(t, b, KindRead, 5)
		b.Release() // and comes again
		b = take(t, s, from("app/2"), `{"n":2,"flag":true}`)
		want(t, b, KindRead, 5)
		b.Commit(Ack{Stored: rev(6, `{"n":2,"flag":true}`), Sent: []byte(`{"n":2,"flag":true}`)})
		s.Read(from("app/2"), ref, rev(6, `{"n":2,"flag":true}`), s.Epoch())
		b = take(t, s, from("app/2"), `{"n":3,"flag":false}`)
		want(t, b, KindRead, 6)
		b.Release()
	}
}
