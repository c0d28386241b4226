package session

import (
	"context"
	"sync"

	"optimist/internal/choice"
	"optimist/internal/memo"
	"optimist/internal/repeat"
	"optimist/internal/seen"
)

// shard has a part of the documents: what sessions have seen of them, and which writes of them are under way. Its methods are called with
// mu held.
type shard struct {
	mu sync.Mutex
	*seen.Memory

	clock    func() int64
	left     func(context.Context) bool
	notes    *memo.Book // nil: there is none
	inFlight repeat.Flights[seen.Key]
	// inheritances are the claims that first tries have given back for their repeats, until the repeats take them.
	inheritances map[*repeat.Attempt]*claim

	reads []choice.Read // room for what is handed to choice
	view  choice.View   // likewise

	taken [KindGiven + 1]uint64
}

func newShard(s *Store, bound int64) *shard {
	sh := &shard{clock: s.clock, left: s.o.Left, notes: s.notes, inheritances: make(map[*repeat.Attempt]*claim)}
	sh.Memory = seen.New(seen.Options{
		Seed: s.seed, MaxAge: int64(s.o.MaxAge), Bound: bound, Reads: s.o.Candidates, Notes: s.notes, Changed: sh.note,
	})
	return sh
}
