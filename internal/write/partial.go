package write

import (
	"context"
	"errors"
	"net/http"

	"optimist/internal/ack"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/uri"
)

// updateSeen performs an _update with `doc` whose client has seen the document: a change of the paths that the part holds, from what the
// client has seen. The client's own request goes under the guard of that. After a conflict the change is merged as that of a whole document
// is, and goes again as an _update, with the values that the merge has at these paths. So the engine's merge, its answer, detect_noop and
// _source stay what they are.
//
// taken is false where nothing is known of what the client has seen, and for what the rule, or the kind of _update, leaves to the engine.
// A client that gives its own guard, or retry_on_conflict, has its request sent as it is; what it has seen then is known all the same.
func (s *Service) updateSeen(ctx context.Context, c *change) (taken bool, err error) {
	if c.req.Rule.EngineUpdates {
		return false, nil
	}
	p, refusal, ok := patch.ReadUpdate(c.req.Op, c.req.Fields, c.req.Body, false, c.taken)
	if !ok || refusal != nil {
		return false, nil
	}
	if err := s.locate(ctx, c); err != nil || c.index.DataStream != "" || !s.catalog.Guardable(c.req.asker(), c.index) {
		return false, err
	}
	c.part, c.sent = p, p.Incoming
	passed, err := s.chooseBase(ctx, c)
	if err != nil {
		return true, err
	}
	if c.isForEngine() {
		c.leaveToEngine()
		return false, nil
	}
	c.seePart()
	if c.req.Rule.Transform != nil {
		if taken, err = s.updateHere(ctx, c); taken || err != nil {
			return true, err
		}
		c.outcome.Untransformed = true
	}
	retries := c.retriesItself()
	if retries && c.req.Rule.HasStrategies {
		s.events.StrategiesUnused.Call(c.req.Rule.Name)
	}
	if passed || retries {
		return true, s.pass(ctx, c, c.outcome.Reason)
	}
	c.query = uri.Without(nil, c.query, "retry_on_conflict", "doc_as_upsert")
	c.stales, c.intent = true, c.partialIntent(s.observer)
	if err = s.inLane(ctx, c); errors.Is(err, errNoGuard) {
		c.leaveToEngine()
		return false, nil
	}
	return true, err
}

// isForEngine reports whether what the client has seen is nothing to its part: it isn't known, or there was no document, and the part
// makes none. Nor is it in a session that is inferred, where the part says the same whatever its base: perhaps nobody has read the
// document for it. A read that it took would be missed by the client that made it.
func (c *change) isForEngine() bool {
	switch kind := c.base.Kind; {
	case kind == session.KindNone, kind == session.KindLost:
		return true
	case kind == session.KindAbsent && !c.part.Upsert:
		return true
	case c.req.Session.IsNamed(), !c.baseKnown():
		return false
	}
	switch c.outcome.Base {
	case outcome.BaseRead, outcome.BaseView, outcome.BaseAbsent:
		overrides, err := c.req.Rule.Merger.Overrides(c.base.View, c.part.Incoming)
		return overrides && err == nil
	}
	return false
}

// leaveToEngine makes the change one that the engine merges by itself.
func (c *change) leaveToEngine() {
	c.base.Release()
	c.outcome.Ambiguous = false
	if c.outcome.Base != outcome.BaseLost {
		c.outcome.Base = outcome.BaseNone
	}
	c.base, c.part, c.made, c.sent, c.query = session.Base{}, nil, nil, c.req.Body, c.req.Op.Query
}

// retriesItself reports whether the client asks the engine to merge again after conflicts, and doesn't name a base.
func (c *change) retriesItself() bool {
	switch c.outcome.Base {
	case outcome.BaseRead, outcome.BaseView, outcome.BaseAbsent:
		_, given := uri.Param(c.req.Op.Query, "retry_on_conflict")
		return given
	}
	return false
}

// seePart finds out what the part makes of what the client has seen. A document that nothing can be made of is known by its numbers alone.
func (c *change) seePart() {
	c.unmark()
	if !c.baseKnown() {
		return
	}
	var err error
	if c.made, err = c.part.Makes(c.base.View); err != nil {
		c.made, c.base.View = nil, nil
	}
}

// partialIntent is what a client wants that sends a part.
func (c *change) partialIntent(o observer) *intent.Partial {
	return &intent.Partial{
		Base: intent.Base{Numbers: c.base.Numbers, View: c.base.View, Absent: c.base.Kind == session.KindAbsent, Stored: c.viewIsStored()},
		Part: c.part.Incoming, Made: c.made, First: c.part.First, Recreate: c.req.Rule.RecreateMissing,
		Merger: c.merger(o), Room: c.taken,
	}
}

// goesAsPart reports whether the change goes upstream as an _update of its part, and not as a document.
func (c *change) goesAsPart() bool { return c.part != nil && c.patch == nil }

// makes reports whether the change went as an _update that only makes a document. One that is there is its conflict, though the engine
// answers that nothing had to be changed.
func (c *change) makes() bool { return c.goesAsPart() && c.draft.Part == nil }

// conflictOf is the engine's answer to a conflict, for the client.
func (c *change) conflictOf(res *upstream.Response) *respond.Answer {
	if res.Status == http.StatusConflict {
		return respond.CopyEngine(res)
	}
	return respond.Exists(c.doc.Index, c.doc.ID, ack.Read(res).Version)
}

// rebasePatch has a patch that an _update has become be the change of its part from what the client has seen. Where that can't be
// merged, it guards the patch.
func (s *Service) rebasePatch(c *change) {
	if c.patch.Upsert && c.base.Kind != session.KindAbsent && !c.req.Rule.RecreateMissing {
		c.patch.Upsert, c.patch.Gone = false, intent.ErrDeleted
	}
	switch {
	case c.guard.Known(): // the client's own
	case c.baseKnown() && !c.base.Doubtful && !c.req.Rule.FailConflict:
		c.patch.Edit = intent.Rebased{Partial: c.partialIntent(s.observer)}
	case c.base.Kind == session.KindAbsent:
		c.patch.New = true
	case c.base.Told.Known():
		c.guardPatch(c.base.Told) // what is stored has more in it than the client has seen
	default:
		c.guardPatch(c.base.Numbers)
	}
}

// settlePart ends the reservation of an _update of a part that was acknowledged. Its client has in hand what it had seen, with the part in
// it; or what the answer shows, if that is the whole document.
func (s *Service) settlePart(c *change, res *upstream.Response, e end, numbered bool) {
	whole, some := c.shown(res)
	switch {
	case whole != nil:
		c.made, e.stored.Source, e.same = whole, whole, true
	case e.same && numbered && !c.mayBeRewritten() && intent.KeepsNumbers(c.made):
		e.stored.Source = c.withMarks(c.made)
	}
	c.settle(e)
	if some && !e.same { // others' values, too: whether the client takes them over nobody knows
		thread, _ := c.req.Session.Thread()
		s.sessions.Shown(thread, c.doc.Ref, nil)
	}
}

// settlePassedPart does the same for an _update that went as its client sent it, with the client's own guard, say. Its answer stays as
// it is.
func (s *Service) settlePassedPart(c *change, res *upstream.Response, a *ack.Ack) {
	b := &c.base
	next := b.Version != 0 && a.Version == b.Version+1 || a.Numbers == b.Numbers || b.Kind == session.KindAbsent && a.Created
	stored, same := a.Revision, next && c.viewIsStored()
	if whole, _ := c.shown(res); whole != nil {
		c.made, stored.Source, same = whole, whole, true
	} else if same && a.Numbered && !c.mayBeRewritten() && intent.KeepsNumbers(c.made) {
		stored.Source = c.made
	}
	b.Commit(session.Ack{Stored: stored, Sent: c.made, Told: stored.Numbers, Apart: !same, Created: a.Created})
}
