package proxy

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"

	"optimist/internal/api"
	"optimist/internal/obs"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// Exchange is one request and its answer. A connection has one for all its requests: neither it nor anything that it returns
// may be used after the interceptor has returned. Its methods are for the goroutine that called the interceptor.
type Exchange struct {
	// Local is the interceptor's own: it stays from one request of the connection to the next, and is nil at the first.
	Local any

	c    *conn
	head wire.Head
	op   api.Op
	in   requestBody
	up   upstream.Request
	tell func(h *wire.Head) // x.interim, made once

	fields []wire.Field // of the request that goes upstream
	reply  wire.Head    // of an answer of our own
	out    []byte       // what is being written to the client
	peeked []byte
	held   []byte // a piece of an answer's body that waits for the next

	outcome []byte // what the answer says of a write, for the log

	answered bool
	closing  bool // the answer said that the connection ends
	broken   bool // the connection is of no use any more: the client left, or an answer broke off
	done     Done
}

// maxKeptBuffer is the size in bytes above which a buffer isn't kept for the next request.
const maxKeptBuffer = 64 << 10

// begin makes the Exchange ready for the next request.
func (x *Exchange) begin() {
	x.op = api.Op{}
	x.in.begin()
	x.up = upstream.Request{}
	x.answered, x.closing, x.broken = false, false, false
	x.done = Done{}
	x.outcome = x.outcome[:0]
	if x.held = x.held[:0]; cap(x.held) > maxKeptBuffer {
		x.held = nil
	}
	c := x.c
	c.state.served++
	c.wait = idle
	if c.r.Buffered() > 0 {
		c.wait = inHead
	} else {
		c.r.Shrink()
	}
	if cap(x.out) > maxKeptBuffer {
		x.out = nil
	}
	if cap(x.peeked) > maxKeptBuffer {
		x.peeked = nil
	}
}

// open makes the Exchange that of the request whose head was just read.
func (x *Exchange) open() {
	x.in.reset(x.c, &x.head)
	api.Parse(x.head.Method, x.head.Target, &x.op)
}

// answer has the request answered.
func (x *Exchange) answer() {
	switch {
	case x.c.server.intercept == nil || !x.c.server.intercept(x):
		x.pass()
	case !x.answered && !x.broken:
		x.Fail(errUnanswered)
	}
}

// pass forwards the request as it is.
func (x *Exchange) pass() {
	var err error
	if x.op.Kind == api.NodesHTTP && x.c.server.sniffing == SniffRewrite {
		err = x.sniffed()
	} else {
		err = x.Forward(ForwardOptions{})
	}
	if err != nil {
		x.Fail(err)
	}
}

// end reports what became of the request, and whether the connection can carry another.
func (x *Exchange) end() bool {
	c := x.c
	if c.up != nil {
		c.up.Finish()
	}
	x.done.Kind, x.done.Received = x.op.Kind, x.in.taken
	c.server.metrics.Request(&x.done)
	if c.server.logsRequests() {
		x.logLine()
	}
	return !x.broken && !x.closing && !c.last
}

// logsRequests reports whether there is a line for each request.
func (s *Server) logsRequests() bool { return s.log.Enabled(context.Background(), slog.LevelDebug) }

// logLine says what was asked and what came of it: no query, which may hold secrets, and of the header only what is our own.
func (x *Exchange) logLine() {
	line := []any{
		obs.KeyMethod, string(x.head.Method),
		obs.KeyPath, string(x.op.Path),
		obs.KeyOp, x.op.Kind.String(),
		obs.KeyStatus, x.done.Status,
		obs.KeyBytes, x.done.Sent,
		obs.KeyClient, x.c.client.String(),
	}
	if len(x.outcome) > 0 {
		line = append(line, obs.KeyOutcome, string(x.outcome))
	}
	x.c.server.log.Debug("request", line...)
}

// outcomeField is where an interceptor says what became of a write.
const outcomeField = "optimist-outcome"

// note keeps what an answer of ours says of a write, where there is a line for it: the fields don't live as long.
func (x *Exchange) note(fields []wire.Field) {
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

// Op is what the request line asks for.
func (x *Exchange) Op() *api.Op { return &x.op }

// Client is the address that the connection comes from.
func (x *Exchange) Client() netip.AddrPort { return x.c.client }

// Context ends when the client leaves before it has its answer, with the cause ErrLeft, and when the Server is closed, with
// ErrStopped. A client that only ends its sending side counts as one that left, as with nginx and net/http: the two can't be
// told apart before something is written. It is noticed within two of Limits.Tick.
func (x *Exchange) Context() context.Context { return x.c.ctx }

// Answer sends a whole answer with those fields, in their order, and a Content-Length. The body is left out for HEAD, 204 and
// 304. Errors are those of the client's connection; there is nobody left to be told of them. It can be called once.
func (x *Exchange) Answer(status int, fields []wire.Field, body []byte) error {
	if x.answered {
		return ErrAnswered
	}
	h := &x.reply
	h.Status, h.Fields = status, fields
	h.Body, h.Length = wire.Length, int64(len(body))
	if status == http.StatusNoContent || status == http.StatusNotModified {
		h.Body, h.Length, body = wire.None, -1, nil
	}
	x.note(fields)
	x.sign(h)
	x.out = h.AppendResponse(x.out[:0])
	h.Fields = nil
	if string(x.head.Method) == http.MethodHead {
		body = nil
	}
	x.begun(status)
	x.done.Sent = int64(len(body))
	return x.flush(body)
}

// sign decides whether the connection stays, and says so in an answer's head.
func (x *Exchange) sign(h *wire.Head) {
	c := x.c
	x.closing = x.closing || x.head.Close || c.last || c.server.draining.Load() || c.state.cut.Load() != 0 || !x.in.atHand()
	h.Close = x.closing
	h.KeepAlive = !x.closing && x.head.Minor == 0
}

// begun takes note that the client is getting an answer.
func (x *Exchange) begun(status int) {
	x.answered = true
	x.done.Status = status
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

// maxCopied is the size in bytes up to which a body is copied behind what goes before it, for one write.
const maxCopied = 16 << 10

// Fail answers with the error's status in the engine's shape: see FailureOf. If the client left nothing is answered, and if
// an answer had begun it is broken off. The fields are put behind the answer's own.
func (x *Exchange) Fail(err error, say ...wire.Field) {
	if x.answered {
		x.broken = true
		return
	}
	f := FailureOf(err, x.reads())
	if f == nil {
		x.broken = true
		return
	}
	failure := *f
	noNode(&failure, x.c.server.upstream.Nodes())
	x.c.server.metrics.Failed(failure.Type)
	fields := append([]wire.Field{{Name: []byte("content-type"), Value: []byte("application/json")}}, say...)
	_ = x.AnswerOwn(failure.Status, fields, failure.Append(nil))
}

// The field by which Elasticsearch's own clients know it, and refuse answers without it.
const (
	productField = "X-elastic-product"
	productName  = "Elasticsearch"
)

// reads reports whether the request changes nothing, so that a lost answer is no more than that.
func (x *Exchange) reads() bool {
	if x.op.Kind.Read() {
		return true
	}
	switch string(x.head.Method) {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return false
}
