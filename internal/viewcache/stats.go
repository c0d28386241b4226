package viewcache

// Stats are counters since the memory's start, and gauges.
type Stats struct {
	Evicted uint64 // how often all that a session knew of a document was dropped to make room
	Crowded uint64 // how often a single revision was dropped because the session had too many outstanding

	Bytes                    int64
	Entries, Bodies, Markers int
}

// Add adds the numbers of another memory.
func (s *Stats) Add(o Stats) {
	s.Evicted, s.Crowded, s.Bytes = s.Evicted+o.Evicted, s.Crowded+o.Crowded, s.Bytes+o.Bytes
	s.Entries, s.Bodies, s.Markers = s.Entries+o.Entries, s.Bodies+o.Bodies, s.Markers+o.Markers
}

// Stats returns the counters.
func (m *Memory) Stats() Stats {
	n := m.markers.Len()
	return Stats{
		Evicted: m.evicted, Crowded: m.crowded,
		Bytes: m.bytes + int64(n)*markerCost, Entries: m.lru.Len(), Bodies: m.bodies, Markers: n,
	}
}
