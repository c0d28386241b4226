package lockrouter

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"optimist/internal/hook"
	"optimist/internal/obs"
	"optimist/lockrouter/state"
)

// Options are what a Router needs; Store or Keeper is required. Zero values take the defaults that the fields name.
type Options struct {
	Store Store
	// Keeper gives out the leases instead of the Router's own, which then needs no Store. Ability says what it can do.
	Keeper  Keeper
	Ability Ability
	// Undo keeps the journals of leases whose writes are undone if they aren't released. Nil: there are none. It needs a Store.
	Undo Undo
	// Path is the segment, with its slash, under which locks are: /_lock.
	Path string
	// Reserved is an index whose documents' locks are given out by the requests of package compat. Requests under Path may look at these
	// locks, and only the operator may end one. Otherwise a client that knows an owner's name could take them.
	Reserved string
	// TTL is a lease's length where the request says none: 30s. MaxTTL is the longest: 24h.
	TTL, MaxTTL time.Duration
	// Foreground and Background are how long a request of that class waits if it doesn't say; 0: not at all. MaxWait is the
	// longest: 1h.
	Foreground, Background, MaxWait time.Duration
	// Bound is how many of the foreground may go past one of the background that waits: 16.
	Bound int
	// Chain is how many waiters of this proxy may be promised their leases ahead: 0, nobody. With promises, a lock is handed from one to
	// the next without waiting for the store.
	Chain int
	// MostHeld is how many leases a tree may hold: 20000. They take no more bytes than state.Bytes says.
	MostHeld int
	// MostWaiting is how many requests may wait at the same time, for all locks together: 0, any number. One client gets a share of the
	// places, and less beside others. A request without a place doesn't wait: it tries once.
	MostWaiting int
	// Patience is how long an operation that doesn't wait in the queue is tried again while the store is unavailable: 2s.
	Patience time.Duration
	// Search returns the ids of the documents that a query finds in an index now, at most `most` of them, on behalf of the request's
	// client. The client gets a *Failure as its answer. Nil: there are no locks by query.
	Search func(ctx context.Context, q *Request, index string, query []byte, most int) ([]string, error)
	// Gates are those of the Store. Nil: locks can't be enforced (see Admit).
	Gates Gates
	// Enforces reports whether any rule enforces locks now. Required where there are Gates.
	Enforces func() bool
	// Quiet is how long no lock must have been used behind a gate before it is made free: 30s.
	Quiet time.Duration
	// Touch gives documents of an index new sequence numbers, with the credentials of the request's client. A *Failure is the client's
	// answer. Nil: no acquisition can ask for it.
	Touch func(ctx context.Context, q *Request, index string, ids []string) error
	// Events are told what happens. Log gets a line for each lease that lapsed or was taken over, and when the store comes and
	// goes.
	Events Events
	Log    *slog.Logger
}

// Events are for metrics. Any may be nil. They must not block.
type Events struct {
	// Acquired ends a request for a lock: its class, with what outcome (acquired, reentered, held, timeout, full, left, failed),
	// and how long it took.
	Acquired hook.Func3[state.Class, string, time.Duration]
	// Contended counts a request that met somebody else: the lock was taken, or others waited for it.
	Contended hook.Func1[state.Class]
	// Lapsed counts leases that ended without a release, and says whether another owner got the lock because of that.
	Lapsed hook.Func2[int, bool]
}

// The time between two looks at a lock that requests wait for. It begins with the first after each change, and grows to the second while
// nothing changes.
const (
	firstTick = 20 * time.Millisecond
	lastTick  = 250 * time.Millisecond
)

func (o *Options) fill() {
	o.TTL = cmp.Or(max(o.TTL, 0), 30*time.Second)
	o.MaxTTL = cmp.Or(max(o.MaxTTL, 0), 24*time.Hour)
	o.MaxWait = cmp.Or(max(o.MaxWait, 0), time.Hour)
	o.Patience = cmp.Or(max(o.Patience, 0), 2*time.Second)
	o.Bound = cmp.Or(max(o.Bound, 0), 16)
	o.MostHeld = cmp.Or(max(o.MostHeld, 0), 20_000)
	o.MostWaiting = cmp.Or(max(o.MostWaiting, 0), math.MaxInt32)
	o.Quiet = cmp.Or(max(o.Quiet, 0), quiet)
	o.Path = cmp.Or(o.Path, "/_lock")
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
}

// Router gives out locks. It is safe for concurrent use; make it with New, and Close it.
type Router struct {
	o      Options
	own    leaser // gives out leases
	keeper leaser // own, or one that also ends journals
	name   string // of this proxy, unique to the process
	queue  string // its name in queues and chains. Operations that bypass the lanes have another name, so that they count as another proxy's
	epoch  time.Time
	rids   atomic.Uint64
	past   atomic.Int64 // requests that call the store past the lanes
	offset atomic.Int64 // ms that the documents' clock is ahead of now, as last seen, or else as this machine's clock was at the start
	held   holdings
	gates  gates
	looks  looks
	doubts doubts

	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	wg     sync.WaitGroup
	wake   chan struct{}   // for the watcher: there is something to wait for that wasn't
	open   context.Context // ends when nobody may wait any more
	shut   context.CancelFunc

	mu      sync.Mutex
	lanes   map[string]*lane
	waiting [2]int         // by class
	clients map[string]int // how many of a client wait
	down    bool           // the store was unavailable at the last call
	away    obs.Seldom     // requests that got a 503, for the log
	closed  bool
}

// New makes a Router.
func New(o Options) *Router {
	o.fill()
	unique := make([]byte, 6)
	_, _ = rand.Read(unique) // never fails, says its documentation
	name := hex.EncodeToString(unique)
	r := &Router{o: o, name: name, queue: name + "+", epoch: time.Now(), wake: make(chan struct{}, 1),
		lanes: map[string]*lane{}, clients: map[string]int{}}
	r.gates.known, r.gates.quiet, r.looks.r, r.doubts.r = map[string]*gate{}, o.Quiet, r, r
	r.held.leases = map[holding]time.Time{}
	r.offset.Store(r.epoch.UnixMilli())
	r.own = documents{r}
	if o.Keeper != nil {
		r.own = guest{r, o.Keeper}
	}
	r.keeper = r.own
	if o.Undo != nil {
		r.keeper = undoer{documents{r}}
	}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	r.open, r.shut = context.WithCancel(r.ctx)
	r.wg.Go(r.watch)
	return r
}

// Drain ends all waits with ErrStore, those that come later, too: a lock may be waited for an hour, and another proxy can do that.
// Requests that needn't wait are still handled.
func (r *Router) Drain() { r.shut() }

// Close ends what runs beside requests. Requests that wait end with ErrStore; leases stay until they lapse. Leases of which no client
// knows, because its wait was given up, are given back; for that the store has a second.
func (r *Router) Close() {
	r.Drain()
	r.finish(time.Second)
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.cancel()
	r.wg.Wait()
}

// finish waits until there is nothing more to be sent.
func (r *Router) finish(limit time.Duration) {
	const look = 2 * time.Millisecond
	late := time.NewTimer(limit)
	defer late.Stop()
	every := time.NewTicker(look)
	defer every.Stop()
	for r.busy() {
		select {
		case <-every.C:
		case <-late.C:
			return
		}
	}
}

func (r *Router) busy() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.lanes {
		if l.running || len(l.tasks) > 0 {
			return true
		}
	}
	return r.past.Load() > 0 || r.doubts.running
}

// beside runs something on a goroutine of its own. After Close it doesn't, and returns false.
func (r *Router) beside(run func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.wg.Go(run)
	return true
}

// Waiting is how many requests of the class wait for a lock here.
func (r *Router) Waiting(c state.Class) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.waiting[classIndex(c)]
}

// Held is how many leases that were given out here have been neither released here nor ended, by this machine's clock.
func (r *Router) Held() int { return r.held.count(time.Now()) }

func classIndex(c state.Class) int {
	if c == state.Background {
		return 1
	}
	return 0
}

// now is ms of this process's own clock.
func (r *Router) now() int64 { return time.Since(r.epoch).Milliseconds() }

// Rid returns a new request id, which no other proxy uses.
func (r *Router) Rid() string { return r.name + "-" + strconv.FormatUint(r.rids.Add(1), 36) }

// grace is how long the first of a queue may take to acquire its lock. Its proxy looks at the lock once in lastTick, and asks then.
func (r *Router) grace() int64 { return (3 * lastTick).Milliseconds() }

// Now is about the time of the documents' clock, in ms. It is good enough for answers, but not for decisions. It goes on with the monotonic
// clock: somebody may set this machine's wall clock, and a lock that is held must not seem free then.
func (r *Router) Now() int64 { return r.now() + r.offset.Load() }
