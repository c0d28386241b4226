package session

import (
	"slices"

	"optimist/internal/viewcache"
)

// firstVersion is the version of a document that was just made.
const firstVersion = 1

// Created is for a write by a client that had found no document. It returns the first revision of the document that another client has
// created meanwhile; nil: the session doesn't know it. Both clients may have put in the same defaults, so a merge needs that revision. For
// any other base, and for a base that the client has named, Created returns nil. The bytes are immutable. Call it before the base is ended.
func (b *Base) Created() []byte {
	c := &b.claim
	if b.Kind != KindAbsent || !b.Guessed || c.store == nil {
		return nil
	}
	sh, now := c.store.shard(c.key), c.store.clock()
	gone := c.store.index(c.key.Ref.Index, c.key.Session.Credentials(), now).Gone()
	sh.mu.Lock()
	defer sh.mu.Unlock()
	e := sh.Get(c.key, gone, now)
	if e == nil {
		return nil
	}
	if i := slices.IndexFunc(e.Past, func(p viewcache.Past) bool { return p.Version == firstVersion && p.StoredBody != nil }); i >= 0 {
		return e.Past[i].StoredBody.Bytes()
	}
	if v := &e.View; v.Set && v.Version == firstVersion && v.StoredBody != nil {
		return v.StoredBody.Bytes()
	}
	if i := slices.IndexFunc(e.Reads, func(r viewcache.Read) bool { return r.Version == firstVersion && r.Body != nil }); i >= 0 {
		return e.Reads[i].Body.Bytes()
	}
	return nil
}
