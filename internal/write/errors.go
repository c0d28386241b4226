package write

import (
	"errors"
	"fmt"

	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/etag"
	"optimist/internal/intake"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/upstream"
)

var (
	// ErrPreconditionRequired reports a write without a base where the rule demands one. Nothing was sent.
	ErrPreconditionRequired = errors.New("the write names no revision that it is based on, and the rule demands one")

	// ErrBaseLost reports a write whose base was known and is not any more, where the rule refuses such writes. Nothing was sent.
	ErrBaseLost = errors.New("the revision that the write is based on is not known any more; read the document again")

	// ErrAmbiguous reports a write for which several reads of the session could be the base, where the rule refuses to guess.
	// Nothing was written.
	ErrAmbiguous = errors.New("several revisions that this session has read could be the base of the write")

	// ErrBadMatch is etag.ErrBad.
	ErrBadMatch = etag.ErrBad

	// ErrNoMatch reports an If-Match that can't be met, because there is no document. Nothing was sent.
	ErrNoMatch = errors.New("If-Match asks for a document, and there is none")

	// ErrContradiction is intake.ErrContradiction.
	ErrContradiction = intake.ErrContradiction

	// ErrUnknownOutcome reports a write that may or may not have been applied.
	// Whatever error has it in its chain is one; all others say that nothing was written.
	ErrUnknownOutcome = errors.New("the outcome of the write is unknown: it was sent, and nobody can tell whether it was applied")

	// ErrNotWritten reports that the engine couldn't be asked what had to be known before the write. Nothing was written.
	ErrNotWritten = catalog.ErrUnavailable

	// ErrTimeout reports that the time which the client gave ended before the write's turn came. Nothing was written.
	ErrTimeout = errors.New("the request's own timeout ended before it could be written")
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

// errNoIndex reports that there is no document because there is no index.
var errNoIndex = fmt.Errorf("%w: no such index", doc.ErrMissing)

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
