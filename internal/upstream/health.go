package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// recordFailure records that a node couldn't be reached, or, with checked, that it failed its check. The node is ejected, and
// checked again after a wait that doubles with each check that fails. Requests that fail in that time don't make the wait
// longer.
func (n *node) recordFailure(err error, checked bool) {
	s := n.set
	now := s.now()
	n.failedAt.Store(int64(now))
	n.health.Lock()
	n.health.err = err
	first := n.alive.Swap(false)
	if first || checked {
		wait := s.cfg.EjectMin << min(n.health.fails, 20)
		if wait > s.cfg.EjectMax || wait <= 0 {
			wait = s.cfg.EjectMax
		}
		n.health.fails++
		n.health.next = now + wait
	}
	n.health.Unlock()
	if !first {
		return
	}
	s.cfg.Hooks.Ejected.Call(n.url, err)
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// recordSuccess records that a node could be reached.
func (n *node) recordSuccess() {
	n.health.Lock()
	n.health.fails, n.health.err = 0, nil
	back := !n.alive.Swap(true)
	n.health.Unlock()
	if back {
		n.set.cfg.Hooks.Returned.Call(n.url)
	}
}

// judged takes note of how the node answered a "GET /" of our own: whether it accepts our credentials. Clients have others, so
// that the node stays alive for them.
func (n *node) judged(status int) {
	if n.set.cfg.Authorization == "" || status >= 500 {
		return
	}
	if status != http.StatusUnauthorized && status != http.StatusForbidden {
		status = 0
	}
	before := n.refusal.Swap(int32(status))
	if (before == 0) != (status == 0) {
		n.set.cfg.Hooks.Credentials.Call(n.url, status)
	}
}

// watch checks nodes, and closes connections that were idle for too long, until Close. One goroutine runs it.
func (s *Set) watch() {
	defer close(s.done)
	timer := time.NewTimer(s.timeToNext())
	defer timer.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		case <-timer.C:
			s.checkDue()
		}
		timer.Reset(s.timeToNext())
	}
}

// timeToNext is the time until the next check is due, or the next look at idle connections.
func (s *Set) timeToNext() time.Duration {
	rest := s.cfg.IdleTimeout / 2
	if s.cfg.HealthInterval < 0 {
		return rest
	}
	now := s.now()
	for _, n := range s.nodes {
		n.health.Lock()
		if n.health.next == 0 {
			n.health.next = now + s.cfg.HealthInterval
		}
		rest = min(rest, n.health.next-now)
		n.health.Unlock()
	}
	return max(rest, time.Millisecond)
}

// checkDue checks the nodes whose check is due, and closes connections that were idle for too long.
func (s *Set) checkDue() {
	now := s.now()
	for _, n := range s.nodes {
		n.prune(func(c *conn) bool { return now-c.since >= s.cfg.IdleTimeout })
		if s.cfg.HealthInterval < 0 {
			continue
		}
		n.health.Lock()
		due := n.health.next <= now
		if due {
			n.health.next = now + s.cfg.HealthInterval
		}
		n.health.Unlock()
		if !due {
			continue
		}
		err := n.check()
		switch {
		case s.ctx.Err() != nil:
			return
		case err != nil:
			n.recordFailure(err, true)
		default:
			n.recordSuccess()
		}
	}
}

// check asks the node for "GET /" on a connection of its own: a full pool must not look like a dead node.
func (n *node) check() error {
	ctx, cancel := context.WithTimeout(n.set.ctx, n.set.cfg.HealthTimeout)
	defer cancel()
	c, err := n.dial(ctx)
	if err != nil {
		return err
	}
	defer c.raw.Close()
	x := newExchange(n.set)
	x.bind(ctx)
	defer x.unbind()
	r := &Request{Method: "GET", Target: []byte("/"), Own: true}
	e := x.attemptOn(c, r)
	x.detach()
	if e != nil {
		return e
	}
	if x.head.Status >= 500 {
		return fmt.Errorf("%w %d", errUnhealthy, x.head.Status)
	}
	return nil
}

// errUnhealthy reports a node that answers its health check with an error of its own.
var errUnhealthy = errors.New("the health check was answered with status")
