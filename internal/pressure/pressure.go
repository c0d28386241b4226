// Package pressure bounds how many writes are at the engine at once, and finds that bound by itself.
//
// An engine that gets more writes than it can do queues them, answers later and later, and then rejects writes. A Limiter notices
// both, and keeps the surplus in its own queue. There foreground goes before background, a client that leaves gives up its place,
// and no write waits for longer than a bound. So the engine spends its time on writes, not on its queue. No client gets all places,
// so one whose writes take long stops nobody else's.
//
// A write that asks the engine to wait, for copies of a shard or for a refresh, takes no place: its time says nothing of the engine.
package pressure

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"optimist/internal/fairqueue"
	"optimist/internal/share"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
)

// Options bound a Limiter. Most and Wait are required.
type Options struct {
	// Most is how many writes may be out at once, however fast the engine is.
	Most int
	// Wait is how long a write waits for its turn at most.
	Wait time.Duration
	// IsBusy reports whether the engine has answered a write with 429 because it has too much to do. Any other 429 says nothing of that, and
	// came without any work. Nil: there is no other.
	IsBusy func(res *upstream.Response) bool
}

// Limiter lets writes go when it is their turn. It is safe for concurrent use.
type Limiter struct {
	o Options

	mu       sync.Mutex
	estimate estimate
	out      int
	line     *fairqueue.Shared[chan struct{}] // of channels that are closed when it is their turn
	refused  uint64
}

// New returns a Limiter that lets few writes out at first.
func New(o Options) *Limiter {
	return &Limiter{o: o, estimate: newEstimate(o.Most), line: fairqueue.NewShared[chan struct{}]()}
}

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
func (l *Limiter) acquire(ctx context.Context, client share.Client, background bool) error {
	l.mu.Lock()
	if l.fits(client) { // nobody in line does, else release would have let them go
		l.went(client)
		l.mu.Unlock()
		return nil
	}
	p := l.line.Join(client, background, make(chan struct{}))
	l.mu.Unlock()

	ctx, cancel := context.WithTimeoutCause(ctx, l.o.Wait, errWaited)
	defer cancel()
	select {
	case <-p.Value:
		return nil
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.line.Leave(p) {
		return nil // its turn came at the same moment
	}
	err := context.Cause(ctx)
	if errors.Is(err, errWaited) {
		l.refused++
	}
	return err
}

// release ends a write that was out for so long, and lets the next ones go.
func (l *Limiter) release(client share.Client, now time.Time, took time.Duration, s signal) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.estimate.answered(now, took, s)
	l.count(client, -1)
	for p := l.line.Next(l.free()); p != nil; p = l.line.Next(l.free()) {
		close(p.Value)
		l.went(p.Client)
	}
}

// fits reports whether a client may have one more place. It is called with l locked.
func (l *Limiter) fits(c share.Client) bool { return l.line.Fits(c, l.free()) }

// free is how many places are free. It is called with l locked.
func (l *Limiter) free() int { return l.estimate.places() - l.out }

// went counts a write that goes. It is called with l locked.
func (l *Limiter) went(c share.Client) {
	l.count(c, 1)
	l.estimate.most = max(l.estimate.most, l.out)
}

func (l *Limiter) count(c share.Client, by int) {
	l.out += by
	l.line.Count(c, by)
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
	if asksToWait(r.Target) {
		return d.up.Do(ctx, r)
	}
	client := ctx
	if lasting, ok := ctx.(*wire.Lasting); ok {
		client = lasting.Client // what isn't sent when the client leaves never is
	}
	switch err := d.limiter.acquire(client, r.Client, r.Background); {
	case errors.Is(err, errWaited):
		return nil, &upstream.Error{Class: upstream.NotSent, Err: upstream.ErrLimited}
	case err != nil:
		return nil, &upstream.Error{Class: upstream.Cancelled, Err: err}
	}
	start, s := time.Now(), unheard
	defer func() { // also when Do panics: a place that is never given back is lost
		now := time.Now()
		d.limiter.release(r.Client, now, now.Sub(start), s)
	}()
	res, err := d.up.Do(ctx, r)
	switch {
	case err != nil:
	case res.Status == http.StatusTooManyRequests:
		if busy := d.limiter.o.IsBusy; busy == nil || busy(res) {
			s = rejected
		}
	default:
		s = done
	}
	return res, err
}

// asksToWait reports whether a write has the engine wait for something else than its work: for copies of the shard, or for a refresh.
func asksToWait(target []byte) bool {
	_, query, _ := bytes.Cut(target, []byte("?"))
	if len(query) == 0 {
		return false
	}
	copies, _ := uri.Param(query, "wait_for_active_shards")
	refresh, _ := uri.Param(query, "refresh")
	return len(copies) > 0 && string(copies) != "0" && string(copies) != "1" || string(refresh) == "wait_for"
}
