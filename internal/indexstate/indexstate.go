// Package indexstate knows the state of indices: since when the numbers of an index mean other documents than before, whether
// clients write to it, and which clients overwrite documents in it blindly.
//
// It forgets an index that nobody asks for for long, and what it knew from before the index's last drop.
package indexstate

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// MaxIndices bounds how many indices are told apart. Further indices share one state, which errs on the safe side: bodies are kept, and
// if one of these indices is dropped, all are.
const MaxIndices = 4096

// Epoch is a moment, by which incarnations of indices are told apart.
type Epoch uint64

// Owner stands for clients to whom the name of an index means the same index.
type Owner [16]byte

// maxForks bounds how many owners are told apart for each index. Those beyond it lose what is known of theirs with all others.
const maxForks = 1024

// Indices are the states of indices by name, for writers of type W. They are safe for concurrent use. Times are in nanoseconds
// since some moment, which must not be after the first of them.
type Indices[W comparable] struct {
	// Others returns the owners for whom the name certainly stands for another index than for o: they are clients of another cluster. A
	// change of o's index doesn't concern theirs. Nil: there are none. It is called with a lock held.
	Others func(name string, o Owner) []Owner

	maxAge int64
	byName atomic.Pointer[map[string]*Index[W]]
	others Index[W]
	adding sync.Mutex
	purged int64 // when it was purged last, + 1; 0: never. Guarded by adding

	changing sync.Mutex
	epoch    atomic.Uint64
	floor    atomic.Uint64 // everything from before it is void
}

// New returns states of no index. Knowledge of an index, or of a writer in it, counts for maxAge.
func New[W comparable](maxAge time.Duration) *Indices[W] {
	t := &Indices[W]{maxAge: int64(maxAge)}
	t.byName.Store(&map[string]*Index[W]{})
	t.others.in, t.others.clients = t, &clients[W]{}
	t.others.wrote.Store(true)
	return t
}

// Epoch returns the current moment. It is one load.
func (t *Indices[W]) Epoch() Epoch { return Epoch(t.epoch.Load()) }

// Len returns how many indices are told apart.
func (t *Indices[W]) Len() int { return len(*t.byName.Load()) }

// Index returns the state of an index, as its owner has it. It takes no lock and doesn't allocate; a name that is new copies the map.
// name may be in a buffer that is reused.
func (t *Indices[W]) Index(name string, o Owner, now int64) *Index[W] {
	ix := (*t.byName.Load())[name]
	if ix == nil {
		return t.add(name, now)
	}
	// Not every time: the line is shared by all cores.
	if u := ix.used.Load(); now-u > t.maxAge/8 {
		ix.used.Store(now)
	}
	if forks := ix.forks.Load(); forks != nil {
		if own := (*forks)[o]; own != nil {
			return own
		}
	}
	return ix
}

func (t *Indices[W]) add(name string, now int64) *Index[W] {
	t.adding.Lock()
	defer t.adding.Unlock()
	if ix := (*t.byName.Load())[name]; ix != nil {
		return ix
	}
	if t.Len() >= MaxIndices {
		t.purge(now)
	}
	if t.Len() >= MaxIndices {
		return &t.others
	}
	name = strings.Clone(name)
	ix := &Index[W]{in: t, name: name, clients: &clients[W]{}}
	ix.used.Store(now)
	ix.dropped.Store(t.others.dropped.Load()) // it may have been one of them
	ix.replaced.Store(t.others.replaced.Load())
	m := maps.Clone(*t.byName.Load())
	m[name] = ix
	t.byName.Store(&m)
	return ix
}

// purge takes out the indices that weren't used for two ages, at most once per age: nothing that was seen in them can be
// of use any more. What may come late (an answer under way for that long) is caught by the floor.
func (t *Indices[W]) purge(now int64) {
	if t.purged != 0 && now+1-t.purged < t.maxAge {
		return
	}
	t.purged = now + 1
	m := maps.Clone(*t.byName.Load())
	maps.DeleteFunc(m, func(_ string, ix *Index[W]) bool {
		if now-ix.used.Load() < 2*t.maxAge {
			return false
		}
		raise(&t.floor, ix.dropped.Load())
		if forks := ix.forks.Load(); forks != nil {
			for _, f := range *forks {
				raise(&t.floor, f.dropped.Load())
			}
		}
		return true
	})
	t.byName.Store(&m)
}

// DropAll begins a new incarnation of all indices.
func (t *Indices[W]) DropAll() {
	t.changing.Lock()
	defer t.changing.Unlock()
	n := t.epoch.Load() + 1
	raise(&t.floor, n)
	t.epoch.Store(n)
}

// drop begins a new epoch, in which the index has a new incarnation for its owner o and for all who may share it. Whoever sees the epoch
// sees what it drops, so that nothing gets in between the two. renewed says that the new incarnation was there before.
func (ix *Index[W]) drop(o Owner, renewed bool) Epoch {
	t, root := ix.in, ix
	if ix.root != nil {
		root = ix.root
	}
	var spared []Owner
	if t.Others != nil && root != &t.others {
		spared = t.Others(root.name, o)
	}
	forks := root.fork(spared)
	n := t.epoch.Load() + 1
	root.end(n, renewed)
	for owner, f := range forks {
		if !slices.Contains(spared, owner) {
			f.end(n, renewed)
		}
	}
	t.epoch.Store(n)
	return Epoch(n)
}

// end ends the incarnation that is known.
func (ix *Index[W]) end(at uint64, renewed bool) {
	if !renewed {
		raise(&ix.replaced, at)
	}
	raise(&ix.dropped, at)
}

// fork gives owners states of their own, as they are now, and returns those of all who have one.
func (ix *Index[W]) fork(owners []Owner) map[Owner]*Index[W] {
	var forks map[Owner]*Index[W]
	if p := ix.forks.Load(); p != nil {
		forks = *p
	}
	if len(owners) == 0 {
		return forks
	}
	all := maps.Clone(forks)
	if all == nil {
		all = map[Owner]*Index[W]{}
	}
	for _, o := range owners {
		if all[o] == nil && len(all) < maxForks {
			f := &Index[W]{in: ix.in, root: ix, clients: ix.clients}
			f.dropped.Store(ix.dropped.Load())
			f.replaced.Store(ix.replaced.Load())
			f.first.Store(ix.first.Load())
			f.wrote.Store(ix.wrote.Load())
			f.acknowledged.Store(ix.acknowledged.Load())
			all[o] = f
		}
	}
	ix.forks.Store(&all)
	return all
}

// raise raises a to a value, unless it is higher.
func raise[T cmp.Ordered](a interface {
	Load() T
	CompareAndSwap(old, new T) bool
}, to T) {
	for {
		v := a.Load()
		if v >= to || a.CompareAndSwap(v, to) {
			return
		}
	}
}

// Index is what is known of an index. It is safe for concurrent use.
type Index[W comparable] struct {
	in           *Indices[W]
	name         string
	root         *Index[W] // of a fork: what it was forked from
	forks        atomic.Pointer[map[Owner]*Index[W]]
	dropped      atomic.Uint64
	replaced     atomic.Uint64 // as dropped, but for renewals
	first        atomic.Int64  // time of the first read + 1
	wrote        atomic.Bool
	used         atomic.Int64
	acknowledged atomic.Uint64
	traces       traces

	*clients[W]
}

// clients are those who did something in an index.
type clients[W comparable] struct {
	blind     recentClients[W] // those who overwrite what they haven't read
	writers   recentClients[W]
	searchers recentClients[W] // those who have seen what isn't known
}

// Gone returns an epoch: all knowledge of the index from before it is void. Call it under the lock of the data that you compare with it,
// so that no older data gets in beside newer data.
func (ix *Index[W]) Gone() Epoch { return Epoch(max(ix.dropped.Load(), ix.in.floor.Load())) }

// IsRenewed reports whether what was asked for in the epoch at may be an answer of the incarnation that is there now, although Gone is
// later: what ended that epoch were only renewals.
func (ix *Index[W]) IsRenewed(at Epoch) bool {
	return at >= Epoch(max(ix.replaced.Load(), ix.in.floor.Load()))
}

// Drop begins a new incarnation of the index for its owner, and for all who may share it.
func (ix *Index[W]) Drop(o Owner) {
	ix.in.changing.Lock()
	defer ix.in.changing.Unlock()
	ix.drop(o, false)
}

// Renew is Drop, unless a new incarnation has begun since gone. It returns the epoch at which that began. It is for those who have seen an
// answer of the new incarnation: what others have asked for at that time may be of that, too.
func (ix *Index[W]) Renew(o Owner, gone Epoch) (at Epoch, renewed bool) {
	ix.in.changing.Lock()
	defer ix.in.changing.Unlock()
	if at = ix.Gone(); at != gone {
		return at, false
	}
	return ix.drop(o, true), true
}

// Wrote notes a write other than a create: bodies read from the index are worth keeping.
func (ix *Index[W]) Wrote() {
	if !ix.wrote.Load() {
		ix.wrote.Store(true)
	}
}

// Acknowledged notes that a write of the index is known to be acknowledged, before any read was asked for with a later ticket.
func (ix *Index[W]) Acknowledged(ticket uint64) { raise(&ix.acknowledged, ticket) }

// Missing forgets what is known of the index, after a read with that ticket hasn't found it. It reports whether it did: it doesn't where
// nothing is known of the index, or a write of it was acknowledged since, which has made it.
func (ix *Index[W]) Missing(o Owner, ticket uint64) bool {
	known := ix.wrote.Load() || ix.first.Load() != 0
	if !known || ticket <= ix.acknowledged.Load() {
		return false
	}
	ix.Drop(o)
	ix.first.Store(0)
	ix.wrote.Store(ix == &ix.in.others)
	return true
}

// KeepsBodies reports whether what is read is worth its memory: an index that isn't written to needs no bases.
func (ix *Index[W]) KeepsBodies(now int64) bool {
	if ix.wrote.Load() {
		return true
	}
	f := ix.first.Load()
	if f == 0 {
		ix.first.CompareAndSwap(0, now+1)
		return true
	}
	return now+1-f < ix.in.maxAge
}

// IsBlind reports whether w is a blind writer. Without any in the index it is one load.
func (ix *Index[W]) IsBlind(w W, now int64) bool { return ix.blind.has(w, now) }

// WroteBlindly makes w a blind writer for maxAge, unless it has searched the index, or one with an unknown name: "". In indices beyond
// MaxIndices nobody counts as blind.
func (ix *Index[W]) WroteBlindly(w W, now int64) {
	if ix != &ix.in.others && !ix.searchers.has(w, now) && !ix.in.Index("", Owner{}, now).searchers.has(w, now) {
		ix.blind.add(w, now, ix.in.maxAge)
	}
}

// WroteBy notes that w writes in the index, for the age of what is known.
func (ix *Index[W]) WroteBy(w W, now int64) { ix.writers.add(w, now, ix.in.maxAge) }

// IsWriter reports whether w writes in the index.
func (ix *Index[W]) IsWriter(w W, now int64) bool { return ix.writers.has(w, now) }

// Searched notes that w has seen documents of the index of which nothing is known: to overwrite one of them isn't blind.
func (ix *Index[W]) Searched(w W, now int64) { ix.searchers.add(w, now, ix.in.maxAge) }

// Traced notes a write of an owner, of which content shows whether its trace tells its base.
func (ix *Index[W]) Traced(o Owner, tells bool) { ix.traces.add(o, tells) }

// TracesTell reports whether the trace of an owner's write tells its base, as far as is known.
func (ix *Index[W]) TracesTell(o Owner) bool { return ix.traces.tell(o) }
