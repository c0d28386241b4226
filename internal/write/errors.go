package write

import (
	"errors"
	"fmt"

	"optimist/internal/catalog"
	"optimist/internal/es"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/upstream"
)

var (
	// ErrUnknownOutcome reports a write that may or may not have been applied.
	// Whatever error has it in its chain is one; all others say that nothing was written.
	ErrUnknownOutcome = errors.New("the outcome of the write is unknown: it was sent, and nobody can tell whether it was applied")

	// ErrNotWritten reports that the engine couldn't be asked what had to be known before the write. Nothing was written.
	ErrNotWritten = catalog.ErrUnavailable
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

// cantAsk says that it couldn't be asked whether the client's view is whole.
func cantAsk(err error) error {
	return fmt.Errorf("%w: it can't be asked whether the document can be read whole: %w", ErrNotWritten, err)
}

// mayAskAgain reports whether a read that failed is worth another try: its answer was lost, or the engine had no time for it.
// Where no node can be reached the client is told at once.
func mayAskAgain(err error) bool {
	return errors.Is(err, ErrNotWritten) && !es.IsAnswer(err) && !errors.Is(err, upstream.ErrNotSent) && !errors.Is(err, es.ErrNoSource)
}
