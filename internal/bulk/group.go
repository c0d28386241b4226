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

	"optimist/internal/api"
	"optimist/internal/coding"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outbound"
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
	Target    []byte       // of the bulk, as the client sent it but for what concerns the form of its answer
	Fields    []wire.Field // the client's, without those of a body's coding
	// Params are the query parameters that name the client. A request that goes by itself has them, too.
	Params []byte
	// Client is the one whose share of the connections to the engine the requests take.
	Client share.Client
	// Timeout bounds how long an answer is waited for.
	Timeout time.Duration
	// Context is the client's. Retry is for items that the engine rejects. They aren't sent again once Context has ended.
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
	watched bool            // it will
	parked  int             // requests so far
	seen    int             // parked, when look was called last
	space   space           // of the texts of items

	head    []wire.Field
	summary Summary
	rounds  int  // answers to a bulk that tell what became of its items
	written bool // a bulk may have been written
	refusal *Refusal

	panicked error // see Panic
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
	// idle is how long the group waits at least, after a request was parked, and half of how long it waits at most. If no other is parked by
	// then, it sends what it has, although items are still at work: such an item may be waiting for another client's write, and that write
	// for one of these items.
	idle = 2 * time.Millisecond
)

// parkedWrite is a write that waits for its request, and then for its result.
type parkedWrite struct {
	text    []byte
	said    es.Item // what the engine says in res, of a bulk that tells what became of its items
	at      int     // the item's place in the bulk: items go in the client's order, on which the mapping of a new field depends
	res     Result
	node    string // that answered
	err     error
	done    chan struct{} // closed when res or err is there
	unowned bool          // no goroutine is at work on its item
	asIs    bool          // the client gets the engine's element as it stands
	once    bool          // it isn't sent again after a rejection
	doc     document      // as the client names it; without an id, the engine makes one
	// resumer goes on with the item of a write that no goroutine waits for. It is called in place of closing done, which is nil then.
	resumer Resumer
	ended   bool // it is called, or about to be
}

// Resumer goes on with an item, once there is what Received returns.
type Resumer interface{ Resume() }

// parkedRead is a read that waits for its request, and then for the document.
type parkedRead struct {
	ctx    context.Context
	caller es.Caller
	doc    es.Document
	res    es.Fetched
	err    error
	done   chan struct{}
}

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

// Add parks an item that isn't guarded, and that no goroutine is at work on. It goes with the first request. wait returns its result.
func (g *Group) Add(it *Item) (wait func() (Result, error)) {
	w := &parkedWrite{text: it.Text, at: it.at, doc: it.document(), unowned: true, asIs: true, once: it.PassRejected,
		done: make(chan struct{})}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, w)
	g.bytes += len(w.text)
	return func() (Result, error) {
		g.flush() // perhaps no other item is left that would send it
		<-w.done
		return w.res, w.err
	}
}

// flush sends what is parked, if no item is at work.
func (g *Group) flush() {
	g.mu.Lock()
	g.sendIfComplete(false)
}

// Pass parks an item that isn't guarded, and returns its result. It is Add for the goroutine of an item that is at work.
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
// time. It is for what items do between two requests, with a store of journals for example: they can do that together.
func (g *Group) Meet() {
	met := make(chan struct{})
	g.mu.Lock()
	g.meeting = append(g.meeting, met)
	g.working--
	g.sendIfComplete(true)
	<-met
}

// Head is the header fields of the engine's first answer to a bulk that tells what became of its items; nil if there was none.
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

// Summary is what the engine's answers say besides their items.
func (g *Group) Summary() Summary {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rounds == 0 {
		g.summary.Ingest = -1
	}
	return g.summary
}

// Way takes the requests of one item to the engine, one after the other, together with those of the other items of its Group.
type Way struct {
	group  *Group
	item   *Item
	turns  *Turns      // in one of which the item begins; nil: it has a goroutine of its own
	parked parkedWrite // the write under way
	// response is what Received returns of a write that was launched: nobody shares that.
	response upstream.Response
}

// Open makes the Way that of an item. Nobody may use what it was before. turns are the ones that the item's goroutine does; nil: it does
// nothing but this item.
func (w *Way) Open(g *Group, it *Item, turns *Turns) { *w = Way{group: g, item: it, turns: turns} }

// Request is Item.Request, in memory of the group.
func (w *Way) Request() (method, target []byte) {
	return w.item.request(w.group.space.take(w.item.roomOfRequest()))
}

// Waits is for before the item's goroutine waits for the engine, or for other writes.
func (w *Way) Waits() {
	if w.turns != nil {
		w.turns.Wait()
	}
}

// Do sends a write of the item's document. It goes with the writes of other items if a bulk can say it, else by itself.
func (w *Way) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	w.Waits()
	var q request
	if q.read(r); !w.park(&q) {
		return w.group.sendAlone(ctx, r)
	}
	w.parked.done = make(chan struct{})
	w.group.park(&w.parked)
	<-w.parked.done
	res, _, err := w.Received()
	return res, err
}

// Park makes an item of the request that out would make. The item goes with the writes of other items: see Launch. Park reports false if no
// item can say what the request says.
func (w *Way) Park(out *outbound.Write, body []byte, n doc.Numbers, create bool) bool {
	q := request{kind: out.Op.Kind, query: out.Query, guard: n, body: body}
	if create {
		q.kind = api.Create
	}
	return w.park(&q)
}

func (w *Way) park(q *request) bool {
	text, ok := w.item.appendText(w.group.space.take(len(w.item.ID)+len(q.query)+len(q.body)+roomOfAction), q)
	if ok {
		w.parked = parkedWrite{text: text, at: w.item.at, once: w.item.PassRejected, doc: w.item.document()}
	}
	return ok
}

// Launch sends what was parked. r is called once there is what Received returns. Items that may go on without waiting for the engine do so
// in few goroutines, in turn.
func (w *Way) Launch(r Resumer) {
	w.parked.resumer = r
	w.group.park(&w.parked)
}

// Received is what came of the write that was sent last, and what that says, if it is an item of the engine's answer to a bulk.
func (w *Way) Received() (_ *upstream.Response, said *es.Item, _ error) {
	p := &w.parked
	if p.err != nil {
		return nil, nil, p.err
	}
	if p.said.Status == p.res.Status { // else it is the answer to an earlier try, or there is none
		said = &p.said
	}
	w.item.place, w.item.action = p.res.place, nil
	if !bytes.HasPrefix(p.text[1:], p.res.action) {
		w.item.action = p.res.action
	}
	// Changes may share a write that was sent by Do. They hold its response longer than the one whose Way it came by. One of them may be a
	// request of its own, whose answer needs the engine's fields.
	r := &w.response
	if p.resumer == nil {
		r = new(upstream.Response)
	}
	r.Status, r.Fields, r.Payload, r.Node, r.OfAll = p.res.Status, w.group.Head(), p.res.Body, p.node, p.res.ofAll
	return r, said, nil
}

// roomOfAction is what most actions take, in bytes, beyond the document's id and the parameters.
const roomOfAction = 96

// sendAlone sends a request by itself. The other items don't wait for its item meanwhile.
func (g *Group) sendAlone(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	g.mu.Lock()
	g.working--
	g.sendIfComplete(false)
	defer g.Begin(1)
	r.Target = uri.WithParams(r.Target, g.Params)
	return g.Upstream.Do(wire.Last(ctx), r)
}

// Fetch reads the item's document, together with the documents of other items.
func (w *Way) Fetch(ctx context.Context, caller es.Caller, d es.Document) (doc.Revision, error) {
	w.Waits()
	p := &parkedRead{ctx: ctx, caller: caller, doc: d, done: make(chan struct{})}
	g := w.group
	g.mu.Lock()
	g.reads = append(g.reads, p)
	g.working--
	g.sendIfComplete(true)
	<-p.done
	if p.err != nil {
		return doc.Revision{}, p.err
	}
	return p.res.Revision, p.res.Err
}

// sendIfComplete sends what is parked, if no item is at work that could park more, or if there is enough for a request. It is called with
// g locked, and unlocks it. more says that a request was parked just now.
func (g *Group) sendIfComplete(more bool) {
	waiting := len(g.writes)+len(g.reads)+len(g.meeting) > 0
	if more {
		g.parked++
	}
	switch {
	case waiting && (g.working == 0 || g.bytes >= maxBytes || len(g.writes) >= maxItems):
		g.send()
		return
	case !waiting || !more || g.watched: // a timer that is set anew for each request would take longer than all else here
	case g.timer == nil:
		g.watched, g.timer = true, time.AfterFunc(idle, g.look)
	default:
		g.watched = true
		g.timer.Reset(idle)
	}
	g.mu.Unlock()
}

// look sends what is parked, if nothing was parked since it looked last.
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

// send sends what is parked, and lets the items go on that wait in Meet. It is called with g locked, and unlocks it.
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

// errShort reports an answer to a bulk that has more or fewer results than the bulk had items, or that has them in another order.
var errShort = errors.New("the engine's answer to a bulk doesn't tell what became of each item")

// write sends a bulk, and gives each of its items the result. If the engine rejects items because it has too much to do (429), they wait
// and go again: nothing of them was applied.
func (g *Group) write(writes []*parkedWrite) {
	defer func() {
		if p := recover(); p != nil {
			g.notePanic(p)
			g.finish(slices.DeleteFunc(writes, func(w *parkedWrite) bool { return w.markLost(g.Panic()) }))
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

// exchange sends a bulk once. It returns the writes that were rejected and may go again. All others have their results.
func (g *Group) exchange(writes []*parkedWrite) []*parkedWrite {
	if whole := g.refusedWhole(); whole != nil {
		for _, w := range writes {
			w.res = Result{Status: whole.Status, Body: whole.Body, ofAll: true}
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
	g.sendBulk(writes, g.request(body))
	rejected, ended := rejections(writes)
	g.finish(ended)
	return rejected
}

// rejections are the writes that were rejected and may go again, and the others. A write may not go again if a later one of its document
// has gone through: the client's order would be lost.
func rejections(writes []*parkedWrite) (again, ended []*parkedWrite) {
	isRejected := func(w *parkedWrite) bool {
		return w.err == nil && w.res.Status == http.StatusTooManyRequests && !w.once
	}
	if !slices.ContainsFunc(writes, isRejected) {
		return nil, writes
	}
	through := map[string]bool{} // ids: whether two names stand for one index isn't known here
	for _, w := range slices.Backward(writes) {
		if isRejected(w) && !through[w.doc.id] {
			again = append(again, w)
			continue
		}
		ended = append(ended, w)
		through[w.doc.id] = w.doc.id != ""
	}
	slices.Reverse(again)
	slices.Reverse(ended)
	return again, ended
}

// request is the request of a bulk with this body.
func (g *Group) request(body []byte) *upstream.Request {
	return &upstream.Request{Method: http.MethodPost, Target: g.Target, Fields: g.Fields, Body: body, Timeout: g.Timeout, Client: g.Client,
		Background: g.Background}
}

// Stream sends an item that isn't guarded as a bulk of its own, while the client is still sending it: body is its text. It returns the
// item's result.
func (g *Group) Stream(body upstream.Source) (Result, error) {
	r := g.request(nil)
	r.Stream, r.Length = body, -1
	w := &parkedWrite{asIs: true}
	g.sendBulk([]*parkedWrite{w}, r)
	return w.res, w.err
}

// sendBulk sends a bulk, and gives each write its result.
func (g *Group) sendBulk(writes []*parkedWrite, r *upstream.Request) {
	res, err := g.Upstream.Do(wire.Last(g.Context), r)
	switch {
	case err != nil:
		for _, w := range writes {
			w.err = err
		}
	case res.Status != http.StatusOK:
		body, fields, err := plain(res)
		if err != nil { // the client gets it as it came
			body, fields = res.Payload, append(fields, wire.Field{Name: contentEncoding, Value: bytes.Clone(res.Get("content-encoding"))})
		}
		failure := Result{Status: res.Status, Body: bytes.Clone(body), ofAll: true}
		g.noteRefusal(&Refusal{Status: res.Status, Fields: fields, Body: failure.Body})
		for _, w := range writes {
			w.res, w.node = failure, res.Node
		}
		res.Release()
	default:
		g.distribute(writes, res) // and they keep it
	}
}

// finish lets the items of these writes go on: the writes have their results.
func (g *Group) finish(writes []*parkedWrite) {
	items := 0
	for _, w := range writes {
		if !w.unowned {
			items++
		}
	}
	g.Begin(items) // before any of them goes on, so that the first doesn't take itself for the last
	quick := make([]*parkedWrite, 0, len(writes))
	for _, w := range writes {
		switch w.ended = true; {
		case w.resumer == nil:
			close(w.done)
		case w.err == nil && w.res.Status < 300:
			quick = append(quick, w)
		default:
			go w.resumer.Resume()
		}
	}
	if len(quick) > 0 {
		InTurn(len(quick), func(_ *Turns, k int) { quick[k].resumer.Resume() })
	}
}

// refusedWhole is the engine's refusal of the whole bulk, if it came before anything was written; else nil. The rest of the bulk isn't
// sent then. A 429 isn't one: it holds for the moment only.
func (g *Group) refusedWhole() *Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.refusal == nil || g.written || g.refusal.Status == http.StatusTooManyRequests {
		return nil
	}
	return g.refusal
}

func (g *Group) noteRefusal(r *Refusal) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refusal = r
}

// distribute gives each write its element of the engine's answer. If the answer has more or fewer elements than there are writes, or has
// them in an order that nobody can make out, the outcome of all of them is unknown.
func (g *Group) distribute(writes []*parkedWrite, res *upstream.Response) {
	var part Summary
	body, head, err := plain(res)
	of := part.read(body)
	whole := err == nil && of.readAll(writes)
	if whole && mayBeMixedUp(writes) {
		if writes, whole = inOrder(writes); whole {
			of = part.read(body)
			whole = of.readAll(writes)
		}
	}
	for _, w := range writes {
		if w.node = res.Node; whole {
			w.res.alone(&w.said)
		} else {
			w.res, w.err = Result{}, &upstream.Error{Node: res.Node, Class: upstream.Lost, Sent: true, Status: res.Status, Err: errShort}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.written = true; !whole {
		return // it isn't known whose answer it is
	}
	if g.rounds == 0 {
		g.summary.TookFirst, g.summary.Ingest = part.TookFirst, -1
		g.head = head
	}
	g.rounds++
	if part.Ingest >= 0 {
		g.summary.Ingest = max(g.summary.Ingest, 0) + part.Ingest
	}
}

// maxPlain bounds a decoded answer, in bytes.
const maxPlain = 64 << 20

var contentEncoding = []byte("Content-Encoding")

// plain is an answer without its content coding, and its header fields without those of the coding and of the length: a balancer may
// compress an answer although nobody has asked for that.
func plain(res *upstream.Response) (body []byte, head []wire.Field, err error) {
	for _, f := range res.EndToEnd(nil) {
		if !wire.EqualFold(f.Name, "content-length") && !wire.EqualFold(f.Name, "content-encoding") {
			head = append(head, wire.Field{Name: bytes.Clone(f.Name), Value: bytes.Clone(f.Value)})
		}
	}
	body, err = coding.Decode(res.Payload, res.Get("content-encoding"), maxPlain)
	return body, head, err
}

// read reads the documents of parked reads.
func (g *Group) read(reads []*parkedRead) {
	defer func() {
		if p := recover(); p != nil {
			g.notePanic(p)
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
		first.res.Revision, first.res.Err = g.Documents.Fetch(first.ctx, first.caller, first.doc)
	} else {
		docs := make([]es.Document, len(reads))
		for i, p := range reads {
			docs[i] = p.doc
		}
		all, err := g.Documents.FetchAll(first.ctx, first.caller, docs)
		for i, p := range reads {
			if p.err = err; err == nil {
				p.res = all[i]
			}
		}
	}
}

// notePanic keeps what a goroutine of the group panicked with. A panic in that goroutine would end the process. The caller of the group
// deals with it instead: see Panic.
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

// markLost gives a write that has no result yet an unknown outcome. It reports whether the write had its result.
func (w *parkedWrite) markLost(why error) (ended bool) {
	if !w.ended {
		w.res, w.err = Result{}, &upstream.Error{Class: upstream.Lost, Sent: true, Err: why}
	}
	return w.ended
}
