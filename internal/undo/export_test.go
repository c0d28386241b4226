package undo

import (
	"context"

	"optimist/internal/share"
)

// Journal is the journal of the tokens of one write.
func (s *Store) Journal(ctx context.Context, tokens []int64) (*Journal, error) {
	all, err := s.Journals(ctx, share.Client{}, tokens)
	if err != nil {
		return nil, err
	}
	return all.Of(tokens)
}

// Known is of how many tokens this process knows the journal, after it has forgotten what has ended.
func (s *Store) Known(ctx context.Context) (n int, err error) {
	err = s.forgetEnded(ctx, s.isIdle)
	s.journals.Range(func(any, any) bool {
		n++
		return true
	})
	return n, err
}

// Seen is of how many rollbacks of other proxies this process knows how far they had come.
func (s *Store) Seen() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.seen)
}

// Sweep is one sweep.
func (s *Store) Sweep(ctx context.Context, again func(ctx context.Context, lock string, token int64) error) error {
	return s.sweep(ctx, again)
}
