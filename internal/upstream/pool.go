package upstream

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"optimist/internal/wire"
)

// conn is one connection to a node. One exchange uses it at a time.
type conn struct {
	node   *node
	raw    net.Conn // the socket; closing it ends everything at once, without TLS's goodbye
	nc     net.Conn // raw, or TLS on it
	r      wire.Reader
	probe  *wire.Probe
	since  time.Duration // when it became idle, as Set.now
	reused bool
}

// pool is a node's connections: the idle ones, the last used one last, and the requests that wait for one.
type pool struct {
	sync.Mutex
	idle    []*conn
	open    int // idle, in use and being dialled
	waiters []chan *conn
	closed  bool
}

// hasRoom reports whether a request would get a connection without waiting.
func (n *node) hasRoom() bool {
	n.pool.Lock()
	defer n.pool.Unlock()
	return len(n.pool.idle) > 0 || n.pool.open < n.set.cfg.MaxConns
}

// get returns an idle connection that is usable, else a new one; with fresh, always a new one. It waits while the node has as
// many connections as it may have.
func (n *node) get(ctx context.Context, fresh bool) (*conn, error) {
	for {
		c, dial, wait, err := n.take(fresh)
		switch {
		case err != nil:
			return nil, err
		case c != nil:
			if n.usable(c) {
				return c, nil
			}
			n.drop(c)
			continue
		case dial:
			return n.open(ctx)
		}
		if c, err = n.wait(ctx, wait); err != nil {
			return nil, err
		}
		if c != nil {
			if !fresh && n.usable(c) {
				return c, nil
			}
			_ = c.raw.Close()
		}
		return n.open(ctx) // on the place that wait returned
	}
}

// take returns an idle connection, or that the caller may dial, or a channel to wait on.
func (n *node) take(fresh bool) (c *conn, dial bool, wait chan *conn, err error) {
	p := &n.pool
	p.Lock()
	defer p.Unlock()
	if p.closed {
		return nil, false, nil, ErrClosed
	}
	if last := len(p.idle) - 1; last >= 0 && !fresh {
		c, p.idle[last] = p.idle[last], nil
		p.idle = p.idle[:last]
		return c, false, nil, nil
	}
	if p.open < n.set.cfg.MaxConns {
		p.open++
		return nil, true, nil, nil
	}
	if len(p.idle) > 0 { // fresh: the oldest one makes place
		_ = p.idle[0].raw.Close()
		p.idle = slices.Delete(p.idle, 0, 1)
		return nil, true, nil, nil
	}
	wait = make(chan *conn, 1)
	p.waiters = append(p.waiters, wait)
	return nil, false, wait, nil
}

// wait waits for a connection, or for leave to dial one (nil).
func (n *node) wait(ctx context.Context, ch chan *conn) (*conn, error) {
	begun := time.Now()
	timer := time.NewTimer(n.set.cfg.AcquireTimeout)
	defer timer.Stop()
	var err error
	select {
	case c := <-ch:
		n.reportWait(begun)
		return c, nil
	case <-ctx.Done():
		err = context.Cause(ctx)
	case <-timer.C:
		err = ErrBusy
	case <-n.set.ctx.Done():
		err = ErrClosed
	}
	n.reportWait(begun)
	n.leaveQueue(ch)
	return nil, err
}

func (n *node) reportWait(begun time.Time) {
	n.set.cfg.Hooks.Waited.Call(n.url, time.Since(begun))
}

// leaveQueue takes a waiter out of the queue. A connection that it got in the meantime goes to the next one.
func (n *node) leaveQueue(ch chan *conn) {
	n.pool.Lock()
	for i, w := range n.pool.waiters {
		if w == ch {
			n.pool.waiters = append(n.pool.waiters[:i], n.pool.waiters[i+1:]...)
			n.pool.Unlock()
			return
		}
	}
	n.pool.Unlock()
	if c := <-ch; c != nil {
		n.put(c)
	} else {
		n.freePlace()
	}
}

// open dials a connection that pool.open counts already.
func (n *node) open(ctx context.Context) (*conn, error) {
	c, err := n.dial(ctx)
	if err != nil {
		n.freePlace()
		return nil, err
	}
	return c, nil
}

// usable reports whether an idle connection may carry a request. It may not if the node closed it, or sent bytes that nobody
// asked for: a second answer, say, would be taken for the answer to the next request, whichever client sent that. To look costs
// one system call.
func (n *node) usable(c *conn) bool {
	c.reused = true
	return n.set.now()-c.since < n.set.cfg.IdleTimeout && c.r.Buffered() == 0 && c.quiet()
}

// quiet reports whether the node is there and has sent nothing. With TLS a look at the socket isn't enough: records that were
// read together with the last answer are in memory. A read whose deadline has passed returns those, and reads nothing from the
// socket.
func (c *conn) quiet() bool {
	if c.probe.State() != wire.PeerQuiet {
		return false
	}
	if c.nc == c.raw {
		return true
	}
	if c.raw.SetReadDeadline(time.Unix(1, 0)) != nil {
		return false
	}
	err := c.r.Fill()
	c.r.Recover()
	return errors.Is(err, os.ErrDeadlineExceeded) && c.raw.SetReadDeadline(time.Time{}) == nil
}

// put gives a connection back after a complete exchange.
func (n *node) put(c *conn) {
	c.since = n.set.now()
	c.r.Shrink()
	p := &n.pool
	p.Lock()
	switch {
	case p.closed:
	case len(p.waiters) > 0:
		p.nextWaiter() <- c
		p.Unlock()
		return
	case len(p.idle) < n.set.cfg.MaxIdle:
		p.idle = append(p.idle, c)
		p.Unlock()
		return
	}
	p.Unlock()
	n.drop(c)
}

// nextWaiter takes the first waiter out of the queue.
func (p *pool) nextWaiter() chan *conn {
	w := p.waiters[0]
	p.waiters[0] = nil
	p.waiters = p.waiters[1:]
	return w
}

// drop closes a connection and gives its place to the next waiter.
func (n *node) drop(c *conn) {
	_ = c.raw.Close()
	n.freePlace()
}

// freePlace gives up the place of a connection.
func (n *node) freePlace() {
	p := &n.pool
	p.Lock()
	defer p.Unlock()
	if len(p.waiters) > 0 && !p.closed {
		p.nextWaiter() <- nil
		return
	}
	p.open--
}

// prune closes the idle connections for which gone returns true.
func (n *node) prune(gone func(*conn) bool) {
	p := &n.pool
	p.Lock()
	defer p.Unlock()
	kept := p.idle[:0]
	for _, c := range p.idle {
		if !gone(c) {
			kept = append(kept, c)
			continue
		}
		_ = c.raw.Close()
		p.open--
	}
	clear(p.idle[len(kept):])
	p.idle = kept
}

// close closes the idle connections, and those that are in use when they come back.
func (n *node) close() {
	n.pool.Lock()
	n.pool.closed = true
	n.pool.Unlock()
	n.prune(func(*conn) bool { return true })
}
