package viewcache

import (
	"strings"

	"optimist/internal/identity"
	"optimist/internal/quota"
	"optimist/internal/rank"
)

// maxHabits is for how many indices habits are kept, counting an index once for each of the credentials. Each takes half a kilobyte.
const maxHabits = 4096

// Habits are what clients usually change in the documents of an index. The documents of an index are alike, so the habits are those of the
// index: most documents are never changed often enough to show any. They outlive the index, because clients change the next one in the same
// way. Habits are safe for concurrent use.
type Habits struct {
	of *quota.Shared[identity.Network, habitsKey, *rank.Patterns] // the patterns are replaced, and never changed
}

type habitsKey struct {
	credentials identity.Credentials
	index       string
}

// NewHabits returns habits of which nothing is known.
func NewHabits() Habits {
	return Habits{quota.NewShared[identity.Network, habitsKey, *rank.Patterns](maxHabits)}
}

// Known returns what is known; nil: nothing.
func (h Habits) Known(sess identity.Session, index string) *rank.Patterns {
	p, _ := h.of.Get(habitsKey{sess.Credentials(), index})
	return p
}

// Learn notes what a choice has shown. Of two calls at the same moment, one may not count.
func (h Habits) Learn(sess identity.Session, index string, c *rank.Choice) {
	if !c.ShowsHabits() {
		return
	}
	var next rank.Patterns
	k := habitsKey{sess.Credentials(), index}
	if last, ok := h.of.Get(k); ok {
		next = *last
	} else {
		k.index = strings.Clone(index) // it may be in a buffer that is reused
	}
	next.Learn(c)
	h.of.Add(sess.Network(), k, &next)
}
