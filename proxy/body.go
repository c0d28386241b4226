package proxy

import (
	"io"
	"sync/atomic"

	"optimist/internal/wire"
)

// requestBody is the body of a request. It is collected, or streamed to the engine, or its beginning is collected and the rest
// streamed. While it is streamed it belongs to the upstream's goroutine, which sends it.
type requestBody struct {
	c    *conn
	head *wire.Head
	body wire.Body

	buffer         []byte // memory for collecting, used again for the next request
	whole          []byte // all of the body, if collected
	collected      bool   // whole is valid
	taken          bool   // Piece has returned it
	kept           []byte // what Piece has returned, as far as it may have to be forwarded
	prefix         []byte // what was collected before the limit was reached; it is still to be forwarded
	pending        []byte // what came next, for which there was no memory: it is in the connection's buffer, and still to be forwarded
	noRoom         error  // why not
	err            error  // final
	received       int64  // bytes that were read
	awaitsContinue bool   // the client waits for "100 Continue"
	streaming      bool   // the body belongs to the upstream's goroutine

	finished    atomic.Bool // all of a streamed body was read from the client
	interrupted atomic.Bool // reads from the client end at once, until resumeReads
}

func (b *requestBody) clear() {
	b.drop()
	b.collected, b.taken, b.err, b.received, b.awaitsContinue, b.streaming = false, false, nil, 0, false, false
	b.finished.Store(false)
	b.interrupted.Store(false)
	b.head = nil
}

// drop gives up what was collected.
func (b *requestBody) drop() {
	if cap(b.buffer) > maxKeptBuffer {
		b.buffer = nil
	}
	b.whole, b.prefix, b.pending, b.kept, b.noRoom = nil, nil, nil, nil, nil
}

// reset makes b the body of the request whose head was just read.
func (b *requestBody) reset(c *conn, h *wire.Head) {
	b.c, b.head, b.awaitsContinue = c, h, h.Expect100
	b.body.Reset(&c.r, h)
	c.waitPhase = inBody
}

// complete reports whether all of the request was read. The body must not be streaming any more.
func (b *requestBody) complete() bool { return b.head != nil && b.err == nil && b.body.Done() }

// readBuffered reads the rest of the request if it is buffered. It reports whether all of the request has been read.
func (b *requestBody) readBuffered() bool {
	switch {
	case b.head == nil || b.err != nil:
		return false // the request couldn't be read
	case b.streaming:
		return b.finished.Load()
	case b.body.Done():
		return true
	}
	p, ok := b.body.Whole(nil)
	b.received += int64(len(p))
	return ok
}

// small is the size in bytes up to which a body is collected before it is forwarded: one write instead of a second
// goroutine, and no connection to the engine while a slow client is sending.
const small = 16 << 10

// collectSmall collects a small body, so that it can be sent in one piece. It reports whether it has. Not collected, and
// therefore streamed, are large bodies and those whose client waits for the engine's "100 Continue".
func (b *requestBody) collectSmall() (bool, error) {
	switch {
	case b.collected:
		return true, nil
	case b.err != nil:
		return false, b.err
	case b.body.Done():
		b.collected = true
		return true, nil
	case b.awaitsContinue, len(b.prefix) > 0, len(b.pending) > 0:
		return false, nil
	case b.head.Body == wire.Length && b.head.Length <= small:
		return b.awaitSmall()
	}
	return b.takeBuffered(), nil
}

// awaitSmall waits for a body whose length is known and small. The body stays in the connection's buffer.
func (b *requestBody) awaitSmall() (bool, error) {
	for !b.takeBuffered() {
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

// takeBuffered collects the body if all of it is buffered.
func (b *requestBody) takeBuffered() bool {
	p, ok := b.body.Whole(b.buffer[:0])
	if !ok {
		return false
	}
	if b.head.Body == wire.Chunked {
		b.buffer = p
	}
	b.whole, b.collected = p, true
	b.received += int64(len(p))
	return true
}

// Next implements upstream.Source: first what Body collected before it reached its limit, then the rest as it arrives.
func (b *requestBody) Next() ([]byte, error) {
	if p := b.prefix; len(p) > 0 {
		b.prefix = nil
		return p, nil
	}
	if p := b.pending; len(p) > 0 {
		b.pending = nil
		return p, nil
	}
	p, err := b.body.Next()
	b.received += int64(len(p))
	switch {
	case b.body.Done():
		b.finished.Store(true)
	case err != nil:
		b.err = err
	}
	return p, err
}

// Interrupt implements upstream.Source: reads from the client end at once.
func (b *requestBody) Interrupt() {
	b.interrupted.Store(true)
	_ = b.c.nc.SetReadDeadline(past())
}

// Body waits for the whole body and returns it without its transfer coding. For a body of more than limit bytes, or more than
// Limits.MaxBody, it returns ErrTooLarge, and package budget's error where there is no memory for it; then Forward still sends all of the
// body. A client that waits for "100 Continue" gets it, unless its Content-Length is over the limit. Other errors are for Fail. The
// bytes are valid until the interceptor returns, and must not be changed. A second call returns the same.
func (x *Exchange) Body(limit int64) ([]byte, error) {
	b := &x.in
	limit = min(limit, x.c.server.limits.MaxBody)
	switch {
	case b.collected && int64(len(b.whole)) > limit, b.head.Length > limit, int64(len(b.prefix)) > limit:
		return nil, ErrTooLarge
	case b.collected:
		return b.whole, nil
	case b.err != nil:
		return nil, b.err
	case len(b.pending) > 0:
		return nil, b.noRoom
	case len(b.prefix) == 0 && b.takeBuffered():
		if int64(len(b.whole)) > limit {
			return nil, ErrTooLarge
		}
		return b.whole, nil
	}
	if b.awaitsContinue {
		if err := x.sendContinue(); err != nil {
			return nil, err
		}
	}
	return b.collect(limit)
}

// collect reads the body to its end or beyond the limit.
func (b *requestBody) collect(limit int64) ([]byte, error) {
	buf := append(b.buffer[:0], b.prefix...)
	for {
		p, err := b.body.Next()
		b.received += int64(len(p))
		if int64(len(buf)+len(p)) > limit && err == nil && !b.body.Done() { // room for it is room for twice as much
			b.buffer, b.prefix, b.pending, b.noRoom = buf, buf, p, ErrTooLarge
			return nil, ErrTooLarge
		}
		if err := b.c.taken.Take(wire.Growth(buf, len(p), b.head.Length)); err != nil {
			b.buffer, b.prefix, b.pending, b.noRoom = buf, buf, p, err
			return nil, err
		}
		buf = wire.Gather(buf, p, b.head.Length)
		switch {
		case err == io.EOF, err == nil && b.body.Done():
			b.buffer, b.prefix = buf, nil
			b.whole, b.collected = buf, true
		case err != nil:
			b.err = err
			return nil, err
		}
		if int64(len(buf)) > limit {
			if !b.collected {
				b.buffer, b.prefix = buf, buf
			}
			return nil, ErrTooLarge
		}
		if b.collected {
			return b.whole, nil
		}
	}
}

// sendContinue tells a client that waits for it to send the body.
func (x *Exchange) sendContinue() error {
	x.in.awaitsContinue = false
	x.out = append(x.out[:0], "HTTP/1.1 100 Continue\r\n\r\n"...)
	return x.flush(nil)
}
