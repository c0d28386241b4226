package proxy

import (
	"bytes"
	"io"
	"net"
	"slices"

	"optimist/internal/coding"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// ForwardOptions change a request or its answer on the way. The zero value changes nothing.
type ForwardOptions struct {
	// Target replaces the request's target. Nil: the request's own bytes.
	Target []byte
	// Drop names fields that are left out of the request. Names are compared without case.
	Drop []string
	// Readable has the engine answer in gzip, if the client takes that, or else uncompressed, whatever other codings the client takes:
	// what looks at the answer reads no others.
	Readable bool
	// Peek is how many bytes of the answer's body OnHead wants to see, at most 64 KiB. OnHead is called when they have come, or
	// the body has ended.
	Peek int
	// OnHead is called with the answer's head and the first bytes of its body, without transfer coding and with whatever content
	// coding it has. The fields that OnHead returns stand behind the answer's own. It must not change the head.
	OnHead func(h *wire.Head, first []byte) []wire.Field
	// Copy is called with each piece of the answer's body in order, without transfer coding, before the client gets it. It must
	// not keep the bytes. The client waits while it runs.
	Copy func(p []byte)
	// Last is called after Copy has had all of the body and before the client gets the end of it: whatever the client does next
	// comes later. It isn't called for an answer that breaks off. If the body has no known length, each piece is held back until
	// the next one comes.
	Last func()
	// Change is called with each piece of the answer's body in order, as Copy is, and returns the bytes for the client instead: more, or
	// less, or nothing yet. last says that no more comes. The result must stay valid until the next call. If the answer isn't complete
	// when its head goes on, it gets chunks instead of a length. Not together with Peek, Copy or Last.
	Change func(p []byte, last bool) []byte
}

// maxPeek bounds ForwardOptions.Peek.
const maxPeek = 64 << 10

// Forward sends the request to the engine and its answer to the client, both streamed. It returns an error only while the client
// has got nothing: the caller gives the error to Fail, or answers otherwise. Later errors end the connection, because nothing
// else can tell the client that its answer isn't whole. The request goes to another node, or to the same one again, only if
// nothing of it was sent, or if it is a GET, HEAD or OPTIONS that doesn't move a scroll on.
func (x *Exchange) Forward(o ForwardOptions) error {
	if x.hasAnswer {
		return ErrSecondAnswer
	}
	if err := x.send(&o); err != nil {
		return err
	}
	err := x.relay(&o)
	x.c.up.Finish()
	if x.in.streaming {
		x.takeBodyBack()
	}
	return err
}

// takeBodyBack takes the body back from the goroutine that sent it. An interruption that came after the body's last byte is
// undone: it must not end the wait for the next request.
func (x *Exchange) takeBodyBack() {
	x.in.streaming = false
	if (x.in.interrupted.Load() || !x.in.body.Done()) && !x.c.resumeReads() {
		x.broken = true
	}
}

// send sends the request and waits for the answer's head.
func (x *Exchange) send(o *ForwardOptions) error {
	if err := x.composeRequest(o); err != nil {
		return err
	}
	err := x.c.up.Send(&x.up)
	if err != nil && x.in.streaming {
		x.takeBodyBack()
	}
	return err
}

// composeRequest makes x.up the request that goes to the engine.
func (x *Exchange) composeRequest(o *ForwardOptions) error {
	c := x.c
	if c.up == nil {
		c.up = c.server.upstream.NewExchange(c.ctx)
	}
	whole, err := x.in.collectSmall()
	if err != nil {
		return err
	}
	r := &x.up
	r.Method = wire.MethodString(x.head.Method)
	r.Target = x.head.Target
	if o.Target != nil {
		r.Target = o.Target
	}
	r.Fields = x.requestFields(o)
	r.Repeatable = x.repeatable()
	r.Client = x.Place()
	r.Interim = x.onInterim
	switch {
	case !whole:
		r.Stream, r.Length, r.Expect = &x.in, x.head.Length, x.in.awaitsContinue
		x.in.streaming = true
	case x.head.Body == wire.Chunked:
		r.Body, r.Length = x.in.whole, -1
	case x.head.Body == wire.Length:
		r.Body = x.in.whole
		if r.Body == nil {
			r.Body = noBytes
		}
	}
	return nil
}

// repeatable reports whether the request may be sent again after its answer was lost. A scroll isn't repeatable, although its
// method is GET: each request moves it on, and a second one would get the next page in place of the lost one.
func (x *Exchange) repeatable() bool {
	return wire.IsSafe(x.head.Method) && !scrolls(x.op.Path)
}

// scrolls reports whether a path may be that of a scroll. Engines decode escaped letters, so that an API's path with an escape
// counts as one, too: at worst a read isn't repeated.
func scrolls(path []byte) bool {
	if bytes.Contains(path, []byte("scroll")) {
		return true
	}
	own := len(path) >= 4 && (path[1] == '_' || wire.EqualFold(path[1:4], "%5f"))
	return own && bytes.IndexByte(path, '%') >= 0
}

// noBytes is a body of length 0. A nil body means that the request has none.
var noBytes = []byte{}

// sendInterim sends an interim answer of the engine on: mostly a "100 Continue" that the client waits for. Clients of HTTP/1.0
// don't know interim answers.
func (x *Exchange) sendInterim(h *wire.Head) {
	if x.head.Minor == 0 || x.broken {
		return
	}
	h.Close, h.KeepAlive = false, false // they are about the engine's connection; the final answer says whether the client's ends
	x.out = h.AppendResponse(x.out[:0])
	_ = x.flush(nil)
}

// requestFields are the request's fields that go to the engine.
func (x *Exchange) requestFields(o *ForwardOptions) []wire.Field {
	x.fields = x.head.EndToEnd(x.fields[:0])
	if len(o.Drop) > 0 {
		x.fields = without(x.fields, o.Drop...)
	}
	if o.Readable {
		x.fields = readable(x.fields)
	}
	return x.fields
}

// readable leaves gzip, or nothing, of the content codings that a request's fields accept. Several fields count as one list.
func readable(fields []wire.Field) []wire.Field {
	var room [64]byte
	list, kept := room[:0], fields[:0]
	for _, f := range fields {
		if wire.EqualFold(f.Name, acceptEncoding) {
			list = append(append(list, f.Value...), ',')
		}
	}
	takes := coding.TakesGzip(list)
	for _, f := range fields {
		if wire.EqualFold(f.Name, acceptEncoding) {
			if !takes {
				continue
			}
			f.Value, takes = onlyGzip, false
		}
		kept = append(kept, f)
	}
	return kept
}

const acceptEncoding = "accept-encoding"

var onlyGzip = []byte("gzip")

// without takes the fields of those names out of a list.
func without(fields []wire.Field, names ...string) []wire.Field {
	return slices.DeleteFunc(fields, func(f wire.Field) bool {
		return slices.ContainsFunc(names, func(name string) bool { return wire.EqualFold(f.Name, name) })
	})
}

// relay sends the engine's answer to the client.
func (x *Exchange) relay(o *ForwardOptions) error {
	h := x.c.up.Head()
	x.c.server.LearnProduct(h)
	body, whole := x.c.up.Whole()
	if !whole && o.OnHead != nil && o.Peek > 0 {
		var err error
		if whole, err = x.peek(o.Peek); err != nil {
			return err
		}
		body = x.prefix
	}
	var add []wire.Field
	if o.OnHead != nil {
		add = o.OnHead(h, body[:min(len(body), max(o.Peek, 0))])
	}
	was := *h
	if o.Change != nil && h.HasBody() {
		body = o.Change(body, whole)
		h.Body = wire.Chunked
		if whole {
			h.Body, h.Length = wire.Length, int64(len(body))
		}
	}
	framing := x.composeHead(h, add)
	h.Body, h.Length = was.Body, was.Length
	x.recordStatus(h.Status)
	switch err := x.sendBody(o, framing, body, whole); {
	case err != nil && len(x.out) > 0: // all of it was held back
		x.takeBack()
		return err
	case err != nil:
		x.breakOff(framing)
	}
	return nil
}

// takeBack makes an answer of which nothing was sent none.
func (x *Exchange) takeBack() {
	x.out, x.pending, x.outcome = x.out[:0], x.pending[:0], x.outcome[:0]
	x.hasAnswer, x.status, x.sent = false, 0, 0
}

// peek collects the first n bytes of the answer's body in x.prefix. It reports whether that was all.
func (x *Exchange) peek(n int) (whole bool, err error) {
	n = min(n, maxPeek)
	x.prefix = x.prefix[:0]
	for len(x.prefix) < n {
		p, err := x.c.up.Next()
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		x.prefix = append(x.prefix, p...)
	}
	return false, nil
}

// composeHead puts the answer's head into x.out, and returns the framing that the client gets. That is the engine's own, except
// that clients of HTTP/1.0 get no chunks.
func (x *Exchange) composeHead(h *wire.Head, add []wire.Field) wire.Framing {
	saved := *h
	x.keepOutcome(add)
	h.Fields = append(h.Fields, add...)
	if h.Body == wire.Chunked && x.head.Minor == 0 {
		h.Body = wire.UntilClose
	}
	if h.Body == wire.UntilClose {
		x.closing = true
	}
	x.setConnection(h)
	x.out = h.AppendResponse(x.out[:0])
	framing := h.Body
	h.Close, h.KeepAlive, h.Body = saved.Close, saved.KeepAlive, saved.Body
	h.Fields = h.Fields[:len(saved.Fields)]
	return framing
}

// sendBody sends x.out, which holds the head, and then the body: first the piece that is here, and, unless that is the whole, the
// rest as it comes.
func (x *Exchange) sendBody(o *ForwardOptions, framing wire.Framing, piece []byte, whole bool) error {
	length := x.c.up.Head().Length
	for {
		if len(piece) > 0 {
			if o.Copy != nil {
				o.Copy(piece)
			}
			x.sent += int64(len(piece))
		}
		if o.Last != nil && (whole || x.sent == length) {
			x.last = piece
			o.Last()
			piece, x.last, o.Last = x.last, nil, nil
		}
		if err := x.sendOrHold(o, framing, piece, whole); err != nil {
			return err
		}
		if whole {
			return nil
		}
		p, err := x.c.up.Next()
		switch {
		case err == io.EOF:
			p, whole = nil, true
		case err != nil:
			return err
		}
		piece = p
		if o.Change != nil {
			piece = o.Change(p, whole)
		}
	}
}

// FreeUpstream gives the connection to the engine back before the client has the end of the answer. It is for ForwardOptions.Last: whoever
// asks the engine something there would hold one connection, and wait for another. The bytes that Copy got last aren't valid any more
// then. Where nothing is being forwarded, it does nothing.
func (x *Exchange) FreeUpstream() {
	if up := x.c.up; up != nil {
		x.last = bytes.Clone(x.last)
		up.Finish()
	}
}

// sendOrHold sends one piece of a body. While Last has not been called it holds that piece back, and sends the one before
// instead: the client must not get what may be the last piece.
func (x *Exchange) sendOrHold(o *ForwardOptions, framing wire.Framing, p []byte, last bool) error {
	if o.Last == nil && len(x.pending) == 0 {
		return x.sendPiece(framing, p, last)
	}
	if len(x.pending) > 0 {
		if err := x.sendPiece(framing, x.pending, last && len(p) == 0); err != nil {
			return err
		}
		x.pending = x.pending[:0]
		if last && len(p) == 0 {
			return nil
		}
	}
	if o.Last == nil {
		return x.sendPiece(framing, p, last)
	}
	x.pending = append(x.pending, p...)
	return nil
}

// sendPiece sends one piece of a body, and the end of the body if the piece is the last.
func (x *Exchange) sendPiece(framing wire.Framing, p []byte, last bool) error {
	if framing == wire.Chunked {
		x.out = wire.AppendChunk(x.out, p)
		if last {
			x.out = append(x.out, wire.LastChunk...)
		}
		p = nil
	}
	if len(x.out)+len(p) == 0 {
		return nil
	}
	return x.flush(p)
}

// breakOff ends the connection under an answer that can't be finished. A client that reads until the connection ends would take
// what it has for the whole; its connection is reset.
func (x *Exchange) breakOff(framing wire.Framing) {
	x.broken = true
	if tcp, ok := x.c.nc.(*net.TCPConn); ok && framing == wire.UntilClose {
		_ = tcp.SetLinger(0)
	}
}

var _ upstream.Source = (*requestBody)(nil)
