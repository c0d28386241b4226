package proxy

import (
	"bytes"
	"io"
	"net"
	"net/http"

	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// ForwardOptions change a request or its answer on the way. The zero value changes nothing.
type ForwardOptions struct {
	// Target replaces the request's target. Nil: the request's own bytes.
	Target []byte
	// Drop names fields that are left out of the request. Names are compared without case.
	Drop []string
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
	switch string(x.head.Method) {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return !scrolls(x.op.Path)
	}
	return false
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
		kept := x.fields[:0]
		for _, f := range x.fields {
			if !named(f.Name, o.Drop) {
				kept = append(kept, f)
			}
		}
		x.fields = kept
	}
	return x.fields
}

func named(name []byte, list []string) bool {
	for _, n := range list {
		if wire.EqualFold(name, n) {
			return true
		}
	}
	return false
}

// relay sends the engine's answer to the client.
func (x *Exchange) relay(o *ForwardOptions) error {
	h := x.c.up.Head()
	x.learnProduct(h)
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
	framing := x.composeHead(h, add)
	x.recordStatus(h.Status)
	if err := x.sendBody(o, framing, body, whole); err != nil {
		x.breakOff(framing)
	}
	return nil
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
			x.done.Sent += int64(len(piece))
		}
		if o.Last != nil && (whole || x.done.Sent == length) {
			o.Last()
			o.Last = nil
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

// learnProduct remembers whether the engine names its product, so that our own errors name it, too: the engine's clients refuse
// answers without it.
func (x *Exchange) learnProduct(h *wire.Head) {
	if s := x.c.server; !s.product.Load() && string(h.Get(productField)) == productName {
		s.product.Store(true)
	}
}

var _ upstream.Source = (*requestBody)(nil)
