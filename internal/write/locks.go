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
func (c *change) atGate() *gate.Write {
	return &gate.Write{Search: &c.Search, Tokens: c.req.Tokens, Reason: c.req.Reason, AsPart: c.goesAsPart()}
}

// admit asks the locks about the open changes, which go as one write, if their rule enforces locks. Call it right before the write is
// sent, once its guard is known. Changes that the locks refuse get their answer. again says that the document has to be read first,
// because nobody knows where in the tree it is.
func (a *attempt) admit(ctx context.Context, body []byte) (again bool) {
	first := a.open[0]
	if !a.s.gate.Enforces(first.Rule) {
		return false
	}
	if first.hidesPath(&a.cur) {
		if a.source.isRead() {
			a.bar(ctx, first.atGate().Unguardable(whyPathHidden), outcome.ReasonUnguardable)
			return false
		}
		a.source = unread
		return true
	}
	if first.draft.Delete {
		body = nil
	}
	if answer, reason := a.s.gate.Ask(ctx, first.atGate(), a.cur.Source, body); answer != nil {
		a.bar(ctx, answer, reason)
	}
	return false
}

// bar gives the open changes the answer of the locks. They are closed then, so that nothing is sent for them.
func (a *attempt) bar(ctx context.Context, answer *respond.Answer, reason string) {
	a.judgeConflicts(ctx)
	a.batch.Forget()
	for _, c := range a.open {
		c.obstacle, c.Outcome.Reason = locked, reason
		c.Outcome.Kind = c.kindRefused()
	}
	a.answerAll(answer)
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
		c.refuseUnguardable(c.atGate().WhyUnguarded())
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
	switch {
	case !s.gate.Enforces(c.Rule):
		return false
	case c.hidesPath(cur):
		c.refuseUnguardable(whyPathHidden)
		return true
	}
	answer, reason := s.gate.Ask(ctx, c.atGate(), cur.Source, body)
	if answer == nil {
		return false
	}
	c.answer, c.obstacle = answer, locked
	c.Outcome.Kind, c.Outcome.Reason = outcome.Refused, reason
	return true
}

// hidesPath reports whether nobody knows where in the tree of locks the document is, because its revision has no source.
func (c *change) hidesPath(cur *doc.Revision) bool {
	return gate.ReadsPath(c.Rule) && cur.Known() && cur.Source == nil
}

const whyPathHidden = "its document can't be read, which says where in the tree of locks it is"

// refuseUnguardable answers a write that can't be guarded, and so must not be sent under enforced locks.
func (c *change) refuseUnguardable(why string) {
	c.answer, c.obstacle = c.atGate().Unguardable(why), locked
	c.Outcome.Kind, c.Outcome.Reason = outcome.Refused, outcome.ReasonUnguardable
}
