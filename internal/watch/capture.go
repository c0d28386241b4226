package watch

import (
	"bytes"

	"optimist/internal/budget"
	"optimist/internal/coding"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/jsontext"
	"optimist/internal/wire"
)

const (
	// copyLimit is the size of an answer, in bytes, up to which it is looked at; of larger documents only the numbers are known.
	copyLimit = 16 << 20
	// headPeek is how many bytes of a document's answer are waited for before its head goes on: the numbers stand before _source.
	headPeek = 2 << 10
	// maxKept is the size in bytes above which a buffer isn't kept for the next request.
	maxKept = 16 << 10
)

// Capture is a copy of an answer on its way to the client. Head, Copy and Last are for proxy.ForwardOptions.
type Capture struct {
	// Whole is called once when all of the answer is here, and the client doesn't have all of it yet: its next request may come, on
	// another connection, as soon as it does.
	Whole  func()
	Status int

	length  int64
	gzip    bool
	usable  bool
	full    bool
	numbers doc.Numbers // of a document over the limit
	limit   int
	room    *budget.Account
	buf     []byte
}

// NewCapture makes a Capture of an answer of up to limit bytes, for which it takes memory from room.
func NewCapture(room *budget.Account, limit int) *Capture { return &Capture{room: room, limit: limit} }

func (c *Capture) reset(room *budget.Account, limit int) {
	*c = Capture{room: room, limit: limit, buf: c.buf[:0]}
}

func (c *Capture) release() {
	c.reset(nil, 0)
	if cap(c.buf) > maxKept {
		c.buf = nil
	}
}

// Head looks whether the answer can be read at all.
func (c *Capture) Head(h *wire.Head, _ []byte) []wire.Field {
	c.Status, c.usable, c.length = h.Status, true, h.Length
	switch value := h.Get("content-encoding"); {
	case value == nil:
	case coding.IsGzip(value):
		c.gzip = true
	default:
		c.usable = false
	}
	media := h.Get("content-type")
	c.usable = c.usable && (bytes.Contains(media, []byte("json")) || bytes.Contains(bytes.ToLower(media), []byte("json")))
	return nil
}

// beginning reads what there is of a document at the beginning of its answer.
func (c *Capture) beginning(first []byte) es.Item {
	if c.gzip {
		first, _ = coding.Gunzip(first, headPeek) // of an answer that is only here in part
	}
	return es.ParseItem(first)
}

// Copy takes the next bytes of the answer. If there is no memory for the answer, it counts as too large: it isn't remembered, but the
// client still gets it.
func (c *Capture) Copy(b []byte) {
	if !c.usable || c.full {
		return
	}
	if len(c.buf)+len(b) > c.limit || c.length > int64(c.limit) || c.room.Take(wire.Growth(c.buf, len(b), c.length)) != nil {
		if len(c.buf) == 0 {
			c.buf = b
		}
		c.giveUp()
		return
	}
	c.buf = wire.Gather(c.buf, b, c.length)
}

// giveUp keeps only the numbers of an answer that is too large, as it came or decoded.
func (c *Capture) giveUp() {
	if it := c.beginning(c.buf[:min(len(c.buf), headPeek)]); it.Numbered {
		c.numbers = it.Numbers
	}
	c.full, c.buf = true, nil
}

// Last says that the answer is complete.
func (c *Capture) Last() {
	if whole := c.Whole; whole != nil {
		c.Whole = nil
		whole()
	}
}

// Body is the answer's body without its content coding. ok is false where it can't be read.
func (c *Capture) Body() (body []byte, ok bool) {
	switch {
	case !c.usable || c.full:
		return nil, false
	case !c.gzip:
		return c.buf, len(c.buf) > 0
	}
	body, err := coding.GunzipIn(c.room, c.buf, int64(c.limit))
	if err != nil {
		c.giveUp()
		return nil, false
	}
	return body, jsontext.Valid(body)
}
