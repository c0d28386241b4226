// Package indexstate knows the state of indices: since when the numbers of an index mean other documents than before, whether
// clients write to it, and which clients overwrite documents in it blindly.
//
// Clients may be of several clusters, in which a name stands for several indices. So what one owner finds out voids only what that owner
// knew. For all other owners it is a suspicion: they have to ask whether their index is still the same one.
//
// The package forgets an index that nobody asks for for long, and what it knew from before the index's last drop.
package indexstate

import (
	"cmp"
	"hash/maphash"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// MaxIndices bounds how many indices are told apart. Further indices share cells, by the hashes of their names. A cell errs on the safe
// side: bodies are kept, and a suspicion about one of its indices is one about all of them, which nothing settles.
const MaxIndices = 4096

// maxCells is how many cells there are for further indices. They are made when they are needed.
const maxCells = 1024

// writerAge is for how long somebody is known to write in an index. People search, and save, on the next day again: what they find is then
// a base from the first search on.
const writerAge = 24 * time.Hour

// Epoch is a moment, by which incarnations of indices are told apart.
type Epoch uint64

// Owner stands for clients to whom the name of an index means the same index.
type Owner [16]byte

// maxOwners bounds for how many owners it is noted what became of their suspicions, for each index. Of the owner that is forgotten only a
// hash remembers what is void.
const maxOwners = 1024

// Indices are the states of indices by name, for writers of type W. They are safe for concurrent use. Times are in nanoseconds
// since some moment, which must not be after the first of them.
type Indices[W comparable] struct {
	maxAge int64
	byName atomic.Pointer[map[string]*state[W]]
	cells  [maxCells]atomic.Pointer[state[W]] // of the names that aren't among byName
	seed   maphash.Seed
	adding sync.Mutex
	purged int64 // when it was purged last, + 1; 0: never. Guarded by adding

	void Moments[owned] // the epochs from before which nothing counts, of owners that the states don't note
	seen Moments[owned] // the epochs at which owners have last seen that their index is there, unless the states know that
	full atomic.Bool    // there were more indices than are told apart

	acknowledged tickets // the newest one of each owner before an acknowledgement: what one is answered says nothing of another's index

	changing sync.Mutex
	epoch    atomic.Uint64
	floor    atomic.Uint64 // everything from before it is void
}

// owned is a name as an owner uses it.
type owned struct {
	name  string
	owner Owner
}

// New returns states of no index. Knowledge of an index, or of a writer in it, counts for maxAge.
func New[W comparable](maxAge time.Duration) *Indices[W] {
	t := &Indices[W]{maxAge: int64(maxAge), seed: maphash.MakeSeed()}
	t.byName.Store(&map[string]*state[W]{})
	return t
}

// Epoch returns the current moment. It is one load.
func (t *Indices[W]) Epoch() Epoch { return Epoch(t.epoch.Load()) }

// Begin begins a new epoch, in which nothing is void that wasn't.
func (t *Indices[W]) Begin() Epoch {
	t.changing.Lock()
	defer t.changing.Unlock()
	return Epoch(t.epoch.Add(1))
}

// Len returns how many indices are told apart.
func (t *Indices[W]) Len() int { return len(*t.byName.Load()) }

// Index returns the state of an index, as its owner has it, for an index that is there. It takes no lock and doesn't allocate; a name that
// is new copies the map. name may be in a buffer that is reused, but not before the last use of the result.
func (t *Indices[W]) Index(name string, o Owner, now int64) Index[W] {
	s := (*t.byName.Load())[name]
	if s == nil {
		s = t.add(name, now)
	}
	return Index[W]{s.use(now), owned{name, o}, now}
}

// Find is Index for an index that may not be there. A name that is new takes no room: everybody can ask for names that no index has.
func (t *Indices[W]) Find(name string, o Owner, now int64) Index[W] {
	s := (*t.byName.Load())[name]
	switch {
	case s != nil:
	case name == "": // it stands for all whose names aren't known
		s = t.add(name, now)
	default:
		s = t.cell(name)
	}
	return Index[W]{s.use(now), owned{name, o}, now}
}

// cell returns the cell of a name.
func (t *Indices[W]) cell(name string) *state[W] {
	c := &t.cells[maphash.String(t.seed, name)%maxCells]
	if s := c.Load(); s != nil {
		return s
	}
	s := &state[W]{in: t, shared: true}
	s.wrote.Store(true)
	c.CompareAndSwap(nil, s)
	return c.Load()
}

func (t *Indices[W]) add(name string, now int64) *state[W] {
	t.adding.Lock()
	defer t.adding.Unlock()
	if s := (*t.byName.Load())[name]; s != nil {
		return s
	}
	if t.Len() >= MaxIndices {
		t.purge(now)
	}
	cell := t.cell(name)
	if t.Len() >= MaxIndices {
		t.full.Store(true)
		return cell
	}
	t.changing.Lock()
	defer t.changing.Unlock()
	s := &state[W]{in: t}
	s.used.Store(now)
	s.suspected.Store(cell.suspected.Load()) // it was one of them
	s.crowded.Store(s.suspected.Load() != 0)
	m := maps.Clone(*t.byName.Load())
	m[strings.Clone(name)] = s
	t.byName.Store(&m)
	return s
}

// purge takes out the indices that weren't used for two ages, at most once per age: nothing that was seen in them can be
// of use any more. What may come late (an answer under way for that long) is caught by the cells.
func (t *Indices[W]) purge(now int64) {
	if t.purged != 0 && now+1-t.purged < t.maxAge {
		return
	}
	t.purged = now + 1
	t.changing.Lock()
	defer t.changing.Unlock()
	m := maps.Clone(*t.byName.Load())
	maps.DeleteFunc(m, func(name string, s *state[W]) bool {
		if now-s.used.Load() < 2*t.maxAge {
			return false
		}
		raise(&t.cell(name).suspected, s.suspected.Load())
		for o, k := range s.known() {
			t.void.Note(owned{name, o}, int64(k.void.Load())) //nolint:gosec // it counts from 0
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

// state is what is known of an index, or of the indices of a cell.
type state[W comparable] struct {
	in        *Indices[W]
	shared    bool // it is a cell
	owners    atomic.Pointer[map[Owner]*knowledge]
	crowded   atomic.Bool   // some owners' knowledge is in Indices.void
	suspected atomic.Uint64 // the epoch in which some owner has last found another index
	first     atomic.Int64  // time of the first read + 1
	wrote     atomic.Bool
	used      atomic.Int64
	traces    traces

	// clients are those who did something in the index.
	blind     recentClients[W, blindWriter]
	writers   unforgotten[W]
	searchers unforgotten[W] // those who have seen what isn't known
	lookers   unforgotten[W] // those who have searched, and aren't known to write
	newcomers unforgotten[W] // those of them who have begun with that lately
	shown     unforgotten[W] // those of whom it counts when that was
}

// knowledge is what an owner knows of its index.
type knowledge struct {
	void     atomic.Uint64 // everything from before that epoch is void
	replaced atomic.Uint64 // as void, but for renewals
	settled  atomic.Uint64 // suspicions up to that epoch concern other indices of the name
	seen     atomic.Uint64 // the epoch in which the owner has last seen that the index is there, + 1
}

func (s *state[W]) known() map[Owner]*knowledge {
	if p := s.owners.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *state[W]) use(now int64) *state[W] {
	// Not every time: the line is shared by all cores.
	if u := s.used.Load(); now-u > s.in.maxAge/8 {
		s.used.Store(now)
	}
	return s
}
