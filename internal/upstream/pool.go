package upstream

import (
	"context"
	"errors"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"optimist/internal/fairqueue"
	"optimist/internal/share"
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
	user   *user         // nil while it is idle
	reused bool

	movable atomic.Bool // its request waits for the answer's head, and may go to another node instead
}

// pool is a node's connections: the idle ones, the last used one last, and the requests that wait for one.
type pool struct {
	sync.Mutex
	idle   []*conn
	open   int                        // idle, in use and being dialled
	users  []*user                    // of the connections that aren't idle
	line   *fairqueue.Shared[*waiter] // nil: nobody waits. It is kept while the node is crowded, because to make it all users are counted
	closed bool
}

// user is who uses a connection, or a place for one that is being dialled.
type user struct {
	client share.Client
	at     int   // in pool.users
	conn   *conn // nil while it is dialled
}

// waiter is a request that waits for a connection.
type waiter struct {
	user  *user
	turn  chan *conn // gets a connection, or leave to dial one (nil)
	place *fairqueue.Waiter[*waiter]
}

// admit makes u a user of a connection.
func (p *pool) admit(u *user) {
	u.at = len(p.users)
	p.users = append(p.users, u)
	p.count(u, 1)
}

// dismiss undoes admit.
func (p *pool) dismiss(u *user) {
	last := len(p.users) - 1
	p.users[u.at] = p.users[last]
	p.users[u.at].at = u.at
	p.users[last] = nil
	p.users = p.users[:last]
	u.conn = nil
	p.count(u, -1)
}

// count notes in the line that a user has come or gone. Without a line nothing is counted: most requests don't need it.
func (p *pool) count(u *user, by int) {
	if p.line != nil {
		p.line.Count(u.client, by)
	}
}

// join puts a waiter into the line.
func (p *pool) join(w *waiter) {
	if p.line == nil {
		p.line = fairqueue.NewShared[*waiter]()
		for _, u := range p.users {
			p.line.Count(u.client, 1)
		}
	}
	w.place = p.line.Join(w.user.client, false, w)
}

// leave takes a waiter out of the line, and reports whether it was in it.
func (p *pool) leave(w *waiter) bool {
	return p.line != nil && p.line.Leave(w.place)
}

// waits reports whether a request waits for a connection.
func (p *pool) waits() bool { return p.line != nil && !p.line.Empty() }

// fits reports whether a client may have one more connection of total.
func (p *pool) fits(c share.Client, total int) bool {
	switch {
	case p.line != nil:
		return p.line.Fits(c, total-len(p.users))
	case !share.Crowded(total, len(p.users)):
		return len(p.users) < total
	}
	addr, own := 0, 0
	for _, u := range p.users {
		if u.client.Network == c.Network {
			addr++
			if u.client.Credentials == c.Credentials {
				own++
			}
		}
	}
	return share.Fits(total, len(p.users), share.Counted(c.Network, addr), share.Counted(c.Network, own))
}

// hasRoom reports whether a request of that client would get a connection without waiting.
func (n *node) hasRoom(c share.Client) bool {
	n.pool.Lock()
	defer n.pool.Unlock()
	return n.pool.fits(c, n.set.cfg.MaxConns)
}

// crowdedFrom is how many requests under way are many.
const crowdedFrom = 8

// crowded reports whether many requests are under way, so that they feel one more.
func (n *node) crowded() bool {
	n.pool.Lock()
	defer n.pool.Unlock()
	return len(n.pool.users) >= crowdedFrom
}

// get returns an idle connection that is usable, else a new one; with fresh, always a new one. It waits while the node has as
// many connections as it may have, or the client as many as it may have of them. u is used with the connection until that is given back.
func (n *node) get(ctx context.Context, u *user, fresh bool) (*conn, error) {
	for {
		c, dial, wait, err := n.take(u, fresh)
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
			return n.open(ctx, u)
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
		return n.open(ctx, u) // on the place that wait returned
	}
}

// take returns an idle connection, or that the caller may dial, or what to wait for.
func (n *node) take(u *user, fresh bool) (c *conn, dial bool, wait *waiter, err error) {
	p := &n.pool
	p.Lock()
	defer p.Unlock()
	switch {
	case p.closed:
		return nil, false, nil, ErrClosed
	case !p.fits(u.client, n.set.cfg.MaxConns):
		wait = &waiter{user: u, turn: make(chan *conn, 1)}
		p.join(wait)
		return nil, false, wait, nil
	}
	if fresh && p.open == n.set.cfg.MaxConns { // the oldest idle one makes place
		_ = p.idle[0].raw.Close()
		p.idle = slices.Delete(p.idle, 0, 1)
		p.open--
	}
	c = p.place(u, fresh, n.set.cfg.MaxConns)
	return c, c == nil, nil, nil
}

// place admits a user, and returns an idle connection for it, or nil: then it may dial one. There is room for one.
func (p *pool) place(u *user, fresh bool, total int) (c *conn) {
	p.admit(u)
	last := len(p.idle) - 1
	if last < 0 || fresh && p.open < total {
		p.open++
		return nil
	}
	c, p.idle[last] = p.idle[last], nil
	p.idle = p.idle[:last]
	c.user, u.conn = u, c
	return c
}

// wait waits for a connection, or for leave to dial one (nil).
func (n *node) wait(ctx context.Context, w *waiter) (*conn, error) {
	begun := time.Now()
	timer := time.NewTimer(n.set.cfg.AcquireTimeout)
	defer timer.Stop()
	var err error
	select {
	case c := <-w.turn:
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
	n.leaveQueue(w)
	return nil, err
}

func (n *node) reportWait(begun time.Time) {
	n.set.cfg.Hooks.Waited.Call(n.url, time.Since(begun))
}

// leaveQueue takes a waiter out of the queue. A connection that it got in the meantime goes to the next one.
func (n *node) leaveQueue(w *waiter) {
	n.pool.Lock()
	left := n.pool.leave(w)
	n.pool.Unlock()
	if left {
		return
	}
	if c := <-w.turn; c != nil {
		n.put(c)
	} else {
		n.freePlace(w.user)
	}
}

// open dials a connection that pool.open counts already.
func (n *node) open(ctx context.Context, u *user) (*conn, error) {
	c, err := n.dial(ctx)
	if err != nil {
		n.freePlace(u)
		return nil, err
	}
	n.pool.Lock()
	c.user, u.conn = u, c
	closed := n.pool.closed
	n.pool.Unlock()
	if closed { // since it was dialled: hangUp didn't see it
		n.drop(c)
		return nil, ErrClosed
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
	if p.closed || len(p.idle) >= n.set.cfg.MaxIdle && !p.waits() {
		p.Unlock()
		n.drop(c)
		return
	}
	defer p.Unlock()
	p.dismiss(c.user)
	c.user = nil
	p.idle = append(p.idle, c)
	p.serve(n.set.cfg.MaxConns)
}

// serve gives those connections that are free to those who wait for one, in the order of package fairqueue.
func (p *pool) serve(total int) {
	if p.closed || p.line == nil {
		return
	}
	for next := p.line.Next(total - len(p.users)); next != nil; next = p.line.Next(total - len(p.users)) {
		w := next.Value
		w.turn <- p.place(w.user, false, total)
	}
	if p.line.Empty() && !share.Crowded(total, len(p.users)) {
		p.line = nil
	}
}

// drop closes a connection and gives its place to the next waiter.
func (n *node) drop(c *conn) {
	_ = c.raw.Close()
	n.freePlace(c.user)
}

// freePlace gives up the place of a connection.
func (n *node) freePlace(u *user) {
	p := &n.pool
	p.Lock()
	defer p.Unlock()
	p.dismiss(u)
	p.open--
	p.serve(n.set.cfg.MaxConns)
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

// hangUp closes all connections, also those in use.
func (n *node) hangUp() {
	n.close()
	n.pool.Lock()
	defer n.pool.Unlock()
	for _, u := range n.pool.users {
		if u.conn != nil {
			_ = u.conn.raw.Close()
		}
	}
}

// close closes the idle connections, and those that are in use when they come back.
func (n *node) close() {
	n.pool.Lock()
	n.pool.closed = true
	n.pool.Unlock()
	n.prune(func(*conn) bool { return true })
}
