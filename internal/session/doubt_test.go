package session

import (
	"testing"
	"testing/synctest"
	"time"
)

// A client whose write has no known outcome sends it again. That it must not count twice is known of the base that it was given
// only.

func TestARepeatOfAWriteInDoubtHasItsBaseThoughOthersHaveRead(t *testing.T) {
	for name, setup := range map[string]func(s *Store){
		"a read": func(s *Store) { s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch()) },
		"none there": func(s *Store) {
			s.ReadAbsent(pool, ref, s.Epoch())
		},
		"a view": func(s *Store) {
			s.Read(pool, ref, rev(4, `{"a":1}`), s.Epoch())
			b, _ := s.Take(ended(), pool, ref, []byte(`{"a":1,"b":1}`))
			b.Commit(ack(5, `{"a":1,"b":1}`))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newWaiting(t)
				setup(s)
				first := newClient(t).sends(t, s, mine)
				kind, n := first.Kind, first.Numbers.SeqNo
				if kind == KindAbsent {
					n = -1
				}
				first.Doubt()
				for _, at := range []int64{6, 6, 7} { // all of which can be measured, and none of which is what it was made from
					s.Read(pool, ref, rev(at, `{"a":1,"b":1,"c":1}`), s.Epoch())
				}
				for range 2 {
					again := newClient(t).sends(t, s, mine)
					if want(t, again, kind, n); !again.OnlyGuards() || !again.Ambiguous {
						t.Errorf("doubtful %t, ambiguous %t", again.OnlyGuards(), again.Ambiguous)
					}
					again.Release() // it was refused
				}
				want(t, newClient(t).sends(t, s, `{"a":1,"b":1,"c":2}`), KindRead, 6)
			})
		})
	}
}

// TestWhatIsInDoubtStaysSoWhateverOthersDo: in a session of many who reads the revision again, or gives it back, may be somebody
// else.
func TestWhatIsInDoubtStaysSoWhateverOthersDo(t *testing.T) {
	for name, other := range map[string]func(s *Store, b Base){
		"gives it back": func(_ *Store, b Base) { b.Release() },
		"reads it": func(s *Store, b Base) {
			b.Commit(ack(9, theirs))
			s.Read(pool, ref, rev(5, `{"a":1,"b":1}`), s.Epoch())
		},
		"is in doubt": func(_ *Store, b Base) { b.Doubt() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := readByTwo(t)
				first, second := newClient(t).sends(t, s, mine), newClient(t).sends(t, s, theirs)
				first.Doubt()
				time.Sleep(time.Second)
				other(s, second)
				again := newClient(t).sends(t, s, mine)
				if want(t, again, KindRead, 5); !again.OnlyGuards() {
					t.Error("its first try may have been applied")
				}
			})
		})
	}
}
