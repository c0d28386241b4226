// Package undeliverable decides which writes can't be placed, and what is kept of such a write as a dead letter.
//
// It keeps nothing, and doesn't change the write: internal/deadletter keeps the letters.
package undeliverable

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"optimist/internal/ack"
	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intake"
	"optimist/internal/learn"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/retry"
)

// Letters keep writes that can't be placed. It is safe for concurrent use.
type Letters interface {
	// Keep stores a write and names it. When it returns without an error, the write outlives the process. An error says that it may
	// not be stored; its client is told that nothing was written.
	Keep(ctx context.Context, l *Letter) (id string, err error)
}

// Letter is a write that was not made, and why. Its slices are void when Keep returns.
type Letter struct {
	Rule     string
	Reason   string // one of outcome.UnplacedConflict and so on
	Detail   string // what the engine, or optimist, said last
	Status   int    // the answer that the client would have got; 0: an error
	Attempts int
	// Checked says that the engine has let the client write there: it has answered a try by what it found in the document, or in the index.
	Checked bool
	Index   string // the concrete one, as far as it is known
	ID      string
	Routing string

	Method []byte
	Op     *api.Op
	Fields []wire.Field
	Body   []byte
	Base   base.Preset
	Client learn.Client // nil: nobody knows
}

// Failure is a write that has ended, and how. Why tells whether it has failed at all.
type Failure struct {
	*base.Search
	Method   []byte
	Body     []byte // as its client sent it
	Client   learn.Client
	Attempts int

	Answer *respond.Answer // nil: it ended with Err
	Err    error
	// Final says that the answer stands, though a later try might get another one: locks refuse the write, or it may have been applied.
	Final bool
	// Wanted says that the conflict is asked for: by the client's own guard, by a test of its patch, or by the rule's transform.
	Wanted bool
}

// maxDetail is how many bytes of the last error are kept.
const maxDetail = 1 << 10

// Why is why the write can't be placed; "" where it was made, or may have been, or was refused by what the client itself asks for.
func (w *Failure) Why() string {
	if w.Err != nil {
		return whyNotWritten(w.Err)
	}
	if w.Answer == nil || w.Final || w.Outcome.Kind == outcome.Unknown {
		return ""
	}
	switch w.Answer.Status {
	case http.StatusConflict:
		if !w.Answer.OfAll && !w.asksForConflict() {
			return outcome.UnplacedConflict
		}
	case http.StatusBadRequest, http.StatusForbidden, http.StatusTooManyRequests: // 429: also of an index that is blocked as the disk is full
		if !w.Answer.Own && !w.Answer.OfAll && slices.Contains(refusals, ack.Why(w.Answer.Fields, w.Answer.Body).Type) {
			return outcome.UnplacedRefused
		}
		if w.Answer.Status == http.StatusTooManyRequests {
			return outcome.UnplacedBusy
		}
	}
	return ""
}

// refusals are the types of the errors by which an engine refuses a document for what is in it, or any write to its index. By then the
// engine has checked that the client may write there. Errors of other types may come before this check: illegal_argument_exception for an
// unknown parameter, for example, or action_request_validation_exception. And a bulk learns before this check of a closed
// index, of a routing that is missing, and of what an ingest pipeline refuses. A client without rights could then have its write kept, and
// an operator would make it.
var refusals = []string{"mapper_parsing_exception", "document_parsing_exception", "strict_dynamic_mapping_exception",
	es.BlockType}

// asksForConflict reports whether a conflict is the answer to what the client asks for: a guard of its own, a document that must be
// new, a test of its patch.
func (w *Failure) asksForConflict() bool {
	if w.OnlyNew || w.Wanted || w.Op.Kind == api.Create {
		return true
	}
	if _, own := api.OwnGuard(w.Op.Query); own && !w.Rule.MergeExplicit {
		return true
	}
	v, given := uri.Param(w.Op.Query, "op_type")
	return given && string(v) == "create"
}

// whyNotWritten is why a write that ended with an error can't be placed, or "".
func whyNotWritten(err error) string {
	var failed *upstream.Error
	var exhausted *retry.ExhaustedError
	switch {
	case errors.Is(err, delivery.ErrUnknownOutcome), errors.Is(err, es.ErrForbidden), errors.Is(err, context.Canceled):
		return ""
	case errors.Is(err, intake.ErrTimeout):
		return outcome.UnplacedTimeout
	case errors.As(err, &failed) && failed.Class == upstream.Cancelled:
		return ""
	case errors.Is(err, upstream.NotSent), errors.Is(err, doc.ErrNotWritten):
		return outcome.UnplacedUnreachable
	case errors.As(err, &exhausted):
		return outcome.UnplacedConflict
	}
	return ""
}

// Letter is the write for a letter. The reason is that of Why.
func (w *Failure) Letter(reason string) *Letter {
	l := &Letter{Rule: w.Rule.Name, Reason: reason, Attempts: w.Attempts,
		Checked: w.Attempts > 0 && (reason == outcome.UnplacedConflict || reason == outcome.UnplacedRefused),
		Index:   w.Doc.Index, ID: w.Doc.ID, Routing: w.Doc.Routing,
		Method: w.Method, Op: w.Op, Fields: w.Fields, Body: w.Body, Client: w.Client}
	switch {
	case w.Err != nil:
		l.Detail = w.Err.Error()
	default:
		l.Status, l.Detail = w.Answer.Status, ack.Why(w.Answer.Fields, w.Answer.Body).Reason
	}
	l.Detail = strings.ToValidUTF8(l.Detail[:min(len(l.Detail), maxDetail)], "")
	switch b := &w.Base; b.Kind {
	case session.KindNone, session.KindLost:
	default:
		if !b.OnlyGuards() {
			l.Base = base.Preset{Kind: b.Kind, Numbers: b.Numbers, Version: b.Version, View: b.View, Stored: b.Stored}
		} else {
			l.Base = base.Preset{Kind: session.KindExplicit, Numbers: b.Numbers, Version: b.Version}
		}
	}
	return l
}
