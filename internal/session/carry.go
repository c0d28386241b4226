package session

import (
	"optimist/internal/doc"
	"optimist/internal/viewcache"
)

// Carry is called before a write of the document to by a name that stood for the index of from before. What the session has seen of from
// may be the base of that write: see Base.Moved. A named session writes from what it has seen last, there or here. Clients of an inferred
// session may write from either. Carry reports whether anything is, or was, known of from.
func (s *Store) Carry(sess Session, from, to doc.Ref) (known bool) {
	if sess.InTrace() {
		known = s.Carry(sess.Written(), from, to)
	}
	there, here := viewcache.KeyOf(sess, from), viewcache.KeyOf(sess, to)
	if !s.MayHaveBase(sess.Bare(), from) {
		return known
	}
	now := s.clock()
	ixThere, ixHere := s.findOf(there, now), s.findOf(here, now)
	if _, open := ixThere.Suspicion(); open {
		return true
	}
	giveUp(ixHere)
	a, b := s.shard(there), s.shard(here)
	defer s.lockBoth(there, here)()
	gone := ixHere.Gone()
	old, e := a.Get(there, ixThere.Gone(), now), b.Get(here, gone, now)
	if old == nil || b.isNewer(here, e, old) {
		return true
	}
	if e != nil && sess.IsNamed() {
		b.Forget(e, viewcache.Aged)
	}
	e = b.Put(here, sess.Network(), gone, s.Epoch(), now)
	b.Memory.Carry(a.Memory, old, e)
	a.note(old)
	b.Settled(e)
	return true
}

// isNewer reports whether nothing of old, which is of the index before, may be the base of a write, because of what is known of the
// document here. e is the entry here, or nil. What the session has seen here, and optimist has forgotten, may be newer.
func (sh *shard) isNewer(here viewcache.Key, e, old *viewcache.Entry) bool {
	switch sh.Lost(here, e) {
	case ReasonEvicted, ReasonIndex, ReasonBlind:
		return true
	}
	if !here.Session.IsNamed() {
		return false
	}
	seen, guards := old.LastSeen()
	last := int64(-1)
	if e != nil {
		last, _ = e.LastSeen()
	}
	return guards || last >= seen || sh.pending.Of(here).Any()
}

// lockBoth locks the shards of two keys, and returns what unlocks them. All callers lock shards in the same order.
func (s *Store) lockBoth(j, k viewcache.Key) (unlock func()) {
	n := uint64(len(s.shards))
	first, second := j.Hash(s.seed)%n, k.Hash(s.seed)%n
	if first == second {
		s.shards[first].mu.Lock()
		return s.shards[first].mu.Unlock
	}
	a, b := s.shards[min(first, second)], s.shards[max(first, second)]
	a.mu.Lock()
	b.mu.Lock()
	return func() {
		b.mu.Unlock()
		a.mu.Unlock()
	}
}
