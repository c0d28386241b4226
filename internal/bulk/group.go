package bulk

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/share"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/retry"
)

// Documents reads documents as they are now; *es.Client is one.
type Documents interface {
	Fetch(ctx context.Context, caller es.Caller, d es.Document) (doc.Revision, error)
	FetchAll(ctx context.Context, caller es.Caller, ds []es.Document) ([]es.Fetched, error)
}

// Group joins the requests of items that are written at the same time: their writes go as one _bulk, their reads as one _mget. A
// request of one item is parked until every other item has parked one, too, or waits for something else. It goes earlier if there is
// enough for a request.
//
// A Group is for one bulk of one client. Many goroutines may use it at the same time, each for another item.
type Group struct {
	Upstream  es.Doer
	Documents Documents
	Target    []byte       // of the bulk: the client's, without parameters that change the form of the answer
	Fields    []wire.Field // the client's, without those of a body's coding
	// Params are the query parameters that name the client. A request for one item alone has them, too.
	Params []byte
	// Client is the client: the requests take its share of the connections to the engine.
	Client share.Client
	// Timeout is how long the group waits for an answer.
	Timeout time.Duration
	// Context is the client's. Retry is for items that the engine rejects. The group sends none of them again once Context has ended.
	Context context.Context
	Retry   retry.Policy
	// Background says that other writes go first.
	Background bool

	mu      sync.Mutex
	working int // items at work: they have parked nothing, and haven't ended
	writes  []*parkedWrite
	reads   []*parkedRead
	meeting []chan struct{} // items that wait in Meet
	bytes   int             // of the parked writes
	timer   *time.Timer     // calls look
	watched bool            // the timer is set
	parked  int             // how many requests were parked until now
	seen    int             // the value of parked when look was called last
	space   space           // of the texts of items

	head    []wire.Field
	summary Summary
	rounds  int  // answers to a bulk that have the results of its items
	written bool // a bulk may have been written
	refusal *Refusal

	panicked error // see Panic
}

// Bounds of one request, and of the wait for it.
const (
	maxBytes = 8 << 20
	maxItems = 5000
	// idle is how long the group waits, after a request was parked, for the next one: at least idle, and less than twice that. Then it sends
	// what is parked, although items are still at work. Such an item may be waiting for another client's write, and that write for one of
	// the parked items.
	idle = 2 * time.Millisecond
)

// Begin notes that so many items begin their work.
func (g *Group) Begin(items int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.working += items
}

// End notes that an item has ended its work.
func (g *Group) End() {
	g.mu.Lock()
	g.working--
	g.sendIfComplete(false)
}

// Add parks an item that isn't guarded, and that has no goroutine. The item goes with the first request. wait returns its result.
func (g *Group) Add(it *Item) (wait func() (Result, error)) {
	w := &parkedWrite{text: it.Text, at: it.at, doc: it.document(), unowned: true, asIs: true, once: it.PassRejected,
		done: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, w)
	g.bytes += len(w.text)
	return func() (Result, error) {
		g.mu.Lock()
		g.sendIfComplete(false) // there may be no other item that would send this one
		<-w.done
		return w.res, w.err
	}
}

// Pass parks an item that isn't guarded, and returns its result. Unlike Add, it is called by the item's own goroutine.
func (g *Group) Pass(it *Item) (Result, error) {
	p := &parkedWrite{text: it.Text, at: it.at, asIs: true, once: it.PassRejected, doc: it.document(), done: make(chan struct{})}
	g.park(p)
	<-p.done
	return p.res, p.err
}

// park parks a write of an item that was at work.
func (g *Group) park(p *parkedWrite) {
	g.mu.Lock()
	g.writes = append(g.writes, p)
	g.bytes += len(p.text)
	g.working--
	g.sendIfComplete(true)
}

// Meet waits until every other item has parked a request, or waits for something else. Then all items that wait in Meet go on at the same
// time. So items can do together what they do between two requests: with a store of journals, for example.
func (g *Group) Meet() {
	met := make(chan struct{})
	g.mu.Lock()
	g.meeting = append(g.meeting, met)
	g.working--
	g.sendIfComplete(true)
	<-met
}

// Head is the header fields of the engine's first answer to a bulk that has the results of the items; nil if there was none.
func (g *Group) Head() []wire.Field {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.head
}

// Refusal is the last answer by which the engine refused a whole bulk, nil if there was none.
func (g *Group) Refusal() *Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refusal
}

// Summary is what the engine's answers say before their items.
func (g *Group) Summary() Summary {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rounds == 0 {
		g.summary.Ingest = -1
	}
	return g.summary
}

// sendAlone sends a request by itself. Meanwhile the other items don't wait for the item of that request.
func (g *Group) sendAlone(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	g.mu.Lock()
	g.working--
	g.sendIfComplete(false)
	defer g.Begin(1)
	r.Target = uri.WithParams(r.Target, g.Params)
	return g.Upstream.Do(wire.Last(ctx), r)
}

// sendIfComplete sends the parked requests, if no item is at work that could park one more, or if there are enough of them. It is called
// with g locked, and unlocks it. more says that a request was parked just now.
func (g *Group) sendIfComplete(more bool) {
	waiting := len(g.writes)+len(g.reads)+len(g.meeting) > 0
	if more {
		g.parked++
	}
	switch {
	case waiting && (g.working == 0 || g.bytes >= maxBytes || len(g.writes) >= maxItems):
		g.send()
		return
	case !waiting || !more || g.watched: // to set the timer anew for each request would take longer than everything else here
	case g.timer == nil:
		g.watched, g.timer = true, time.AfterFunc(idle, g.look)
	default:
		g.watched = true
		g.timer.Reset(idle)
	}
	g.mu.Unlock()
}

// look sends the parked requests, if none was parked since the last look.
func (g *Group) look() {
	g.mu.Lock()
	if waiting := len(g.writes)+len(g.reads)+len(g.meeting) > 0; waiting && g.parked != g.seen {
		g.seen = g.parked
		g.timer.Reset(idle)
		g.mu.Unlock()
		return
	}
	g.watched = false
	g.send()
}

// send sends the parked requests, and lets the items that wait in Meet go on. It is called with g locked, and unlocks it.
func (g *Group) send() {
	writes, reads := g.writes, g.reads
	g.writes, g.reads, g.bytes = nil, nil, 0
	for _, met := range g.meeting {
		g.working++
		close(met)
	}
	g.meeting = nil
	g.mu.Unlock()
	if len(reads) > 0 {
		go g.read(reads)
	}
	if len(writes) > 0 {
		go g.write(writes)
	}
}

// Close ends the group. Call it when all items have ended.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
}

// notePanic keeps the panic of a goroutine of the group, which would otherwise end the process. The caller of the group deals with it: see
// Panic.
func (g *Group) notePanic(p any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.panicked = fmt.Errorf("panic in a bulk: %v\n%s", p, debug.Stack())
}

// Panic is what a goroutine of the group panicked with; nil if none has. After a panic the results of the items are unknown.
func (g *Group) Panic() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.panicked
}
