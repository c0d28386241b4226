package intercept

import (
	"cmp"
	"slices"
	"sync"

	"optimist/internal/doc"
	"optimist/internal/identity"
	"optimist/internal/quota"
)

// lineages count the updates that are gone from documents. A write holds its base's content, and its own change. Writes between its base
// and itself are gone, and content that was erased since its base is there again. So each version has lost its base's losses, and the
// writes between the two. A document's loss is the most that any of its versions had: then an update that comes back and goes again
// counts once. If there are too many documents, the network that writes most of them has the one forgotten that wasn't written for longest:
// nobody has checked yet who the clients are.
type lineages struct {
	mu        sync.Mutex
	documents *quota.Map[identity.Network, doc.Ref, *lineage]
}

// lineage is what the latest versions of a document have lost.
type lineage struct {
	versions [maxVersions]struct{ version, lost int64 } // by version, modulo their number
	since    int64                                      // nothing is known of versions before it, and nothing counts
	most     int64

	inFlight int
	pending  []edge // of writes whose base is of a write that has no answer yet, or that went past optimist
}

// edge is a version and the one that it was made from.
type edge struct{ base, version int64 }

const (
	maxDocuments = 1024
	maxRef       = 2 << 10 // bytes of a document's names: those of engines are shorter
	maxVersions  = 128
	maxPending   = 64
)

func newLineages() *lineages {
	return &lineages{documents: quota.NewMap[identity.Network, doc.Ref, *lineage](maxDocuments)}
}

// begin notes that a write is on its way, of a client in a network.
func (l *lineages) begin(from identity.Network, ref doc.Ref) {
	if len(ref.Index)+len(ref.Routing)+len(ref.ID) > maxRef {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	d, known := l.documents.Get(ref)
	if !known {
		d = &lineage{}
		l.documents.Add(from, ref.Clone(), d)
	}
	d.inFlight++
}

// end notes that a write which has begun is over, with the version that it has made; no version is none. It returns how many updates are
// known to be gone that weren't before.
func (l *lineages) end(ref doc.Ref, made edge) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	d, known := l.documents.Get(ref)
	if !known {
		return 0 // of too many documents
	}
	d.inFlight--
	if made.version > 0 {
		if d.since == 0 {
			d.since = made.base + 1
		}
		d.pending = append(d.pending, made)
	}
	before := d.most
	d.resolve()
	return d.most - before
}

// resolve settles the pending versions whose bases are known, or can't become known any more.
func (d *lineage) resolve() {
	slices.SortFunc(d.pending, func(a, b edge) int { return cmp.Compare(a.version, b.version) })
	for i := 0; i < len(d.pending); {
		e := d.pending[i]
		lost, known := d.lostAt(e.base)
		if !known && d.inFlight > 0 && len(d.pending) <= maxPending {
			i++
			continue
		}
		lost += max(e.version-e.base-1, 0)
		v := &d.versions[e.version%maxVersions]
		v.version, v.lost = e.version, lost
		d.most = max(d.most, lost)
		d.pending = slices.Delete(d.pending, i, i+1)
	}
}

// lostAt is what a version has lost. If that isn't known, it is what the nearest known version before has lost: somebody else has gone on
// from there.
func (d *lineage) lostAt(version int64) (lost int64, known bool) {
	if version < d.since {
		return 0, true
	}
	nearest := int64(0)
	for _, v := range d.versions {
		if v.version > nearest && v.version <= version {
			nearest, lost = v.version, v.lost
		}
	}
	return lost, nearest == version
}
