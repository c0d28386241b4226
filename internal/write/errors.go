package write

import (
	"errors"

	"optimist/internal/delivery"
	"optimist/internal/intent"
)

// What can have become of a write that has no answer: see package delivery.
var (
	ErrUnknownOutcome = delivery.ErrUnknownOutcome
	ErrNotWritten     = delivery.ErrNotWritten
)

// errNoGuard reports that the engine can't guard a write, because the index has no sequence numbers. Nothing was written.
var errNoGuard = errors.New("the index has no sequence numbers")

// standsError reports a change that must not be merged, and why.
type standsError struct{ reason string }

func (e *standsError) Error() string { return intent.ErrUnmergeable.Error() }
