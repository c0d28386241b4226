package undo_test

import (
	"errors"
	"testing"

	"optimist/internal/undo"
)

// TestWhatHasEndedDoesntBeginAgain: the holder of the lease has committed, or rolled back, before the lease's own answer came. It learns which,
// because its writes stay or don't.
func TestWhatHasEndedDoesntBeginAgain(t *testing.T) {
	for name, leases := range map[string][]undo.Lock{
		"one lease":      {{Doc: "global:x", Name: "/_lock/global/x", Token: 7}},
		"several leases": {{Doc: "doc:1", Name: "/docs/_lock/doc/1", Token: 7}, {Doc: "doc:2", Name: "/docs/_lock/doc/2", Token: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct {
				end  func(*undo.Store) error
				want error
			}{
				{func(*undo.Store) error { return nil }, nil},
				{func(s *undo.Store) error { _, err := s.Commit(t.Context(), 7); return err }, undo.ErrCommitted},
				{func(s *undo.Store) error { _, err := s.Rollback(t.Context(), 7); return err }, undo.ErrEnded},
			} {
				l := newLister(t)
				if err := l.Open(t.Context(), leases); err != nil {
					t.Fatal(err)
				}
				if err := c.end(l.Store); err != nil {
					t.Fatal(err)
				}
				if err := l.Open(t.Context(), leases); !errors.Is(err, c.want) {
					t.Errorf("%v; want %v", err, c.want)
				}
			}
		})
	}
}
