// Package pressure bounds how many writes are at the engine at once, and finds that bound by itself.
//
// An engine that gets more writes than it can do queues them, answers later and later, and then rejects writes. A Limiter notices
// both, and keeps the surplus in its own queue. There foreground goes before background, a client that leaves gives up its place,
// and no write waits for longer than a bound. So the engine spends its time on writes, not on its queue.
package pressure

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"optimist/internal/fairqueue"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// Options bound a Limiter. Both are required.
type Options struct {
	// Most is how many writes may be out at once, however fast the engine is.
	Most int
	// Wait is how long a write waits for its turn at most.
	Wait time.Duration
}

// Limiter lets writes go when it is their turn. It is safe for concurrent use.
type Limiter struct {
	o Options

	mu       sync.Mutex
	estimate estimate
	out      int
	line     fairqueue.Line[waiter]
	refused  uint64
}

// waiter is a write in line.
type waiter struct {
	turn chan struct{} // closed when it may go
}

// New returns a Limiter that lets few writes out at first.
func New(o Options) *Limiter { return &Limiter{o: o, estimate: newEstimate(o.Most)} }

// errWaited ends a wait in line.
var errWaited = errors.New("the write's turn didn't come in time")

// Stats are what a Limiter does at the moment.
type Stats struct {
	Limit, Out, Foreground, Background int
	// Refused counts the writes whose turn didn't come in time.
	Refused uint64
}

// Stats returns what the Limiter does now.
func (l *Limiter) Stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	foreground, background := l.line.Len()
	return Stats{Limit: l.estimate.places(), Out: l.out, Foreground: foreground, Background: background, Refused: l.refused}
}

// acquire waits until the write may go. The error is ctx's cause, or errWaited.
func (l *Limiter) acquire(ctx context.Context, background bool) error {
	l.mu.Lock()
	if l.out < l.estimate.places() && l.line.Empty() {
		l.went()
		l.mu.Unlock()
		return nil
	}
	w := &fairqueue.Place[waiter]{Value: waiter{turn: make(chan struct{})}}
	l.line.Join(w, background)
	l.mu.Unlock()

	ctx, cancel := context.WithTimeoutCause(ctx, l.o.Wait, errWaited)
	defer cancel()
	select {
	case <-w.Value.turn:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.line.Leave(w) {
		return nil // its turn came at the same moment
	}
	err := context.Cause(ctx)
	if errors.Is(err, errWaited) {
		l.refused++
	}
	return err
}

// release ends a write that was out for so long, and lets the next ones go.
func (l *Limiter) release(now time.Time, took time.Duration, s signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.estimate.answered(now, took, s)
	l.out--
	for l.out < l.estimate.places() {
		w := l.line.Next()
		if w == nil {
			return
		}
		close(w.Value.turn)
		l.went()
	}
}

// went counts a write that goes. It is called with l locked.
func (l *Limiter) went() {
	l.out++
	l.estimate.most = max(l.estimate.most, l.out)
}

// Doer is how requests go to the engine: *upstream.Set is one.
type Doer interface {
	Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error)
}

// Over returns a Doer that sends the requests through up, each when it is its turn. One whose turn doesn't come is an *upstream.Error of
// class NotSent, with upstream.ErrLimited as its reason; one whose client leaves while it waits is of class Cancelled, and wasn't sent.
func (l *Limiter) Over(up Doer) Doer { return &limited{l, up} }

type limited struct {
	limiter *Limiter
	up      Doer
}

// Do implements Doer.
func (d *limited) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	client := ctx
	if lasting, ok := ctx.(*wire.Lasting); ok {
		client = lasting.Client // what isn't sent when the client leaves never is
	}
	switch err := d.limiter.acquire(client, r.Background); {
	case errors.Is(err, errWaited):
		return nil, &upstream.Error{Class: upstream.NotSent, Err: upstream.ErrLimited}
	case err != nil:
		return nil, &upstream.Error{Class: upstream.Cancelled, Err: err}
	}
	start, s := time.Now(), unheard
	defer func() { // also when Do panics: a place that is never given back is lost
		now := time.Now()
		d.limiter.release(now, now.Sub(start), s)
	}()
	res, err := d.up.Do(ctx, r)
	switch {
	case err != nil:
	case res.Status == http.StatusTooManyRequests:
		s = rejected
	default:
		s = done
	}
	return res, err
}
