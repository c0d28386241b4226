package watch

import (
	"hash/maphash"
	"time"

	"optimist/internal/client"
	"optimist/internal/identity"
	"optimist/internal/quota"
)

const (
	// smallPage is how many hits an answer of an inferred session may have to be watched without a rule that says so. The cost of the numbers
	// grows with the hits, and faster than the rest of a search.
	smallPage = 20
	// largeFor is for how long searches are taken to find as much as one of them has found.
	largeFor = time.Minute
	// maxPages bounds how many kinds of searches are known.
	maxPages = 4096
)

// pages are the kinds of searches that have found more than a small page: those of a session that ask for as many hits of an index. How
// many hits a search asks for says little of how many it finds: some libraries ask for 10,000 to find one document. If a kind is
// forgotten, its next search is watched once more.
type pages struct {
	seed maphash.Seed
	of   *quota.Shared[identity.Network, uint64, time.Time] // when the last one was found
}

func newPages() *pages {
	return &pages{seed: maphash.MakeSeed(), of: quota.NewShared[identity.Network, uint64, time.Time](maxPages)}
}

// kind returns the kind of a search.
func (p *pages) kind(c *client.Client, index string, size int64) uint64 {
	return maphash.Comparable(p.seed, struct {
		session identity.Session
		index   string
		size    int64
	}{c.Session.Bare(), index, size})
}

// add notes that a search of a kind has found a large page.
func (p *pages) add(from identity.Network, kind uint64, now time.Time) { p.of.Add(from, kind, now) }

// large reports whether a search of a kind has found a large page lately.
func (p *pages) large(kind uint64, now time.Time) bool {
	found, known := p.of.Get(kind)
	return known && now.Sub(found) < largeFor
}
