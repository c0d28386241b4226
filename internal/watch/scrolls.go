package watch

import (
	"hash/maphash"

	"optimist/internal/identity"
	"optimist/internal/quota"
)

// maxScrolls bounds how many scrolls are known.
const maxScrolls = 4096

// scrolls are those whose hits have numbers that their clients didn't ask for. If one is forgotten, its client gets the numbers, and its
// hits are no bases. If there are too many, the network that has opened most loses the one that wasn't read on for longest.
type scrolls struct {
	seed maphash.Seed
	of   *quota.Shared[identity.Network, uint64, added]
}

func newScrolls() *scrolls {
	return &scrolls{seed: maphash.MakeSeed(), of: quota.NewShared[identity.Network, uint64, added](maxScrolls)}
}

// add notes a scroll. Credentials don't matter for its id: who has the id has what it finds.
func (s *scrolls) add(from identity.Network, id string, more added) {
	s.of.Add(from, maphash.String(s.seed, id), more)
}

func (s *scrolls) get(id []byte) (more added, known bool) {
	return s.of.Get(maphash.Bytes(s.seed, id))
}
