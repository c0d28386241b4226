package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intent"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/retry"
)

// carrier takes a load upstream and brings the engine's answer back, in the form that the answer to a single request has. It
// waits for the answer even when the client leaves, for a while: a write that is out has an outcome, and the client's next one is based
// on it. What isn't sent yet when the client leaves never is.
// Errors are ErrUnknownOutcome, but where nothing was sent: then they are ErrNotWritten or upstream.ErrNotSent.
type carrier interface {
	carry(ctx context.Context, l *load) (*upstream.Response, error)
}

// load is one write to send.
type load struct {
	*change             // whose request it goes as
	body    []byte      // the document; for a delete, the client's own body; of an _update, what becomes of the document
	part    intent.Part // of an _update, what of body goes
	remove  bool        // the document shall not be there
	guard   doc.Numbers // the revision whose place it may take; zero for a document that must not be there
}

// single carries each load as a request of its own: the client's, with the body and the guard put in.
type single struct{ up es.Doer }

// answerTimeout bounds how long a write waits for its answer; after it the outcome is unknown. The engine itself gives up after the
// request's timeout, a minute.
const answerTimeout = 2 * time.Minute

func (s single) carry(ctx context.Context, l *load) (*upstream.Response, error) {
	body, create := l.body, !l.guard.Known() && !l.remove
	switch {
	case l.remove:
		body = l.req.Body
	case l.goesAsPart() && create:
		body, create = l.change.Part.UpdateBody(l.Op, l.req.Body, nil, body), false
	case l.goesAsPart():
		body = l.change.Part.UpdateBody(l.Op, l.req.Body, l.part, nil)
	}
	return l.on(s).write(ctx, l.change, l.out.Guarded(body, l.guard, create))
}

// on is how the change's writes are carried: on the way that its request brings, if it does.
func (c *change) on(s single) single {
	if c.Way != nil {
		return single{c.Way}
	}
	return s
}

// write sends a request of the change's. A write that the engine rejects, because it has too much to do (429), waits and goes again, if
// the rule doesn't forbid it: nothing of it was applied. In a bulk the bulk does so.
func (s single) write(ctx context.Context, c *change, r *upstream.Request) (res *upstream.Response, err error) {
	r.Background = c.req.Background
	res, err = s.exchange(ctx, r)
	if err != nil || res.Status != http.StatusTooManyRequests || c.Rule.PassRejected || c.Way != nil {
		return res, err
	}
	last := retry.Do(ctx, c.policy(), func(ctx context.Context, n int) error {
		if n > 1 {
			if ctx.Err() != nil {
				return context.Cause(ctx) // what isn't sent by the time that the client leaves never is
			}
			next, failed := s.exchange(ctx, r)
			if failed != nil {
				return failed
			}
			res.Release()
			res = next
		}
		if res.Status == http.StatusTooManyRequests {
			return doc.ErrConflict
		}
		return nil
	})
	if errors.Is(last, ErrUnknownOutcome) {
		res.Release()
		return nil, last
	}
	return res, nil // the rejection, where the time is over: nobody knows better
}

// exchange sends one request and waits for its answer.
func (s single) exchange(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	r.Timeout = answerTimeout
	res, err := s.up.Do(wire.Last(ctx), r)
	if err != nil {
		return nil, lostAnswer(err)
	}
	return res, nil
}

// lostAnswer is what a failed exchange means for the write.
func lostAnswer(err error) error {
	var failed *upstream.Error
	switch {
	case errors.Is(err, upstream.ErrNotSent):
		return err
	case errors.As(err, &failed) && failed.Class == upstream.Cancelled && !failed.Sent:
		return fmt.Errorf("%w: %w", ErrNotWritten, err)
	}
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}
