package session

import (
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

const (
	// maxIndices bounds how many indices are told apart. Those beyond it share one state, which errs to the safe side:
	// bodies are kept, and what drops one of them drops all.
	maxIndices = 4096
	// maxBlind bounds how many blind writers are known per index. One that is forgotten is found again by its next write.
	maxBlind = 1024
)

// index is what is known of an index: whether it sees writes, when it was last dropped, who writes blindly in it.
type index struct {
	dropped    atomic.Uint64
	first      atomic.Int64 // time of the first read + 1
	wrote      atomic.Bool
	used       atomic.Int64
	acked      atomic.Uint64 // reads with a later place were asked for when a write of it was last acknowledged
	blindUntil atomic.Int64  // nobody is blind after it

	mu    sync.RWMutex
	blind *simplelru.LRU[Session, int64]
}

// keepsBodies reports whether bodies are worth their memory: an index that isn't written to needs no bases.
func (ix *index) keepsBodies(now int64, maxAge time.Duration) bool {
	if ix.wrote.Load() {
		return true
	}
	f := ix.first.Load()
	if f == 0 {
		ix.first.CompareAndSwap(0, now+1)
		return true
	}
	return now+1-f < int64(maxAge)
}

// known reports whether anything but absence may be known of the index.
func (ix *index) known() bool { return ix.wrote.Load() || ix.first.Load() != 0 }

// isBlind reports whether sess is a blind writer. Without any in the index it is one load.
func (ix *index) isBlind(sess Session, now int64) bool {
	if now >= ix.blindUntil.Load() || sess.named {
		return false
	}
	ix.mu.RLock()
	defer ix.mu.RUnlock()
	if ix.blind == nil {
		return false
	}
	until, ok := ix.blind.Peek(sess)
	return ok && now < until
}

// setBlind makes sess a blind writer until then.
func (ix *index) setBlind(sess Session, until int64) {
	ix.mu.Lock()
	defer ix.mu.Unlock()
	if ix.blind == nil {
		ix.blind, _ = simplelru.NewLRU[Session, int64](maxBlind, nil) // errs on a size below 1 only
	}
	ix.blind.Add(sess, until)
	ix.blindUntil.Store(max(until, ix.blindUntil.Load()))
}

// indices are the states by name. Look-ups take no lock and don't allocate: a name that is new copies the map.
type indices struct {
	maxAge time.Duration
	byName atomic.Pointer[map[string]*index]
	purged int64 // when it was purged last, + 1; 0: never. Guarded by adding
	others index // of the indices beyond maxIndices
	adding sync.Mutex

	changing sync.Mutex
	epoch    atomic.Uint64
	floor    atomic.Uint64 // everything from before it is dropped
}

func newIndices(maxAge time.Duration) *indices {
	t := &indices{maxAge: maxAge}
	t.byName.Store(&map[string]*index{})
	t.others.wrote.Store(true)
	return t
}

// get returns the state of name, making one if there is none.
func (t *indices) get(name string, now int64) *index {
	if ix := (*t.byName.Load())[name]; ix != nil {
		// Not every time: the line is shared by all cores.
		if u := ix.used.Load(); now-u > int64(t.maxAge)/8 {
			ix.used.Store(now)
		}
		return ix
	}
	return t.add(name, now)
}

func (t *indices) add(name string, now int64) *index {
	t.adding.Lock()
	defer t.adding.Unlock()
	if ix := (*t.byName.Load())[name]; ix != nil {
		return ix
	}
	if len(*t.byName.Load()) >= maxIndices {
		t.purge(now)
	}
	if len(*t.byName.Load()) >= maxIndices {
		return &t.others
	}
	ix := &index{}
	ix.used.Store(now)
	ix.dropped.Store(t.others.dropped.Load()) // it may have been one of them
	m := maps.Clone(*t.byName.Load())
	m[strings.Clone(name)] = ix // name may be in a buffer that is reused
	t.byName.Store(&m)
	return ix
}

// purge takes out the indices that weren't used for two ages, at most once per age: nothing that was seen in them can be
// a base any more. What may come late (an answer under way for that long) is caught by the floor.
func (t *indices) purge(now int64) {
	if t.purged != 0 && now+1-t.purged < int64(t.maxAge) {
		return
	}
	t.purged = now + 1
	m := maps.Clone(*t.byName.Load())
	maps.DeleteFunc(m, func(_ string, ix *index) bool {
		if now-ix.used.Load() < 2*int64(t.maxAge) {
			return false
		}
		raise(&t.floor, ix.dropped.Load())
		return true
	})
	t.byName.Store(&m)
}

// gone returns the epoch before which everything known of the index is void. Ask it under the lock of the shard that is
// looked into, so that nothing from before gets in beside what was put there after.
func (t *indices) gone(ix *index) Epoch {
	return Epoch(max(ix.dropped.Load(), t.floor.Load()))
}

func (t *indices) drop(name string, now int64) {
	t.dropAt(&t.get(name, now).dropped)
}

func (t *indices) dropAll() { t.dropAt(&t.floor) }

// renew drops what is known of ix, unless it was dropped since gone. It returns the epoch from which on anything is known.
func (t *indices) renew(ix *index, gone Epoch) (at Epoch, dropped bool) {
	t.changing.Lock()
	defer t.changing.Unlock()
	if at = t.gone(ix); at != gone {
		return at, false
	}
	return t.begin(&ix.dropped), true
}

// dropAt begins a new epoch. Whoever sees it sees what it drops, so that nothing gets in between the two.
func (t *indices) dropAt(a *atomic.Uint64) {
	t.changing.Lock()
	defer t.changing.Unlock()
	t.begin(a)
}

func (t *indices) begin(a *atomic.Uint64) Epoch {
	n := t.epoch.Load() + 1
	raise(a, n)
	t.epoch.Store(n)
	return Epoch(n)
}

func raise(a *atomic.Uint64, to uint64) {
	for {
		v := a.Load()
		if v >= to || a.CompareAndSwap(v, to) {
			return
		}
	}
}
