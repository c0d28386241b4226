package write

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/es"
	"optimist/internal/intake"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/retry"
)

// maxDetail is how many bytes of the last error are kept.
const maxDetail = 1 << 10

// keep makes a dead letter of a write that can't be placed, whose rule asks for that, and returns what is left of its error. The
// client gets a 202 once the letter is stored. Otherwise it gets what it would have got without one.
func (s *Service) keep(ctx context.Context, c *change, err error) error {
	if c.Given != nil {
		return err
	}
	if ctx.Err() != nil && !errors.Is(context.Cause(ctx), intake.ErrTimeout) {
		return err // the client has left: nobody would be told of the letter
	}
	reason := c.whyUnplaced(err)
	if reason == "" {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	if c.Doc.Index == "" {
		c.Doc.Index = c.Name // the engine couldn't be asked what it stands for
	}
	if c.attempts == 0 {
		s.bases.TakeLate(ctx, &c.Search)
	}
	id, failed := s.letters.Keep(ctx, c.unplaced(reason, err))
	if failed != nil {
		s.log.Error("a write can't be placed, nor kept as a dead letter: its client gets the error", "rule", c.Rule.Name,
			"reason", reason, "error", failed.Error())
		return err
	}
	if c.answer != nil {
		c.answer.Release()
	}
	c.answer = respond.Kept(s.named(c), id, reason)
	c.Outcome.Kind, c.Outcome.Reason = outcome.DeadLetter, reason
	// What the client goes on with has a change in it that isn't stored. Its next write from the same revision is guarded by the
	// numbers alone: merged, it would make this change a second time.
	c.Base.Doubt()
	return nil
}

// whyUnplaced is why a write that ended with err, or with its answer, can't be placed; "" where it was made, or may have been, or was
// refused by what the client itself asks for.
func (c *change) whyUnplaced(err error) string {
	if err != nil {
		return whyNotWritten(err)
	}
	if c.answer == nil || c.barred || c.maybeApplied || c.Outcome.Kind == outcome.Unknown {
		return ""
	}
	switch c.answer.Status {
	case http.StatusConflict:
		if !c.asksForConflict() {
			return outcome.UnplacedConflict
		}
	case http.StatusTooManyRequests:
		return outcome.UnplacedBusy
	case http.StatusBadRequest:
		if !c.answer.Own {
			return outcome.UnplacedRefused
		}
	case http.StatusForbidden:
		if gjson.GetBytes(c.answer.Body, "error.type").Str == "cluster_block_exception" {
			return outcome.UnplacedRefused
		}
	}
	return ""
}

// asksForConflict reports whether a conflict is the answer to what the client asks for: a guard of its own, a document that must be
// new, a test of its patch.
func (c *change) asksForConflict() bool {
	if c.OnlyNew || c.unfit || c.guard.Known() || c.Op.Kind == api.Create {
		return true
	}
	if _, own := api.OwnGuard(c.Op.Query); own && !c.Rule.MergeExplicit {
		return true
	}
	v, given := uri.Param(c.Op.Query, "op_type")
	return given && string(v) == "create"
}

// whyNotWritten is why a write that ended with an error can't be placed, or "".
func whyNotWritten(err error) string {
	var failed *upstream.Error
	var exhausted *retry.ExhaustedError
	switch {
	case errors.Is(err, ErrUnknownOutcome), errors.Is(err, es.ErrForbidden), errors.Is(err, context.Canceled):
		return ""
	case errors.Is(err, intake.ErrTimeout):
		return outcome.UnplacedTimeout
	case errors.As(err, &failed) && failed.Class == upstream.Cancelled:
		return ""
	case errors.Is(err, upstream.ErrNotSent), errors.Is(err, ErrNotWritten):
		return outcome.UnplacedUnreachable
	case errors.As(err, &exhausted):
		return outcome.UnplacedConflict
	}
	return ""
}

// unplaced is the write for a letter.
func (c *change) unplaced(reason string, err error) *Unplaced {
	u := &Unplaced{Rule: c.Rule.Name, Reason: reason, Attempts: c.attempts,
		Checked: c.attempts > 0 && (reason == outcome.UnplacedConflict || reason == outcome.UnplacedRefused),
		Index:   c.Doc.Index, ID: c.Doc.ID, Routing: c.Doc.Routing,
		Method: c.req.Method, Op: c.Op, Fields: c.Fields, Body: c.req.Body, Client: c.req.Client}
	switch {
	case err != nil:
		u.Detail = err.Error()
	default:
		u.Status, u.Detail = c.answer.Status, gjson.GetBytes(c.answer.Body, "error.reason").Str
	}
	u.Detail = strings.ToValidUTF8(u.Detail[:min(len(u.Detail), maxDetail)], "")
	switch b := &c.Base; b.Kind {
	case session.KindNone, session.KindLost:
	default:
		if !b.Doubtful {
			u.Base = base.Given{Kind: b.Kind, Numbers: b.Numbers, Version: b.Version, View: b.View, Stored: b.Stored}
		} else {
			u.Base = base.Given{Kind: session.KindGiven, Numbers: b.Numbers, Version: b.Version}
		}
	}
	return u
}
