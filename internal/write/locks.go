package write

import (
	"context"
	"errors"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/gate"
	"optimist/internal/outcome"
	"optimist/internal/respond"
)

// atGate is the change as package gate judges it.
func (c *change) atGate() *gate.Applicant {
	return &gate.Applicant{Search: &c.Search, Tokens: c.req.Tokens, Reason: c.req.Reason, AsPart: c.goesAsPart()}
}

// admit asks the locks about the open changes, which go as one write, if their rule enforces locks. Call it right before the write is
// sent, once its guard is known. Changes that the locks refuse get their answer. again says that the document has to be read first,
// because nobody knows where in the tree it is.
func (a *attempt) admit(ctx context.Context, body []byte) (again bool) {
	first := a.open[0]
	if !a.s.gate.Enforces(first.Rule) {
		return false
	}
	if gate.Hides(first.Rule, &a.cur) && !a.source.isRead() {
		a.source = unread
		return true
	}
	if first.draft.Delete {
		body = nil
	}
	if answer, reason := a.s.gate.Ask(ctx, first.atGate(), &a.cur, body); answer != nil {
		a.bar(ctx, answer, reason)
	}
	return false
}

// bar gives the open changes the answer of the locks. They are closed then, so that nothing is sent for them.
func (a *attempt) bar(ctx context.Context, answer *respond.Answer, reason string) {
	a.judgeConflicts(ctx)
	a.batch.Forget()
	for _, c := range a.open {
		c.bar(c.kindRefused(), answer.Clone(), reason)
	}
	a.open = nil
}

// admitPassed asks the locks about a write that goes without a lane. The engine itself has to guard it: the write only creates a document,
// or has the client's own sequence number. Otherwise the write is refused, because it could come late, and nobody would notice. done says
// that the write has its answer.
func (s *Service) admitPassed(ctx context.Context, c *change, body []byte) (done bool, err error) {
	if !s.gate.Enforces(c.Rule) {
		return false, nil
	}
	if c.Index.Name == "" { // a create hasn't asked for the index before
		if err := s.bases.Locate(ctx, &c.Search); err != nil {
			return false, err
		}
	}
	n, own := api.OwnGuard(c.out.Query)
	readsPath := gate.ReadsPath(c.Rule)
	makesNew := c.isCreate() || c.Op.Kind == api.IndexAuto
	guarded := n.Known() && !(readsPath && c.Op.Kind == api.Update) // only the engine knows the document that an _update makes
	if !makesNew && !guarded {
		w := c.atGate()
		c.bar(outcome.Refused, w.Unguardable(w.WhyUnguarded()), outcome.ReasonUnguardable)
		return true, nil
	}
	var cur doc.Revision
	if readsPath && own && !makesNew {
		if cur, err = s.bases.Current(ctx, &c.Search); err != nil && !errors.Is(err, doc.ErrMissing) {
			return false, err
		}
	}
	if c.Op.Kind == api.Delete {
		body = nil
	}
	return s.barAlone(ctx, c, &cur, body), nil
}

// barAlone gives a change without a lane the answer of the locks, if its rule enforces them and they refuse it. It reports whether they do.
func (s *Service) barAlone(ctx context.Context, c *change, cur *doc.Revision, body []byte) bool {
	if !s.gate.Enforces(c.Rule) {
		return false
	}
	answer, reason := s.gate.Ask(ctx, c.atGate(), cur, body)
	if answer == nil {
		return false
	}
	c.bar(outcome.Refused, answer, reason)
	return true
}

// bar gives the change the answer of the locks.
func (c *change) bar(kind outcome.Kind, answer *respond.Answer, reason string) {
	c.answer, c.obstacle = answer, locked
	c.Outcome.Kind, c.Outcome.Reason = kind, reason
}
