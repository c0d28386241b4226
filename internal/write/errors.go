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

// noReplayError reports that a change must not be replayed on a newer revision, and why.
type noReplayError struct{ reason string }

func (e *noReplayError) Error() string { return intent.ErrUnmergeable.Error() }
