package session

// Stats are counters since the store's start, and gauges.
type Stats struct {
	// Taken counts bases by Kind.
	Taken [6]uint64
	// Waited counts calls of Take and TakeCopy that waited for a write in flight.
	Waited uint64
	// Evicted counts how often the store forgot, for want of memory, everything that a session had seen of a document. Crowded counts single
	// revisions that the store forgot because the session had too many outstanding reads. TooLarge counts bodies that were too large to keep.
	Evicted, Crowded, TooLarge uint64
	// Bytes, Entries, Bodies and Markers are present sizes.
	Bytes                    int64
	Entries, Bodies, Markers int
}

// Stats returns the counters. It locks each shard for a moment.
func (s *Store) Stats() Stats {
	t := Stats{Waited: s.waited.Load(), TooLarge: s.tooLarge.Load()}
	for _, sh := range s.shards {
		sh.mu.Lock()
		for i, n := range sh.taken {
			t.Taken[i] += n
		}
		m := sh.Stats()
		t.Evicted += m.Evicted
		t.Crowded += m.Crowded
		t.Bytes += m.Bytes
		t.Entries += m.Entries
		t.Bodies += m.Bodies
		t.Markers += m.Markers
		sh.mu.Unlock()
	}
	return t
}
