package upstream

import (
	"errors"
	"io"
	"sync/atomic"
	"time"

	"optimist/internal/wire"
)

const (
	// afterBreak is how long an answer is waited for after writing has failed.
	afterBreak = 2 * time.Second
	// afterAnswer is how long the last write of a body may take after the whole answer has come.
	afterAnswer = 200 * time.Millisecond
)

// writer sends a request from a goroutine of its own. The answer may be read at the same time.
type writer struct {
	c         *conn
	head      []byte
	body      []byte
	stream    Source
	remaining int64 // bytes of the body that are still to come, if the length is known
	chunked   bool
	buf       []byte // a chunk

	lastWrite atomic.Bool // the last write has begun: nothing more is taken from the stream
	stopped   atomic.Bool // end was called: an error of the stream is its effect
	done      chan struct{}

	// Other goroutines may read these only after done:
	sent       int64
	streamUsed bool  // bytes were taken from the stream
	complete   bool  // all was written
	streamErr  error // the stream failed
}

func newWriter(c *conn, head []byte, r *Request, framed *wire.Head) *writer {
	return &writer{
		c: c, head: head, body: r.Body, stream: r.Stream, remaining: framed.Length, chunked: framed.Body == wire.Chunked,
		done: make(chan struct{}),
	}
}

// errLength reports a Stream that isn't as long as its request says.
var errLength = errors.New("the stream's length is not the request's")

func (w *writer) run() {
	defer close(w.done)
	if !w.chunked && int64(len(w.body)) > w.remaining {
		w.streamErr = errLength // the node would read the bytes beyond Content-Length as another request
		_ = w.c.raw.Close()
		return
	}
	if w.remaining == 0 {
		w.lastWrite.Store(true)
	}
	if !w.write(w.head) || len(w.body) > 0 && !w.data(w.body) {
		return
	}
	for w.chunked || w.remaining > 0 {
		p, err := w.next()
		switch {
		case err == io.EOF && w.chunked:
			w.lastWrite.Store(true)
			w.complete = w.write([]byte(wire.LastChunk))
			return
		case err != nil:
			if !w.stopped.Load() {
				w.streamErr = err
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
		return nil, io.EOF // a whole body, sent chunked
	}
	w.streamUsed = true
	p, err := w.stream.Next()
	if !w.chunked && (err == io.EOF || int64(len(p)) > w.remaining) {
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
		w.remaining -= int64(len(q))
		if w.remaining == 0 {
			w.lastWrite.Store(true)
		}
		if !w.write(q) {
			return false
		}
	}
	return true
}

// maxWrite bounds one write in bytes. So the last write of a large body is short, and finish can wait for it.
const maxWrite = 128 << 10

func (w *writer) write(p []byte) bool {
	n, err := w.c.nc.Write(p)
	w.sent += int64(n)
	if err != nil {
		// An engine that refuses a large body answers and closes. Its answer may be here already, and gets a moment to be read.
		_ = w.c.nc.SetReadDeadline(time.Now().Add(afterBreak))
	}
	return err == nil
}

// end stops the writer and waits for it. The connection can't be used afterwards.
func (w *writer) end() {
	select {
	case <-w.done:
		return
	default:
	}
	w.stopped.Store(true)
	_ = w.c.raw.Close()
	if w.stream != nil && !w.lastWrite.Load() {
		w.stream.Interrupt()
	}
	<-w.done
}

// finish ends the writer after the answer was read. It reports whether the whole request was written, so that the connection
// may carry another one. With wanted it waits a moment for a last write that is under way: a node may answer before the
// goroutine that wrote the last bytes runs again.
func (w *writer) finish(wanted bool) bool {
	if wanted && w.lastWrite.Load() {
		_ = w.c.nc.SetWriteDeadline(time.Now().Add(afterAnswer))
		<-w.done
		_ = w.c.nc.SetWriteDeadline(time.Time{})
		return w.complete
	}
	w.end()
	return w.complete
}
