package session

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/identity"
	"optimist/internal/rank"
	"optimist/internal/viewcache"
)

// newWaiting returns a store on the bubble's clock, old enough.
func newWaiting(t *testing.T) *Store {
	t.Helper()
	s := New(Options{Rank: inHand, MaxAge: maxAge, Memory: 1 << 20})
	time.Sleep(maxAge) // of the bubble
	return s
}

// taken is a Take that runs by itself.
type taken struct {
	base Base
	err  error
	done bool
}

func start(ctx context.Context, s *Store, sess Session, sent string) *taken {
	r := &taken{}
	go func() {
		r.base, r.err = s.Take(ctx, sess, ref, []byte(sent))
		r.done = true
	}()
	synctest.Wait()
	return r
}

// Something else in the client's thread of work has read the document while the repeat waited.
func TestARepeatInANamedSessionIsNotMadeFromWhatIsReadWhileItWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(one, ref, rev(5, `{"l":[]}`), s.Epoch())
		first := take(t, s, one, `{"l":[1]}`)
		again := start(t.Context(), s, one, `{"l":[1]}`)
		s.Read(one, ref, rev(7, `{"l":[1,9]}`), s.Epoch())
		first.Commit(Ack{Stored: rev(6, `{"l":[1]}`), Sent: []byte(`{"l":[1]}`)})
		synctest.Wait()
		if want(t, again.base, KindView, 6); string(again.base.View) != `{"l":[1]}` {
			t.Errorf("from %s, and what another client has added is taken away", again.base.View)
		}
	})
}

func TestRepeatedWriteHasWhatItsFirstTryLeftAsItsBase(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		synctest.Test(t, func(t *testing.T) {
			s := newWaiting(t)
			s.Read(sess, ref, rev(5, `{"a":1}`), s.Epoch())
			first := take(t, s, sess, `{"a":2}`)
			again := start(t.Context(), s, sess, `{"a":2}`)
			if again.done {
				t.Fatalf("did not wait: %v", again.base.Kind)
			}
			first.Commit(Ack{Stored: rev(6, `{"a":2,"b":1}`), Sent: []byte(`{"a":2}`)})
			synctest.Wait()
			want(t, again.base, KindView, 6)
			if string(again.base.View) != `{"a":2}` {
				t.Fatalf("view %q", again.base.View)
			}
			if n := s.Stats().Waited; n != 1 {
				t.Fatalf("%d waited", n)
			}
		})
	}
}

func TestRepeatedWriteHasTheReadOfItsFirstTryThatFailed(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		synctest.Test(t, func(t *testing.T) {
			s := newWaiting(t)
			s.Read(sess, ref, rev(3, `{"a":0}`), s.Epoch())
			b := take(t, s, sess, `{"a":1}`)
			b.Commit(Ack{Stored: rev(4, `{"a":1}`), Sent: []byte(`{"a":1}`)}) // an own view, which is older
			s.Read(sess, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
			first := take(t, s, sess, `{"a":2,"b":1}`)
			again := start(t.Context(), s, sess, `{"a":2,"b":1}`)
			first.Release()
			synctest.Wait()
			want(t, again.base, KindRead, 5)
		})
	}
}

func TestRepeatedWriteAfterADeleteHasTheBaseAbsent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		first := take(t, s, pool, ``)
		again := start(t.Context(), s, pool, `{"a":2}`)
		first.Delete()
		synctest.Wait()
		want(t, again.base, KindAbsent, -1)
	})
}

// A client whose read was taken by mistake waits for the write that took it, and for no later one: where clients never pause there is
// always a later one, until the revision that the client read is forgotten.
func TestAWriteWaitsForEarlierWritesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Rank: rank.Likeliest, MaxAge: maxAge, Memory: 1 << 20})
		time.Sleep(maxAge) // of the bubble
		s.Read(pool, ref, rev(4, `{"list":["apples"]}`), s.Epoch())
		s.Read(pool, ref, rev(5, `{"list":["apples","figs"]}`), s.Epoch())
		thief := take(t, s, pool, `{"list":["apples","figs","bread"]}`)
		other := take(t, s, pool, `{"list":["apples","nuts"]}`)
		robbed := start(t.Context(), s, pool, `{"list":["apples","figs","cheese"]}`)
		if robbed.done {
			t.Fatal("did not wait, though the others may fail, and give their bases back")
		}
		s.Read(pool, ref, rev(6, `{"list":["apples","figs","dates"]}`), s.Epoch())
		later := take(t, s, pool, `{"list":["apples","figs","dates","eggs"]}`)
		thief.Commit(Ack{Stored: rev(7, `{"list":["apples","figs","dates","bread"]}`), Sent: []byte(`{"list":["apples","figs","bread"]}`)})
		other.Commit(Ack{Stored: rev(8, `{"list":["apples","figs","dates","bread","nuts"]}`), Sent: []byte(`{"list":["apples","nuts"]}`)})
		synctest.Wait()
		if !robbed.done {
			t.Fatal("waits for a write that came later")
		}
		want(t, robbed.base, KindRead, 5)
		robbed.base.Release()
		later.Release()
	})
}

func TestClientThatLeavesEndsItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		first := take(t, s, pool, `{"a":2}`)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		again := start(ctx, s, pool, `{"a":2}`)
		time.Sleep(time.Second)
		synctest.Wait()
		if !again.done || !errors.Is(again.err, context.DeadlineExceeded) || again.base.Kind != KindNone {
			t.Fatalf("%+v", again)
		}
		again.base.Commit(Ack{Stored: rev(6, `{}`)}) // nothing
		first.Release()
		want(t, take(t, s, pool, `{"a":2}`), KindRead, 5)
	})
}

func TestReadThatWasMadeWhileAWriteWaitsIsNotItsBase(t *testing.T) {
	for _, sess := range []Session{pool, one} {
		for _, commit := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				s := newWaiting(t)
				s.Read(sess, ref, rev(5, `{"a":1}`), s.Epoch())
				first := take(t, s, sess, `{"a":2}`)
				again := start(t.Context(), s, sess, `{"a":2}`)
				s.Read(sess, ref, rev(6, `{"b":1}`), s.Epoch())
				synctest.Wait()
				if again.done {
					t.Fatal("took a read that was made after it was sent")
				}
				if commit {
					first.Commit(Ack{Stored: rev(7, `{"a":2}`), Sent: []byte(`{"a":2}`)})
				} else {
					first.Release()
				}
				synctest.Wait()
				switch {
				case commit:
					want(t, again.base, KindView, 7)
				case sess.IsNamed(): // its read was replaced: this is all there is
					want(t, again.base, KindRead, 6)
				default:
					want(t, again.base, KindRead, 5)
				}
			})
		}
	}
}

func TestWhatIsWaitedFor(t *testing.T) {
	lost := func(s *Store, sess Session) {
		s.Read(sess, ref, rev(5, `{"a":1}`), s.Epoch())
		time.Sleep(maxAge)
	}
	for name, c := range map[string]struct {
		sess  Session
		setup func(s *Store, sess Session)
		waits bool
	}{
		"a named session's write without a base leaves a view":  {one, func(*Store, Session) {}, true},
		"an inferred session's write without one leaves none":   {pool, func(*Store, Session) {}, false},
		"a write whose base was lost leaves a view":             {pool, lost, true},
		"a write whose base was lost leaves a view, named also": {one, lost, true},
		"a write of a document that was absent": {pool, func(s *Store, sess Session) {
			s.ReadAbsent(sess, ref, s.Epoch())
		}, true},
		"a blind writer has nothing to wait for": {pool, func(s *Store, sess Session) {
			b, _ := s.Take(ended(), sess, at(1), nil)
			b.Commit(Ack{Stored: rev(1, `{}`)})
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newWaiting(t)
				c.setup(s, c.sess)
				first := take(t, s, c.sess, `{"a":2}`)
				again := start(t.Context(), s, c.sess, `{"a":2}`)
				if again.done == c.waits {
					t.Fatalf("waits: %v", !again.done)
				}
				first.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
				synctest.Wait()
				if c.waits {
					want(t, again.base, KindView, 6)
				}
				if !again.done {
					t.Fatal("waits for ever")
				}
			})
		})
	}
}

func TestOfManyThatWaitEachHasItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(pool, ref, rev(0, `{"a":1}`), s.Epoch())
		var (
			wg  sync.WaitGroup
			mu  sync.Mutex
			seq int64
		)
		for range 50 {
			wg.Go(func() {
				b, err := s.Take(t.Context(), pool, ref, []byte(`{"a":2}`))
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond) // the write, in the bubble
				mu.Lock()
				defer mu.Unlock()
				if b.Numbers != num(seq) {
					t.Errorf("base %v after write %d", b.Numbers, seq)
				}
				seq++
				b.Commit(Ack{Stored: rev(seq, `{"a":2}`), Sent: []byte(`{"a":2}`)})
			})
		}
		wg.Wait()
		if s.shards[0].pending.Len() != 0 {
			t.Fatal("writes in flight")
		}
	})
}

func TestDropWhileAWriteWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		first := take(t, s, pool, `{"a":2}`)
		again := start(t.Context(), s, pool, `{"a":2}`)
		s.DropIndex(Credentials{}, "shop")
		first.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
		synctest.Wait()
		wantLost(t, again.base, ReasonIndex)
	})
}

func TestEvictionWhileAWriteIsInFlightLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := New(Options{Rank: inHand, MaxAge: maxAge, Memory: 64 << 10})
		time.Sleep(maxAge)
		s.Read(pool, ref, rev(5, `{"a":1}`), s.Epoch())
		first := take(t, s, pool, `{"a":2}`)
		again := start(t.Context(), s, pool, `{"a":2}`)
		crowd(s, pool)
		if s.shards[0].Peek(viewcache.Key{Session: pool, Ref: ref}) != nil {
			t.Fatal("not evicted")
		}
		first.Release()
		synctest.Wait()
		want(t, again.base, KindRead, 5)
		again.base.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
		want(t, take(t, s, pool, `{"a":3}`), KindView, 6)
	})
}

func TestBasesThatOthersTookWhileMeasuring(t *testing.T) {
	// Measuring holds no lock. What was reserved meanwhile is passed over, the next best is taken; if all are gone, it waits.
	synctest.Test(t, func(t *testing.T) {
		var meanwhile func()
		s := New(Options{MaxAge: maxAge, Rank: func(rs []rank.Candidate, sent rank.Sent) rank.Choice {
			if f := meanwhile; f != nil {
				meanwhile = nil
				f()
			}
			return inHand(rs, sent)
		}})
		time.Sleep(maxAge)
		for _, n := range []int64{4, 5, 6} {
			s.Read(pool, ref, rev(n, `{"a":1}`), s.Epoch())
		}
		meanwhile = func() { want(t, s.TakeAt(pool, ref, num(4), nil), KindRead, 4) }
		b := take(t, s, pool, `{"a":2}`)
		want(t, b, KindRead, 5)
		s.Read(pool, ref, rev(7, `{"a":1}`), s.Epoch())
		meanwhile = func() {
			want(t, s.TakeAt(pool, ref, num(6), nil), KindRead, 6)
			want(t, s.TakeAt(pool, ref, num(7), nil), KindRead, 7)
		}
		again := start(t.Context(), s, pool, `{"a":2}`)
		if again.done {
			t.Fatal("did not wait")
		}
		b.Release()
		synctest.Wait()
		want(t, again.base, KindRead, 5)
		if again.base.Ambiguous {
			t.Fatal("ambiguous with one candidate")
		}
	})
}

func TestAViewThatWasReplacedIsNotNamedByItsNumbers(t *testing.T) {
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
	b := take(t, s, pool, `{"a":2}`)
	b.Commit(Ack{Stored: rev(9, `{"a":2}`), Sent: []byte(`{"a":2}`), AnswerNumbers: num(9)})
	b = s.TakeAt(pool, ref, num(9), nil)
	want(t, b, KindView, 9)
	b.Commit(Ack{Stored: rev(10, `{"z":2}`), Sent: []byte(`{"z":2}`)})
	want(t, s.TakeAt(pool, ref, num(9), []byte(`{"a":3}`)), KindExplicit, 9)
}

func TestARepeatedWriteOfManyClientsUndoesNothingOfTheOthers(t *testing.T) {
	// Two clients without a header: one gives up waiting and repeats its write after the other has written. The own view of the
	// session is the other's by then.
	s, _ := newTest(t)
	s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
	s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
	first := take(t, s, pool, `{"a":2,"b":1}`)
	first.Commit(Ack{Stored: rev(6, `{"a":2,"b":1}`), Sent: []byte(`{"a":2,"b":1}`)})
	other := take(t, s, pool, `{"a":1,"b":2}`)
	want(t, other, KindRead, 5)
	other.Commit(Ack{Stored: rev(7, `{"a":2,"b":2}`), Sent: []byte(`{"a":1,"b":2}`), AnswerNumbers: num(5)})
	again := take(t, s, pool, `{"a":2,"b":1}`)
	want(t, again, KindView, 6)
	if string(again.View) != `{"a":2,"b":1}` || again.Stored != nil {
		t.Errorf("view %s, stored %s: nothing of it must count again", again.View, again.Stored)
	}
	again.Release()
}

func TestARepeatedWriteWithNumbersWaitsForItsFirstTry(t *testing.T) {
	for name, end := range map[string]func(b *Base){
		"written": func(b *Base) {
			b.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`), AnswerNumbers: num(6)})
		},
		"refused":  func(b *Base) { b.Release() },
		"doubtful": func(b *Base) { b.Doubt() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newWaiting(t)
				for _, sess := range []Session{one, identity.Named(alice, []byte("two"))} {
					s.Read(sess, ref, rev(5, `{"a":1}`), s.Epoch())
				}
				first := takeCopy(t, s, one, Copy{Numbers: num(5), Served: true}, `{"a":2}`)
				var again Base
				done := false
				go func() {
					again, _ = s.TakeCopy(t.Context(), one, ref, Copy{Numbers: num(5), Served: true}, []byte(`{"a":2}`))
					done = true
				}()
				if synctest.Wait(); done {
					t.Fatalf("did not wait: %v", again.Kind)
				}
				end(&first)
				synctest.Wait()
				switch name {
				case "written":
					want(t, again, KindView, 6)
				case "refused":
					want(t, again, KindRead, 5)
				default:
					if want(t, again, KindRead, 5); !again.OnlyGuards() {
						t.Error("its first try may have been applied")
					}
				}
			})
		})
	}
}

// A client gave a write up, read what that had left, and gave up a write of that, too. The first one's answer then names what was
// read.
func TestARepeatedWriteWithNumbersWaitsThoughAnAnswerToldThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(one, ref, rev(4, `{"a":0}`), s.Epoch())
		before := take(t, s, one, `{"a":1}`)
		s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
		first := takeCopy(t, s, one, Copy{Numbers: num(5), Served: true}, `{"a":2}`)
		before.Commit(Ack{Stored: rev(5, `{"a":1}`), Sent: []byte(`{"a":1}`), AnswerNumbers: num(5)})
		var again Base
		done := false
		go func() {
			again, _ = s.TakeCopy(t.Context(), one, ref, Copy{Numbers: num(5), Served: true}, []byte(`{"a":2}`))
			done = true
		}()
		if synctest.Wait(); done {
			t.Fatalf("did not wait: %v at %v", again.Kind, again.Numbers)
		}
		first.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`), AnswerNumbers: num(6)})
		synctest.Wait()
		want(t, again, KindView, 6)
	})
}

func TestWhoLeftTakesNothingThoughItsTurnCame(t *testing.T) {
	for range 40 { // what a select takes of two that are ready is chance
		synctest.Test(t, func(t *testing.T) {
			s := newWaiting(t)
			s.Read(one, ref, rev(5, `{"a":1}`), s.Epoch())
			first := take(t, s, one, `{"a":2}`)
			ctx, leave := context.WithCancel(t.Context())
			again := start(ctx, s, one, `{"a":2}`)
			leave()
			first.Commit(Ack{Stored: rev(6, `{"a":2}`), Sent: []byte(`{"a":2}`)})
			if synctest.Wait(); !errors.Is(again.err, context.Canceled) {
				t.Fatalf("%v, base %v", again.err, again.base.Kind)
			}
		})
	}
}
