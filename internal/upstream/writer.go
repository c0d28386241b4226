package upstream

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"optimist/internal/wire"
)

// writer sends a request from its own goroutine, while the answer is already being read.
type writer struct {
	c       *conn
	head    []byte
	body    []byte
	stream  Source
	left    int64 // bytes of the body to come, where the length is known
	chunked bool
	buf     []byte // a chunk

	final   atomic.Bool // the last write has begun: nothing is left to take from the stream
	stopped atomic.Bool // end was called: what the stream says now is our own doing
	done    chan struct{}

	// For others only after done:
	sent     int64
	asked    bool  // the stream was asked for bytes
	complete bool  // all was written
	source   error // the stream failed
	err      error // the connection failed
}

func newWriter(c *conn, head []byte, r *Request, framed *wire.Head) *writer {
	return &writer{
		c: c, head: head, body: r.Body, stream: r.Stream, left: framed.Length, chunked: framed.Body == wire.Chunked,
		done: make(chan struct{}),
	}
}

// errLength reports a Stream that isn't as long as its request says.
var errLength = errors.New("the stream's length is not the request's")

func (w *writer) run() {
	defer close(w.done)
	if !w.chunked && int64(len(w.body)) > w.left {
		w.source = errLength // more than the head would say: the rest would be read as another request
		_ = w.c.raw.Close()
		return
	}
	if w.left == 0 {
		w.final.Store(true)
	}
	if !w.write(w.head) || len(w.body) > 0 && !w.data(w.body) {
		return
	}
	for w.chunked || w.left > 0 {
		p, err := w.next()
		switch {
		case err == io.EOF && w.chunked:
			w.final.Store(true)
			w.complete = w.write([]byte(wire.LastChunk))
			return
		case err != nil:
			if !w.stopped.Load() {
				w.source = err
			}
			_ = w.c.raw.Close() // the node must not take a part for the whole
			return
		}
		if !w.data(p) {
			return
		}
	}
	w.complete = true
}

// next takes bytes from the stream.
func (w *writer) next() ([]byte, error) {
	if w.stream == nil {
		return nil, io.EOF // chunked, and written
	}
	w.asked = true
	p, err := w.stream.Next()
	if !w.chunked && (err == io.EOF || int64(len(p)) > w.left) {
		return nil, errLength
	}
	return p, err
}

// data writes bytes of the body in the request's framing.
func (w *writer) data(p []byte) bool {
	if w.chunked {
		w.buf = wire.AppendChunk(w.buf[:0], p)
		return w.write(w.buf)
	}
	for len(p) > 0 {
		q := p[:min(len(p), maxWrite)]
		p = p[len(q):]
		w.left -= int64(len(q))
		if w.left == 0 {
			w.final.Store(true)
		}
		if !w.write(q) {
			return false
		}
	}
	return true
}

// maxWrite bounds one write in bytes, so that the last one of a large body is short: see finish.
const maxWrite = 128 << 10

func (w *writer) write(p []byte) bool {
	n, err := w.c.nc.Write(p)
	w.sent += int64(n)
	if err != nil {
		// The answer of an engine that refuses a large body and closes may be here already: it gets a moment.
		w.err = err
		_ = w.c.nc.SetReadDeadline(time.Now().Add(afterBreak))
	}
	return err == nil
}

// end stops the writer wherever it is and waits for it. The connection is of no use afterwards.
func (w *writer) end() {
	select {
	case <-w.done:
		return
	default:
	}
	w.stopped.Store(true)
	_ = w.c.raw.Close()
	if w.stream != nil && !w.final.Load() {
		w.stream.Interrupt()
	}
	<-w.done
}

// finish ends the writer after the answer was read. It reports whether the whole request went out, so that the connection
// may carry another. A last write that is under way (the node answers as soon as it has the bytes, which may be before
// this goroutine knows that it has) gets a moment if the connection is wanted.
func (w *writer) finish(wanted bool) bool {
	if wanted && w.final.Load() {
		_ = w.c.nc.SetWriteDeadline(time.Now().Add(afterAnswer))
		<-w.done
		_ = w.c.nc.SetWriteDeadline(time.Time{})
		return w.complete
	}
	w.end()
	return w.complete
}
