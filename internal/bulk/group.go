package bulk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
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
	Fetch(ctx context.Context, who es.Caller, d es.Document) (doc.Revision, error)
	FetchAll(ctx context.Context, who es.Caller, ds []es.Document) ([]es.Fetched, error)
}

// Group has items that are written at the same time, each by itself, share requests: writes go as one _bulk, reads as one _mget. What one
// item sends waits until all others have something to send, too, or wait for somebody else; or until there is enough for a request.
//
// It is for one bulk of one client, and for the goroutines of its items.
type Group struct {
	Upstream  es.Doer
	Documents Documents
	Target    []byte       // of the bulk, as the client sent it but for what concerns the form of its answer
	Fields    []wire.Field // the client's, without those of a body's coding
	// Params are the query parameters by which the client says who asks: a request that goes by itself has them, too.
	Params []byte
	// Client is whose connections to the engine it takes.
	Client share.Client
	// Timeout bounds how long an answer is waited for.
	Timeout time.Duration
	// Context is the client's. Retry is for items that the engine rejects, and ends with it.
	Context context.Context
	Retry   retry.Policy
	// Background says that other writes go first.
	Background bool

	mu      sync.Mutex
	working int // items that are neither parked nor at their end
	writes  []*parkedWrite
	reads   []*parkedRead
	meeting []chan struct{} // items that go on together
	bytes   int
	timer   *time.Timer

	head    []wire.Field
	summary Summary
	rounds  int
	refusal *Refusal

	panicked error
}

// Refusal is the engine's answer to a bulk that it refused as a whole.
type Refusal struct {
	Status int
	Fields []wire.Field
	Body   []byte
}

// Bounds of one request, and of the wait for it.
const (
	maxBytes = 8 << 20
	maxItems = 5000
	// idle is for how long nobody may have come, before what has come goes, although items are still at work: they may be waiting for
	// writes of others, which may wait for these.
	idle = 2 * time.Millisecond
)

type parkedWrite struct {
	text []byte
	at   int // the item's place in the bulk: items go in the client's order, which tells what mapping a new field gets
	res  Result
	node string
	err  error
	done chan struct{}
	idle bool // nobody is at work on its item: it is only waited for
	asIs bool // the engine's element of it is the client's
	once bool // a rejection is its end
}

type parkedRead struct {
	ctx  context.Context
	who  es.Caller
	doc  es.Document
	res  es.Fetched
	err  error
	done chan struct{}
}

// Begin says that so many items begin their work.
func (g *Group) Begin(items int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.working += items
}

// End says that an item has ended its work.
func (g *Group) End() {
	g.mu.Lock()
	g.working--
	g.parked(false)
}

// Add has an item that isn't guarded go with the first request. wait returns what became of it.
func (g *Group) Add(it *Item) (wait func() (Result, error)) {
	w := &parkedWrite{text: it.Text, at: it.at, idle: true, asIs: true, once: it.PassRejected, done: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, w)
	g.bytes += len(w.text)
	return func() (Result, error) {
		g.flush() // nobody may be left who would send it
		<-w.done
		return w.res, w.err
	}
}

// flush sends what has come, if nobody is at work.
func (g *Group) flush() {
	g.mu.Lock()
	g.parked(false)
}

// Pass has an item that isn't guarded go as the others do that are at work, and returns what became of it.
func (g *Group) Pass(it *Item) (Result, error) {
	p := &parkedWrite{text: it.Text, at: it.at, asIs: true, once: it.PassRejected, done: make(chan struct{})}
	g.park(p)
	return p.res, p.err
}

// park waits until a write has gone with others, and has its answer.
func (g *Group) park(p *parkedWrite) {
	g.mu.Lock()
	g.writes = append(g.writes, p)
	g.bytes += len(p.text)
	g.working--
	g.parked(true)
	<-p.done
}

// Meet waits until all other items have something to send, too, or wait for somebody else. Then those who have met go on at the same time:
// what they do next, with others than the engine, can be done together.
func (g *Group) Meet() {
	met := make(chan struct{})
	g.mu.Lock()
	g.meeting = append(g.meeting, met)
	g.working--
	g.parked(true)
	<-met
}

// Head is the head of the engine's first answer to a bulk, nil if there was none.
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

// Summary is what the answers of the requests say of all their items.
func (g *Group) Summary() Summary {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rounds == 0 {
		g.summary.Ingest = -1
	}
	return g.summary
}

// Item returns the way of one item's writes and reads.
func (g *Group) Item(it *Item) *Way { return &Way{group: g, item: it} }

// Way is how the requests of one item travel.
type Way struct {
	group *Group
	item  *Item
}

// Do sends a write of the item's document together with those of other items. What a bulk can't say goes by itself.
func (w *Way) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	text, ok := w.item.appendText(nil, r.Method, r.Target, r.Body)
	if !ok {
		return w.group.alone(ctx, r)
	}
	p := &parkedWrite{text: text, at: w.item.at, once: w.item.PassRejected, done: make(chan struct{})}
	w.group.park(p)
	if p.err != nil {
		return nil, p.err
	}
	w.item.place = p.res.place
	return &upstream.Response{Head: wire.Head{Status: p.res.Status}, Payload: p.res.Body, Node: p.node}, nil
}

// alone sends a request by itself. Meanwhile others needn't wait for its item.
func (g *Group) alone(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	g.mu.Lock()
	g.working--
	g.parked(false)
	defer g.Begin(1)
	r.Target = uri.WithParams(r.Target, g.Params)
	return g.Upstream.Do(ctx, r)
}

// Fetch reads the item's document together with those of other items.
func (w *Way) Fetch(ctx context.Context, who es.Caller, d es.Document) (doc.Revision, error) {
	p := &parkedRead{ctx: ctx, who: who, doc: d, done: make(chan struct{})}
	g := w.group
	g.mu.Lock()
	g.reads = append(g.reads, p)
	g.working--
	g.parked(true)
	<-p.done
	if p.err != nil {
		return doc.Revision{}, p.err
	}
	return p.res.Revision, p.res.Err
}

// parked sends what has come, if that is all that will come. It is called with g locked, and unlocks it. more says that something has
// just come.
func (g *Group) parked(more bool) {
	waiting := len(g.writes)+len(g.reads)+len(g.meeting) > 0
	switch {
	case waiting && (g.working == 0 || g.bytes >= maxBytes || len(g.writes) >= maxItems):
		g.send()
		return
	case waiting && more && g.timer == nil:
		g.timer = time.AfterFunc(idle, func() {
			g.mu.Lock()
			g.send()
		})
	case waiting && more:
		g.timer.Reset(idle)
	}
	g.mu.Unlock()
}

// send sends what has come. It is called with g locked, and unlocks it.
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

// Close ends the group. Nothing may be under way.
func (g *Group) Close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
}

// errShort reports an answer to a bulk that doesn't tell what became of all items.
var errShort = errors.New("the engine's answer to a bulk doesn't tell what became of each item")

// write sends a bulk, and tells each of its items what became of it. Those that the engine rejects because it has too much to do (429)
// wait and go again: nothing of them was applied.
func (g *Group) write(writes []*parkedWrite) {
	all := writes
	defer func() {
		if p := recover(); p != nil {
			g.broke(p)
			g.finish(slices.DeleteFunc(all, func(w *parkedWrite) bool { return w.lost(g.Panic()) }))
		}
	}()
	slices.SortStableFunc(writes, func(a, b *parkedWrite) int { return a.at - b.at })
	err := retry.Do(g.Context, g.Retry, func(context.Context, int) error {
		if writes = g.exchange(writes); len(writes) > 0 {
			return fmt.Errorf("%w: the engine rejects %d items of a bulk", doc.ErrConflict, len(writes))
		}
		return nil
	})
	if err != nil {
		g.finish(writes) // the rejection is their answer
	}
}

// exchange sends a bulk once. It returns the writes that were rejected; all others have ended.
func (g *Group) exchange(writes []*parkedWrite) (rejected []*parkedWrite) {
	if whole := g.void(); whole != nil {
		for _, w := range writes {
			w.res = Result{Status: whole.Status, Body: whole.Body}
		}
		g.finish(writes)
		return nil
	}
	size := 0
	for _, w := range writes {
		size += len(w.text)
	}
	body := make([]byte, 0, size)
	for _, w := range writes {
		body = append(body, w.text...)
	}
	g.carry(writes, g.request(body))
	ended := make([]*parkedWrite, 0, len(writes))
	for _, w := range writes {
		if w.err == nil && w.res.Status == http.StatusTooManyRequests && !w.once {
			rejected = append(rejected, w)
		} else {
			ended = append(ended, w)
		}
	}
	g.finish(ended)
	return rejected
}

// request is a bulk with that body.
func (g *Group) request(body []byte) *upstream.Request {
	return &upstream.Request{Method: http.MethodPost, Target: g.Target, Fields: g.Fields, Body: body, Timeout: g.Timeout, Client: g.Client,
		Background: g.Background}
}

// Stream sends an item that isn't guarded by itself, and as it comes: body is its text. It returns what became of it.
func (g *Group) Stream(body upstream.Source) (Result, error) {
	r := g.request(nil)
	r.Stream, r.Length = body, -1
	w := &parkedWrite{asIs: true}
	g.carry([]*parkedWrite{w}, r)
	return w.res, w.err
}

// carry sends a bulk, and gives each write its result.
func (g *Group) carry(writes []*parkedWrite, r *upstream.Request) {
	res, err := g.Upstream.Do(wire.Last(g.Context), r)
	switch {
	case err != nil:
		for _, w := range writes {
			w.err = err
		}
	case res.Status != http.StatusOK:
		failure := Result{Status: res.Status, Body: bytes.Clone(res.Payload)}
		g.refused(&Refusal{Status: res.Status, Fields: headOf(res), Body: failure.Body})
		for _, w := range writes {
			w.res, w.node = failure, res.Node
		}
	default:
		g.tell(writes, res)
	}
	if err == nil {
		res.Release()
	}
}

// finish ends writes that have their result.
func (g *Group) finish(writes []*parkedWrite) {
	items := 0
	for _, w := range writes {
		if !w.idle {
			items++
		}
	}
	g.Begin(items) // they are at work before any of them can send something
	for _, w := range writes {
		close(w.done)
	}
}

// void is the engine's refusal of the whole bulk, before anything of it was written: then the rest of it isn't sent. 429 is none: it counts
// for the moment.
func (g *Group) void() *Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusal == nil || g.rounds > 0 || g.refusal.Status == http.StatusTooManyRequests {
		return nil
	}
	return g.refusal
}

func (g *Group) refused(r *Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusal = r
}

// tell gives each write its part of the engine's answer. Where that has not exactly one for each, nobody knows whose they are.
func (g *Group) tell(writes []*parkedWrite, res *upstream.Response) {
	n, whole := 0, true
	for element := range es.Elements(res.Payload, "items") {
		if n++; n > len(writes) {
			break
		}
		w := writes[n-1]
		read := readResult
		if w.asIs {
			read = readAsIs
		}
		if w.res, whole = read(element); !whole {
			break
		}
		w.node = res.Node
	}
	if !whole || n != len(writes) {
		for _, w := range writes {
			w.res, w.err = Result{}, &upstream.Error{Node: res.Node, Class: upstream.Lost, Sent: true, Status: res.Status, Err: errShort}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rounds == 0 {
		took, failed := bytes.Index(res.Payload, []byte(`"took"`)), bytes.Index(res.Payload, []byte(`"errors"`))
		g.summary.TookFirst, g.summary.Ingest = took < failed, -1
		g.head = headOf(res)
	}
	g.rounds++
	if n, ok := number(es.Member(res.Payload, "ingest_took")); ok {
		g.summary.Ingest = max(g.summary.Ingest, 0) + n
	}
}

// headOf are an answer's fields, without its length.
func headOf(res *upstream.Response) (head []wire.Field) {
	for _, f := range res.EndToEnd(nil) {
		if !wire.EqualFold(f.Name, "content-length") {
			head = append(head, wire.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)})
		}
	}
	return head
}

// read reads documents, for all items that asked for some.
func (g *Group) read(reads []*parkedRead) {
	defer func() {
		if p := recover(); p != nil {
			g.broke(p)
			for _, p := range reads {
				p.err = g.Panic()
			}
		}
		g.Begin(len(reads))
		for _, p := range reads {
			close(p.done)
		}
	}()
	first := reads[0]
	if len(reads) == 1 {
		first.res.Revision, first.res.Err = g.Documents.Fetch(first.ctx, first.who, first.doc)
	} else {
		docs := make([]es.Document, len(reads))
		for i, p := range reads {
			docs[i] = p.doc
		}
		all, err := g.Documents.FetchAll(first.ctx, first.who, docs)
		for i, p := range reads {
			if p.err = err; err == nil {
				p.res = all[i]
			}
		}
	}
}

// broke keeps what a goroutine of the group panicked with: it would end the process, and is the caller's. See Panic.
func (g *Group) broke(p any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.panicked = fmt.Errorf("panic in a bulk: %v\n%s", p, debug.Stack())
}

// Panic is what a goroutine of the group panicked with, nil if none has. Nobody knows then what became of its items.
func (g *Group) Panic() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.panicked
}

// lost makes the write one of which nobody knows what became, unless it has ended; it reports whether it has.
func (w *parkedWrite) lost(why error) (ended bool) {
	select {
	case <-w.done:
		return true
	default:
		w.res, w.err = Result{}, &upstream.Error{Class: upstream.Lost, Sent: true, Err: why}
		return false
	}
}
