package write

import (
	"context"

	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/session"
	"optimist/internal/uri"
)

// updateSeen performs an _update with `doc` by a client that has seen the document: a change of the part's paths, from the client's view.
// It sends the client's own request, guarded by the view. After a conflict it merges the change as one of a whole document, and sends an
// _update with the merged values at these paths. So the engine's merge, its answer, detect_noop and _source work as always.
//
// taken is false if the client's view isn't known, or if the rule, or the kind of _update, leaves the request to the engine. If the
// client gives its own guard, updateSeen sends the request as it is, but knows the view.
func (s *Service) updateSeen(ctx context.Context, c *change) (taken bool, err error) {
	if c.Rule.EngineUpdates {
		return false, nil
	}
	p, refusal, ok := patch.ReadUpdate(c.Op, c.Fields, c.req.Body, false, c.Room)
	if !ok || refusal != nil {
		return false, nil
	}
	err = s.bases.Locate(ctx, &c.Search)
	if err != nil || c.InOthersStream() || !s.catalog.Guardable(c.Asker(), c.Index) {
		return false, err
	}
	c.Part, c.Sent = p, p.Incoming
	passed, err := s.chooseBase(ctx, c)
	if err != nil {
		return true, err
	}
	if c.IsForEngine() || c.Index.DataStream != "" && !c.Base.Numbers.Known() {
		c.leaveToEngine()
		return false, nil
	}
	c.seePart()
	if c.makesUpdates() {
		if taken, err = s.updateHere(ctx, c); taken || err != nil {
			return true, err
		}
		c.Outcome.Untransformed = c.Rule.Transform != nil
	}
	_, retries := uri.Param(c.Op.Query, "retry_on_conflict")
	if passed || retries && (c.viewWithPart == nil || c.Base.OnlyGuards()) { // the engine retries what optimist can't merge
		return true, s.pass(ctx, c, c.Outcome.Reason)
	}
	c.out.Query = uri.Without(nil, c.out.Query, "retry_on_conflict", "doc_as_upsert")
	c.fromBase, c.intent = true, c.intents.Partial(c.viewWithPart)
	return true, s.inLane(ctx, c)
}

// leaveToEngine makes the change one that the engine merges by itself.
func (c *change) leaveToEngine() {
	c.Base.LeaveToEngine(c.Part.Makes)
	c.Outcome.Ambiguous = c.Outcome.Ambiguous && c.Rule.FailConflict // on_conflict: fail would refuse a stale one
	if c.Outcome.Base != outcome.BaseLost {
		c.Outcome.Base = outcome.BaseNone
	}
	c.Part, c.viewWithPart, c.Sent, c.out.Query = nil, nil, c.req.Body, c.Op.Query
	c.err = nil // that of the lane, if it has come from there
}

// seePart applies the part to the client's view. If it can't be applied, only the view's numbers count.
func (c *change) seePart() {
	c.unmark()
	if !c.BaseKnown() {
		return
	}
	var err error
	if c.viewWithPart, err = c.Part.Makes(c.Base.View); err != nil {
		c.viewWithPart, c.Base.View = nil, nil
	}
}

// rebasePatch makes a patch that stands for an _update a change of the part from the client's view. If the view can't be merged, it guards
// the patch. If the engine stores something else than the client has seen, rebasePatch refuses the patch.
func (s *Service) rebasePatch(c *change) {
	if c.patch.Upsert && c.Base.Kind != session.KindAbsent && !c.Rule.RecreateMissing {
		c.patch.Upsert, c.patch.MissingError = false, intent.ErrDeleted
	}
	switch {
	case c.guard.Known(): // the client's own guard
	case c.BaseKnown() && !c.Base.OnlyGuards() && !c.Rule.FailConflict:
		c.patch.Edit = intent.Rebased{Partial: c.intents.Partial(c.viewWithPart)}
	case c.Base.Kind == session.KindAbsent:
		c.patch.OnlyNew = true
	case !c.ViewIsStored(), c.Moved:
		c.patch.Edit, c.Outcome.Reason = intent.Stale{}, outcome.ReasonNumbers
	default:
		c.guardPatch(c.Base.Numbers)
	}
}
