package wire

import (
	"errors"
	"io"
)

// Buffer sizes in bytes of a Reader. It begins with the first, and grows up to the second while reads fill the buffer.
const (
	minBuffer = 4 << 10
	maxBuffer = 64 << 10
)

// errFull reports that a Reader's buffer may not grow any more. It doesn't leave the package.
var errFull = errors.New("buffer full")

// Reader buffers a connection for heads and bodies. The zero value with Reset is ready. It is not safe for concurrent use. Bytes from
// Peek are valid until the next Fill.
type Reader struct {
	src  io.Reader
	buf  []byte
	r, w int
	err  error
	full bool // the last read filled the buffer: there is likely more, so that a larger buffer pays

	// Room is where the buffer's memory is taken from, beyond the first bytes that every connection has. If it has none, what isn't a body
	// can't be read: Fill returns its error. Nil: there is always some.
	Room   Room
	narrow bool // Room had none for a larger buffer
}

// Room is where memory is taken from before it is allocated. It is a consumer's *budget.Account.
type Room interface {
	// Take takes n bytes, or returns an error and takes none.
	Take(n int64) error
}

// Reset makes the Reader read from src and forgets what was buffered. The buffer is kept, unless it grew.
func (r *Reader) Reset(src io.Reader) {
	r.r, r.w = 0, 0
	r.Shrink()
	*r = Reader{src: src, buf: r.buf, Room: r.Room}
}

// Shrink gives up a buffer that grew, if nothing is in it. It is for connections that stay idle after a large body. Bytes from Peek or a
// Body stay intact.
func (r *Reader) Shrink() {
	r.narrow = false
	if len(r.buf) > 4*minBuffer && r.r == r.w {
		r.buf, r.r, r.w, r.full = nil, 0, 0, false
	}
}

// Peek returns the bytes that are buffered and not yet discarded.
func (r *Reader) Peek() []byte { return r.buf[r.r:r.w] }

// Size is how many bytes the buffer has.
func (r *Reader) Size() int { return len(r.buf) }

// Buffered returns how many bytes Peek would return.
func (r *Reader) Buffered() int { return r.w - r.r }

// Discard skips n buffered bytes. Bytes from an earlier Peek stay valid until the next Fill.
func (r *Reader) Discard(n int) { r.r += min(n, r.w-r.r) }

// Fill reads once and appends at least one byte to what is buffered, or returns the connection's error. It returns
// io.EOF when the peer has ended.
func (r *Reader) Fill() error { return r.fill(maxBuffer) }

// fill is Fill with a bound in bytes on what may be buffered at once.
func (r *Reader) fill(limit int) error {
	if r.err != nil {
		return r.err
	}
	if err := r.makeRoom(limit); err != nil {
		return err
	}
	for range 16 { // a source that keeps returning nothing is broken
		n, err := r.src.Read(r.buf[r.w:])
		r.w += n
		r.full = r.w == len(r.buf)
		if err != nil {
			r.err = err
		}
		if n > 0 {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return io.ErrNoProgress
}

// makeRoom makes place for at least one byte.
func (r *Reader) makeRoom(limit int) error {
	if r.r == r.w {
		r.r, r.w = 0, 0
	}
	switch {
	case r.buf == nil:
		r.buf = make([]byte, minBuffer)
	case r.w == 0 && r.full && len(r.buf) < maxBuffer && r.widens():
		r.buf = make([]byte, 4*len(r.buf))
	case r.w < len(r.buf):
	case r.r > 0:
		r.w = copy(r.buf, r.buf[r.r:r.w])
		r.r = 0
	case len(r.buf) >= limit:
		return errFull
	default:
		if err := r.take(len(r.buf)); err != nil {
			return err
		}
		bigger := make([]byte, 2*len(r.buf))
		r.w = copy(bigger, r.buf[r.r:r.w])
		r.r, r.buf = 0, bigger
	}
	return nil
}

// take takes n bytes for the buffer.
func (r *Reader) take(n int) error {
	if r.Room == nil {
		return nil
	}
	return r.Room.Take(int64(n))
}

// widens takes the bytes for a buffer of four times its size. Without them the smaller one does, too, until Shrink.
func (r *Reader) widens() bool {
	r.narrow = r.narrow || r.take(3*len(r.buf)) != nil
	return !r.narrow
}

// Recover forgets an error of the connection, so that reading can go on. It is for a deadline that interrupted a read and is
// lifted.
func (r *Reader) Recover() { r.err = nil }
