package session

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// recent returns what is known of the writes of ref in the session of many.
func recent(t *testing.T, s *Store) (known []*repeat.Attempt) {
	t.Helper()
	k := viewcache.Key{Session: pool, Ref: ref}
	sh := s.shard(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.Peek(k)
	if e == nil {
		t.Fatal("nothing is known")
	}
	return e.Repeats.Attempts()
}

// waits has a client send what it gives up after a second, and another wait for that as its repeat.
func waits(t *testing.T, s *Store) (first Base, again *taken, second client) {
	t.Helper()
	me := newClient(t)
	first = me.sends(t, s, mine)
	time.Sleep(time.Second)
	me.leave()
	second = newClient(t)
	if again = start(second, s, pool, mine); again.done {
		t.Fatalf("didn't wait: %v", again.base.Kind)
	}
	return first, again, second
}

// TestNobodyComesBetweenAWriteThatFailedAndItsRepeat: what is handed from one to the other is in flight all the while. Who finds
// neither it nor a write in flight has no base, and its write goes as it is.
func TestNobodyComesBetweenAWriteThatFailedAndItsRepeat(t *testing.T) {
	for range 20 { // who is faster is chance
		synctest.Test(t, func(t *testing.T) {
			s := newWaiting(t)
			s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
			first, again, _ := waits(t, s)
			first.Release()
			if b, err := s.Take(ended(), pool, ref, []byte(theirs)); err == nil && b.Kind != KindRead {
				t.Errorf("another client's write has the base %v", b.Kind)
			}
			synctest.Wait()
			want(t, again.base, KindRead, 5)
			again.base.Release()
			if n := s.shards[0].pending.Len(); n != 0 {
				t.Errorf("%d documents in flight", n)
			}
			want(t, newClient(t).sends(t, s, theirs), KindRead, 5)
		})
	}
}

// TestARepeatThatIsGivenUpHandsOverToTheNext: each way of how far the second try may be when the third comes.
func TestARepeatThatIsGivenUpHandsOverToTheNext(t *testing.T) {
	for name, end := range map[string]func(b *Base){
		"acknowledged": func(b *Base) { b.Commit(ack(6, mine)) },
		"failed":       (*Base).Release,
	} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				synctest.Test(t, func(t *testing.T) {
					s := readByTwo(t)
					first, again, second := waits(t, s)
					time.Sleep(time.Second)
					end(&first)
					second.leave() // what it was handed may be with it by now, or not
					third := start(newClient(t), s, pool, mine)
					if again.err == nil { // it was faster
						again.base.Release()
					}
					synctest.Wait()
					if !third.done || third.err != nil {
						t.Fatalf("the third: %+v", third)
					}
					if name == "failed" {
						want(t, third.base, KindRead, 5)
					} else {
						want(t, third.base, KindView, 6)
					}
					want(t, newClient(t).sends(t, s, theirs), KindRead, 5)
				})
			}
		})
	}
}

// TestARepeatOfTheOwnViewIsOne: it is counted from what the session has written last, and no other repeat of it is to come.
func TestARepeatOfTheOwnViewIsOne(t *testing.T) {
	for name, heard := range map[string]bool{"it waited": true, "it came later": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newWaiting(t)
				s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
				var again *taken
				if heard {
					var first Base
					first, again, _ = waits(t, s)
					first.Commit(ack(6, mine))
					synctest.Wait()
				} else {
					first := givenUp(t, s, mine)
					first.Commit(ack(6, mine))
					first.NoteAnswer()
					again = start(newClient(t), s, pool, mine)
				}
				want(t, again.base, KindView, 6)
				again.base.Release() // it has failed: the next is one, too
				again = start(newClient(t), s, pool, mine)
				want(t, again.base, KindView, 6)
				again.base.Commit(ack(7, mine))
				again.base.NoteAnswer()

				s.Read(pool, ref, rev(8, `{"a":1,"b":1}`), s.Epoch()) // somebody has changed it back
				b := newClient(t).sends(t, s, mine)
				want(t, b, KindRead, 8)
			})
		})
	}
}

// TestARepeatOfTheOwnViewThatFailsIsOneAfterOthersHaveWritten: the view doesn't come back then.
func TestARepeatOfTheOwnViewThatFailsIsOneAfterOthersHaveWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
		first := givenUp(t, s, mine)
		first.Commit(ack(6, mine))
		first.NoteAnswer()
		again := newClient(t).sends(t, s, mine)
		want(t, again, KindView, 6)
		for range 2 {
			s.Read(pool, ref, rev(6, mine), s.Epoch())
		}
		other := newClient(t).sends(t, s, both)
		want(t, other, KindRead, 6)
		other.Commit(ack(7, both))
		other.NoteAnswer()
		again.Release()
		want(t, newClient(t).sends(t, s, mine), KindView, 6)
		want(t, newClient(t).sends(t, s, `{"a":3,"b":1}`), KindRead, 6)
	})
}

// TestARepeatThatWaitedUsesUpNobodyElsesMark: two clients have sent the same, and both have given it up.
func TestARepeatThatWaitedUsesUpNobodyElsesMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
		me := newClient(t)
		before := me.sends(t, s, mine)
		time.Sleep(time.Second)
		me.leave()
		before.Commit(ack(6, mine))
		before.NoteAnswer()
		other := newClient(t)
		first := other.sendsAfresh(t, s, mine)
		time.Sleep(time.Second)
		other.leave()
		again := start(newClient(t), s, pool, mine)
		first.Commit(ack(7, mine))
		synctest.Wait()
		want(t, again.base, KindView, 7)
		want(t, newClient(t).sends(t, s, mine), KindView, 7) // of the one before
		want(t, newClient(t).sends(t, s, mine), KindRead, 5)
	})
}

// sendsAfresh has c send what another has sent and given up, with a base that is its own for certain.
func (c client) sendsAfresh(t *testing.T, s *Store, sent string) Base {
	t.Helper()
	k := viewcache.Key{Session: pool, Ref: ref}
	sh := s.shard(k)
	swap := func(with repeat.History) (was repeat.History) {
		sh.mu.Lock()
		defer sh.mu.Unlock()
		e := sh.Peek(k)
		was, e.Repeats = e.Repeats, with
		return was
	}
	known := swap(repeat.History{})
	defer func() { swap(known) }()
	return c.sends(t, s, sent)
}

func TestARepeatTakesNoMarkOffAWriteWhoseClientIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
		stays, leaves := newClient(t), newClient(t)
		one, two := stays.sends(t, s, mine), leaves.sends(t, s, mine)
		time.Sleep(time.Second)
		leaves.leave()
		one.Commit(ack(6, mine)) // and its answer is about to be written
		two.Commit(ack(7, mine))
		two.NoteAnswer()
		want(t, newClient(t).sends(t, s, mine), KindView, 7)
		want(t, newClient(t).sends(t, s, mine), KindRead, 5)
		stays.leave()
		one.NoteAnswer()
		want(t, newClient(t).sends(t, s, mine), KindView, 7)
	})
}

// TestAGlanceLeavesAnUnheardAnswerAsItIs: neither does the time begin anew, nor is another one of two repeated.
func TestAGlanceLeavesAnUnheardAnswerAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		first := givenUp(t, s, mine)
		first.Commit(ack(6, mine))
		before := fmt.Sprint(recent(t, s))
		glance := func() {
			t.Helper()
			b, err := s.Glance().Take(t.Context(), pool, ref, []byte(mine))
			if err != nil {
				t.Fatal(err)
			}
			want(t, b, KindView, 6)
		}
		glance()
		if before != fmt.Sprint(recent(t, s)) {
			t.Error("before the answer: something else is known")
		}
		first.NoteAnswer()
		before = fmt.Sprint(recent(t, s))
		time.Sleep(time.Second)
		glance()
		if before != fmt.Sprint(recent(t, s)) {
			t.Error("after the answer: something else is known")
		}
	})
}

// TestAWriteThatFailsAfterAnAnswerThatWasHeardIsNoMark: only what nobody heard of is known for certain when it comes again.
func TestAWriteThatFailsAfterAnAnswerThatWasHeardIsNoMark(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := readByTwo(t)
		for n, sent := range []string{mine, theirs} {
			b := newClient(t).sends(t, s, sent)
			b.Commit(ack(int64(6+n), sent))
			b.NoteAnswer()
		}
		b := newClient(t).sends(t, s, mine) // from memory, or long after a heard answer
		want(t, b, KindView, 6)
		b.Release()
		s.Read(pool, ref, rev(7, theirs), s.Epoch())
		want(t, newClient(t).sends(t, s, mine), KindRead, 7)
	})
}

// TestManyAnswersOfOneWriteThatNobodyHeardAreAllKnown: they are acknowledged together, before the first of them is told.
func TestManyAnswersOfOneWriteThatNobodyHeardAreAllKnown(t *testing.T) {
	for name, repeated := range map[string]bool{"repeated meanwhile": true, "repeated later": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const clients = 64
				s := newWaiting(t)
				bases, again := make([]Base, clients), make([]*taken, clients)
				body := func(i int) string { return fmt.Sprintf(`{"w%d":1}`, i) }
				for i := range bases {
					s.Read(pool, ref, rev(5, `{}`), s.Epoch())
					c := newClient(t)
					bases[i] = c.sends(t, s, body(i))
					time.AfterFunc(time.Second, c.leave)
				}
				time.Sleep(2 * time.Second)
				if repeated {
					for i := range bases {
						again[i] = start(newClient(t), s, pool, body(i))
					}
				}
				s.Read(pool, ref, rev(5, `{"x":1}`), s.Epoch())
				for i := range bases {
					bases[i].Commit(ack(int64(6+i), body(i)))
				}
				for i := range bases {
					bases[i].NoteAnswer()
				}
				synctest.Wait()
				for i := range bases {
					if !repeated {
						again[i] = start(newClient(t), s, pool, body(i))
					}
					want(t, again[i].base, KindView, int64(6+i))
					again[i].base.Commit(ack(int64(200+i), body(i)))
					again[i].base.NoteAnswer()
				}
				want(t, newClient(t).sends(t, s, `{"x":2}`), KindRead, 5)
			})
		})
	}
}

// TestAClientWaitsFromWhenItCame: how long it has waited counts from then, and not from when its write had a base.
func TestAClientWaitsFromWhenItCame(t *testing.T) {
	for name, c := range map[string]struct{ repeats, answered bool }{
		"while its write is out":          {},
		"before its answer":               {answered: true},
		"while its repeat is out":         {repeats: true},
		"before the answer to its repeat": {repeats: true, answered: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newWaiting(t)
				s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
				me := newClient(t)
				var before Base
				var first *taken
				sent := theirs
				if c.repeats {
					sent = mine
					before, first, me = waits(t, s)
				} else {
					before = newClient(t).sends(t, s, sent)
					first = start(me, s, pool, mine)
				}
				s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch()) // by somebody else
				time.Sleep(time.Second)
				before.Commit(ack(6, sent))
				if synctest.Wait(); !first.done {
					t.Fatal("it waits for ever")
				}
				if !c.answered {
					me.leave()
					again := start(newClient(t), s, pool, mine)
					if again.done {
						t.Fatalf("the repeat has %v", again.base.Kind)
					}
					first.base.Commit(ack(7, mine))
					synctest.Wait()
					want(t, again.base, KindView, 7)
					return
				}
				first.base.Commit(ack(7, mine))
				me.leave()
				first.base.NoteAnswer()
				want(t, newClient(t).sends(t, s, mine), KindView, 7)
			})
		})
	}
}

// TestNoRequestIsKnownByAWriteUnderTheClientsOwnGuard: that never waits, and the engine decides.
func TestNoRequestIsKnownByAWriteUnderTheClientsOwnGuard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		for n := range int64(3) {
			s.Read(pool, ref, rev(5+n, `{"a":1,"b":1}`), s.Epoch())
			c := newClient(t)
			b := s.TakeAt(pool, ref, num(5+n), []byte(mine))
			time.Sleep(time.Second)
			c.leave()
			b.Commit(Ack{Stored: rev(20+n, both), Sent: []byte(mine), AnswerNumbers: num(5 + n)})
			b.NoteAnswer()
		}
		for _, o := range recent(t, s) {
			if o.Awaits() || o.IsUnheard() {
				t.Errorf("%+v", o)
			}
		}
	})
}

// TestARepeatIsOneThoughWhatIsKnownWasEvicted: it was told what became of its first try, and needs nothing else.
func TestARepeatIsOneThoughWhatIsKnownWasEvicted(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			s := New(Options{Rank: inHand, MaxAge: maxAge, Memory: 64 << 10})
			time.Sleep(maxAge)
			for range 2 {
				s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
			}
			first, again, _ := waits(t, s)
			k := viewcache.Key{Session: pool, Ref: ref}
			sh := s.shard(k)
			first.Commit(ack(6, mine))
			sh.mu.Lock()
			if e := sh.Peek(k); e != nil {
				sh.Forget(e, ReasonEvicted)
			}
			sh.mu.Unlock()
			synctest.Wait()
			want(t, again.base, KindView, 6)
			if string(again.base.View) != mine {
				t.Errorf("view %s", again.base.View)
			}
			again.base.Release()
			audit(t, s)
		})
	}
}

// TestWhoseReadMayHaveBeenTakenOfSeveralIsToldSo: a repeat of which nobody knows takes the read of one of two, who then takes the
// other's, who has none. What is read after that is whose it is.
func TestWhoseReadMayHaveBeenTakenOfSeveralIsToldSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
		first := newClient(t).sends(t, s, mine)
		first.Commit(ack(6, mine))
		first.NoteAnswer()
		s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch()) // an answer that was late
		s.Read(pool, ref, rev(8, `{"a":8,"b":8}`), s.Epoch())
		again := newClient(t).sends(t, s, mine)
		want(t, again, KindRead, 5)
		again.Commit(ack(7, mine))
		for _, glance := range []bool{true, false} {
			take := s.Take
			if glance {
				take = s.Glance().Take
			}
			b, err := take(newClient(t), pool, ref, []byte(theirs))
			if err != nil {
				t.Fatal(err)
			}
			if want(t, b, KindRead, 8); !b.Ambiguous {
				t.Error("the first may have the other's read, and it isn't said")
			}
			b.Commit(ack(9, theirs))
		}
		s.Read(pool, ref, rev(9, theirs), s.Epoch())
		if b := newClient(t).sends(t, s, `{"a":1,"b":9}`); b.Ambiguous {
			t.Error("what was read since is a guess")
		} else {
			b.Commit(ack(10, `{"a":1,"b":9}`))
		}
		for _, ambiguous := range []bool{true, false} {
			b := newClient(t).sends(t, s, `{"a":8,"b":9}`)
			if want(t, b, KindView, 10); b.Ambiguous != ambiguous {
				t.Errorf("the second has none: ambiguous %t", b.Ambiguous)
			}
			b.Release()
		}
	})
}

// TestWhatIsHandedOnTwiceIsGivenBackOnce: a repeat whose client leaves as it is woken finds that what it was handed is too old,
// which goes to its own repeat then. What it takes instead is its own, and no more of that one's concern.
func TestWhatIsHandedOnTwiceIsGivenBackOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newWaiting(t)
		waiting := func(c client) *selection {
			x := s.selection(pool, ref, []byte(mine))
			x.client = c
			if _, wait := x.try(); wait == nil {
				t.Fatal("it doesn't wait")
			}
			return &x
		}
		me, second := newClient(t), newClient(t)
		s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
		first := me.sends(t, s, mine)
		time.Sleep(maxAge - time.Second)
		me.leave()
		s.Read(pool, ref, rev(7, `{"a":1,"b":1}`), s.Epoch())
		again := waiting(second)
		time.Sleep(time.Second)
		first.Release()
		second.leave()
		third := waiting(newClient(t))
		for _, x := range []*selection{again, third} {
			b, wait := x.try()
			if wait != nil {
				t.Fatal("it waits on")
			}
			want(t, b, KindRead, 7)
			b.Release()
			x.endWait()
		}
		if n := s.shards[0].pending.Len(); n != 0 {
			t.Errorf("%d documents in flight", n)
		}
	})
}
