package embedded

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// graveTime is how long a shard remembers a deleted document's version (the engines' index.gc_deletes).
const graveTime = time.Minute

// unassigned is the sequence number of a write without a guard. No document can have it.
const unassigned = -2

// revision is one state of a document. It is never changed: a write puts another one in its place.
type revision struct {
	id, routing string
	version     int64
	seqNo       int64
	deleted     bool   // a grave: only its version counts
	source      []byte // the document as it is served; nil: the mapping keeps no source
	full        []byte // the document as it was sent, for searches, if the mapping keeps less of it
}

// shard holds the documents of an index. The zero value is empty. All methods may be called concurrently; each write is
// atomic, and a read sees every write that was answered before it began.
type shard struct {
	mu    sync.RWMutex
	docs  map[string]*revision
	live  int
	next  int64   // the next sequence number
	dead  []grave // the graves in docs, the oldest first
	clock func() time.Time
}

type grave struct {
	rev  *revision
	till time.Time
}

type versionType uint8

const (
	versionInternal versionType = iota
	versionExternal
	versionExternalGTE
)

func (t versionType) String() string {
	return [...]string{"INTERNAL", "EXTERNAL", "EXTERNAL_GTE"}[t]
}

type action uint8

const (
	actIndex action = iota
	actCreate
	actDelete
	actUpdate
)

// write is one change of one document.
type write struct {
	act         action
	id, routing string
	source      []byte // kept as it is; must not be changed afterwards
	full        []byte // see revision
	version     int64  // matchAny unless the client gave one
	versionType versionType
	ifSeqNo     int64 // unassigned without a guard
	ifTerm      int64
}

// matchAny is the version of a write that names none.
const matchAny = -3

// primaryTerm never grows, because a shard never moves to another node.
const primaryTerm = 1

func newWrite(act action, id string) write {
	return write{act: act, id: id, version: matchAny, ifSeqNo: unassigned}
}

// outcome is what a write did.
type outcome struct {
	rev     *revision
	existed bool
}

// get returns the live revision of a document, or nil.
func (s *shard) get(id string) *revision {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if r := s.docs[id]; r != nil && !r.deleted {
		return r
	}
	return nil
}

// all returns every live document in the order of their sequence numbers.
func (s *shard) all() []*revision {
	s.mu.RLock()
	out := make([]*revision, 0, s.live)
	for _, r := range s.docs {
		if !r.deleted {
			out = append(out, r)
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(out, func(a, b *revision) int { return cmp.Compare(a.seqNo, b.seqNo) })
	return out
}

// count is the number of documents.
func (s *shard) count() int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.live
}

// apply carries out a write, or returns the conflict that forbids it. x is for the error only.
func (s *shard) apply(x *index, w *write) (outcome, *Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bury()
	old := s.docs[w.id]
	exists := old != nil && !old.deleted
	if err := w.conflict(x, old, exists); err != nil {
		return outcome{}, err
	}
	r := &revision{id: w.id, routing: w.routing, version: w.nextVersion(old), seqNo: s.next, source: w.source, full: w.full, deleted: w.act == actDelete}
	s.next++
	if s.docs == nil {
		s.docs = make(map[string]*revision)
	}
	s.docs[w.id] = r
	switch {
	case r.deleted:
		s.dead = append(s.dead, grave{r, s.clock().Add(graveTime)})
		if exists {
			s.live--
		}
	case !exists:
		s.live++
	}
	return outcome{r, exists}, nil
}

// bury forgets graves that are old enough. It must be called with the lock held.
func (s *shard) bury() {
	if len(s.dead) == 0 {
		return
	}
	now, n := s.clock(), 0
	for n < len(s.dead) && !s.dead[n].till.After(now) {
		if g := s.dead[n].rev; s.docs[g.id] == g {
			delete(s.docs, g.id)
		}
		n++
	}
	if n > 0 {
		s.dead = append(s.dead[:0:0], s.dead[n:]...)
	}
}

// conflict applies the engine's rules in the engine's order.
func (w *write) conflict(x *index, old *revision, exists bool) *Error {
	if w.ifSeqNo != unassigned {
		if !exists {
			return errConflict(x, "[%s]: version conflict, required seqNo [%d], primary term [%d]. but no document was found", w.id, w.ifSeqNo, w.ifTerm)
		}
		if old.seqNo != w.ifSeqNo || w.ifTerm != primaryTerm {
			return errConflict(x, "[%s]: version conflict, required seqNo [%d], primary term [%d]. current document has seqNo [%d] and primary term [%d]",
				w.id, w.ifSeqNo, w.ifTerm, old.seqNo, primaryTerm)
		}
	}
	if w.act == actCreate && exists {
		return errConflict(x, "[%s]: version conflict, document already exists (current version [%d])", w.id, old.version)
	}
	if old == nil {
		return nil
	}
	switch {
	case w.versionType == versionExternal && w.version <= old.version:
		return errConflict(x, "[%s]: version conflict, current version [%d] is higher or equal to the one provided [%d]", w.id, old.version, w.version)
	case w.versionType == versionExternalGTE && w.version < old.version:
		return errConflict(x, "[%s]: version conflict, current version [%d] is higher than the one provided [%d]", w.id, old.version, w.version)
	}
	return nil
}

func (w *write) nextVersion(old *revision) int64 {
	switch {
	case w.versionType != versionInternal:
		return w.version
	case old == nil:
		return 1
	default:
		return old.version + 1
	}
}
