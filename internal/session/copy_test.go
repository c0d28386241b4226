package session

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/viewcache"
)

// served is the n-th copy of revision 5 that somebody was served.
func served(n uint64) Copy { return Copy{Numbers: num(5), Token: n, Served: true} }

func takeCopy(t *testing.T, s *Store, sess Session, c Copy, sent string) Base {
	t.Helper()
	b, err := s.TakeCopy(ended(), sess, ref, c, []byte(sent))
	if err != nil {
		t.Fatalf("TakeCopy had to wait")
	}
	return b
}

func wantView(t *testing.T, b Base, view, stored string) {
	t.Helper()
	if string(b.View) != view || string(b.Stored) != stored {
		t.Fatalf("view %q stored %q, want %q %q", b.View, b.Stored, view, stored)
	}
}

// Two who can't be told apart hold a copy of the same revision each. The first saves it twice, the second in between.
func TestWhoSavesACopyAgainCountsFromWhatItSaved(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.Read(sess, ref, rev(5, `{"n":1}`), s.Epoch())
		s.Read(sess, ref, rev(5, `{"n":1}`), s.Epoch())
		b := takeCopy(t, s, sess, served(1), `{"n":2}`)
		if sess == pool {
			want(t, b, KindRead, 5)
		}
		wantView(t, b, `{"n":1}`, `{"n":1}`)
		b.Commit(Ack{Stored: rev(6, `{"n":2}`), Sent: []byte(`{"n":2}`), AnswerNumbers: num(6)})
		b = takeCopy(t, s, sess, served(2), `{"n":9}`)
		if sess == pool {
			want(t, b, KindRead, 5)
			wantView(t, b, `{"n":1}`, `{"n":1}`)
		} else {
			want(t, b, KindExplicit, 5) // the session holds one copy; of another the revision's body may be gone
			wantView(t, b, "", "")
		}
		b.Commit(Ack{Stored: rev(7, `{"n":10}`), Sent: []byte(`{"n":9}`), AnswerNumbers: num(5)})
		b = takeCopy(t, s, sess, served(1), `{"n":3}`)
		want(t, b, KindView, 6)
		wantView(t, b, `{"n":2}`, `{"n":2}`)
		b.Commit(Ack{Stored: rev(8, `{"n":11}`), Sent: []byte(`{"n":3}`), AnswerNumbers: num(6)})
		b = takeCopy(t, s, sess, served(1), `{"n":4}`)
		want(t, b, KindView, 8)
		wantView(t, b, `{"n":3}`, `{"n":11}`)
		b.Release()
		b = takeCopy(t, s, sess, served(1), `{"n":4}`)
		want(t, b, KindView, 8)
		b.Release()
	}
}

func TestASessionHasSeenWhatItSentFromACopy(t *testing.T) {
	s, _ := newTest(t)
	s.Read(one, ref, rev(5, `{"n":1}`), s.Epoch())
	b := takeCopy(t, s, one, served(1), `{"n":2}`)
	b.Commit(Ack{Stored: rev(6, `{"n":2}`), Sent: []byte(`{"n":2}`), AnswerNumbers: num(6)})
	b = takeCopy(t, s, one, served(1), `{"n":3}`)
	b.Commit(Ack{Stored: rev(7, `{"n":3}`), Sent: []byte(`{"n":3}`), AnswerNumbers: num(7)})
	b = take(t, s, one, `{"n":4}`)
	want(t, b, KindView, 7)
	wantView(t, b, `{"n":3}`, `{"n":3}`)
	b.Release()
}

// What the store doesn't know any more of a copy may be that it was saved.
func TestACopyThatMayHaveBeenSavedIsNotCountedFromWhatWasServed(t *testing.T) {
	for name, forget := range map[string]func(s *Store, c *clock){
		"too old": func(s *Store, c *clock) {
			c.advance(maxAge / 2)
			s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch()) // not what happens: the revision isn't current any more
			c.advance(maxAge / 2)
			take, _ := s.Take(ended(), identity.Named(alice, []byte("other")), doc.Ref{Index: "shop", ID: "2"}, nil)
			take.Release()
		},
		"evicted": func(s *Store, _ *clock) {
			k := viewcache.Key{Session: pool, Ref: ref}
			sh := s.shard(k)
			k.Session = pool.Holding(served(1))
			sh.mu.Lock()
			e := sh.Peek(k)
			sh.Forget(e, ReasonEvicted)
			sh.mu.Unlock()
			s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, c := newTest(t)
			s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch())
			b := takeCopy(t, s, pool, served(1), `{"n":2}`)
			b.Commit(Ack{Stored: rev(6, `{"n":2}`), Sent: []byte(`{"n":2}`), AnswerNumbers: num(6)})
			forget(s, c)
			b = takeCopy(t, s, pool, served(1), `{"n":3}`)
			want(t, b, KindExplicit, 5)
			wantView(t, b, "", "")
			b.Commit(Ack{Stored: rev(9, `{"n":3}`), Sent: []byte(`{"n":3}`), AnswerNumbers: num(9)})
			b = takeCopy(t, s, pool, served(1), `{"n":4}`)
			want(t, b, KindView, 9)
			b.Release()
		})
	}
}

func TestADoubtfulWriteOfACopyLeavesTheNumbersOnly(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch())
	b := takeCopy(t, s, pool, served(1), `{"n":2}`)
	b.Doubt()
	s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch()) // somebody else's
	b = takeCopy(t, s, pool, served(1), `{"n":2}`)
	want(t, b, KindExplicit, 5)
	wantView(t, b, "", "")
	b.Release()
	b = takeCopy(t, s, pool, served(2), `{"n":2}`)
	want(t, b, KindRead, 5)
	wantView(t, b, `{"n":1}`, `{"n":1}`)
	b.Commit(Ack{Stored: rev(6, `{"n":2}`), Sent: []byte(`{"n":2}`), AnswerNumbers: num(6)})
	b = takeCopy(t, s, pool, served(2), `{"n":3}`)
	want(t, b, KindView, 6)
	b.Doubt()
	b = takeCopy(t, s, pool, served(2), `{"n":3}`)
	want(t, b, KindView, 6)
	wantView(t, b, "", "")
	b.Release()
}

func TestARepeatedWriteOfACopyWaitsForItsFirstTry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch())
		s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch()) // somebody else's, who isn't waited for
		first := takeCopy(t, s, pool, served(1), `{"n":2}`)
		var again Base
		done := make(chan error, 1)
		go func() {
			var err error
			again, err = s.TakeCopy(t.Context(), pool, ref, served(1), []byte(`{"n":2}`))
			done <- err
		}()
		synctest.Wait()
		other := takeCopy(t, s, pool, served(2), `{"n":3}`)
		other.Release()
		select {
		case <-done:
			t.Fatal("it didn't wait")
		default:
		}
		first.Commit(Ack{Stored: rev(6, `{"n":2}`), Sent: []byte(`{"n":2}`), AnswerNumbers: num(6)})
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want(t, again, KindView, 6)
		again.Release()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		busy := takeCopy(t, s, pool, served(1), `{"n":3}`)
		if _, err := s.TakeCopy(ctx, pool, ref, served(1), []byte(`{"n":3}`)); err == nil {
			t.Error("its own time didn't end the wait")
		}
		busy.Release()
	})
}

// An answer hands out a copy; what it stands for is what was sent.
func TestAnAnswersCopyNamesWhatWasSent(t *testing.T) {
	s, _ := newTest(t)
	told := Copy{Numbers: num(5), Token: 77}
	s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch())
	s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch())
	b := takeCopy(t, s, pool, Copy{Numbers: num(5), Served: true}, `{"n":2}`)
	b.Commit(Ack{Stored: rev(7, `{"n":8}`), Sent: []byte(`{"n":2}`), AnswerNumbers: num(5), Copy: told})
	// The other one writes, and so does a third: the session's own view is theirs.
	b = takeCopy(t, s, pool, Copy{Numbers: num(5), Served: true}, `{"n":3}`)
	want(t, b, KindRead, 5)
	b.Commit(Ack{Stored: rev(9, `{"n":10}`), Sent: []byte(`{"n":3}`), AnswerNumbers: num(5)})
	b = takeCopy(t, s, pool, told, `{"n":4}`)
	want(t, b, KindView, 7)
	wantView(t, b, `{"n":2}`, `{"n":8}`)
	b.Release()
	b = takeCopy(t, s, pool, Copy{Numbers: num(5), Token: 78}, `{"n":4}`) // another proxy's answer
	want(t, b, KindExplicit, 5)
	wantView(t, b, "", "")
	b.Release()
	b = takeCopy(t, s, identity.Inferred(bob, here), told, `{"n":4}`) // somebody else's
	want(t, b, KindExplicit, 5)
	wantView(t, b, "", "")
	b.Release()
}

func TestACopyOfAnIndexThatIsGoneNamesNothing(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"n":1}`), s.Epoch())
	b := takeCopy(t, s, pool, served(1), `{"n":2}`)
	b.Commit(Ack{Stored: rev(6, `{"n":2}`), Sent: []byte(`{"n":2}`), AnswerNumbers: num(6)})
	s.DropIndex(Credentials{}, "shop")
	b = takeCopy(t, s, pool, served(1), `{"n":3}`)
	want(t, b, KindExplicit, 5)
	wantView(t, b, "", "")
	b.Release()
	b = takeCopy(t, s, pool, served(2), `{"n":3}`)
	want(t, b, KindExplicit, 5)
	wantView(t, b, "", "")
	b.Release()
}

func TestAWitnessTakesNothingAndHasSeen(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.Read(sess, ref, rev(5, `{"n":1}`), s.Epoch())
		b := s.Witness(sess, ref)
		want(t, b, KindNone, -1)
		b.Release()
		b = take(t, s, sess, `{"n":2}`)
		want(t, b, KindRead, 5)
		b.Commit(Ack{Stored: rev(6, `{"n":2}`), Sent: []byte(`{"n":2}`)})
		b = s.Witness(sess, ref)
		b.Commit(Ack{Stored: rev(7, `{"n":3}`), Sent: []byte(`{"n":3}`)})
		b = take(t, s, sess, `{"n":4}`)
		want(t, b, KindView, 7)
		b.Release()
	}
}

// The answer to a write that had no base tells the numbers of what was stored, also where a rule made that something else than
// was sent. Who reads it then holds a copy of what was stored, and not of what was sent.
func TestACopyOfWhatAWriteLeftIsNotWhatWasSent(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		s, _ := newTest(t)
		s.Read(sess, ref, rev(5, `{"n":1}`), s.Epoch())
		b := take(t, s, sess, `{"n":2}`)
		b.Commit(Ack{Stored: rev(6, `{"n":2,"by":"rule"}`), Sent: []byte(`{"n":2}`), AnswerNumbers: num(6)})
		b = takeCopy(t, s, sess, Copy{Numbers: num(6), Token: 1, Served: true}, `{"n":3,"by":"rule"}`)
		want(t, b, KindExplicit, 6)
		wantView(t, b, `{"n":2,"by":"rule"}`, `{"n":2,"by":"rule"}`)
		b.Release()
		b = s.TakeAt(sess, ref, num(6), []byte(`{"n":3}`))
		want(t, b, KindExplicit, 6) // it may have been read, by another of the session or elsewhere
		wantView(t, b, "", "")
		b.Release()
	}
}

func TestADoubtfulWriteWithNumbersLeavesThemAlone(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch()) // the body stays for others
	b := s.TakeAt(one, ref, num(5), []byte(`{"a":2}`))
	want(t, b, KindExplicit, 5)
	if string(b.View) != `{"a":1}` {
		t.Fatalf("view %q", b.View)
	}
	b.Doubt()
	b = s.TakeAt(one, ref, num(5), []byte(`{"a":2}`))
	if want(t, b, KindExplicit, 5); b.View != nil {
		t.Errorf("counted from %q once more, though it may be in the document", b.View)
	}
	b.Release()
	b = s.TakeAt(identity.Named(alice, []byte("two")), ref, num(5), []byte(`{"a":2}`))
	if want(t, b, KindExplicit, 5); string(b.View) != `{"a":1}` {
		t.Errorf("another's: view %q", b.View)
	}
	b.Release()
	audit(t, s)
}
