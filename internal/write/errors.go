package write

import (
	"errors"

	"optimist/internal/delivery"
	"optimist/internal/es"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/upstream"
)

// What can have become of a write that has no answer: see package delivery.
var (
	ErrUnknownOutcome = delivery.ErrUnknownOutcome
	ErrNotWritten     = delivery.ErrNotWritten
)

// Failure is an error with what is known of the write's outcome, for the header.
type Failure struct {
	Outcome outcome.Outcome
	Err     error
}

// Error is the cause's.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// errNoGuard reports that the engine can't guard a write, because the index has no sequence numbers. Nothing was written.
var errNoGuard = errors.New("the index has no sequence numbers")

// standsError reports a change that must not be merged, and why.
type standsError struct{ reason string }

func (e *standsError) Error() string { return intent.ErrUnmergeable.Error() }

// mayAskAgain reports whether a read that failed is worth another try: its answer was lost, or the engine had no time for it.
// Where no node can be reached the client is told at once.
func mayAskAgain(err error) bool {
	return errors.Is(err, ErrNotWritten) && !es.IsAnswer(err) && !errors.Is(err, upstream.ErrNotSent) && !errors.Is(err, es.ErrNoSource)
}
