package session

import "optimist/internal/viewcache"

// Stats are counters since the store's start, and gauges.
type Stats struct {
	// Taken counts bases by Kind.
	Taken [KindExplicit + 1]uint64
	// Waited counts calls of Take and TakeCopy that waited for a write in flight.
	Waited uint64
	// TooLarge counts bodies that were too large to keep.
	TooLarge uint64
	viewcache.Stats
}

// Stats returns the counters. It locks each shard for a moment.
func (s *Store) Stats() Stats {
	t := Stats{Waited: s.waited.Load(), TooLarge: s.tooLarge.Load()}
	for _, sh := range s.shards {
		sh.mu.Lock()
		for i, n := range sh.taken {
			t.Taken[i] += n
		}
		t.Add(sh.Stats())
		sh.mu.Unlock()
	}
	return t
}
