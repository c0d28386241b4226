// Package retry decides when and how a write is tried again: the policy, the one loop with a back-off, for documents and for
// locks, and the lanes in which changes to one document wait for each other.
//
// It sends nothing and merges nothing itself, and it never makes an unknown outcome a known one. Other waits that grow repeat no
// attempt: for nodes that are checked, for a listener without file descriptors, for locks whose store fails.
package retry

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"optimist/internal/doc"
	"optimist/internal/timer"
)

// Policy bounds the attempts of one write. The zero value is one attempt.
type Policy struct {
	// MaxAttempts is how often the write is sent at most, the first time included.
	MaxAttempts int
	// MaxElapsed bounds the time from the first attempt's start; no attempt starts after it. Zero is no bound.
	MaxElapsed time.Duration
	// BaseInterval is the upper end of the first wait; it doubles with every attempt. The wait itself is drawn evenly between
	// zero and that end ("full jitter"), so that writers that collided once don't collide again in step.
	BaseInterval time.Duration
	// MaxInterval is the largest upper end of a wait.
	MaxInterval time.Duration
}

// ExhaustedError reports that every attempt allowed ended in a conflict. Nothing was written.
type ExhaustedError struct {
	Attempts int
	Elapsed  time.Duration
	Last     error
}

// Error names the attempts made.
func (e *ExhaustedError) Error() string {
	return fmt.Sprintf("gave up after %d attempts in %s: %v", e.Attempts, e.Elapsed.Round(time.Millisecond), e.Last)
}

// Unwrap gives the last attempt's error.
func (e *ExhaustedError) Unwrap() error { return e.Last }

// Do calls attempt, with n counting from 1, until it returns anything but doc.ErrConflict, or p is exhausted, or ctx ends. Each
// attempt must re-read the document: replaying onto a stale copy erases the other writer's change. A lost acknowledgement is not
// a conflict: Do returns it at once, because the write may have been applied. When ctx ends while Do waits, nothing is in
// flight, and the context's error is returned.
func Do(ctx context.Context, p Policy, attempt func(ctx context.Context, n int) error) error {
	return DoSince(ctx, p, time.Now(), attempt)
}

// DoSince is Do, and goes on with what began at start: MaxElapsed counts from there.
func DoSince(ctx context.Context, p Policy, start time.Time, attempt func(ctx context.Context, n int) error) error {
	err := attempt(ctx, 1)
	if !errors.Is(err, doc.ErrConflict) {
		return err
	}
	waits := p.waits()
	for n := 2; ; n++ {
		if n > p.MaxAttempts || p.MaxElapsed > 0 && time.Since(start) >= p.MaxElapsed {
			return &ExhaustedError{Attempts: n - 1, Elapsed: time.Since(start), Last: err}
		}
		if n > 2 {
			// The first conflict is re-read at once: the other writer is done by then. Only who conflicts again waits.
			wait := waits.NextBackOff()
			if p.MaxElapsed > 0 {
				wait = min(wait, p.MaxElapsed-time.Since(start)) // the last attempt is at the end of the time, not after it
			}
			if e := timer.Sleep(ctx, wait); e != nil {
				return e
			}
		}
		if err = attempt(ctx, n); !errors.Is(err, doc.ErrConflict) {
			return err
		}
	}
}

// Until is the policy within what is left until the deadline. Zero is no deadline.
func (p Policy) Until(deadline time.Time) Policy {
	if left := max(time.Until(deadline), 1); !deadline.IsZero() && (p.MaxElapsed == 0 || left < p.MaxElapsed) {
		p.MaxElapsed = left
	}
	return p
}

// waits is full jitter by the library's own terms: it draws from interval ± factor × interval, so that half the end with a factor
// of one draws from zero to the end.
func (p Policy) waits() *backoff.ExponentialBackOff {
	b := backoff.NewExponentialBackOff()
	b.InitialInterval = max(p.BaseInterval/2, 1)
	b.MaxInterval = max(p.MaxInterval/2, b.InitialInterval)
	b.Multiplier = 2
	b.RandomizationFactor = 1
	b.Reset()
	return b
}
