package journal

import (
	"context"
	"errors"
	"net/http"

	"optimist/internal/ack"
	"optimist/internal/base"
	"optimist/internal/delivery"
	"optimist/internal/undo"
	"optimist/internal/upstream"
)

// Noted is a write that was noted, and then sent.
type Noted struct {
	Journal Journal    // nil: there is none
	At      undo.Place // zero: the write wasn't noted
	*base.Search
	Certain bool // no try was applied of which the engine's answer is a conflict
}

// Answered tells the journal what became of the write. Of an unknown outcome there is nothing to tell.
func (n *Noted) Answered(ctx context.Context, res *upstream.Response, err error) {
	j := n.Journal
	if j == nil || n.At == (undo.Place{}) {
		return
	}
	switch {
	case errors.Is(err, delivery.ErrUnknownOutcome):
	case err == nil && (res.Status == http.StatusOK || res.Status == http.StatusCreated):
		if got := ack.Read(res, n.Target()); !got.Missed {
			j.Applied(n.At, got.Revision)
			j.Wrote(n.Session, n.Doc.Ref, got.Numbers)
			return
		}
		fallthrough
	case err == nil && (res.Status >= http.StatusInternalServerError || res.Status == http.StatusRequestTimeout ||
		res.Status == http.StatusConflict && !n.Certain): // it may be applied all the same
	default:
		// Others must learn it even if this process ends: else a rollback takes a document that is as the write would have left it for the
		// write's, and another client's document is gone. If it can't be stored, it goes with the journal's next page.
		_ = j.Failed(context.WithoutCancel(ctx), n.At)
	}
}
