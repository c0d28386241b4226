package upstream

import (
	"context"
	"errors"
	"fmt"
	"time"
)

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
	switch {
	case e != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("%w %v", errSilent, n.set.cfg.HealthTimeout)
	case e != nil:
		return e
	}
	if x.head.Status >= 500 {
		return fmt.Errorf("%w %d", errUnhealthy, x.head.Status)
	}
	return nil
}

// errSilent reports a node that takes connections, and answers nothing.
var errSilent = errors.New("the health check (GET /) had no answer within")

// errUnhealthy reports a node that answers its health check with an error of its own.
var errUnhealthy = errors.New("the health check was answered with status")
