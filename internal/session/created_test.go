package session

import (
	"bytes"
	"testing"
)

func TestADocumentIsKnownAsItWasMade(t *testing.T) {
	s, _ := newTest(t)
	for range 3 {
		s.ReadAbsent(pool, ref, s.Epoch())
	}
	made := func(when string, b *Base, want string) {
		t.Helper()
		if got := string(bytes.Join(b.Made(), []byte(" "))); got != want {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	first, second, third := take(t, s, pool, `{"by":"a"}`), take(t, s, pool, `{"by":"b"}`), take(t, s, pool, `{"by":"c"}`)
	made("nobody has made it", &second, "")
	left := rev(1, `{"by":"a"}`)
	left.Version = 1
	first.Commit(Ack{Stored: left, Sent: left.Source, Created: true})
	made("the first client has", &second, `{"by":"a"}`)
	s.Read(pool, ref, left, s.Epoch())
	change := take(t, s, pool, `{"by":"x"}`)
	want(t, change, KindRead, 1)
	for i, w := range []*Base{&second, &change} {
		newer := rev(int64(2+i), `{"by":"merged"}`)
		newer.Version = int64(2 + i)
		w.Commit(Ack{Stored: newer, Sent: []byte([]string{`{"by":"b"}`, `{"by":"x"}`}[i])})
	}
	made("another client that had found none has written since, and one that had read it", &third, `{"by":"a"} {"by":"b"}`)
	third.Release()
	made("the base was given back", &third, "")
}

// A client that has made a document has in hand what it sent. Who only writes doesn't miss it when it is forgotten.
func TestWhoMakesADocumentHasSeenIt(t *testing.T) {
	makeIt := func(s *Store) {
		b := take(t, s, pool, `{"a":1}`)
		want(t, b, KindNone, -1)
		b.Commit(Ack{Stored: rev(0, `{"a":1}`), Sent: []byte(`{"a":1}`), Created: true})
	}
	s, c := newTest(t)
	makeIt(s)
	b := take(t, s, pool, `{"a":2}`)
	if want(t, b, KindView, 0); string(b.View) != `{"a":1}` {
		t.Errorf("view %s", b.View)
	}
	b.Release()
	c.advance(maxAge)
	want(t, take(t, s, pool, `{"a":2}`), KindNone, -1)

	s, c = newTest(t)
	s.Read(pool, at(1), rev(5, `{}`), s.Epoch())
	c.advance(maxAge)
	makeIt(s) // in an index that nobody overwrites: a log
	want(t, take(t, s, pool, `{"a":2}`), KindNone, -1)
}
