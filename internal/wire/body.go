package wire

import "io"

// Body reads the body of one message without its transfer coding. Reset makes it ready; it is not safe for concurrent use.
type Body struct {
	r      *Reader
	kind   Framing
	left   int64 // of the body (Length) or of the current chunk
	done   bool
	err    error
	chunks chunks
}

// Reset begins the body that follows h on r.
func (b *Body) Reset(r *Reader, h *Head) {
	*b = Body{r: r, kind: h.Body, left: h.Length}
	switch {
	case h.Body == None, h.Body == Length && h.Length == 0:
		b.done = true
	case h.Body == Chunked:
		b.left = 0
	}
}

// Done reports whether the body was read to its end, so that the next message may follow on the connection.
func (b *Body) Done() bool { return b.done }

// Next returns the next bytes of the body, at least one, or io.EOF at its end. The bytes lie in the Reader's buffer and are
// valid until the next call. If the connection ends before the body the error is io.ErrUnexpectedEOF. Errors are final, except
// those that the Reader recovers from (Recover).
func (b *Body) Next() ([]byte, error) {
	if b.done {
		return nil, io.EOF
	}
	if b.err != nil {
		return nil, b.err
	}
	if b.kind == Chunked && b.left == 0 {
		if err := b.chunks.next(b); err != nil {
			return nil, err
		}
		if b.done {
			return nil, io.EOF
		}
	}
	if b.r.Buffered() == 0 {
		if err := b.r.Fill(); err != nil {
			if err == io.EOF && b.kind == UntilClose {
				b.done = true
				return nil, io.EOF
			}
			return nil, unexpectedEOF(err, true)
		}
	}
	p := b.r.Peek()
	if b.kind != UntilClose {
		if int64(len(p)) > b.left {
			p = p[:b.left]
		}
		b.left -= int64(len(p))
		b.done = b.kind == Length && b.left == 0
	}
	b.r.Discard(len(p))
	return p, nil
}

// Whole returns the rest of the body and consumes it, if all of it is buffered. If not, it consumes nothing and returns false.
// A body of a known length stays in the Reader's buffer and is valid until the next read from the Reader. A chunked one is
// decoded into dst[:0], which may be nil.
func (b *Body) Whole(dst []byte) ([]byte, bool) {
	if b.done {
		return nil, true
	}
	if b.err != nil {
		return nil, false
	}
	switch b.kind {
	case Length:
		if int64(b.r.Buffered()) < b.left {
			return nil, false
		}
		p := b.r.Peek()[:b.left]
		b.r.Discard(len(p))
		b.left, b.done = 0, true
		return p, true
	case Chunked:
		return b.wholeChunked(dst[:0])
	}
	return nil, false
}

// trustedLength is how many bytes of a message must have come before Gather allocates as many as its head announces. A message
// that announces much and sends little costs little.
const trustedLength = 1 << 20

// Gather appends p to buf, in which a message of length bytes is collected; negative: the length isn't known. If buf must grow,
// it at least doubles, or gets all of the length at once. The steps in which append grows large slices would leave copies of
// several times the message behind.
func Gather(buf, p []byte, length int64) []byte {
	if more := Growth(buf, len(p), length); more > 0 {
		buf = append(make([]byte, 0, cap(buf)+int(more)), buf...)
	}
	return append(buf, p...)
}

// Growth is by how many bytes Gather makes buf larger for n further bytes, so that they can be taken from a budget before.
func Growth(buf []byte, n int, length int64) int64 {
	need := len(buf) + n
	if need <= cap(buf) {
		return 0
	}
	size := max(2*cap(buf), need)
	if length >= int64(need) && (need >= trustedLength || length < trustedLength) {
		size = int(length)
	}
	return int64(size - cap(buf))
}
