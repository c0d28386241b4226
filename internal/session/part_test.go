package session

import (
	"bytes"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/doc"
	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// made returns what a part makes of a document, which may be absent.
func made(part string) func(base []byte) ([]byte, error) {
	return func(base []byte) ([]byte, error) {
		if base == nil {
			base = []byte("{}")
		}
		return edit.EngineMerge(base, []byte(part), tree.Limits{})
	}
}

// forPart is the store for writes of a part.
func forPart(s *Store, part string) *Store {
	return s.Comparing(Comparison{On: made(part), Part: true})
}

// takePart takes the base of a part that must be there without waiting.
func takePart(t *testing.T, s *Store, sess Session, part string) Base {
	t.Helper()
	return take(t, forPart(s, part), sess, part)
}

func TestThePathsOfAPartTellItsBase(t *testing.T) {
	s, _ := newTest(t, func(o *Options) { o.Rank = nil })
	s.Read(pool, ref, rev(5, `{"l":["a"],"n":1,"by":"me"}`), s.Epoch())
	s.Read(pool, ref, rev(6, `{"l":["a","b"],"n":2,"by":"you"}`), s.Epoch())
	b := takePart(t, s, pool, `{"l":["a","b","c"]}`)
	want(t, b, KindRead, 6)
	if !b.Ambiguous {
		t.Error("not ambiguous")
	}
	want(t, takePart(t, s, pool, `{"l":["a","d"]}`), KindRead, 5)
}

func TestAPartLeavesTheWholeViewThatItsClientHas(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.Read(sess, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
		b := takePart(t, s, sess, `{"a":2}`)
		want(t, b, KindRead, 5)
		b.Commit(Ack{Stored: rev(6, ""), Sent: []byte(`{"a":2,"b":1}`)})
		b = take(t, s, sess, `{"a":2,"b":3}`)
		want(t, b, KindView, 6)
		if string(b.View) != `{"a":2,"b":1}` || b.Stored != nil {
			t.Errorf("%s in %s", b.View, b.Stored)
		}
	}
}

// givenUpPart sends a part and leaves a second later, while the write is out.
func givenUpPart(t *testing.T, s *Store, part string) Base {
	t.Helper()
	return givenUp(t, forPart(s, part), part)
}

func TestARepeatedPartCountsOnce(t *testing.T) {
	const part = `{"a":2}`
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		first := givenUpPart(t, s, part)
		want(t, first, KindRead, 5)
		again := start(newClient(t), forPart(s, part), pool, part)
		if again.done {
			t.Fatalf("the repeat has %v %v", again.base.Kind, again.base.Numbers)
		}
		first.Commit(Ack{Stored: rev(6, mine), Sent: []byte(mine)})
		synctest.Wait()
		want(t, again.base, KindView, 6)
		if on, err := made(part)(again.base.View); err != nil || !bytes.Equal(on, again.base.View) {
			t.Errorf("it changes %s", again.base.View)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		first := givenUpPart(t, s, part)
		whole := newClient(t).sends(t, s, part)
		want(t, whole, KindRead, 5) // a document that reads like the part is no repeat of it
		first.Commit(Ack{Stored: rev(6, mine), Sent: []byte(mine)})
		whole.Commit(ack(7, theirs))
		whole.NoteAnswer()
		again := newClient(t).sends(t, forPart(s, part), part)
		want(t, again, KindView, 6)
		if on, err := made(part)(again.View); err != nil || !bytes.Equal(on, again.View) {
			t.Errorf("it changes %s", again.View)
		}
		again.Commit(Ack{Stored: rev(7, theirs), Sent: again.View})
		left := newClient(t).sends(t, s, `{"a":2,"b":3}`)
		want(t, left, KindView, 7)
		if left.View != nil {
			t.Errorf("the part counts as the document: %s", left.View)
		}
	})
}

// A status that is set, set otherwise, and set again is no repeat, although the bytes are the same.
func TestEqualPartsOfOneSessionAreChangesOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(pool, ref, rev(5, `{"status":"new"}`), s.Epoch())
		for n, status := range []string{"open", "closed", "open"} {
			part, _ := json.Marshal(map[string]string{"status": status})
			c := newClient(t)
			b := c.sends(t, forPart(s, string(part)), string(part))
			stored, err := made(string(part))(b.View)
			if err != nil || bytes.Equal(stored, b.View) {
				t.Fatalf("%s changes nothing of %s: %v", part, b.View, err)
			}
			b.Commit(Ack{Stored: doc.Revision{Numbers: num(int64(6 + n)), Source: stored}, Sent: stored})
			b.NoteAnswer()
			time.Sleep(time.Second)
		}
	})
}
