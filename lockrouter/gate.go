package lockrouter

import (
	"context"
	"strings"
	"sync"
	"time"

	"optimist/internal/obs"
	"optimist/lockrouter/state"
)

// If locks are enforced, a proxy asks the store before each write who holds the locks that protect the document. Gates save most of these
// questions. Each index, and each global lock, has a gate in the store. A free gate says that nobody holds a lock behind it. A proxy that
// has read a free gate counts on that for freeFor, and doesn't ask. A proxy that acquires a lock first shuts the gate, and waits until no
// other proxy can count on it any more:
//
//	ABSENT ──────────┐ a writer's proxy                         a writer's proxy finds nobody who holds anything
//	                 ▼                                                    │
//	SHUT ────▶ DRAINING ─────────────────────────────────────────────▶ FREE
//	  ▲  quiet   │ somebody acquires: at once                             │ somebody acquires
//	  └──────────┴─────────────── after waitOut ◀── SHUTTING ◀────────────┘
//
// Each step is a write under the guard of the state that was read. A proxy acquires the lock first, and reads the gate after that. So
// either the search between DRAINING and FREE finds the lock, or the proxy that acquired it finds DRAINING or FREE. No clocks are compared.

// GateState says whether anybody may hold a lock behind a gate.
type GateState string

// The states. The zero value means that there is no gate yet: no proxy has enforced locks here.
const (
	GateAbsent   GateState = ""
	GateFree     GateState = "free"     // nobody holds a lock; a proxy that has read this counts on it for freeFor
	GateShutting GateState = "shutting" // a lock may be held, and some proxies may still count on the free gate
	GateShut     GateState = "shut"     // a lock may be held
	GateDraining GateState = "draining" // a lock may be held; a proxy is finding out whether one is
)

// Gate is a gate as it was read. Its numbers are for the store: they guard the next change.
type Gate struct {
	State       GateState
	SeqNo, Term int64
}

// Gates reads and changes gates. A Store implements it if its locks can be enforced. Errors are, or wrap, ErrStore.
type Gates interface {
	// Look returns lock documents and gates as they are now, with one request. A missing document is nil, and a missing gate a zero Gate.
	Look(ctx context.Context, ids, gates []string) ([]*state.Doc, []Gate, error)
	// Move gives a gate another state, if it still is as it was seen; else moved is false. now is the gate after the call.
	Move(ctx context.Context, name string, seen Gate, to GateState) (now Gate, moved bool, err error)
	// Leased returns the documents of locks whose path begins with prefix, if they hold leases or have changed since a time in ms by their
	// clock. It returns up to most of them, and takes account of all changes that were acknowledged before the call.
	Leased(ctx context.Context, prefix string, since int64, most int) ([]*state.Doc, error)
}

// The times of gates.
const (
	// freeFor is how long a proxy counts on a free gate. The time begins before the proxy reads the gate.
	freeFor = time.Second
	// waitOut is how long a proxy waits that acquires the first lock. After that no proxy counts on the free gate any more.
	waitOut = freeFor + 100*time.Millisecond
	// quiet is how long no lock must have been used behind a gate before it is made free again. A shorter time would let the next owners
	// wait more often.
	quiet = 30 * time.Second
	// mostLeased is how many documents with leases are checked one by one when a gate is drained.
	mostLeased = 50
	// mostGates bounds how many gates a proxy remembers: the names of indices come from clients.
	mostGates = 10_000
	// longestGate is how many bytes a name has at most that is remembered. No index has a longer one, but a client may say any.
	longestGate = 1 << 10
)

// gates is what this proxy knows of the gates. It is safe for concurrent use.
type gates struct {
	mu    sync.Mutex
	known map[string]*gate
	quiet time.Duration // as in Options
}

type gate struct {
	state   GateState
	read    time.Time // the moment before it was last read as free
	tendAt  time.Time // when this proxy may next try to make it free
	tending bool
	asking  bool // it is being read again, before the last reading is too old
}

func (g *gates) of(name string) *gate {
	k := g.known[name]
	if k != nil {
		return k
	}
	k = &gate{}
	if len(name) > longestGate {
		return k
	}
	if len(g.known) >= mostGates {
		clear(g.known)
	}
	g.known[name] = k
	return k
}

// free reports whether a gate is known to be free now. again asks the caller to read the gate again in the background. Only one caller is
// asked.
func (g *gates) free(name string, now time.Time) (free, again bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.known[name]
	if k == nil || k.state != GateFree {
		return false, false
	}
	wall := now.Round(0).Sub(k.read.Round(0)) // the monotonic clock stands still while a machine sleeps
	age := max(now.Sub(k.read), wall)
	if age >= freeFor || wall < 0 {
		return false, false
	}
	again = age >= freeFor/2 && !k.asking
	k.asking = k.asking || again
	return true, again
}

// note notes the state of a gate that was read at that time, or a little later.
func (g *gates) note(name string, s GateState, read time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.of(name)
	k.asking = false
	if k.state != s || k.tendAt.IsZero() {
		k.state, k.tendAt = s, read.Add(g.quiet)
		if s == GateAbsent {
			k.tendAt = read
		}
	}
	if s == GateFree {
		k.read = read
	}
}

// missed notes that a gate couldn't be read.
func (g *gates) missed(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of(name).asking = false
}

// tend reports whether the caller should try to make a gate free. Only one caller is asked. It has to call tended afterwards.
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
func (g *gates) tended(name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := g.of(name)
	k.tending, k.tendAt = false, time.Now().Add(g.quiet)
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

// prepare shuts a gate before a lock behind it is acquired, so that confirm mostly finds it shut and the lease needn't wait.
func (r *Router) prepare(ctx context.Context, gate string) error {
	if !r.enforces() || r.gates.shut(gate) {
		return nil
	}
	_, err := r.shutGate(ctx, gate)
	return err
}

// confirm makes sure that a gate is shut. Call it after a lock behind the gate was acquired, and before the client gets its answer. waited
// says that it took a while: the lease is shorter by that.
func (r *Router) confirm(ctx context.Context, gate string) (waited bool, err error) {
	if !r.enforces() {
		return false, nil
	}
	return r.shutGate(ctx, gate)
}

// shutGate reads a gate, and shuts it if it isn't shut. When it returns without an error, no proxy counts on a free gate any more.
func (r *Router) shutGate(ctx context.Context, name string) (waited bool, err error) {
	const tries = 10
	for range tries {
		_, found, read, err := r.readGates(ctx, nil, []string{name})
		if err != nil {
			return waited, err
		}
		seen := found[0]
		r.gates.note(name, seen.State, read)
		to := GateShut
		switch seen.State {
		case GateAbsent, GateShut:
			return waited, nil
		case GateShutting: // nobody knows since when, so wait for the whole time
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

// readGates reads lock documents and gates. read is the moment before they were read. If the store is unavailable, readGates tries again
// for a while: an index that was just created can't be read at once.
func (r *Router) readGates(ctx context.Context, ids, names []string) (docs []*state.Doc, found []Gate, read time.Time, err error) {
	for end := time.Now().Add(r.o.Patience); ; {
		read = time.Now()
		docs, found, err = r.o.Gates.Look(ctx, ids, names)
		if err == nil || read.After(end) || r.sleep(ctx, shortPause) != nil {
			return docs, found, read, err
		}
	}
}

// sleep waits for d. It returns early, with an error, if the client leaves or the Router is closed.
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
	defer r.gates.tended(name)
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
	case GateShutting: // the proxy that began to shut it may have died
		if err = r.sleep(ctx, waitOut); err == nil {
			_, _, err = r.o.Gates.Move(ctx, name, seen, GateShut)
		}
		return err
	case GateShut, GateDraining:
		if busy, err := r.leased(ctx, name, r.Now()-r.o.Quiet.Milliseconds()); busy || err != nil {
			return err
		}
	}
	seen, moved, err := r.o.Gates.Move(ctx, name, seen, GateDraining)
	if err != nil || !moved {
		return err
	}
	busy, err := r.leased(ctx, name, never) // a proxy that acquires a lock from now on finds the gate draining
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

// leased reports whether a lock behind a gate is held, or was used since that time. It has the store end the leases that are over.
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
		changes = append(changes, Change{t.id, d.Lapse()})
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

// behind returns the lock documents behind a gate that leased has to check.
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

// The names of gates: of the locks of an index, and of a global lock.
const (
	indexGate  = "index:"
	globalGate = "global:"
)
