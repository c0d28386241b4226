package bulk

import (
	"bytes"
	"context"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outbound"
	"optimist/internal/upstream"
)

// parkedWrite is a write that waits for its request, and then for its result.
type parkedWrite struct {
	text    []byte
	members es.Item // the members of res, if the engine's answer to the bulk has the results of the items
	at      int     // the item's place in the bulk: items go in the client's order, on which the mapping of a new field depends
	res     Result
	node    string // the node that answered
	err     error
	done    chan struct{} // closed when res or err is there
	unowned bool          // no goroutine is at work on its item
	asIs    bool          // the client gets the engine's element as it stands
	once    bool          // it isn't sent again after a rejection
	doc     document      // as the client names it; if it has no id, the engine makes one
	// resumer goes on with the item, if no goroutine waits for the write. Its Resume is called in place of closing done, which is nil then.
	resumer Resumer
	ended   bool // Resume is called, or about to be
}

// Resumer goes on with an item once its write has a result: Received returns it.
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

// Way takes the requests of one item to the engine, one after the other, together with those of the other items of its Group.
type Way struct {
	group  *Group
	item   *Item
	turns  *Turns      // the item begins in one of these steps; nil: it has a goroutine of its own
	parked parkedWrite // the write under way
	// response is memory for the response that Received returns: nobody shares it.
	response upstream.Response
}

// Open prepares the Way for an item. Nobody may still use it for an earlier item. turns are the steps that the item's goroutine does; nil:
// the goroutine does only this item.
func (w *Way) Open(g *Group, it *Item, turns *Turns) { *w = Way{group: g, item: it, turns: turns} }

// Request is Item.Request, in memory of the group.
func (w *Way) Request() (method, target []byte) {
	return w.item.Request(w.group.space.take(w.item.roomOfRequest()))
}

// Waits says that the item's goroutine is about to wait for the engine, or for other writes.
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

// Park makes an item that does the same as the request that out makes. The item goes with the writes of other items: see Launch. Park
// reports false if no item can do what the request does.
func (w *Way) Park(out *outbound.Template, body []byte, n doc.Numbers, create bool) bool {
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

// Launch sends the parked item. r is resumed once the item has a result. Items that go on without waiting for the engine share a few
// goroutines.
func (w *Way) Launch(r Resumer) {
	w.parked.resumer = r
	w.group.park(&w.parked)
}

// Received is the result of the write that was sent last. If it is an item of the engine's answer to a bulk, members are those of the item.
func (w *Way) Received() (_ *upstream.Response, members *es.Item, _ error) {
	p := &w.parked
	if p.err != nil {
		return nil, nil, p.err
	}
	if p.members.Status == p.res.Status { // else it is the answer to an earlier try, or there is none
		members = &p.members
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
	return r, members, nil
}

// roomOfAction is what most actions take, in bytes, beyond the document's id and the parameters.
const roomOfAction = 96

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

// markLost gives a write that has no result yet an unknown outcome. It reports whether the write had its result.
func (w *parkedWrite) markLost(why error) (ended bool) {
	if !w.ended {
		w.res, w.err = Result{}, &upstream.Error{Class: upstream.Lost, Sent: true, Err: why}
	}
	return w.ended
}
