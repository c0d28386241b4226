package bulk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/tidwall/gjson"

	"optimist/internal/coding"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/retry"
)

// Refusal is the engine's answer to a bulk that it refused as a whole.
type Refusal struct {
	Status int
	Fields []wire.Field
	Body   []byte
}

// errShort reports an answer to a bulk that has more or fewer results than the bulk had items, or that has them in another order.
var errShort = errors.New("the engine's answer to a bulk doesn't tell what became of each item")

// write sends a bulk, and gives each of its items the result. If the engine rejects items because it has too much to do (429), it has
// applied nothing of them: write waits, and sends them again.
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
		g.finish(writes) // they get the rejection as their result
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

// rejections returns the rejected writes that may go again, and the other writes. A rejected write may not go again if a later write of the
// same document was applied: the client's order would be lost.
func rejections(writes []*parkedWrite) (again, ended []*parkedWrite) {
	isRejected := func(w *parkedWrite) bool {
		return w.err == nil && w.res.Status == http.StatusTooManyRequests && !w.once && !w.isBlocked()
	}
	if !slices.ContainsFunc(writes, isRejected) {
		return nil, writes
	}
	through := map[string]bool{} // by id alone, because two names may stand for one index
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

// isBlocked reports whether the engine has refused the item because its index is blocked. If a disk is full, that is a 429, too, but
// waiting for a moment doesn't help.
func (w *parkedWrite) isBlocked() bool {
	return gjson.GetBytes(w.members.Failure, "type").Str == es.BlockType
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
	case res.Status/100 != 2:
		body, fields, err := plain(res)
		if err != nil { // the client gets the answer as it came
			body, fields = res.Payload, append(fields, wire.Field{Name: contentEncoding, Value: bytes.Clone(res.Get("content-encoding"))})
		}
		failure := Result{Status: res.Status, Body: bytes.Clone(body), ofAll: true}
		g.noteRefusal(&Refusal{Status: res.Status, Fields: fields, Body: failure.Body})
		for _, w := range writes {
			w.res, w.node = failure, res.Node
		}
		res.Release()
	default:
		g.distribute(writes, res) // the results keep the answer
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
	g.Begin(items) // before any item goes on: otherwise the first one would take itself for the last
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

// refusedWhole is the engine's refusal of the whole bulk, if it came before anything was written; else nil. The group then sends no further
// item of the bulk. A 429 is no such refusal: it holds for the moment only.
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

// distribute gives each write its element of the engine's answer. If the answer has more or fewer elements than there are writes, or if
// nobody can make out the order of the elements, the outcome of all writes is unknown.
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
			w.res.alone(&w.members)
		} else {
			w.res, w.err = Result{}, &upstream.Error{Node: res.Node, Class: upstream.Lost, Sent: true, Err: errShort}
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.written = true; !whole {
		return // nobody knows whose results these are
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

// plain returns an answer without its content coding, and its header fields without those of the coding and of the length. A balancer may
// compress an answer although nobody has asked for it.
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
