package proxy

import (
	"io"
	"sync/atomic"

	"optimist/internal/wire"
)

// requestBody is the body of a request on its way from the client: collected, or streamed to the engine, or both. While it
// is streamed it belongs to the goroutine that sends it.
type requestBody struct {
	c    *conn
	head *wire.Head
	body wire.Body

	kept   []byte // what Body has collected; memory that is used again
	whole  []byte // all of the body, if collected
	all    bool   // whole is valid
	early  []byte // what was collected before the limit was reached, and is still to be forwarded
	err    error  // final
	taken  int64  // bytes that were read
	asked  bool   // the client waits for a 100 that it hasn't got
	stream bool   // the body was given to the upstream's goroutine

	finished    atomic.Bool // all of a streamed body was taken from the client
	interrupted atomic.Bool // reads from the client end at once, until they are resumed
}

func (b *requestBody) begin() {
	if cap(b.kept) > maxKeptBuffer {
		b.kept = nil
	}
	b.whole, b.all, b.early, b.err, b.taken, b.asked, b.stream = nil, false, nil, nil, 0, false, false
	b.finished.Store(false)
	b.interrupted.Store(false)
	b.head = nil
}

// reset begins the body of the request whose head was just read.
func (b *requestBody) reset(c *conn, h *wire.Head) {
	b.c, b.head, b.asked = c, h, h.Expect100
	b.body.Reset(&c.r, h)
	c.wait = inBody
}

// complete reports whether all of the request was read. The body must not be streaming any more.
func (b *requestBody) complete() bool { return b.head != nil && b.err == nil && b.body.Done() }

// atHand reports whether all of the request was read, or can be without waiting; then it is.
func (b *requestBody) atHand() bool {
	switch {
	case b.head == nil || b.err != nil:
		return false // a request that couldn't be read
	case b.stream:
		return b.finished.Load()
	case b.body.Done():
		return true
	}
	p, ok := b.body.Whole(nil)
	b.taken += int64(len(p))
	return ok
}

// small is the size in bytes up to which a body is collected before it is forwarded: one write instead of a second
// goroutine, and no connection to the engine while a slow client is sending.
const small = 16 << 10

// gather collects a body that is small, so that it can be sent in one piece. It reports whether it has: large ones, and those
// whose client waits for the engine's leave to send, are streamed.
func (b *requestBody) gather() (bool, error) {
	switch {
	case b.all:
		return true, nil
	case b.err != nil:
		return false, b.err
	case b.body.Done():
		b.all = true
		return true, nil
	case b.asked, len(b.early) > 0:
		return false, nil
	case b.head.Body == wire.Length && b.head.Length <= small:
		return b.fill()
	}
	return b.now(), nil
}

// fill waits for a body whose length is known and small. It stays where it is: in the connection's buffer.
func (b *requestBody) fill() (bool, error) {
	for !b.now() {
		if err := b.c.r.Fill(); err != nil {
			if err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
			b.err = err
			return false, err
		}
	}
	return true, nil
}

// now takes the body if all of it is buffered.
func (b *requestBody) now() bool {
	p, ok := b.body.Whole(b.kept[:0])
	if !ok {
		return false
	}
	if b.head.Body == wire.Chunked {
		b.kept = p
	}
	b.whole, b.all = p, true
	b.taken += int64(len(p))
	return true
}

// Next implements upstream.Source: what was collected early, then the rest as it comes.
func (b *requestBody) Next() ([]byte, error) {
	if p := b.early; len(p) > 0 {
		b.early = nil
		return p, nil
	}
	p, err := b.body.Next()
	b.taken += int64(len(p))
	switch {
	case b.body.Done():
		b.finished.Store(true)
	case err != nil:
		b.err = err
	}
	return p, err
}

// Interrupt implements upstream.Source: it makes a read from the client end.
func (b *requestBody) Interrupt() {
	b.interrupted.Store(true)
	_ = b.c.nc.SetReadDeadline(past())
}

// Body returns the whole body without its transfer coding, waiting for it. One of more than limit bytes, or more than
// Limits.MaxBody, is ErrTooLarge; nothing is lost then, and Forward still sends all of it. A client that waits for "100
// Continue" is sent it, unless its Content-Length is over the limit already. Other errors are to be given to Fail. The bytes
// are valid until the interceptor returns, and must not be changed. A second call returns the same.
func (x *Exchange) Body(limit int64) ([]byte, error) {
	b := &x.in
	limit = min(limit, x.c.server.limits.MaxBody)
	switch {
	case b.all && int64(len(b.whole)) > limit, b.head.Length > limit, int64(len(b.early)) > limit:
		return nil, ErrTooLarge
	case b.all:
		return b.whole, nil
	case b.err != nil:
		return nil, b.err
	case len(b.early) == 0 && b.now():
		if int64(len(b.whole)) > limit {
			return nil, ErrTooLarge
		}
		return b.whole, nil
	}
	if b.asked {
		if err := x.goOn(); err != nil {
			return nil, err
		}
	}
	return b.collect(limit)
}

// collect reads the body to its end or beyond the limit.
func (b *requestBody) collect(limit int64) ([]byte, error) {
	buf := append(b.kept[:0], b.early...)
	for {
		p, err := b.body.Next()
		b.taken += int64(len(p))
		buf = wire.Gather(buf, p, b.head.Length)
		switch {
		case err == io.EOF, err == nil && b.body.Done():
			b.kept, b.early = buf, nil
			b.whole, b.all = buf, true
		case err != nil:
			b.err = err
			return nil, err
		}
		if int64(len(buf)) > limit {
			if !b.all {
				b.kept, b.early = buf, buf
			}
			return nil, ErrTooLarge
		}
		if b.all {
			return b.whole, nil
		}
	}
}

// goOn tells the client that waits for it to send the body.
func (x *Exchange) goOn() error {
	x.in.asked = false
	x.out = append(x.out[:0], "HTTP/1.1 100 Continue\r\n\r\n"...)
	return x.flush(nil)
}
