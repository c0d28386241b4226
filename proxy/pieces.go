package proxy

import (
	"io"
	"net/http"
	"slices"

	"optimist/internal/wire"
)

// Piece returns the next bytes of the request's body as they come, without its transfer coding, and io.EOF behind the last of them. It is
// for a body that Body has found to be too large, or of which nobody wants the whole. The bytes are valid until the next call. Errors are
// for Fail. With keep, given with all calls until now, the request can still be forwarded: see GiveBack.
func (x *Exchange) Piece(keep bool) ([]byte, error) {
	b := &x.in
	switch {
	case b.err != nil:
		return nil, b.err
	case b.collected && b.taken:
		return nil, io.EOF
	case b.collected:
		b.taken = true
		return b.whole, nil
	case b.awaitsContinue:
		if err := x.sendContinue(); err != nil {
			return nil, err
		}
	}
	collected := len(b.prefix) > 0
	p, err := b.Next()
	switch {
	case !keep:
		b.kept = nil
		if !collected && cap(b.buffer) > maxKeptBuffer {
			b.buffer = nil // what was in it has been taken
		}
	case collected:
		b.kept = p[:len(p):len(p)]
	default:
		b.kept = append(b.kept, p...)
	}
	return p, err
}

// GiveBack makes what Piece has returned, and was to keep, the beginning of the body again.
func (x *Exchange) GiveBack() {
	b := &x.in
	switch {
	case b.collected:
		b.taken = false
	case b.body.Done():
		b.whole, b.collected = b.kept, true
	default:
		b.prefix = b.kept
	}
	b.kept = nil
}

// Streamed is an answer whose body is read while it is sent.
type Streamed struct {
	Status int
	Fields []wire.Field
	Length int64 // of the body, in bytes
	Body   io.Reader
	// Own says that the head isn't the engine's: see AnswerOwn.
	Own bool
}

// AnswerFrom is Answer for a body that nobody holds. If the body ends early the client's connection does, too.
func (x *Exchange) AnswerFrom(a *Streamed) error {
	if x.hasAnswer {
		return ErrSecondAnswer
	}
	h := &x.reply
	h.Status, h.Fields = a.Status, slices.Clone(a.Fields)
	if a.Own {
		h.Fields = x.withProduct(h.Fields)
	}
	h.Body, h.Length = wire.Length, a.Length
	x.keepOutcome(h.Fields)
	x.setConnection(h)
	x.out = h.AppendResponse(x.out[:0])
	h.Fields = nil
	x.recordStatus(a.Status)
	if string(x.head.Method) == http.MethodHead {
		return x.flush(nil)
	}
	room := make([]byte, min(a.Length, pieceSize))
	for x.sent < a.Length {
		n, err := io.ReadFull(a.Body, room[:min(a.Length-x.sent, int64(len(room)))])
		if err != nil {
			x.broken = true
			return err
		}
		if err := x.flush(room[:n]); err != nil {
			return err
		}
		x.sent += int64(n)
	}
	return x.flush(nil)
}

// pieceSize is how many bytes of a body are read at once.
const pieceSize = 64 << 10
