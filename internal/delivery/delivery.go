// Package delivery sends the request of a write to the engine and waits for the answer. If none comes, it says what that means
// for the write.
//
// It doesn't know the document. It sends a request again only if the engine has rejected it unread.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"optimist/internal/ack"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/retry"
)

// ErrUnknownOutcome reports a write that may or may not have been applied. Every error with it in the chain means this; all others mean
// that nothing was written.
var ErrUnknownOutcome = errors.New("the outcome of the write is unknown: it was sent, and nobody can tell whether it was applied")

// CantAsk says that it couldn't be asked whether the client's view is whole. It is a doc.ErrNotWritten.
func CantAsk(err error) error {
	return fmt.Errorf("%w: it can't be asked whether the document can be read whole: %w", doc.ErrNotWritten, err)
}

// answerTimeout bounds how long a write waits for its answer; after it the outcome is unknown. The engine itself gives up after the
// request's timeout, a minute.
const answerTimeout = 2 * time.Minute

// Sender sends writes. It waits for the answer even when the client leaves, for a while: a write that is out has an outcome, and the
// client's next one is based on it. If the client leaves before its write was sent, the write is never sent.
//
// Errors are ErrUnknownOutcome, except if nothing was sent: then they are doc.ErrNotWritten or upstream.NotSent.
type Sender struct{ Up es.Doer }

// Send sends one request and waits for its answer.
func (s Sender) Send(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	return s.SendJoined(wire.Last(ctx), r)
}

// SendJoined is Send on a way that sends the request together with others', and that sees to it by itself that the request outlasts the
// client.
func (s Sender) SendJoined(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	r.Timeout = answerTimeout
	res, err := s.Up.Do(ctx, r)
	if err == nil && res.Status/100 == 2 && !ack.Is(res, r) {
		err = &upstream.Error{Node: res.Node, Class: upstream.Lost, Sent: true, Err: es.ErrNoAcknowledgement}
		res.Release()
	}
	return Received(res, err)
}

// Received is what SendJoined returns for what a way has brought.
func Received(res *upstream.Response, err error) (*upstream.Response, error) {
	if err != nil {
		return nil, lostAnswer(err)
	}
	return res, nil
}

// SendPatiently is Send. If the engine rejects the write, because it has too much to do (429), the write waits and goes again, as often as
// the policy of then allows: nothing of it was applied. The last rejection is the answer.
func (s Sender) SendPatiently(ctx context.Context, policy func() retry.Policy, r *upstream.Request) (*upstream.Response, error) {
	res, err := s.Send(ctx, r)
	if err != nil || !IsBusy(res) {
		return res, err
	}
	last := retry.Do(ctx, policy(), func(ctx context.Context, n int) error {
		if n > 1 {
			if ctx.Err() != nil {
				return context.Cause(ctx) // what isn't sent by the time that the client leaves never is
			}
			next, failed := s.Send(ctx, r)
			if failed != nil {
				return failed
			}
			res.Release()
			res = next
		}
		if IsBusy(res) {
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

// IsBusy reports whether the engine rejects a write because it has too much to do. The block of an index whose disk is full is a 429, too,
// but waiting for a moment doesn't help.
func IsBusy(res *upstream.Response) bool {
	return res.Status == http.StatusTooManyRequests && ack.Why(res.Fields, res.Payload).Type != es.BlockType
}

// lostAnswer is what a failed exchange means for the write.
func lostAnswer(err error) error {
	var failed *upstream.Error
	switch {
	case errors.Is(err, upstream.NotSent):
		return err
	case errors.As(err, &failed) && failed.Class == upstream.Cancelled && !failed.Sent:
		return fmt.Errorf("%w: %w", doc.ErrNotWritten, err)
	}
	return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
}

// Unknown is the error of a write that may have been applied, and whose next step failed with err. Of err it keeps only the cause: that
// nothing was written, which err may say, is true of that step alone.
func Unknown(err error) error { return fmt.Errorf("%w; then: %w", ErrUnknownOutcome, cause(err)) }

// cause is why a step failed, without what that means for the step's own write.
func cause(err error) error {
	var ended *retry.ExhaustedError
	if errors.As(err, &ended) {
		return cause(ended.Last)
	}
	var pair interface{ Unwrap() []error }
	if errors.As(err, &pair) {
		if of := pair.Unwrap(); len(of) > 1 && (errors.Is(of[0], doc.ErrNotWritten) || errors.Is(of[0], doc.ErrConflict)) {
			return cause(of[len(of)-1])
		}
	}
	return err
}

// MayAskAgain reports whether a read that failed is worth another try: its answer was lost, a gateway answered in the engine's place, or
// the engine had no time for it.
// Where no node can be reached the client is told at once. So it is after a 500: the engine fails at this very document, in which it
// can't find the source, say, and would fail again.
func MayAskAgain(err error) bool {
	var answer *es.StatusError
	if errors.As(err, &answer) && answer.Status == http.StatusInternalServerError {
		return false
	}
	engines := es.IsAnswer(err) && !es.IsPage(err)
	return errors.Is(err, doc.ErrNotWritten) && !engines && !errors.Is(err, upstream.NotSent) && !errors.Is(err, es.ErrNoSource)
}
