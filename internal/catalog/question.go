package catalog

import (
	"context"
	"sync/atomic"
	"time"
)

// turn is who asks the engine a question. Of many that need the answer, one asks, and the others wait for that. They share a failure, too:
// if each asked itself, one after the other, each would wait for as long as the first.
type turn struct {
	token   chan struct{}           // is full while somebody asks
	failure atomic.Pointer[failure] // the last one; nil: there is none
}

func newTurn() turn { return turn{token: make(chan struct{}, 1)} }

// take waits until nobody asks, but no longer than until the end of ctx, or of the asker's patience. The caller then looks at what is there
// now, before it asks, and leaves.
func (t *turn) take(ctx context.Context, asker *Asker) error {
	if !asker.Until.IsZero() { // else the question that it waits for ends as soon
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, asker.patience())
		defer cancel()
	}
	select {
	case t.token <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave lets the next one ask.
func (t *turn) leave() { <-t.token }

// question is what the engine is asked about one name. Its last answer is read without waiting for anybody. Make it with newQuestion.
type question[T any] struct {
	turn
	last atomic.Pointer[answer[T]] // nil: there is none
}

func newQuestion[T any]() question[T] { return question[T]{turn: newTurn()} }

// failure is a question that the engine didn't answer.
type failure struct {
	ended time.Time
	bound time.Duration // how long the answer was waited for at most
	err   error
}

// counts reports whether a caller that began then has nothing to ask: it has waited while the question failed, which was given as much time
// as the caller's own would be.
func (f *failure) counts(began time.Time, bound time.Duration) bool {
	return f != nil && f.ended.After(began) && f.bound >= bound
}

// answer is one of the engine's, with the time up to which it is believed.
type answer[T any] struct {
	value          T
	askedAt, until time.Time
}

// fresh reports whether the answer is still believed, and is younger than maxAge. Zero means any age.
func (a *answer[T]) fresh(now time.Time, maxAge time.Duration) bool {
	return a != nil && now.Before(a.until) && (maxAge == 0 || now.Sub(a.askedAt) < maxAge)
}
