package upstream

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"optimist/internal/wire"
)

// Exchange carries one request after the other to the engine and streams the answers. A client's connection uses one Exchange
// for all its requests, so that a request allocates nothing. When the context ends, the connection to the engine is closed. Its
// methods are for one goroutine.
type Exchange struct {
	set    *Set
	ctx    context.Context
	cancel context.CancelFunc // nil if Set.Do made the Exchange
	stop   func() bool
	abort  func() // x.hangUp, made once
	late   func() // x.expire, made once
	timer  *time.Timer

	user    user          // of the connection
	lasting *wire.Lasting // ctx, if it is one; else nil

	mu       sync.Mutex
	conn     *conn // guarded by mu for hangUp
	aborted  bool  // guarded by mu: the context has ended, or Request.Timeout has passed
	timedOut bool  // guarded by mu: Request.Timeout has passed

	head   wire.Head
	body   wire.Body
	req    wire.Head
	out    []byte // the request's head, and its body if it is small
	target []byte
	method []byte
	whole  []byte // a chunked answer without its framing
	sent   int64
	w      *writer // writes the rest of the request from another goroutine; nil if there is none

	movable bool // the request may go to another node while it waits for its answer: see node.moveReads
}

func newExchange(s *Set) *Exchange {
	x := &Exchange{set: s}
	x.abort, x.late = x.hangUp, x.expire
	return x
}

// NewExchange returns an Exchange that ctx ends. Close it.
func (s *Set) NewExchange(ctx context.Context) *Exchange {
	x := newExchange(s)
	ctx, x.cancel = context.WithCancel(ctx)
	x.bind(ctx)
	return x
}

// bind ties the Exchange to ctx.
func (x *Exchange) bind(ctx context.Context) {
	x.ctx, x.stop, x.aborted, x.timedOut = ctx, nil, false, false
	x.lasting, _ = ctx.(*wire.Lasting)
	switch {
	case x.lasting != nil:
		x.lasting.Hold(x.late)
	case ctx.Done() != nil:
		x.stop = context.AfterFunc(ctx, x.abort)
	}
}

// unbind undoes bind. It reports whether the Exchange may be bound again: not if hangUp may still be running.
func (x *Exchange) unbind() bool {
	x.ctx = nil
	if l := x.lasting; l != nil {
		x.lasting = nil
		return l.Release()
	}
	return x.stop == nil || x.stop()
}

// hangUp closes the connection under an exchange. The exchange then fails at once.
func (x *Exchange) hangUp() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.hangUpLocked()
}

func (x *Exchange) hangUpLocked() {
	x.aborted = true
	if x.conn != nil {
		_ = x.conn.raw.Close()
	}
}

// limit ends the exchange after d, unless d is zero. The Exchange's own timer costs a tenth of what a context's does.
func (x *Exchange) limit(d time.Duration) {
	switch {
	case d <= 0:
	case x.timer == nil:
		x.timer = time.AfterFunc(d, x.late)
	default:
		x.timer.Reset(d)
	}
}

func (x *Exchange) expire() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.timedOut = true
	x.hangUpLocked()
}

// unlimit undoes limit. It reports whether the Exchange may be used again: not if expire may still be running.
func (x *Exchange) unlimit(d time.Duration) bool { return d <= 0 || x.timer.Stop() }

// stopReason is why the exchange may not go on, nil if it may.
func (x *Exchange) stopReason() error {
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.timedOut {
		return context.DeadlineExceeded
	}
	return nil
}

// Close finishes an exchange that is under way, and frees the Exchange.
func (x *Exchange) Close() {
	x.Finish()
	x.stop() // there is no connection left to close
	x.cancel()
}

// attach makes c the connection of the exchange. It returns false if the context has ended: hangUp may have run before attach,
// and left c open.
func (x *Exchange) attach(c *conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.conn = c
	return !x.aborted && x.ctx.Err() == nil
}

// detach takes the connection from the exchange. usable is false if hangUp has closed it.
func (x *Exchange) detach() (c *conn, usable bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c, x.conn = x.conn, nil
	return c, !x.aborted
}

// Send sends r and reads the answer's head. The rest of r's body may still be on its way then. It tries again as Do does. After a
// nil error call Head, then Next or Whole, then Finish. Errors are *Error; after one there is nothing to finish.
func (x *Exchange) Send(r *Request) error {
	again := r.Repeatable
	if err := x.send(r, &again); err != nil {
		return err
	}
	return nil
}

// send is Send. again says whether the request may be sent once more after a lost answer; send sets it to false when it has
// done so.
func (x *Exchange) send(r *Request, again *bool) *Error {
	x.Finish()
	var tried uint64
	var last, lost *Error
	for {
		n := x.set.pickFirst(r.Node, r.Client, tried)
		fresh := false
		if lost != nil && (n == nil || !n.alive.Load()) && last == lost {
			n, fresh = x.set.nodeByURL(lost.Node), true // the one that lost the answer is better than one that is down
		}
		if n == nil {
			if lost != nil {
				return lost // the request may have been applied, whatever happened to later tries
			}
			return last
		}
		if last != nil {
			x.set.cfg.Hooks.Resent.Call(last)
		}
		tried |= n.bit
		x.movable = *again && r.Stream == nil
		err := x.attempt(n, r, fresh)
		switch {
		case err == nil:
			return nil
		case err.Class == NotSent && !errors.Is(err.Err, ErrClosed) && !errors.Is(err.Err, ErrBusy):
		case err.Class == Lost && *again && !x.consumed():
			*again = false
			lost = err
		default:
			return err
		}
		last = err
	}
}

// attempt tries one node. If a connection from the pool turns out to be dead before anything was written, attempt takes a new
// one: the node hasn't failed.
func (x *Exchange) attempt(n *node, r *Request, fresh bool) *Error {
	for {
		if why := x.stopReason(); why != nil {
			return &Error{Class: Cancelled, Err: why}
		}
		// Many clients that read and leave would have the engine work for nobody. That they have left may not have been noticed yet. Where
		// there are few, nobody looks: a client that has only ended its sending side gets its answer, if that comes soon.
		if r.Repeatable && n.crowded() && wire.PeerClosed(x.waiting()) {
			return &Error{Node: n.url, Class: Cancelled, Err: errLeft}
		}
		x.user.client = r.Client
		c, err := n.get(x.waiting(), &x.user, fresh)
		if err != nil {
			return x.connectFailure(n, err)
		}
		if !c.reused {
			n.recordSuccess()
		}
		e := x.attemptOn(c, r)
		if e == nil {
			return nil
		}
		x.release(false)
		if c.reused {
			n.prune(func(c *conn) bool { return c.probe.State() != wire.PeerQuiet })
		}
		if e.Class != NotSent || !c.reused {
			return e
		}
		fresh = true
	}
}

// waiting is the context of the wait for a connection: nothing was sent, and a client that leaves needs no connection any more.
func (x *Exchange) waiting() context.Context {
	if x.lasting != nil {
		return x.lasting.Client
	}
	return x.ctx
}

// connectFailure is the error of a node to which there is no connection.
func (x *Exchange) connectFailure(n *node, err error) *Error {
	why := x.stopReason()
	if why == nil && x.waiting().Err() != nil {
		why = context.Cause(x.waiting())
	}
	if why != nil {
		return &Error{Node: n.url, Class: Cancelled, Err: why}
	}
	var refused *ConnectError
	if errors.As(err, &refused) {
		n.recordFailure(err, false)
	}
	return &Error{Node: n.url, Class: NotSent, Err: err}
}

// attemptOn carries out the exchange on c up to the answer's head.
func (x *Exchange) attemptOn(c *conn, r *Request) *Error {
	x.sent, x.w = 0, nil
	if !x.attach(c) {
		return &Error{Node: c.node.url, Class: Cancelled, Err: x.stopReason()}
	}
	c.movable.Store(x.movable)
	writeErr := x.write(c, r)
	if writeErr != nil && x.sent == 0 {
		return x.failure(c, NotSent, writeErr)
	}
	if writeErr != nil {
		// An engine that refuses a large body answers and closes its side. The answer may be here already.
		_ = c.nc.SetReadDeadline(time.Now().Add(afterBreak))
	}
	err := x.readHead(c, r)
	switch moved := x.movable && !c.movable.Swap(false); {
	case moved:
		return x.failure(c, Lost, errMoved)
	case err != nil && writeErr != nil:
		return x.failure(c, Lost, writeErr)
	case err != nil:
		return x.failure(c, Lost, err)
	}
	if writeErr != nil {
		x.head.Close = true
	}
	if r.Own && len(r.Target) == 1 {
		c.node.recordCredentials(x.head.Status)
	}
	x.body.Reset(&c.r, &x.head)
	return nil
}

// maxInterim bounds the interim answers (1xx) before the real one.
const maxInterim = 8

// errInterim reports a node that sends interim answers without end.
var errInterim = errors.New("too many interim answers")

// readHead reads the head of the final answer.
func (x *Exchange) readHead(c *conn, r *Request) error {
	for range maxInterim {
		if err := x.head.ReadResponse(&c.r, r.Method, wire.DefaultMaxHead); err != nil {
			if err == io.EOF {
				err = errHungUp
			}
			return err
		}
		if x.head.Status >= 200 {
			return nil
		}
		if r.Interim != nil {
			r.Interim(&x.head)
		}
	}
	return errInterim
}

// errMoved reports a node that failed its health check, or couldn't be reached, while a read waited for its answer.
var errMoved = errors.New("the node failed before it answered")

// errHungUp reports a node that closed the connection without a byte of an answer.
var errHungUp = errors.New("the node closed the connection without an answer")

// failure is the error of an exchange that broke on c. It ends the writer first.
func (x *Exchange) failure(c *conn, class Class, err error) *Error {
	e := &Error{Node: c.node.url, Class: class, Err: err}
	if x.w != nil {
		x.w.end()
		x.sent = x.w.sent
		switch {
		case x.w.streamErr != nil:
			e.Class, e.Err = Body, x.w.streamErr
		case class == Lost && x.sent == 0:
			e.Class = NotSent
		}
	}
	x.mu.Lock()
	aborted := x.aborted
	x.mu.Unlock()
	switch {
	case aborted, x.ctx.Err() != nil:
		e.Class, e.Err = Cancelled, x.stopReason()
	case e.Class != TooLarge && e.Class != Body && x.set.ctx.Err() != nil:
		e.Err = ErrClosed
	}
	e.Sent = x.sent > 0
	return e
}

// consumed reports whether the last try took bytes from the request's Stream.
func (x *Exchange) consumed() bool { return x.w != nil && x.w.streamUsed }

// Head is the answer's head, valid until the next Send. See Response about its hop-by-hop fields and Close.
func (x *Exchange) Head() *wire.Head { return &x.head }

// Node is the URL of the node that answers, "" if there is none.
func (x *Exchange) Node() string {
	if x.conn == nil {
		return ""
	}
	return x.conn.node.url
}

// Next returns the next bytes of the answer's body, valid until the next call, and io.EOF at its end. Other errors are an
// *Error of the class Broken or Cancelled.
func (x *Exchange) Next() ([]byte, error) {
	p, end, e := x.next()
	switch {
	case e != nil:
		return nil, e
	case end:
		return nil, io.EOF
	}
	return p, nil
}

func (x *Exchange) next() (p []byte, end bool, e *Error) {
	c := x.conn
	if c == nil {
		return nil, true, nil // nothing was sent, or the exchange has failed or is finished
	}
	p, err := x.body.Next()
	if err == nil || err == io.EOF {
		return p, err != nil, nil
	}
	e = x.failure(c, Broken, err)
	x.release(false)
	return nil, false, e
}

// Whole returns the answer's body if all of it is buffered. If not, it returns false and consumes nothing. The bytes are valid
// until Finish.
func (x *Exchange) Whole() ([]byte, bool) {
	if x.conn == nil {
		return nil, false
	}
	p, ok := x.body.Whole(x.whole)
	if ok && x.head.Body == wire.Chunked {
		x.whole = p // it was decoded into x.whole
	}
	return p, ok
}

// Finish ends the exchange. It keeps the connection if the request was sent whole and the answer read whole. It doesn't wait
// for the rest of a request's body. Finish may be called twice.
func (x *Exchange) Finish() {
	c := x.conn
	if c == nil {
		return
	}
	keep := x.body.Done() && !x.head.Close && c.r.Buffered() == 0
	if x.w != nil {
		keep = x.w.finish(keep) && keep
		x.w = nil
	}
	x.release(keep)
}

// release gives up the connection.
func (x *Exchange) release(keep bool) {
	c, usable := x.detach()
	x.body = wire.Body{} // the next bytes on the connection belong to another exchange
	if cap(x.whole) > maxKept {
		x.whole = nil
	}
	if cap(x.out) > maxKept {
		x.out = nil
	}
	switch {
	case c == nil:
	case keep && usable:
		c.node.put(c)
	default:
		c.node.drop(c)
	}
}

// maxKept is the size in bytes above which a buffer isn't kept for the next use.
const maxKept = 16 << 10
