package session

import (
	"optimist/internal/choice"
	"optimist/internal/viewcache"
)

// Some programs keep their documents in a database, and write from there what it holds. What they have read in the index says nothing of
// their writes: each is made from the one before it. Their contents show that, see rank.Origin, and the index remembers whose do.

// mayBeOwn reports whether a write may be made from the session's own view although reads are outstanding.
func (t *selection) mayBeOwn(v *viewcache.View) bool {
	return v.Set && !v.Absent && t.Sent != nil && !t.Part && !t.Named && !t.readInTrace && t.after == nil
}

// mirrors reports whether writes of the session are made from what it wrote last, whatever it has read.
func (t *selection) mirrors() bool {
	return !t.Part && !t.Named && !t.readInTrace && t.after == nil && t.ix.Mirrors(t.k.Session, t.now)
}

// strays reports whether a write that left something else than was sent did so by a guess alone: it was merged into what the session itself
// had written last, because its base was taken to be older, or because that had strayed already. If the session turns out to mirror a
// database, its next write puts that right: see fillBase.
func (c *claim) strays(e *viewcache.Entry, left *viewcache.Sight) bool {
	was := &e.View
	if c.took == choice.TakeView {
		was = &c.View
	}
	next := left.Numbers == was.Numbers || was.Version != 0 && left.Version == was.Version+1
	switch {
	case !was.Set || was.Absent || !next:
		return false
	case was.Difference:
		return was.Astray
	}
	return c.kind == KindAbsent || viewcache.Newer(was.Numbers, c.Numbers)
}
