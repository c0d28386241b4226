package session

// Stats are counters since the store's start, and gauges.
type Stats struct {
	// Reads counts reads and absences that were remembered, Ignored those that a change of their index had overtaken.
	Reads   uint64
	Ignored uint64
	// Taken counts bases by Kind, Lost those of KindLost by Reason.
	Taken [6]uint64
	Lost  [6]uint64
	// Ambiguous counts bases chosen among several candidates, Waited takes that waited for a write in flight.
	Ambiguous uint64
	Waited    uint64
	// Blind counts takes of blind writers, Blinded writes that made one or kept it one.
	Blind   uint64
	Blinded uint64
	// Evicted, Aged and Dropped count the losses of all that a session knew of a document: by memory, by age, by a change
	// of its index. Crowded counts single revisions that went because the session had too many outstanding.
	Evicted uint64
	Aged    uint64
	Dropped uint64
	Crowded uint64
	// TooLarge counts bodies that were not kept for their size.
	TooLarge uint64
	// Bytes, Entries, Bodies and Markers are present sizes.
	Bytes   int64
	Entries int
	Bodies  int
	Markers int
}

// Stats returns the counters. It locks each shard for a moment.
func (s *Store) Stats() Stats {
	t := Stats{
		Waited: s.waited.Load(), Blinded: s.blinded.Load(), TooLarge: s.tooLarge.Load(),
	}
	for _, sh := range s.shards {
		sh.mu.Lock()
		n := sh.n
		t.Bytes += sh.bytes + int64(sh.markers.Len())*markerCost
		t.Entries += sh.lru.Len()
		t.Bodies += sh.bodies
		t.Markers += sh.markers.Len()
		sh.mu.Unlock()
		t.add(&n)
	}
	return t
}

func (t *Stats) add(n *Stats) {
	t.Reads += n.Reads
	t.Ignored += n.Ignored
	for i := range t.Taken {
		t.Taken[i] += n.Taken[i]
	}
	for i := range t.Lost {
		t.Lost[i] += n.Lost[i]
	}
	t.Ambiguous += n.Ambiguous
	t.Blind += n.Blind
	t.Evicted += n.Evicted
	t.Aged += n.Aged
	t.Dropped += n.Dropped
	t.Crowded += n.Crowded
}
