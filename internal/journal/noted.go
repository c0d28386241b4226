package journal

import (
	"context"
	"errors"
	"net/http"

	"optimist/internal/ack"
	"optimist/internal/delivery"
	"optimist/internal/undo"
	"optimist/internal/upstream"
)

// Answered tells the journal what became of a noted write, after it was sent. Of an unknown outcome there is nothing to tell. certain says
// that no try was applied if the engine's answer is a conflict. e is nil, or wasn't noted, if the write wasn't sent.
func (e *Entry) Answered(ctx context.Context, res *upstream.Response, err error, certain bool) {
	if e == nil || e.at == (undo.Place{}) {
		return
	}
	j := e.Journal
	switch {
	case errors.Is(err, delivery.ErrUnknownOutcome):
	case err == nil && (res.Status == http.StatusOK || res.Status == http.StatusCreated):
		if got := ack.Read(res, e.Target()); !got.Missed {
			j.Applied(e.at, got.Revision)
			j.Wrote(e.Session, e.Doc.Ref, got.Numbers)
			return
		}
		fallthrough
	case err == nil && (res.Status >= http.StatusInternalServerError || res.Status == http.StatusRequestTimeout ||
		res.Status == http.StatusConflict && !certain): // it may be applied all the same
	default:
		// Others must learn it even if this process ends: else a rollback takes a document that is as the write would have left it for the
		// write's, and another client's document is gone. If it can't be stored, it goes with the journal's next page.
		_ = j.Failed(context.WithoutCancel(ctx), e.at)
	}
}
