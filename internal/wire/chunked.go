package wire

import "bytes"

// Limits of a chunked body in bytes: of one chunk's line with its extensions, of all extensions, of all trailers.
const (
	maxChunkLine  = 1 << 10
	maxExtensions = 16 << 10
	maxTrailers   = 8 << 10
)

// chunks is the state of a chunked body between two pieces of data.
type chunks struct {
	inChunk    bool // the CRLF behind a chunk's data is still to come
	inTrailers bool // the last chunk was read, and trailers follow
	extensions int
	trailers   int
}

// next reads up to the next chunk's data, or to the end of the body, and sets left or done.
func (c *chunks) next(b *Body) error {
	for {
		line, err := c.line(b.r, true)
		if err != nil {
			b.fail(err)
			return err
		}
		if err := c.step(b, line); err != nil {
			b.fail(err)
			return err
		}
		if b.done || b.left > 0 {
			return nil
		}
	}
}

// fail remembers an error of the grammar. The Reader remembers those of the connection.
func (b *Body) fail(err error) {
	if StatusOf(err) != 0 {
		b.err = err
	}
}

// step reads one line of the chunked coding.
func (c *chunks) step(b *Body, line []byte) error {
	switch {
	case c.inTrailers:
		if len(line) == 0 {
			b.done = true
			return nil
		}
		return c.trailer(line)
	case c.inChunk:
		if len(line) != 0 {
			return ErrChunk
		}
		c.inChunk = false
		return nil
	}
	size, err := c.size(line)
	if err != nil {
		return err
	}
	c.inTrailers = size == 0
	c.inChunk = size > 0
	b.left = size
	return nil
}

// line returns the next line without its CRLF, and consumes it. Without wait it looks at the buffer only.
func (c *chunks) line(r *Reader, wait bool) ([]byte, error) {
	for seen := 0; ; {
		p := r.Peek()
		i := bytes.IndexByte(p[seen:], '\n')
		if i >= 0 {
			end := seen + i
			if end == 0 || p[end-1] != '\r' {
				return nil, ErrChunk
			}
			r.Discard(end + 1)
			return p[:end-1], nil
		}
		seen = len(p)
		if c.inChunk && seen >= 2 {
			return nil, ErrChunk // data longer than its chunk
		}
		if limit := maxChunkLine; seen > limit && !c.inTrailers || seen > maxTrailers {
			return nil, ErrChunkOverhead
		}
		if !wait {
			return nil, errFull
		}
		if err := r.Fill(); err != nil {
			return nil, unexpectedEOF(err, true)
		}
	}
}

// size parses a chunk's line: 1*HEXDIG, then nothing or extensions, which are bounded and ignored.
func (c *chunks) size(line []byte) (int64, error) {
	var n int64
	i := 0
	for ; i < len(line); i++ {
		d, ok := hex(line[i])
		if !ok {
			break
		}
		if n >= 1<<55 { // far above any body, far below an overflow
			return 0, ErrChunk
		}
		n = n<<4 | int64(d)
	}
	if i == 0 || i > 16 {
		return 0, ErrChunk
	}
	ext := line[i:]
	if len(ext) == 0 {
		return n, nil
	}
	if t := trim(ext); len(t) == 0 || t[0] != ';' || !value(ext) {
		return 0, ErrChunk
	}
	c.extensions += len(ext)
	if len(line) > maxChunkLine || c.extensions > maxExtensions {
		return 0, ErrChunkOverhead
	}
	return n, nil
}

// trailer checks one trailer line and drops it. Trailers aren't merged into a head (RFC 9110 §6.5.1).
func (c *chunks) trailer(line []byte) error {
	c.trailers += len(line) + 2
	if c.trailers > maxTrailers {
		return ErrChunkOverhead
	}
	colon := bytes.IndexByte(line, ':')
	if colon <= 0 || !token(line[:colon]) || !value(line[colon+1:]) {
		return ErrChunk
	}
	return nil
}

// wholeChunked decodes the rest of a chunked body if all of it is buffered. If not, it changes nothing.
func (b *Body) wholeChunked(dst []byte) ([]byte, bool) {
	before, at := *b, b.r.r
	for !b.done {
		if b.left > 0 {
			p := b.r.Peek()
			p = p[:min(int64(len(p)), b.left)]
			if len(p) == 0 {
				break
			}
			dst = append(dst, p...)
			b.left -= int64(len(p))
			b.r.Discard(len(p))
			continue
		}
		line, err := b.chunks.line(b.r, false)
		if err == nil {
			err = b.chunks.step(b, line)
		}
		if err != nil {
			break // Next will find and report the same
		}
	}
	if !b.done {
		*b, b.r.r = before, at
		return nil, false
	}
	return dst, true
}

func hex(c byte) (byte, bool) {
	switch {
	case '0' <= c && c <= '9':
		return c - '0', true
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10, true
	case 'A' <= c && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}
