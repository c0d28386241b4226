package lockrouter

import (
	"context"
	"strings"
	"sync"
	"time"

	"optimist/internal/obs"
	"optimist/lockrouter/state"
)

// Where locks are enforced, a proxy asks before each write who holds the locks that protect the document. It needn't ask while it knows
// that there are none: an index, or a global lock, has a gate in the store, and while the gate is free, a proxy that has read so counts on
// it for freeFor. Whoever acquires a lock shuts the gate, and waits until nobody can count on it any more:
//
//	ABSENT ──────────┐ a writer's proxy                         a writer's proxy finds nobody who holds anything
//	                 ▼                                                    │
//	SHUT ────▶ DRAINING ─────────────────────────────────────────────▶ FREE
//	  ▲  quiet   │ somebody acquires: at once                             │ somebody acquires
//	  └──────────┴─────────────── after waitOut ◀── SHUTTING ◀────────────┘
//
// Each step is a write under the guard of the state that was read. A lock is acquired first, and then its gate is read: so a search
// between DRAINING and FREE finds the lock, or whoever acquired it finds DRAINING or FREE. No clocks are compared.

// GateState is what is known of the locks behind a gate.
type GateState string

// The states. The zero value is that of a gate that isn't there: no proxy that enforces locks has been here.
const (
	GateAbsent   GateState = ""
	GateFree     GateState = "free"     // nobody holds a lock: whoever has read so may count on it for a while
	GateShutting GateState = "shutting" // somebody may, and some may still count on that nobody does
	GateShut     GateState = "shut"     // somebody may
	GateDraining GateState = "draining" // somebody may; a proxy looks whether anybody does
)

// Gate is a gate as it was read. Its numbers are the store's.
type Gate struct {
	State       GateState
	SeqNo, Term int64
}

// Gates are kept by a Store whose locks can be enforced. Errors are, or wrap, ErrStore.
type Gates interface {
	// Look gives lock documents and gates as they are now, with one request; nil, and a zero Gate, for one that isn't there.
	Look(ctx context.Context, ids, gates []string) ([]*state.Doc, []Gate, error)
	// Move gives a gate another state, if it is as it was seen; moved is false if it is not. now is the gate after it.
	Move(ctx context.Context, name string, seen Gate, to GateState) (now Gate, moved bool, err error)
	// Leased gives documents that hold leases, or have changed since a time in ms by their clock, of locks whose path begins so: up to
	// most of them. All changes that were acknowledged before the call count.
	Leased(ctx context.Context, prefix string, since int64, most int) ([]*state.Doc, error)
}

// The times of gates.
const (
	// freeFor is how long a proxy counts on a gate that it has read to be free, from before it asked.
	freeFor = time.Second
	// waitOut is how long whoever acquires the first lock waits, so that nobody counts on the gate any more.
	waitOut = freeFor + 100*time.Millisecond
	// quiet is for how long nothing must have happened behind a gate before it is made free: whoever comes next has to wait.
	quiet = 30 * time.Second
	// mostLeased is how many documents with leases are looked at one by one when a gate is drained.
	mostLeased = 50
	// mostGates bounds what is remembered of gates: names of indices come from clients.
	mostGates = 10_000
)

// gates are what this proxy knows of gates. It is safe for concurrent use.
type gates struct {
	mu    sync.Mutex
	known map[string]*gate
}

type gate struct {
	state   GateState
	read    time.Time // just before it was read to be free
	tendAt  time.Time // when it may be looked at whether it can be made free
	tending bool
	asking  bool // it is being read again, before it ends
}

func (g *gates) of(name string) *gate {
	k := g.known[name]
	if k == nil {
		if len(g.known) >= mostGates {
			clear(g.known)
		}
		k = &gate{}
		g.known[name] = k
	}
	return k
}

// free reports whether a gate is known to be free now. again says that it is worth to read it again soon; that is said to one caller.
func (g *gates) free(name string, now time.Time) (free, again bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.known[name]
	if k == nil || k.state != GateFree {
		return false, false
	}
	age := now.Sub(k.read)
	if wall := now.Round(0).Sub(k.read.Round(0)); wall > age || wall < 0 { // the monotonic clock stands still while a machine sleeps
		age = max(wall, 2*freeFor*boolean(wall < 0))
	}
	if age >= freeFor {
		return false, false
	}
	again = age >= freeFor/2 && !k.asking
	k.asking = k.asking || again
	return true, again
}

func boolean(b bool) time.Duration {
	if b {
		return 1
	}
	return 0
}

// note takes note of a gate that was read at that time, or a little later.
func (g *gates) note(name string, s GateState, read time.Time, quiet time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.of(name)
	k.asking = false
	if k.state != s || k.tendAt.IsZero() {
		k.state, k.tendAt = s, read.Add(quiet)
		if s == GateAbsent {
			k.tendAt = read
		}
	}
	if s == GateFree {
		k.read = read
	}
}

// tend reports whether somebody should look whether a gate can be made free. That is said to one caller, who has to call tended.
func (g *gates) tend(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.of(name)
	if k.state == GateFree || k.tending || time.Now().Before(k.tendAt) {
		return false
	}
	k.tending = true
	return true
}

// tended ends what tend has begun.
func (g *gates) tended(name string, quiet time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.of(name)
	k.tending, k.tendAt = false, time.Now().Add(quiet)
}

// shut reports whether a gate was shut when it was last read.
func (g *gates) shut(name string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.known[name]
	return k != nil && k.state == GateShut
}

// enforces reports whether any rule enforces locks.
func (r *Router) enforces() bool { return r.o.Gates != nil && r.o.Enforces() }

// prepare shuts a lock's gate before the lock is acquired, so that the lease needn't wait for that. confirm decides.
func (r *Router) prepare(ctx context.Context, t *target) error {
	if !r.enforces() || r.gates.shut(t.gate) {
		return nil
	}
	_, err := r.shutGate(ctx, t.gate)
	return err
}

// confirm has a gate be shut, after a lock behind it was acquired and before that is answered. waited says that it took a while: the
// lease is shorter by that.
func (r *Router) confirm(ctx context.Context, gate string) (waited bool, err error) {
	if !r.enforces() {
		return false, nil
	}
	return r.shutGate(ctx, gate)
}

// shutGate reads a gate, and shuts it, if it isn't. When it returns without an error, no proxy counts any more on there being no locks
// behind the gate.
func (r *Router) shutGate(ctx context.Context, name string) (waited bool, err error) {
	const tries = 10
	for range tries {
		_, found, read, err := r.readGates(ctx, nil, []string{name})
		if err != nil {
			return waited, err
		}
		seen := found[0]
		r.gates.note(name, seen.State, read, r.o.Quiet)
		to := GateShut
		switch seen.State {
		case GateAbsent, GateShut:
			return waited, nil
		case GateShutting: // since when nobody can tell
			if err := r.sleep(ctx, waitOut); err != nil {
				return waited, err
			}
			waited = true
		case GateFree:
			to = GateShutting
		}
		if _, _, err = r.o.Gates.Move(ctx, name, seen, to); err != nil {
			return waited, err
		}
	}
	return waited, ErrStore
}

// readGates reads lock documents and gates, and says since when at the earliest they are as they were read. While the store is
// unavailable it tries again for a while: an index that was just made can't be read at once.
func (r *Router) readGates(ctx context.Context, ids, names []string) (docs []*state.Doc, found []Gate, read time.Time, err error) {
	for end := time.Now().Add(r.o.Patience); ; {
		read = time.Now()
		docs, found, err = r.o.Gates.Look(ctx, ids, names)
		if err == nil || read.After(end) || r.sleep(ctx, shortPause) != nil {
			return docs, found, read, err
		}
	}
}

// sleep waits, unless the client leaves, or the Router is closed.
func (r *Router) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-r.ctx.Done():
		return errClosed
	}
}

// tend makes a gate free, if nobody holds a lock behind it, and nothing has happened there for a while.
func (r *Router) tend(name string) {
	defer r.gates.tended(name, r.o.Quiet)
	if err := r.drain(r.ctx, name); err != nil && r.ctx.Err() == nil {
		r.o.Log.Warn("optimist can't find out whether locks are held; each write asks", "gate", name, obs.KeyError, err.Error())
	}
}

func (r *Router) drain(ctx context.Context, name string) error {
	_, found, _, err := r.readGates(ctx, nil, []string{name})
	if err != nil {
		return err
	}
	seen := found[0]
	switch seen.State {
	case GateFree:
		return nil
	case GateShutting: // whoever did that may have died
		if err = r.sleep(ctx, waitOut); err == nil {
			_, _, err = r.o.Gates.Move(ctx, name, seen, GateShut)
		}
		return err
	case GateShut, GateDraining:
		if busy, err := r.leased(ctx, name, r.clockNow()-r.o.Quiet.Milliseconds()); busy || err != nil {
			return err
		}
	}
	seen, moved, err := r.o.Gates.Move(ctx, name, seen, GateDraining)
	if err != nil || !moved {
		return err
	}
	busy, err := r.leased(ctx, name, never) // what was acquired since finds the gate draining
	if err != nil {
		return err
	}
	to := GateFree
	if busy {
		to = GateShut
	}
	_, _, err = r.o.Gates.Move(ctx, name, seen, to)
	return err
}

// leased reports whether anybody holds a lock behind a gate, or anything has happened there since. Leases that have ended are taken away.
func (r *Router) leased(ctx context.Context, name string, since int64) (bool, error) {
	docs, err := r.behind(ctx, name, since)
	if err != nil || len(docs) == 0 {
		return false, err
	}
	if len(docs) >= mostLeased {
		return true, nil
	}
	var changes []Change
	for _, d := range docs {
		if d.Seen >= since {
			return true, nil
		}
		t, err := targetOf(d, "")
		if err != nil {
			return true, err
		}
		changes = append(changes, Change{t.id, lookAgain(d)})
	}
	for _, c := range r.o.Store.Do(ctx, changes) {
		if c.Err != nil {
			return true, c.Err
		}
		if c.Doc != nil && len(c.Doc.Holds)+len(c.Doc.Chain) > 0 {
			return true, nil
		}
	}
	return false, nil
}

// behind are the documents that leased looks at.
func (r *Router) behind(ctx context.Context, name string, since int64) ([]*state.Doc, error) {
	if index, ok := strings.CutPrefix(name, indexGate); ok {
		return r.o.Gates.Leased(ctx, "/"+escapeSegment(index)+"/", since, mostLeased)
	}
	docs, err := r.o.Store.Read(ctx, []string{globalID(strings.TrimPrefix(name, globalGate))})
	if err != nil || docs[0] == nil || len(docs[0].Holds)+len(docs[0].Chain) == 0 && docs[0].Seen < since {
		return nil, err
	}
	return docs, nil
}

// lookAgain is a call that does nothing but take away leases that have ended. Nobody loses a turn by it.
func lookAgain(d *state.Doc) *state.Call {
	return &state.Call{Lock: d.Lock, Kind: d.Kind, Ops: []state.Op{}, Bound: 1 << 30, Grace: (24 * time.Hour).Milliseconds()}
}

// The names of gates: of the locks of an index, and of a global lock.
const (
	indexGate  = "index:"
	globalGate = "global:"
)
