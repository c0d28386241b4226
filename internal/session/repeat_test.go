package session

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// client is one of many without a name, who may give a request up.
type client struct {
	context.Context
	leave context.CancelFunc
}

func newClient(t *testing.T) client {
	ctx, cancel := context.WithCancel(t.Context())
	return client{ctx, cancel}
}

// sends takes a base at once, or fails.
func (c client) sends(t *testing.T, s *Store, sent string) Base {
	t.Helper()
	r := start(c, s, pool, sent)
	if !r.done || r.err != nil {
		t.Fatalf("%s: waits, or %v", sent, r.err)
	}
	return r.base
}

// givenUp sends and leaves a second later, while the write is out.
func givenUp(t *testing.T, s *Store, sent string) Base {
	t.Helper()
	c := newClient(t)
	b := c.sends(t, s, sent)
	time.Sleep(time.Second)
	c.leave()
	return b
}

// ack is an acknowledgement of what was sent, stored as it is.
func ack(n int64, sent string) Ack { return Ack{Stored: rev(n, sent), Sent: []byte(sent)} }

const (
	mine   = `{"a":2,"b":1}`
	theirs = `{"a":1,"b":2}`
	both   = `{"a":2,"b":2}`
)

// readByTwo returns a store in which two clients have read the same revision.
func readByTwo(t *testing.T) *Store {
	s := newWaiting(t)
	for range 2 {
		s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
	}
	return s
}

func TestARepeatWaitsForItsFirstTryThoughOthersHaveRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		first := givenUp(t, s, mine)
		again := start(newClient(t), s, pool, mine)
		if again.done {
			t.Fatalf("has another's read: %v %v", again.base.Kind, again.base.Numbers)
		}
		first.Commit(ack(6, mine))
		synctest.Wait()
		want(t, again.base, KindView, 6)
		if string(again.base.View) != mine || again.base.Ambiguous {
			t.Errorf("view %s, ambiguous %t", again.base.View, again.base.Ambiguous)
		}
		other := newClient(t).sends(t, s, theirs)
		want(t, other, KindRead, 5)
	})
}

func TestARepeatHasTheBaseOfItsFirstTryThatFailed(t *testing.T) {
	for name, end := range map[string]func(b *Base){"released": (*Base).Release, "unknown": (*Base).Doubt} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := readByTwo(t)
				me := newClient(t)
				first := me.sends(t, s, mine)
				s.Read(pool, ref, rev(7, mine), s.Epoch()) // which would be closer
				time.Sleep(time.Second)
				me.leave()
				again := start(newClient(t), s, pool, mine)
				end(&first)
				synctest.Wait()
				want(t, again.base, KindRead, 5)
				if again.base.OnlyGuards() != (name == "unknown") {
					t.Errorf("doubtful: %t", again.base.OnlyGuards())
				}
				again.base.Release()
				if n := s.shards[0].pending.Len(); n != 0 {
					t.Errorf("%d documents in flight", n)
				}
			})
		})
	}
}

func TestARepeatOfARepeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		me, second := newClient(t), newClient(t)
		first := me.sends(t, s, mine)
		time.Sleep(time.Second)
		me.leave()
		again := start(second, s, pool, mine)
		time.Sleep(time.Second)
		second.leave()
		third := start(newClient(t), s, pool, mine)
		if synctest.Wait(); !again.done || again.err == nil || third.done {
			t.Fatalf("the second: %v, the third has %v", again.err, third.base.Kind)
		}
		first.Commit(ack(6, mine))
		synctest.Wait()
		want(t, third.base, KindView, 6)
	})
}

func TestARepeatThatIsGivenUpLeavesWhatItWaitsFor(t *testing.T) {
	for name, end := range map[string]func(b *Base){
		"acknowledged": func(b *Base) { b.Commit(ack(6, mine)) },
		"failed":       (*Base).Release,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := readByTwo(t)
				me, second := newClient(t), newClient(t)
				first := me.sends(t, s, mine)
				time.Sleep(time.Second)
				me.leave()
				again := start(second, s, pool, mine)
				time.Sleep(time.Second)
				second.leave() // and is told what became of the first try at the same moment
				end(&first)
				first.NoteAnswer()
				if synctest.Wait(); again.err == nil {
					t.Fatalf("a client that has left has %v", again.base.Kind)
				}
				third := newClient(t).sends(t, s, mine)
				if name == "failed" {
					want(t, third, KindRead, 5)
				} else {
					want(t, third, KindView, 6)
				}
				want(t, newClient(t).sends(t, s, theirs), KindRead, 5)
			})
		})
	}
}

func TestARepeatAfterAnAnswerThatNobodyHeard(t *testing.T) {
	for name, c := range map[string]struct {
		left    bool
		later   time.Duration
		base    Kind
		numbers int64
	}{
		"left before":       {true, time.Second, KindView, 6},
		"left long before":  {true, time.Minute, KindRead, 5},
		"heard, and stayed": {false, time.Second, KindRead, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := readByTwo(t)
				me := newClient(t)
				first := me.sends(t, s, mine)
				time.Sleep(time.Second)
				if c.left {
					me.leave()
				}
				first.Commit(ack(6, mine))
				first.NoteAnswer()
				if me.leave(); !c.left {
					synctest.Wait()
				}
				time.Sleep(c.later)
				again := newClient(t).sends(t, s, mine)
				want(t, again, c.base, c.numbers)
				if !again.Ambiguous {
					t.Error("a guess that isn't said: another client may have made the same change")
				}
				again.Commit(ack(6, mine))
				again.NoteAnswer()
				// Each that was given up has one repeat.
				if c.base == KindView {
					want(t, newClient(t).sends(t, s, mine), KindRead, 5)
				}
			})
		})
	}
}

// match is a write that names the revision which it was made from.
func match(ctx context.Context, s *Store, tag Copy, sent string) *taken {
	r := &taken{}
	go func() {
		r.base, r.err = s.TakeCopy(ctx, pool, ref, tag, []byte(sent))
		r.done = true
	}()
	synctest.Wait()
	return r
}

// TestARepeatThatNamesItsRevisionCountsOnce: others have read that revision, too, and it would be merged from it once more.
func TestARepeatThatNamesItsRevisionCountsOnce(t *testing.T) {
	tag := Copy{Numbers: num(5), Served: true}
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		me := newClient(t)
		first := match(me, s, tag, mine)
		want(t, first.base, KindRead, 5)
		time.Sleep(time.Second)
		me.leave()
		second := newClient(t)
		again := match(second, s, tag, mine)
		if again.done {
			t.Fatalf("doesn't wait: %v %v", again.base.Kind, again.base.Numbers)
		}
		other := match(newClient(t), s, tag, theirs) // the other's own change waits for nobody
		want(t, other.base, KindRead, 5)
		other.base.Release()
		first.base.Commit(ack(6, mine))
		synctest.Wait()
		want(t, again.base, KindView, 6)
		if again.base.Ambiguous {
			t.Error("said to be a guess")
		}
		time.Sleep(time.Second)
		second.leave()
		again.base.Commit(ack(6, mine))
		again.base.NoteAnswer()
		third := match(newClient(t), s, tag, mine) // nor has the answer to that been heard
		want(t, third.base, KindView, 6)
		third.base.Commit(ack(6, mine))
		third.base.NoteAnswer()
		equal := match(newClient(t), s, tag, mine) // the other's change is equal, and its own
		want(t, equal.base, KindRead, 5)
		if equal.base.Ambiguous {
			t.Error("who names its revision is said to guess")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		me := newClient(t)
		first := match(me, s, tag, mine)
		time.Sleep(time.Second)
		me.leave()
		again := match(newClient(t), s, tag, mine)
		first.base.Release()
		synctest.Wait()
		want(t, again.base, KindRead, 5)
		s.Read(pool, ref, rev(7, both), s.Epoch())
		want(t, match(newClient(t), s, Copy{Numbers: num(7), Served: true}, mine).base, KindRead, 7) // another revision: no repeat
	})
}

// TestEqualChangesOfARevisionByWhoStaysAreNoRepeats: workers that count from what they hold have equal tags and equal documents.
func TestEqualChangesOfARevisionByWhoStaysAreNoRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
		tag := Copy{Numbers: num(5), Served: true}
		first := match(newClient(t), s, tag, mine)
		want(t, first.base, KindRead, 5)
		second := match(newClient(t), s, tag, mine)
		want(t, second.base, KindExplicit, 5)
		first.base.Commit(ack(6, mine))
		first.base.NoteAnswer()
		second.base.Release()
		want(t, match(newClient(t), s, tag, mine).base, KindExplicit, 5)
	})
}

func TestWhoseReadMayHaveBeenTakenIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		first := newClient(t).sends(t, s, mine)
		second := newClient(t).sends(t, s, mine) // an equal change, or a repetition by a client of which nobody saw that it left
		first.Commit(ack(6, mine))
		second.Commit(ack(7, mine))
		if !second.Ambiguous {
			t.Error("the second isn't said to be a guess")
		}
		for _, ambiguous := range []bool{true, false} {
			b := newClient(t).sends(t, s, theirs) // which the client may have made from the read that the second has used up
			want(t, b, KindView, 7)
			if b.Ambiguous != ambiguous {
				t.Errorf("ambiguous: %t", b.Ambiguous)
			}
			b.Release()
		}
	})
}

func TestARepeatThatFailsLeavesWhatItRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		me, second := newClient(t), newClient(t)
		first := me.sends(t, s, mine)
		time.Sleep(time.Second)
		me.leave()
		first.Commit(ack(6, mine))
		first.NoteAnswer()
		g, err := s.Glance().Take(t.Context(), pool, ref, []byte(mine)) // takes nothing
		if err != nil {
			t.Fatal(err)
		}
		want(t, g, KindView, 6)
		again := second.sends(t, s, mine)
		want(t, again, KindView, 6)
		time.Sleep(time.Second)
		second.leave()
		third := start(newClient(t), s, pool, mine)
		again.Release() // the engine couldn't be asked
		synctest.Wait()
		want(t, third.base, KindView, 6)
		third.base.Release()
		want(t, newClient(t).sends(t, s, mine), KindView, 6)
	})
}

func TestARepeatThatComesBeforeTheAnswerWasWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		me := newClient(t)
		first := me.sends(t, s, mine)
		time.Sleep(time.Second)
		first.Commit(ack(6, mine))
		me.leave()
		want(t, newClient(t).sends(t, s, mine), KindView, 6)
		first.NoteAnswer()
		want(t, newClient(t).sends(t, s, mine), KindRead, 5) // somebody else's
	})
}

func TestEqualChangesOfClientsThatStayAreNoRepeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		first := newClient(t).sends(t, s, mine)
		time.Sleep(time.Second)
		second := newClient(t).sends(t, s, mine)
		want(t, second, KindRead, 5)
		first.Commit(ack(6, mine))
		first.NoteAnswer()
		second.Commit(ack(7, mine))
		second.NoteAnswer()
	})
}

func TestARepeatTakesThePlaceOfAFirstTryThatWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var gone atomic.Pointer[client] // a connection that was closed is noticed only when it is looked at
		s := New(Options{MaxAge: maxAge, Memory: 1 << 20, Left: func(ctx context.Context) bool {
			c := gone.Load()
			return c != nil && ctx == c.Context
		}})
		time.Sleep(maxAge)
		s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
		before := newClient(t).sends(t, s, theirs)
		me := newClient(t)
		first := start(me.Context, s, pool, mine) // from memory: waits for what the other leaves
		s.Read(pool, ref, rev(6, both), s.Epoch())
		time.Sleep(time.Second)
		gone.Store(&me)
		again := start(newClient(t), s, pool, mine)
		before.Commit(ack(6, theirs))
		synctest.Wait()
		if first.err == nil {
			t.Fatalf("a client that has left has %v", first.base.Kind)
		}
		if !again.done {
			t.Fatal("waits for ever")
		}
		want(t, again.base, KindView, 6) // what was read since isn't what it was made from
	})
}

// TestManyThatWereGivenUpAtOnceAreAllKnown: one slow write holds up all others, and all clients give up.
func TestManyThatWereGivenUpAtOnceAreAllKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const clients = 64
		s := newWaiting(t)
		bases := make([]Base, clients)
		body := func(i int) string { return fmt.Sprintf(`{"w%d":1}`, i) }
		for i := range bases {
			s.Read(pool, ref, rev(5, `{}`), s.Epoch())
			c := newClient(t)
			bases[i] = c.sends(t, s, body(i))
			defer c.leave()
			time.AfterFunc(time.Second, c.leave)
		}
		time.Sleep(2 * time.Second)
		for i := range bases {
			bases[i].Commit(ack(int64(6+i), body(i)))
			bases[i].NoteAnswer()
		}
		s.Read(pool, ref, rev(100, `{"x":1}`), s.Epoch())
		for i := range bases {
			again := newClient(t).sends(t, s, body(i))
			want(t, again, KindView, int64(6+i))
			again.Commit(ack(int64(200+i), body(i)))
			again.NoteAnswer()
		}
		want(t, newClient(t).sends(t, s, `{"x":2}`), KindRead, 100)
	})
}

func TestWhatIsKnownOfWritesIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		for i := range 10 * repeat.MaxPending {
			s.Read(pool, ref, rev(5, `{}`), s.Epoch())
			c := newClient(t)
			sent := fmt.Sprintf(`{"w":%d}`, i)
			b := c.sends(t, s, sent)
			time.Sleep(time.Second)
			if i%3 != 0 {
				c.leave()
			}
			b.Commit(ack(int64(6+i), sent))
			b.NoteAnswer()
		}
		k := viewcache.Key{Session: pool, Ref: ref}
		sh := s.shard(k)
		e := sh.Peek(k)
		if n := len(e.Repeats.Attempts()); n > repeat.MaxHeard+repeat.MaxPending {
			t.Errorf("%d are known", n)
		}
		for _, o := range e.Repeats.Attempts() {
			if o.Awaits() {
				t.Fatal("a request's context is kept after its answer")
			}
		}
	})
}
