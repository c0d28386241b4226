package proxy

import (
	"bytes"
	"io"
	"net"
	"net/http"

	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// ForwardOptions say what of a request or its answer isn't as it came. The zero value changes nothing.
type ForwardOptions struct {
	// Target replaces the request's target. Nil: the request's own bytes.
	Target []byte
	// Drop names fields, compared without case, that are taken out of the request.
	Drop []string
	// Peek is how many bytes of the answer's body OnHead wants to see: it is called when they have come, or the body has
	// ended. At most 64 KiB.
	Peek int
	// OnHead is called with the answer's head and the first bytes of its body, without transfer coding and in whatever content
	// coding it has. The fields that it returns are put behind the answer's own. It must not change the head.
	OnHead func(h *wire.Head, first []byte) []wire.Field
	// Copy is called with all bytes of the answer's body in order, without transfer coding, before the client gets them. It
	// must not keep them, and holds the client up.
	Copy func(p []byte)
	// Last is called once Copy has had all of the body, before the client gets the end of it: whatever the client does next comes
	// after. It isn't called for an answer that breaks off. Where only the end itself tells that it is the end, each piece of the
	// body waits for the next.
	Last func()
}

// maxPeek bounds ForwardOptions.Peek.
const maxPeek = 64 << 10

// Forward sends the request to the engine and its answer to the client, both streamed. It returns an error only as long as the
// client has been told nothing, to be given to Fail, or to be answered otherwise; later errors end the connection, because
// nothing else can tell the client that its answer isn't whole. It goes to another node, or a second time to the same, only
// where nothing was sent, or for GET, HEAD and OPTIONS that don't move a scroll on.
func (x *Exchange) Forward(o ForwardOptions) error {
	if x.answered {
		return ErrAnswered
	}
	if err := x.send(&o); err != nil {
		return err
	}
	err := x.relay(&o)
	x.c.up.Finish()
	if x.in.stream {
		x.afterStream()
	}
	return err
}

// afterStream takes the body back from the goroutine that sent it. An interruption may have come after the body's last byte:
// it must not end the wait for the next request.
func (x *Exchange) afterStream() {
	x.in.stream = false
	if (x.in.interrupted.Load() || !x.in.body.Done()) && !x.c.resume() {
		x.broken = true
	}
}

// send sends the request and waits for the head of its answer.
func (x *Exchange) send(o *ForwardOptions) error {
	if err := x.prepare(o); err != nil {
		return err
	}
	err := x.c.up.Send(&x.up)
	if err != nil && x.in.stream {
		x.afterStream()
	}
	return err
}

// prepare makes x.up the request as it goes to the engine.
func (x *Exchange) prepare(o *ForwardOptions) error {
	c := x.c
	if c.up == nil {
		c.up = c.server.upstream.NewExchange(c.ctx)
	}
	whole, err := x.in.gather()
	if err != nil {
		return err
	}
	r := &x.up
	r.Method = wire.MethodString(x.head.Method)
	r.Target = x.head.Target
	if o.Target != nil {
		r.Target = o.Target
	}
	r.Fields = x.endToEnd(o)
	r.Repeatable = x.repeatable()
	r.Interim = x.tell
	switch {
	case !whole:
		r.Stream, r.Length, r.Expect = &x.in, x.head.Length, x.in.asked
		x.in.stream = true
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

// repeatable reports whether the request may be sent again after its answer was lost. That a scroll asks with GET doesn't make
// it repeatable: each request moves it on, and a second one would get the next page in place of the one that was lost.
func (x *Exchange) repeatable() bool {
	switch string(x.head.Method) {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return !scrolls(x.op.Path)
	}
	return false
}

// scrolls reports whether a path may be that of a scroll: engines decode escaped letters, and whoever sends such a path to an
// API has at worst a read that isn't repeated.
func scrolls(path []byte) bool {
	if bytes.Contains(path, []byte("scroll")) {
		return true
	}
	own := len(path) >= 4 && (path[1] == '_' || wire.EqualFold(path[1:4], "%5f"))
	return own && bytes.IndexByte(path, '%') >= 0
}

// noBytes is a body of length 0, which isn't the same as no body.
var noBytes = []byte{}

// interim sends an interim answer of the engine on: a "100 Continue" that the client may be waiting for, above all. Clients
// of HTTP/1.0 know none.
func (x *Exchange) interim(h *wire.Head) {
	if x.head.Minor == 0 || x.broken {
		return
	}
	h.Close, h.KeepAlive = false, false // of the engine's connection; whether the client's ends is said in the answer itself
	x.out = h.AppendResponse(x.out[:0])
	_ = x.flush(nil)
}

// endToEnd is what of the request's fields goes to the engine.
func (x *Exchange) endToEnd(o *ForwardOptions) []wire.Field {
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
	x.learn(h)
	body, whole := x.c.up.Whole()
	if !whole && o.OnHead != nil && o.Peek > 0 {
		var err error
		if whole, err = x.peek(o.Peek); err != nil {
			return err
		}
		body = x.peeked
	}
	var add []wire.Field
	if o.OnHead != nil {
		add = o.OnHead(h, body[:min(len(body), max(o.Peek, 0))])
	}
	framing := x.compose(h, add)
	x.begun(h.Status)
	if err := x.body(o, framing, body, whole); err != nil {
		x.breakOff(framing)
	}
	return nil
}

// peek collects the first n bytes of the answer's body in x.peeked. It reports whether that was all.
func (x *Exchange) peek(n int) (whole bool, err error) {
	n = min(n, maxPeek)
	x.peeked = x.peeked[:0]
	for len(x.peeked) < n {
		p, err := x.c.up.Next()
		if err == io.EOF {
			return true, nil
		}
		if err != nil {
			return false, err
		}
		x.peeked = append(x.peeked, p...)
	}
	return false, nil
}

// compose puts the answer's head into x.out, and returns the framing that the client gets: the engine's own, but for clients
// of HTTP/1.0, which know no chunks.
func (x *Exchange) compose(h *wire.Head, add []wire.Field) wire.Framing {
	was := *h
	x.note(add)
	h.Fields = append(h.Fields, add...)
	if h.Body == wire.Chunked && x.head.Minor == 0 {
		h.Body = wire.UntilClose
	}
	if h.Body == wire.UntilClose {
		x.closing = true
	}
	x.sign(h)
	x.out = h.AppendResponse(x.out[:0])
	framing := h.Body
	h.Close, h.KeepAlive, h.Body = was.Close, was.KeepAlive, was.Body
	h.Fields = h.Fields[:len(was.Fields)]
	return framing
}

// body sends x.out, which holds the head, and then the body: what is here of it, and, unless that is all, the rest as it
// comes.
func (x *Exchange) body(o *ForwardOptions, framing wire.Framing, here []byte, whole bool) error {
	length := x.c.up.Head().Length
	for {
		if len(here) > 0 {
			if o.Copy != nil {
				o.Copy(here)
			}
			x.done.Sent += int64(len(here))
		}
		if o.Last != nil && (whole || x.done.Sent == length) {
			o.Last()
			o.Last = nil
		}
		if err := x.pieces(o, framing, here, whole); err != nil {
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
		here = p
	}
}

// pieces sends one piece of a body, or keeps it and sends the one before: until Last has been called the client gets nothing that may be
// the last it waits for.
func (x *Exchange) pieces(o *ForwardOptions, framing wire.Framing, p []byte, last bool) error {
	if o.Last == nil && len(x.held) == 0 {
		return x.piece(framing, p, last)
	}
	if len(x.held) > 0 {
		if err := x.piece(framing, x.held, last && len(p) == 0); err != nil {
			return err
		}
		x.held = x.held[:0]
		if last && len(p) == 0 {
			return nil
		}
	}
	if o.Last == nil {
		return x.piece(framing, p, last)
	}
	x.held = append(x.held, p...)
	return nil
}

// piece sends one piece of a body, and the end of it if it is the last.
func (x *Exchange) piece(framing wire.Framing, p []byte, last bool) error {
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

// breakOff ends the connection under an answer that can't be finished. A client that reads to the end of the connection would
// take what it has for the whole; it gets a reset.
func (x *Exchange) breakOff(framing wire.Framing) {
	x.broken = true
	if tcp, ok := x.c.nc.(*net.TCPConn); ok && framing == wire.UntilClose {
		_ = tcp.SetLinger(0)
	}
}

// learn remembers whether the engine names its product, so that our own errors do it, too: its clients refuse answers
// without.
func (x *Exchange) learn(h *wire.Head) {
	if s := x.c.server; !s.product.Load() && string(h.Get(productField)) == productName {
		s.product.Store(true)
	}
}

var _ upstream.Source = (*requestBody)(nil)
