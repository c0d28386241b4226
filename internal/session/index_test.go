package session

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/indexstate"
)

// overwrite writes a document that the session knows nothing of.
func overwrite(t *testing.T, s *Store, sess Session, r doc.Ref) Base {
	t.Helper()
	b, err := s.Take(ended(), sess, r, []byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	was := b
	b.Commit(Ack{Stored: rev(9, `{"a":1}`), Sent: []byte(`{"a":1}`)})
	return was
}

// enoughBlind is how many documents a session overwrites blindly until it counts as a blind writer.
const enoughBlind = 8

// overwriteMany makes the session a blind writer.
func overwriteMany(t *testing.T, s *Store, sess Session) {
	t.Helper()
	for i := range enoughBlind {
		overwrite(t, s, sess, at(100+i))
	}
}

func TestBlindWriterGetsNoBaseInItsIndex(t *testing.T) {
	s, c := newTest(t)
	overwriteMany(t, s, pool)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	b := take(t, s, pool, `{"a":2}`)
	want(t, b, KindNone, -1)
	if b.Reason != ReasonBlind {
		t.Fatalf("reason %v", b.Reason)
	}
	b.Release()
	if n := s.Stats().Entries; n != 0 {
		t.Fatalf("%d entries of a blind writer", n)
	}
	// Others, and the same one elsewhere, keep theirs.
	s.Read(identity.Inferred(alice, there), ref, rev(5, `{"a":1}`), s.Epoch())
	want(t, take(t, s, identity.Inferred(alice, there), `{"a":2}`), KindRead, 5)
	other := doc.Ref{Index: "other", ID: "1"}
	s.Read(pool, other, rev(5, `{"a":1}`), s.Epoch())
	b, _ = s.Take(ended(), pool, other, nil)
	want(t, b, KindRead, 5)
	// It stays one for the sessions' age after its last blind write.
	c.advance(maxAge - 1)
	if b = overwrite(t, s, pool, at(1)); b.Reason != ReasonBlind {
		t.Fatalf("reason %v", b.Reason)
	}
	c.advance(maxAge - 1)
	if b = take(t, s, pool, `{"a":2}`); b.Reason != ReasonBlind {
		t.Fatalf("reason %v", b.Reason)
	}
	c.advance(1)
	s.Read(pool, ref, rev(6, `{"a":1}`), s.Epoch())
	want(t, take(t, s, pool, `{"a":2}`), KindRead, 6)
}

func TestBlindWriterThatReadsWhatItWritesIsNoneAfterAWhile(t *testing.T) {
	s, c := newTest(t)
	overwriteMany(t, s, pool)
	for range 10 {
		c.advance(maxAge / 5)
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		b := overwrite(t, s, pool, ref)
		if blind := b.Reason == ReasonBlind; blind != (s.clock() < int64(2*maxAge)) {
			t.Fatalf("blind %v after %v", blind, time.Duration(s.clock()))
		}
	}
}

func TestReadWhileBlindIsALossAfterwards(t *testing.T) {
	s, c := newTest(t)
	overwriteMany(t, s, pool)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	c.advance(maxAge)
	wantLost(t, take(t, s, pool, `{"a":2}`), ReasonBlind)
}

func TestWhoIsNoBlindWriter(t *testing.T) {
	created := func(s *Store, sess Session, r doc.Ref) {
		b, _ := s.Take(ended(), sess, r, []byte(`{}`))
		b.Commit(Ack{Stored: rev(0, `{}`), Sent: []byte(`{}`), Created: true})
	}
	for name, c := range map[string]struct {
		sess Session
		do   func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref)
	}{
		"a session that creates": {pool, func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref) { created(s, sess, r) }},
		"a session that saves what it has made": {pool, func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref) {
			created(s, sess, r)
			overwrite(t, s, sess, r)
		}},
		"a session that overwrites one document": {pool, func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref) {
			overwrite(t, s, sess, at(8))
		}},
		"a session that reads more than it overwrites": {pool, func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref) {
			overwrite(t, s, sess, r)
			r.ID += "read"
			s.Read(sess, r, rev(5, `{}`), s.Epoch())
			overwrite(t, s, sess, r)
		}},
		"a session that deletes": {pool, func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref) {
			b, _ := s.Take(ended(), sess, r, nil)
			b.Delete()
		}},
		"a write that failed": {pool, func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref) {
			b, _ := s.Take(ended(), sess, r, nil)
			b.Release()
		}},
		"a named session": {one, func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref) { overwrite(t, s, sess, r) }},
		"a session that read": {pool, func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref) {
			s.Read(sess, r, rev(5, `{}`), s.Epoch())
			overwrite(t, s, sess, r)
		}},
		"a session whose read aged out": {pool, func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref) {
			s.Read(sess, r, rev(5, `{}`), s.Epoch())
			c.advance(maxAge)
			overwrite(t, s, sess, r)
		}},
		"a session that read absence": {pool, func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref) {
			s.ReadAbsent(sess, r, s.Epoch())
			overwrite(t, s, sess, r)
		}},
		"a session that gave the numbers": {pool, func(t *testing.T, s *Store, c *clock, sess Session, r doc.Ref) {
			b := s.TakeAt(sess, r, num(5), nil)
			b.Commit(Ack{Stored: rev(9, `{}`)})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			s, clk := newTest(t)
			for i := range 2 * enoughBlind {
				c.do(t, s, clk, c.sess, at(100+i))
			}
			s.Read(c.sess, at(7), rev(5, `{"a":1}`), s.Epoch())
			b, _ := s.Take(ended(), c.sess, at(7), nil)
			want(t, b, KindRead, 5)
		})
	}
}

func TestAfterTheStartWhatIsUnknownIsLost(t *testing.T) {
	c := &clock{t: time.Unix(1, 0)}
	s := New(Options{Now: c.now})
	for _, sess := range []Session{pool, one} {
		wantLost(t, take(t, s, sess, `{"a":1}`), ReasonRestart)
		s.Read(sess, at(1), rev(5, `{"a":1}`), s.Epoch())
		b, _ := s.Take(ended(), sess, at(1), nil)
		want(t, b, KindRead, 5)
	}
	c.advance(maxAge - 1)
	wantLost(t, take(t, s, pool, `{"a":1}`), ReasonRestart)
	c.advance(1)
	b := take(t, s, pool, `{"a":1}`)
	want(t, b, KindNone, -1)
	if b.Reason != ReasonNone {
		t.Fatalf("reason %v: a write just after the start made a blind writer", b.Reason)
	}
}

func TestAfterTheStartNobodyIsABlindWriter(t *testing.T) {
	c := &clock{t: time.Unix(1, 0)}
	s := New(Options{Now: c.now})
	for i := range 2 * enoughBlind {
		b := overwrite(t, s, pool, at(100+i/2))
		wantLost(t, b, ReasonRestart) // and left no view: it may be a blind writer
	}
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	want(t, take(t, s, pool, `{"a":1}`), KindRead, 5)
}

func TestBodiesOnlyInIndicesThatSeeWrites(t *testing.T) {
	s, c := newTest(t)
	body := func(id int, want bool) {
		t.Helper()
		s.Read(pool, at(id), rev(5, `{"a":1}`), s.Epoch())
		b, _ := s.Take(ended(), pool, at(id), nil)
		if b.Kind != KindRead || (b.View != nil) != want {
			t.Fatalf("document %d: %v %q", id, b.Kind, b.View)
		}
	}
	body(1, true)
	c.advance(maxAge - 1)
	body(2, true)
	c.advance(1)
	body(3, false)
	s.Wrote(Credentials{}, "other")
	body(4, false)
	s.Wrote(Credentials{}, "shop")
	body(5, true)
	c.advance(10 * maxAge)
	body(6, true)
}

func TestCreatesDontMakeBodiesWorthKeeping(t *testing.T) {
	for _, created := range []bool{true, false} {
		s, c := newTest(t)
		s.Read(pool, at(1), rev(5, `{"a":1}`), s.Epoch())
		s.ReadAbsent(pool, ref, s.Epoch())
		b := take(t, s, pool, `{"a":1}`)
		b.Commit(Ack{Stored: rev(6, `{"a":1}`), Sent: []byte(`{"a":1}`), Created: created})
		c.advance(maxAge)
		s.Read(pool, at(2), rev(5, `{"a":1}`), s.Epoch())
		b, _ = s.Take(ended(), pool, at(2), nil)
		if (b.View == nil) != created {
			t.Fatalf("created %v: view %q", created, b.View)
		}
	}
}

func TestBodyComesWithALaterReadOfTheSameRevision(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, ""), s.Epoch())
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	s.Read(pool, ref, rev(5, ""), s.Epoch())
	for range 3 {
		if b := take(t, s, pool, `{"a":2}`); string(b.View) != `{"a":1}` {
			t.Fatalf("view %q", b.View)
		}
	}
}

func TestWhatWasKnownOfADroppedIndexIsLost(t *testing.T) {
	for _, drop := range []func(*Store){func(s *Store) { s.DropIndex(Credentials{}, "shop") }, func(s *Store) { s.Resume(true) }} {
		s, _ := newTest(t)
		s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		b := take(t, s, pool, `{"a":2}`)
		b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
		drop(s)
		if b := s.TakeAt(identity.Inferred(alice, there), ref, num(5), nil); b.View != nil {
			t.Fatal("bytes of an index that is gone")
		}
		wantLost(t, take(t, s, one, `{"a":2}`), ReasonIndex)
		wantLost(t, take(t, s, pool, `{"a":2}`), ReasonIndex)
	}
}

func TestOtherIndicesKeepWhatIsKnown(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
	s.DropIndex(Credentials{}, "other")
	want(t, take(t, s, pool, `{"a":2}`), KindRead, 5)
}

func TestBytesOfADroppedIndexAreNotThoseOfTheNewOne(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"old":1}`), s.Epoch())
	s.DropIndex(Credentials{}, "shop")
	s.Read(pool, ref, rev(5, `{"new":1}`), s.Epoch()) // the same numbers
	b := take(t, s, pool, `{"a":2}`)
	want(t, b, KindRead, 5)
	if string(b.View) != `{"new":1}` {
		t.Fatalf("view %q", b.View)
	}
	audit(t, s)
	wantLost(t, take(t, s, one, `{"a":2}`), ReasonIndex)
}

func TestAnswerThatWasOvertakenByADropIsNoBase(t *testing.T) {
	s, _ := newTest(t)
	before := s.Epoch()
	s.DropIndex(Credentials{}, "shop")
	s.Read(pool, ref, rev(5, `{"a":1}`), before)
	wantLost(t, take(t, s, pool, `{"a":2}`), ReasonIndex)
	s.ReadAbsent(one, ref, before)
	wantLost(t, take(t, s, one, `{"a":2}`), ReasonIndex)
	// Also beside what was read since.
	s.Read(pool, at(1), rev(1, `{"a":1}`), s.Epoch())
	s.Read(pool, at(1), rev(5, `{"a":1}`), before)
	b, _ := s.Take(ended(), pool, at(1), nil)
	want(t, b, KindRead, 1)
	if b.Ambiguous {
		t.Fatal("the overtaken read is a candidate")
	}
}

func TestWriteThatWasOvertakenByADropLeavesNothing(t *testing.T) {
	for name, end := range map[string]func(*Base){
		"commit":  func(b *Base) { b.Commit(Ack{Stored: rev(6, `{}`), Sent: []byte(`{}`)}) },
		"release": (*Base).Release,
		"delete":  (*Base).Delete,
	} {
		s, _ := newTest(t)
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		b := take(t, s, pool, `{"a":2}`)
		s.DropIndex(Credentials{}, "shop")
		end(&b)
		if b = take(t, s, pool, `{"a":2}`); b.Kind != KindLost || b.Reason != ReasonIndex {
			t.Fatalf("%s: %v %v", name, b.Kind, b.Reason)
		}
		// Nor beside what is known of the new index.
		s.Read(pool, at(1), rev(5, `{"a":1}`), s.Epoch())
		b, _ = s.Take(ended(), pool, at(1), nil)
		s.DropIndex(Credentials{}, "shop")
		s.Read(pool, at(1), rev(0, `{"a":1}`), s.Epoch())
		end(&b)
		b, _ = s.Take(ended(), pool, at(1), nil)
		want(t, b, KindRead, 0)
		if b, err := s.Take(ended(), pool, at(1), nil); err == nil {
			t.Fatalf("%s: %v %v", name, b.Kind, b.Numbers)
		}
		b.Commit(Ack{Stored: rev(1, `{}`), Sent: []byte(`{}`)})
		b, _ = s.Take(ended(), pool, at(1), nil)
		want(t, b, KindView, 1)
	}
}

func TestIndicesAreBounded(t *testing.T) {
	s, c := newTest(t)
	for i := range indexstate.MaxIndices + 10 {
		s.Wrote(Credentials{}, fmt.Sprint("index-", i))
	}
	if n := s.indices.Len(); n != indexstate.MaxIndices {
		t.Fatalf("%d indices", n)
	}
	late := doc.Ref{Index: "late", ID: "1"}
	s.Read(pool, late, rev(5, `{"a":1}`), s.Epoch())
	s.DropIndex(pool.Credentials(), "late")
	b, _ := s.Take(ended(), pool, late, nil)
	wantLost(t, b, ReasonIndex)
	s.Read(pool, late, rev(5, `{"a":1}`), s.Epoch())
	b = overwrite(t, s, pool, doc.Ref{Index: "late", ID: "2"})
	want(t, b, KindNone, -1)
	b, _ = s.Take(ended(), pool, late, nil)
	want(t, b, KindRead, 5) // nobody is blind in all of them
	b.Release()
	// Unused ones make room.
	c.advance(maxAge)
	s.Wrote(Credentials{}, "index-5")
	c.advance(maxAge)
	s.Wrote(Credentials{}, "new")
	if n := s.indices.Len(); n != 2 {
		t.Fatalf("%d indices", n)
	}
}

func TestDropIsRememberedWhenItsIndexIsForgotten(t *testing.T) {
	s, c := newTest(t)
	before := s.Epoch()
	s.DropIndex(Credentials{}, "shop")
	for i := range indexstate.MaxIndices {
		s.Wrote(Credentials{}, fmt.Sprint("index-", i))
	}
	c.advance(2 * maxAge)
	s.Wrote(Credentials{}, "new")
	s.Read(pool, ref, rev(5, `{"a":1}`), before) // an answer that took very long
	wantLost(t, take(t, s, pool, `{"a":2}`), ReasonIndex)
}

func TestDropAmongTooManyIndicesIsRememberedOfEach(t *testing.T) {
	s, c := newTest(t)
	for i := range indexstate.MaxIndices {
		s.Wrote(Credentials{}, fmt.Sprint("index-", i))
	}
	before := s.Epoch()
	s.DropIndex(Credentials{}, "shop")
	c.advance(2 * maxAge)
	s.Wrote(Credentials{}, "new")                // makes room
	s.Read(pool, ref, rev(5, `{"a":1}`), before) // an answer that took very long
	wantLost(t, take(t, s, pool, `{"a":2}`), ReasonIndex)
}

// What clients with other credentials find out may be of another cluster.
func TestASuspicionLeavesTheBasesThatItDoesNotConcern(t *testing.T) {
	for name, c := range map[string]struct {
		asked, same bool
		want        Kind
	}{"it is another": {true, false, KindLost}, "it is the same": {true, true, KindRead}, "nobody asks": {false, false, KindLost}} {
		s, _ := newTest(t)
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		s.DropIndex(Credentials{9}, ref.Index)
		if c.asked {
			mark, open := s.Suspicion(pool.Credentials(), ref.Index)
			if !open {
				t.Fatalf("%s: there is no suspicion", name)
			}
			from := mark
			if c.same {
				from = 0
			}
			s.Settle(pool.Credentials(), ref.Index, mark, from)
		}
		if b := take(t, s, pool, `{"a":2}`); b.Kind != c.want {
			t.Errorf("%s: base is %v, want %v", name, b.Kind, c.want)
		}
	}
}

// Everybody can ask for an index that isn't there. Two clients may share a cell of package indexstate by chance. Then one of them counts as
// having seen what the other has. That they share one in two stores is no chance.
func TestWhoHasNeverSeenAnIndexCanNotMissIt(t *testing.T) {
	other := identity.Inferred(Credentials{9}, netip.Addr{})
	var b Base
	for try := 0; try == 0 || try == 1 && b.Kind == KindLost; try++ {
		s, _ := newTest(t)
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		s.IndexMissing(other.Credentials(), ref.Index, s.Ticket())
		for i := range 2 * indexstate.MaxIndices {
			none := doc.Ref{Index: fmt.Sprint("none-", i), ID: "1"}
			s.IndexMissing(other.Credentials(), none.Index, s.Ticket())
			s.ReadWithTicket(other, none, doc.Revision{}, s.Epoch(), s.Ticket())
		}
		b = take(t, s, pool, `{"a":2}`)
		if n := s.indices.Len(); n != 1 {
			t.Errorf("names that no index has take the room of %d", n)
		}
	}
	want(t, b, KindRead, 5)
}

// A blind writer's write goes without the view of its document. That is older then: from there, the change would count twice once the
// session isn't blind any more.
func TestABlindWriteEndsTheViewOfItsDocument(t *testing.T) {
	s, _ := newTest(t)
	made := func(n int64, sent string) {
		b, _ := s.Take(ended(), pool, ref, []byte(sent))
		b.Commit(Ack{Stored: rev(n, sent), Sent: []byte(sent), Created: n == 0})
	}
	made(0, `{"l":["a"]}`)
	overwriteMany(t, s, pool)
	made(1, `{"l":["a","b"]}`)
	for n := range 8 {
		r := at(100 + n)
		s.Read(pool, r, rev(5, `{}`), s.Epoch())
		overwrite(t, s, pool, r)
	}
	b := take(t, s, pool, `{"l":["a","b","c"]}`)
	if b.Reason == ReasonBlind {
		t.Fatal("it is blind still")
	}
	if b.Kind == KindView {
		t.Errorf("the base is %s", b.View)
	}
}
