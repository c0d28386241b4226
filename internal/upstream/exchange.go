package upstream

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"optimist/internal/wire"
)

// Exchange carries one request after the other to the engine and streams the answers. A client connection keeps one for
// all its requests: what ends its context closes the connection to the engine, and nothing is allocated a request. Its methods
// are for one goroutine.
type Exchange struct {
	set    *Set
	ctx    context.Context
	cancel context.CancelFunc // nil in one that Do made
	stop   func() bool
	abort  func() // x.hangUp, made once
	timer  *time.Timer

	mu      sync.Mutex
	conn    *conn // guarded by mu for hangUp
	aborted bool  // guarded by mu: the context has ended, or the time is up
	late    bool  // guarded by mu: the time is up

	head   wire.Head
	body   wire.Body
	req    wire.Head
	out    []byte // the request's head, and its body if it is small
	target []byte
	method []byte
	whole  []byte // a chunked answer in one piece
	sent   int64
	w      *writer // the rest of a body that is being written, nil if there is none
}

func newExchange(s *Set) *Exchange {
	x := &Exchange{set: s}
	x.abort = x.hangUp
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
	x.ctx, x.stop, x.aborted, x.late = ctx, nil, false, false
	if ctx.Done() != nil {
		x.stop = context.AfterFunc(ctx, x.abort)
	}
}

// unbind ends what bind began. It reports whether the Exchange may be bound again: not if hangUp may still be running.
func (x *Exchange) unbind() bool {
	x.ctx = nil
	return x.stop == nil || x.stop()
}

// hangUp closes the connection under an exchange, which then fails where it stands.
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

// limit has the exchange end after d, unless that is zero. A timer of the Exchange's own costs a tenth of a context's.
func (x *Exchange) limit(d time.Duration) {
	switch {
	case d <= 0:
	case x.timer == nil:
		x.timer = time.AfterFunc(d, x.expire)
	default:
		x.timer.Reset(d)
	}
}

func (x *Exchange) expire() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.late = true
	x.hangUpLocked()
}

// unlimit ends what limit began. It reports whether the Exchange may be used again: not if expire may still be running.
func (x *Exchange) unlimit(d time.Duration) bool { return d <= 0 || x.timer.Stop() }

// ended is why the exchange may not go on, nil if it may.
func (x *Exchange) ended() error {
	if x.ctx.Err() != nil {
		return context.Cause(x.ctx)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.late {
		return context.DeadlineExceeded
	}
	return nil
}

// Close finishes an exchange that is under way and frees what NewExchange made.
func (x *Exchange) Close() {
	x.Finish()
	x.stop() // nothing is left to hang up
	x.cancel()
}

// attach makes c the connection of the exchange. It reports false if the context has ended already, which hangUp may not
// yet have been told.
func (x *Exchange) attach(c *conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.conn = c
	return !x.aborted && x.ctx.Err() == nil
}

// detach takes the connection back. usable is false if the context has closed it.
func (x *Exchange) detach() (c *conn, usable bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	c, x.conn = x.conn, nil
	return c, !x.aborted
}

// Send sends r and reads the answer's head, while the rest of r's body may still be on its way. It retries as Do does. After
// nil: Head, Next or Whole, and Finish. After an error, an *Error, there is nothing to finish.
func (x *Exchange) Send(r *Request) error {
	again := r.Repeatable
	if err := x.send(r, &again); err != nil {
		return err
	}
	return nil
}

// send is Send; again says whether a lost answer may be followed by another try, and is used up by it.
func (x *Exchange) send(r *Request, again *bool) *Error {
	x.Finish()
	var tried uint64
	var last, lost *Error
	for {
		n := x.set.pickFirst(r.Node, tried)
		fresh := false
		if lost != nil && (n == nil || !n.alive.Load()) && last == lost {
			n, fresh = x.set.named(lost.Node), true // better than a node that is known to be down
		}
		if n == nil {
			if lost != nil {
				return lost // what came later and wasn't sent doesn't undo it
			}
			return last
		}
		if last != nil {
			x.set.cfg.Hooks.Resent.Call(last)
		}
		tried |= n.bit
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

// attempt tries one node. A connection from the pool that turns out to be dead before anything was written is no failure
// of the node: it gets a new one.
func (x *Exchange) attempt(n *node, r *Request, fresh bool) *Error {
	for {
		if why := x.ended(); why != nil {
			return &Error{Class: Cancelled, Err: why}
		}
		c, err := n.get(x.ctx, fresh)
		if err != nil {
			return x.unreached(n, err)
		}
		if !c.reused {
			n.succeeded()
		}
		e := x.on(c, r)
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

// unreached makes the error of a node to which there is no connection.
func (x *Exchange) unreached(n *node, err error) *Error {
	if why := x.ended(); why != nil {
		return &Error{Node: n.url, Class: Cancelled, Err: why}
	}
	var refused *ConnectError
	if errors.As(err, &refused) {
		n.failed(err, false)
	}
	return &Error{Node: n.url, Class: NotSent, Err: err}
}

// on carries out the exchange on c up to the answer's head.
func (x *Exchange) on(c *conn, r *Request) *Error {
	x.sent, x.w = 0, nil
	if !x.attach(c) {
		return &Error{Node: c.node.url, Class: Cancelled, Err: x.ended()}
	}
	writeErr := x.write(c, r)
	if writeErr != nil && x.sent == 0 {
		return x.failure(c, NotSent, writeErr)
	}
	if writeErr != nil {
		// An engine that refuses a large body answers and closes: the answer may be here already.
		_ = c.nc.SetReadDeadline(time.Now().Add(afterBreak))
	}
	if err := x.readHead(c, r); err != nil {
		if writeErr != nil {
			err = writeErr
		}
		return x.failure(c, Lost, err)
	}
	if writeErr != nil {
		x.head.Close = true
	}
	if r.Own && len(r.Target) == 1 {
		c.node.judged(x.head.Status)
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
		if err := x.head.ReadResponse(&c.r, r.Method, x.set.cfg.MaxHead); err != nil {
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

// errHungUp reports a node that closed the connection without a byte of an answer.
var errHungUp = errors.New("the node closed the connection without an answer")

// failure makes the error of an exchange that broke on c, after the writer has ended.
func (x *Exchange) failure(c *conn, class Class, err error) *Error {
	e := &Error{Node: c.node.url, Class: class, Err: err, Status: 0}
	if class == Broken || class == TooLarge {
		e.Status = x.head.Status
	}
	if x.w != nil {
		x.w.end()
		x.sent = x.w.sent
		switch {
		case x.w.source != nil:
			e.Class, e.Err = Body, x.w.source
		case class == Lost && x.sent == 0:
			e.Class = NotSent
		}
	}
	x.mu.Lock()
	aborted := x.aborted
	x.mu.Unlock()
	if aborted {
		e.Class, e.Err = Cancelled, x.ended()
	}
	e.Sent = x.sent > 0
	return e
}

// consumed reports whether the last try asked the request's Stream for bytes.
func (x *Exchange) consumed() bool { return x.w != nil && x.w.asked }

// Head is the answer's head, valid until the next Send. See Response about its hop-by-hop fields and Close.
func (x *Exchange) Head() *wire.Head { return &x.head }

// Node is the URL of the node that answers.
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
		return nil, true, nil // nothing was sent, or it has failed or was finished
	}
	p, err := x.body.Next()
	if err == nil || err == io.EOF {
		return p, err != nil, nil
	}
	e = x.failure(c, Broken, err)
	x.release(false)
	return nil, false, e
}

// Whole returns the answer's body if all of it is here already, else false and nothing is consumed. It is valid until
// Finish.
func (x *Exchange) Whole() ([]byte, bool) {
	if x.conn == nil {
		return nil, false
	}
	p, ok := x.body.Whole(x.whole)
	if ok && x.head.Body == wire.Chunked {
		x.whole = p // decoded into memory of ours
	}
	return p, ok
}

// Finish ends the exchange. The connection is kept if the request was sent whole and the answer was read whole; what is
// left of a request's body isn't awaited. Finishing twice is harmless.
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
	x.body = wire.Body{} // the connection's next bytes are somebody else's
	if cap(x.whole) > maxKept {
		x.whole = nil
	}
	switch {
	case c == nil:
	case keep && usable:
		c.node.put(c)
	default:
		c.node.drop(c)
	}
}
