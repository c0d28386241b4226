package apply

import (
	"errors"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/intent"
)

// Outgoing is the body of a write that goes without a merge: as it was sent, or what the rule's transform makes of that.
func (w *Maker) Outgoing(sent []byte) ([]byte, *intent.ApplyError) {
	t := w.Transformer()
	switch {
	case w.Rule.Transform == nil:
		return sent, nil
	case t == nil, !w.JSON, t.ReadsCurrent() && w.Op.Kind == api.Index && !w.OnlyNew:
		w.Outcome.Untransformed = w.Op.Kind != api.Delete
		return sent, nil
	}
	d, err := w.New(sent).Next(doc.Revision{})
	var unfit *intent.ApplyError
	if errors.As(err, &unfit) {
		return nil, unfit
	}
	w.Outcome.Untransformed = d.Untransformed
	return d.Body, nil
}
