package session

import (
	"context"
	"sync"

	"optimist/internal/choice"
	"optimist/internal/memo"
	"optimist/internal/repeat"
	"optimist/internal/seen"
)

// shard is what is known, and under way, of the documents of a part of the key space. Its methods are called with mu held.
type shard struct {
	mu sync.Mutex
	*seen.Memory

	clock    func() int64
	left     func(context.Context) bool
	notes    *memo.Book // nil: there is none
	inFlight repeat.Flights[seen.Key]
	handed   map[*repeat.Attempt]*claim // what the first try of a repeat has given back, until the repeat looks

	reads []choice.Read // of the document that a write looks at
	view  choice.View   // of it, likewise

	taken [KindGiven + 1]uint64
}

func newShard(s *Store, bound int64) *shard {
	sh := &shard{clock: s.clock, left: s.o.Left, notes: s.notes, handed: make(map[*repeat.Attempt]*claim)}
	sh.Memory = seen.New(seen.Options{
		Seed: s.seed, MaxAge: int64(s.o.MaxAge), Bound: bound, Reads: s.o.Candidates, Notes: s.notes, Changed: sh.note,
	})
	return sh
}
