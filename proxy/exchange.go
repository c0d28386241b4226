package proxy

import (
	"context"
	"hash/maphash"
	"log/slog"
	"net/http"
	"net/netip"

	"optimist/internal/api"
	"optimist/internal/obs"
	"optimist/internal/share"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// Exchange is one request and its answer. A connection uses one Exchange for all its requests: neither it nor anything that it
// returns may be used after the interceptor has returned. Its methods are for the goroutine that called the interceptor.
type Exchange struct {
	// OnAnswer, if it is set, is handed the answer to this request that isn't the engine's own stream, and gives the one that the client
	// gets. It is called also if the client has left, but not if there is no answer. It is nil again at the next request.
	OnAnswer func(status int, fields []wire.Field, body []byte) (int, []wire.Field, []byte)

	// OnStatus, if it is set, is called once with the status of the answer to this request, also of optimist's own answer, before the
	// client has any of it. It isn't called if there is no answer. It is nil again at the next request.
	OnStatus func(status int)

	// Local belongs to the interceptor. It is nil at a connection's first request, and behind one with a large head. Else it stays from one
	// request to the next.
	Local any

	c         *conn
	head      wire.Head
	op        api.Op
	in        requestBody
	up        upstream.Request
	onInterim func(h *wire.Head) // x.sendInterim; made once, because a method value allocates

	fields  []wire.Field // of the request that goes upstream
	reply   wire.Head    // of an answer of our own
	out     []byte       // what is being written to the client
	prefix  []byte       // the first bytes of an answer's body, for ForwardOptions.OnHead
	pending []byte       // a piece of an answer's body that is held back until the next piece comes
	last    []byte       // the last piece of an answer's body, while ForwardOptions.Last runs

	outcome []byte // the answer's Optimist-Outcome, for the log

	hasAnswer bool  // the client has got an answer, or the beginning of one
	closing   bool  // the answer has "Connection: close"
	broken    bool  // the connection can't be used any more: the client left, or an answer broke off
	status    int   // of the final answer; 0 if there was none
	sent      int64 // bytes of the answer's body, without transfer coding
}

// maxKeptBuffer is the size in bytes above which a buffer isn't kept for the next request: idle connections are many.
const maxKeptBuffer = 16 << 10

const (
	// smallHead is the size in bytes up to which a head takes nothing from the budget: as connections have one anyway.
	smallHead = 4 << 10
	// copiesOfHead is how many times a head is held while its request is under way: as it came, in our lists, and as it is sent.
	copiesOfHead = 3
)

// holdHead takes the memory for a large head, and for the buffer that it came in, from the request's client. While the head came nobody
// knew whose it was.
func (x *Exchange) holdHead() error {
	if x.head.Size() <= smallHead {
		return nil
	}
	x.c.taken.End()
	return x.c.taken.Take(int64(copiesOfHead*x.head.Size() + x.c.r.Size()))
}

// forget drops all that is kept for the next request, or of the last.
func (x *Exchange) forget() {
	c := x.c
	if c.up != nil {
		c.up.Close()
		c.up = nil
	}
	x.head, x.op, x.up, x.Local = wire.Head{Identity: c.server.identity}, api.Op{}, upstream.Request{}, nil
	x.fields, x.out, x.prefix, x.pending = nil, nil, nil, nil
}

// reset makes the Exchange ready for the next request.
func (x *Exchange) reset() {
	if x.head.Size() > smallHead {
		x.forget() // idle connections are many
	}
	x.op = api.Op{}
	x.OnAnswer, x.OnStatus = nil, nil
	x.in.clear()
	x.up = upstream.Request{}
	x.hasAnswer, x.closing, x.broken = false, false, false
	x.status, x.sent = 0, 0
	x.outcome = x.outcome[:0]
	if x.pending = x.pending[:0]; cap(x.pending) > maxKeptBuffer {
		x.pending = nil
	}
	c := x.c
	c.state.requests++
	c.waitPhase = idle
	if c.r.Buffered() > 0 {
		c.waitPhase = inHead
	} else {
		c.r.Shrink()
	}
	if cap(x.out) > maxKeptBuffer {
		x.out = nil
	}
	if cap(x.prefix) > maxKeptBuffer {
		x.prefix = nil
	}
}

// start makes the Exchange that of the request whose head was just read.
func (x *Exchange) start() {
	x.in.reset(x.c, &x.head)
	api.Parse(x.head.Method, x.head.Target, &x.op)
}

// finish reports the request to metrics and log. It returns whether the connection can carry another.
func (x *Exchange) finish() bool {
	c := x.c
	if c.up != nil {
		c.up.Finish()
	}
	x.in.drop()
	c.taken.End()
	c.server.metrics.Request(x.op.Kind.String(), x.status, x.in.received, x.sent)
	if c.server.logsRequests() {
		x.logLine()
	}
	return !x.broken && !x.closing && !c.lastRequest
}

// logsRequests reports whether there is a line for each request.
func (s *Server) logsRequests() bool { return s.log.Enabled(context.Background(), slog.LevelDebug) }

// logLine writes the request's line. The line has no query, which may hold secrets, and of the fields only optimist's own.
func (x *Exchange) logLine() {
	line := []any{
		obs.KeyMethod, string(x.head.Method),
		obs.KeyPath, string(x.op.Path),
		obs.KeyOp, x.op.Kind.String(),
		obs.KeyStatus, x.status,
		obs.KeyBytes, x.sent,
		obs.KeyClient, x.c.client.String(),
	}
	if len(x.outcome) > 0 {
		line = append(line, obs.KeyOutcome, string(x.outcome))
	}
	x.c.server.log.Debug("request", line...)
}

// outcomeField is the field in which an interceptor says what became of a write.
const outcomeField = "optimist-outcome"

// keepOutcome copies the outcome from an answer's fields, if there will be a log line. The fields are gone by then.
func (x *Exchange) keepOutcome(fields []wire.Field) {
	if !x.c.server.logsRequests() {
		return
	}
	for i := range fields {
		if wire.EqualFold(fields[i].Name, outcomeField) {
			x.outcome = append(x.outcome[:0], fields[i].Value...)
		}
	}
}

// Head is the request's head as it came, hop-by-hop fields included.
func (x *Exchange) Head() *wire.Head { return &x.head }

// Op is the operation that the request line asks for.
func (x *Exchange) Op() *api.Op { return &x.op }

// Client is the address that the connection comes from.
func (x *Exchange) Client() netip.AddrPort { return x.c.client }

// Subject is the client's identity in its certificate: see secure.Subject. It is nil without a certificate. It stays the same, and valid,
// as long as the connection.
func (x *Exchange) Subject() []byte { return x.c.subject }

// Place is whose places the request takes: those of its client's address and Authorization.
func (x *Exchange) Place() share.Client {
	s, addr := x.c.server, x.c.client.Addr()
	if s.address != nil {
		addr = s.address(x.head.Fields, addr)
	}
	return share.Of(addr, maphash.Bytes(s.seed, x.head.Get("authorization")))
}

// Context ends with the cause ErrLeft when the client leaves before it has its answer, and with ErrStopped when the Server is
// closed. A client that only ends its sending side counts as one that left, as in nginx and net/http: until something is written
// the two look the same. It takes up to two of Limits.Tick to notice.
func (x *Exchange) Context() context.Context { return x.c.ctx }

// Answer sends a whole answer with those fields, in their order, and a Content-Length. The body is left out for HEAD, 204 and
// 304. It can be called once: a second call returns ErrSecondAnswer. Other errors are those of the client's connection, which
// is of no use then.
func (x *Exchange) Answer(status int, fields []wire.Field, body []byte) error {
	if x.hasAnswer {
		return ErrSecondAnswer
	}
	if on := x.OnAnswer; on != nil {
		x.OnAnswer = nil
		status, fields, body = on(status, fields, body)
	}
	h := &x.reply
	h.Status, h.Fields = status, fields
	h.Body, h.Length = wire.Length, int64(len(body))
	if status == http.StatusNoContent || status == http.StatusNotModified {
		h.Body, h.Length, body = wire.None, -1, nil
	}
	x.keepOutcome(fields)
	x.setConnection(h)
	x.out = h.AppendResponse(x.out[:0])
	h.Fields = nil
	if string(x.head.Method) == http.MethodHead {
		body = nil
	}
	x.recordStatus(status)
	x.sent = int64(len(body))
	return x.flush(body)
}

// setConnection decides whether the connection stays, and sets the fields of an answer's head that say so.
func (x *Exchange) setConnection(h *wire.Head) {
	c := x.c
	x.closing = x.closing || x.head.Close || c.lastRequest || c.server.draining.Load() || c.state.cut.Load() != 0 || !x.in.readBuffered()
	h.Close = x.closing
	h.KeepAlive = !x.closing && x.head.Minor == 0
}

// recordStatus records that the client is getting an answer.
func (x *Exchange) recordStatus(status int) {
	x.hasAnswer = true
	x.status = status
	if on := x.OnStatus; on != nil {
		x.OnStatus = nil
		on(status)
	}
}

// flush writes x.out and tail.
func (x *Exchange) flush(tail []byte) error {
	var err error
	if len(tail) <= maxCopied {
		x.out = append(x.out, tail...)
		err = x.c.write(x.out)
	} else if err = x.c.write(x.out); err == nil {
		err = x.c.write(tail)
	}
	x.out = x.out[:0]
	if err != nil {
		x.broken = true
	}
	return err
}

// maxCopied is the size in bytes up to which a body is copied behind its head, for one write.
const maxCopied = 16 << 10

// isRead reports whether the request changes nothing. If its answer is lost, no outcome is unknown.
func (x *Exchange) isRead() bool { return x.op.Kind.Read() || wire.IsSafe(x.head.Method) }
