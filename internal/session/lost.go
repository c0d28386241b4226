package session

import "hash/maphash"

// forget takes the entry out and leaves a marker if there is, or was, anything in it.
func (sh *shard) forget(e *entry, why Reason) {
	was := e.lost
	if !e.empty() {
		was = why
		if why == ReasonEvicted {
			sh.n.Evicted++
		}
	}
	sh.remove(e)
	if was != ReasonNone {
		sh.markers.Add(sh.mark(e.key), was)
	}
}

// lose notes that something of k was lost, unless something better is known.
func (sh *shard) lose(k key, why Reason) {
	e, ok := sh.lru.Peek(k)
	switch {
	case !ok:
		sh.markers.Add(sh.mark(k), why)
	case e.empty():
		e.lost = why
	}
}

// lost returns why nothing is known of k where something was. e is its entry, which may be nil.
func (sh *shard) lost(k key, e *entry) Reason {
	if e != nil {
		return e.lost
	}
	why, _ := sh.markers.Get(sh.mark(k))
	return why
}

// found notes that a write of k met its loss: each serves one write, as a read does.
func (sh *shard) found(k key, e *entry) {
	if e != nil {
		e.lost = ReasonNone
		return
	}
	sh.markers.Remove(sh.mark(k))
}

// mark is what stands for a key among the markers. Two keys with the same mark make a base lost that there never was.
func (sh *shard) mark(k key) uint64 { return maphash.Comparable(sh.seed, k) }
