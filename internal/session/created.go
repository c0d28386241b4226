package session

import (
	"slices"

	"optimist/internal/viewcache"
)

const (
	// firstVersion is the version of a document that was just made.
	firstVersion = 1
	// maxMade is the most documents that Made returns.
	maxMade = 8
)

// Made is for a write by a client that had found no document. Another client may have created the document meanwhile, and further clients
// that had found none may have written it since. All these clients may have put in the same defaults, so a merge needs their documents.
// Made returns the first revision of the document, and some documents that such clients have sent. It returns none that the session doesn't
// know. It returns nothing for any other base, and for a base that the client has named. The bytes are immutable. Call Made before the base
// is ended.
func (b *Base) Made() (made [][]byte) {
	c := &b.claim
	if b.Kind != KindAbsent || !b.Guessed || c.sh == nil {
		return nil
	}
	sh, e, _, _ := c.sh.store.open(c.key)
	defer sh.mu.Unlock()
	if e == nil {
		return nil
	}
	first := firstOf(e)
	if first == nil {
		return nil
	}
	made = append(made, first)
	add := func(v *viewcache.View) {
		if v.FromNothing && v.Version != firstVersion && v.SentBody != nil && len(made) < maxMade {
			made = append(made, v.SentBody.Bytes())
		}
	}
	for i := range e.Past {
		add(&e.Past[i].View)
	}
	add(&e.View)
	return made
}

// firstOf returns the document's first revision; nil: it isn't known.
func firstOf(e *viewcache.Entry) []byte {
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
