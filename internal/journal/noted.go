package journal

import (
	"context"
	"errors"
	"net/http"

	"optimist/internal/ack"
	"optimist/internal/base"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/undo"
	"optimist/internal/upstream"
)

// Noted is a write that was noted, and then sent.
type Noted struct {
	Journal Journal    // nil: there is none
	At      undo.Place // zero: the write wasn't noted
	*base.Search
	Guard   doc.Numbers // the revision whose place the write may take; zero: none
	Certain bool        // no try was applied of which the engine's answer is a conflict
}

// Answered tells the journal what became of the write. Of an unknown outcome there is nothing to tell.
func (n *Noted) Answered(ctx context.Context, res *upstream.Response, err error) {
	j := n.Journal
	if j == nil || n.At == (undo.Place{}) {
		return
	}
	switch {
	case err != nil && !errors.Is(err, delivery.ErrUnknownOutcome):
		j.Outcome(n.At, false)
	case err != nil:
	case res.Status == http.StatusOK || res.Status == http.StatusCreated:
		got := ack.Read(res, n.Target())
		if j.Outcome(n.At, !got.Missed); !got.Missed {
			j.Wrote(n.Session, n.Doc.Ref, got.Numbers)
		}
	case res.Status == http.StatusConflict && !n.Certain:
	case res.Status == http.StatusConflict && !n.Guard.Known():
		// The stored document is another client's: even if it is equal, it mustn't be taken for this client's.
		_ = j.Failed(context.WithoutCancel(ctx), n.At)
	case res.Status < http.StatusInternalServerError:
		j.Outcome(n.At, false)
	}
}
