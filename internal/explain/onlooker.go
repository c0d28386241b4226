package explain

import (
	"context"
	"errors"

	"optimist/internal/doc"
	"optimist/internal/es"
)

// Onlooker reads documents from the engine, and remembers what it read last. It is for one goroutine at a time.
type Onlooker struct {
	Engine interface {
		Fetch(ctx context.Context, caller es.Caller, d es.Document) (doc.Revision, error)
	}
	Last *doc.Revision // without numbers: there is no document. Nil: nothing was read
}

// Fetch is the engine's. It remembers only answers.
func (o *Onlooker) Fetch(ctx context.Context, caller es.Caller, d es.Document) (doc.Revision, error) {
	rev, err := o.Engine.Fetch(ctx, caller, d)
	if err == nil || errors.Is(err, doc.ErrMissing) || errors.Is(err, es.ErrNoIndex) || errors.Is(err, es.ErrNoSource) && rev.Known() {
		o.Last = &rev
	}
	return rev, err
}
