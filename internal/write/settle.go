package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"optimist/internal/ack"
	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/etag"
	"optimist/internal/intent"
	"optimist/internal/learn"
	"optimist/internal/noop"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/internal/upstream"
)

// ending is an acknowledged write of a whole document, or a decision that it need not be written.
type ending struct {
	stored  doc.Revision // what the engine holds now; without a source if that isn't known
	created bool
	noop    bool
	current doc.Numbers // of the revision that the change was merged into; zero for a create, and without a merge
	same    bool        // the stored document is the one that the client sent
}

// settle ends the change's reservation, and puts the numbers into the answer that fit the client's view. If the engine stores another
// document than the client has sent, these are the numbers of the base. If the client later guards a write by them, it gets a conflict, and
// overwrites nothing that it hasn't seen. A client without a view gets the numbers of the revision into which its write was merged.
func (c *change) settle(e ending) {
	n := e.stored.Numbers
	t := etag.Tag{Numbers: n}
	if !e.same {
		switch {
		case c.Base.Numbers.Known():
			n = c.Base.Numbers
		case e.current.Known():
			n = e.current
		}
		if n != e.stored.Numbers || e.noop {
			t.Numbers = n
			if !c.Session.IsNamed() { // a named session needs no tag that tells its copies apart
				t = etag.OfCopy(n)
			}
		}
	}
	written := !e.noop && (c.Part == nil || e.stored.Numbers != e.current) // the engine itself may find that a part changes nothing
	c.Base.Commit(session.Ack{Stored: e.stored, Sent: c.withMarks(c.inHand()), AnswerNumbers: n, Copy: c.copyOf(t),
		StoredDiffers: !e.same, Written: written, Created: e.created})
	if !n.Known() {
		return
	}
	if n != e.stored.Numbers {
		c.answer.SetNumbers(n)
	}
	if c.Outcome.Kind != outcome.Passed && (e.same || e.noop || n != e.stored.Numbers) {
		c.answer.Add(etagName, t.Append)
	}
}

// inHand is the client's copy of the document after an acknowledged write: the sent body, or the view with the part in it.
func (c *change) inHand() []byte {
	if c.Part != nil {
		return c.viewWithPart
	}
	return c.Sent
}

// seeCreated makes the upsert the client's view, and not its part, if the client had found no document and the engine has created it.
func (c *change) seeCreated(created bool) {
	if created && c.Part != nil && c.Part.Initial != nil && c.Base.Kind == session.KindAbsent && !c.draft.Merged() {
		c.viewWithPart = c.Part.Initial
	}
}

// showInOutcome puts what the draft says of the change into its outcome.
func (c *change) showInOutcome() {
	c.Outcome.Overwrote, c.Outcome.More = c.draft.Overwrote, c.draft.OverwroteMore
	c.Outcome.Ambiguous = c.Outcome.Ambiguous || c.draft.Echo
	if c.intents.Transformer() != nil {
		c.Outcome.Untransformed = c.draft.Untransformed
	}
}

// settlePassed notes in the session what the answer to a passed write shows. body is the written document.
func (s *Service) settlePassed(ctx context.Context, c *change, res *upstream.Response, got *ack.Ack, body []byte) {
	if res.Status != 200 && res.Status != 201 {
		return // the write isn't acknowledged: finish gives the base back
	}
	switch {
	case got.Missed:
		c.Outcome.Reason = outcome.ReasonPipeline
		return // the document is as it was: finish gives the base back
	case got.Created:
		s.bases.LocateNew(ctx, &c.Search)
		c.seeCreated(true)
	default:
		s.sessions.Wrote(c.Session.Credentials(), c.Doc.Index)
		if c.Op.Kind == api.Index && c.Base.Kind == session.KindNone && c.Outcome.Base == outcome.BaseNone {
			s.events.Blind.Call(c.Doc.Index, c.Session)
		}
	}
	switch {
	case c.Op.Kind == api.Delete:
		c.Base.Delete()
		return
	case c.Part != nil:
		c.settlePassedPart(res, got)
		return
	case c.Op.Kind == api.Update:
		s.noteUpdate(ctx, c, res, got)
		if got.Deleted {
			return
		}
	}
	stored := got.Revision
	if got.Numbered && !c.MayBeRewritten() {
		stored.Source = c.withMarks(body)
	}
	c.settle(ending{stored: stored, created: got.Created, same: bytes.Equal(body, c.Sent)})
}

// finish gives back a base that is still reserved, counts the write and puts the outcome into the answer.
func (s *Service) finish(c *change, err error) (*respond.Answer, error) {
	if err == nil && c.answer == nil { // a leader's batch ended without an answer: a defect, never a success
		err = errors.New("no answer")
		if c.attempts > 0 {
			err = fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
		}
	}
	o := &c.Outcome
	o.Attempts = c.attempts
	switch {
	case errors.Is(err, ErrUnknownOutcome):
		o.Kind = outcome.Unknown
	case errors.Is(err, upstream.NotSent):
		o.Kind = outcome.NotSent
	case o.Attempts == 0 && (o.Kind == outcome.Passed || err != nil):
		o.Kind = outcome.Refused // optimist has refused it, and sent nothing
	case o.Kind == outcome.Passed && err != nil, o.Kind.IsMerge() && (err != nil || c.answer.IsRefusal()):
		o.Kind = outcome.Guarded // the engine refused a guarded write; nothing that was passed or merged after it is stored
	}
	c.releaseBase(o.Kind == outcome.Unknown) // after an acknowledged write this does nothing
	if c.Base.WasLeftToEngine() && (o.Kind == outcome.Unknown || err == nil && c.answer.Status < 300) {
		c.Base.EngineMerged(c.answer.Revision())
	}
	if err != nil {
		s.events.Done.Call(c.Rule, o, 0)
		return nil, &outcome.Failure{Outcome: *o, Err: err}
	}
	c.answer.Add(outcomeName, o.Append)
	s.events.Done.Call(c.Rule, o, c.answer.Status)
	return c.answer, nil
}

// releaseBase gives the base of a write that wasn't acknowledged back to the session. If the write may have been applied, and must not be
// applied twice, the session gets only the numbers: they guard the client's repeat, and the engine answers with a conflict.
func (c *change) releaseBase(unknown bool) {
	if unknown && c.Sent != nil && (c.patch == nil || c.Part != nil) {
		view := c.Base.View // nil: there was no document, or it isn't known and so never merged
		ok, err := c.Rule.Merger.Repeatable(view, c.inHand(), view)
		if t := c.intents.Transformer(); !ok || err != nil || t != nil && !t.Repeatable() {
			c.Base.Doubt()
			return
		}
	}
	c.Base.Release()
}

// copyOf is the tag in the form for the session. It is zero for a client that hasn't shown that it uses tags.
func (c *change) copyOf(t etag.Tag) session.Copy {
	if t.Copy == 0 || c.Outcome.Base != outcome.BaseIfMatch {
		return session.Copy{}
	}
	return t.AsCopy()
}

// settlePart ends the reservation of an acknowledged _update of a part.
func (s *Service) settlePart(c *change, res *upstream.Response, e ending, numbered bool) {
	some := c.seeStored(res, &e, numbered)
	c.settle(e)
	if some && !e.same { // the answer shows others' values, too: nobody knows whether the client takes them over
		thread, _ := c.Session.Thread()
		s.sessions.ReadPart(thread, c.Ref(), doc.Revision{})
	}
}

// settlePassedPart is settlePart for an _update that went as the client sent it. The answer stays as it is.
func (c *change) settlePassedPart(res *upstream.Response, a *ack.Ack) {
	b := &c.Base
	// Nobody else has written between the base and this _update, or the engine has found that it changes nothing.
	alone := b.Version != 0 && a.Version == b.Version+1 || a.Numbers == b.Numbers || b.Kind == session.KindAbsent && a.Created
	e := ending{stored: a.Revision, same: alone && c.ViewIsStored()}
	c.seeStored(res, &e, a.Numbered)
	b.Commit(session.Ack{Stored: e.stored, Sent: c.viewWithPart, AnswerNumbers: a.Numbers, StoredDiffers: !e.same, Created: a.Created})
}

// seeStored finds out which document the client holds after an _update of a part: its view with the part in it, or the document that the
// answer shows, if that is the whole one. some says that the answer shows less.
func (c *change) seeStored(res *upstream.Response, e *ending, numbered bool) (some bool) {
	whole, some := c.answerDocument(res)
	switch {
	case whole != nil:
		c.viewWithPart, e.stored.Source, e.same = whole, whole, true
	case e.same && numbered && !c.MayBeRewritten() && intent.KeepsNumbers(c.viewWithPart):
		e.stored.Source = c.withMarks(c.viewWithPart)
	}
	return some
}

// handleSuccess gives every open change its answer, because the acknowledged write has all of them.
func (a *attempt) handleSuccess(ctx context.Context, res *upstream.Response) error {
	first := a.open[0]
	index := first.Index.Name
	got, err := a.s.ackedUnder(ctx, first, a.load.guard, res, a.item)
	if err != nil {
		res.Release()
		return a.handleNoAnswer(ctx, err)
	}
	moved := first.Index.Name != index
	if got.Created {
		a.s.bases.LocateNew(ctx, &first.Search)
	}
	stored := got.Revision
	if got.Numbered && !first.goesAsPart() && !first.MayBeRewritten() { // else the engine spells it in its own way
		stored.Source = a.load.body
	}
	for i, c := range a.open {
		c.seeCreated(got.Created)
		if moved && c != first {
			_, _ = a.s.acked(ctx, c, res, a.item)
		}
		c.answer = a.answerOf(res, i)
		e := ending{stored: stored, created: got.Created, current: a.cur.Numbers}
		switch {
		case got.Missed: // finish gives the base back
			c.Outcome.Kind, c.Outcome.Reason = outcome.Passed, outcome.ReasonPipeline
		case c.draft.Delete:
			c.Base.Delete()
		case c.patch != nil && c.draft.Unchanged:
			a.s.settleUnchangedPatch(ctx, c, stored)
		case c.patch != nil:
			c.patch.Show(c.answer, stored, a.load.body)
			a.s.rememberPatched(c, stored)
		case c.Part != nil:
			e.same = c.draft.AsSent
			a.s.settlePart(c, res, e, got.Numbered)
		default:
			e.same = bytes.Equal(a.body, c.Sent)
			c.settle(e)
		}
		a.s.sessions.Wrote(c.Session.Credentials(), c.Doc.Index)
	}
	a.batch.Forget()
	a.open = nil
	if got.Missed || moved { // other changes must not start from it: they may be for the index before
		return nil
	}
	a.s.sessions.Combined(first.Session, first.Ref(), stored.Numbers, a.changes)
	if a.batch.Waited() {
		stored.Source = bytes.Clone(stored.Source) // a client's buffer doesn't live longer than its request
		a.batch.Wrote(first.scope(), stored)
	}
	return nil
}

// answerUnwritten answers the open changes without a write, because they change nothing, or because the only one is refused. If the locks
// don't let them write, each gets the answer of the locks.
func (a *attempt) answerUnwritten(ctx context.Context, refusal error) {
	if refusal != nil {
		a.judgeConflicts(ctx)
	}
	a.admit(ctx, a.cur.Source)
	switch {
	case len(a.open) == 0: // the locks have refused them
	case refusal != nil:
		a.refuse(ctx, a.open[0], refusal)
	default:
		for _, c := range a.open {
			a.settleUnchanged(ctx, c)
		}
	}
	a.open = nil
}

// settleUnchanged answers a change that the current revision has already, with the engine's noop.
func (a *attempt) settleUnchanged(ctx context.Context, c *change) {
	c.showInOutcome()
	c.Outcome.Kind = outcome.Guarded
	if c.draft.Merged() {
		c.Outcome.Kind = outcome.Merged
	}
	if c.patch != nil {
		a.s.settleUnchangedPatch(ctx, c, a.current(c))
		return
	}
	if c.answer = a.s.noops.Unchanged(ctx, c.noop(), a.cur.Numbers); c.answer == nil {
		c.answer = respond.Written(a.s.documentOf(c), a.cur, respond.Noop)
	}
	c.settle(ending{stored: a.current(c), noop: true, current: a.cur.Numbers, same: bytes.Equal(a.cur.Source, c.Sent)})
}

// leavesDoubt reports whether the answer leaves the outcome open: it is no acknowledgement, and an earlier try may have been applied.
func (c *change) leavesDoubt() bool {
	return c.maybeApplied && c.answer != nil && c.answer.Status > http.StatusCreated
}

// verdict is the change's error.
func (c *change) verdict() error {
	if c.err == nil && c.leavesDoubt() {
		status := c.answer.Status
		c.answer.Release()
		c.answer = nil
		return fmt.Errorf("%w; a later try was answered with %d", ErrUnknownOutcome, status)
	}
	return c.err
}

// documentOf is the change's document as the engine's answers name it.
func (s *Service) documentOf(c *change) respond.Document {
	d := respond.Document{Index: c.Doc.Index, Type: c.Doc.Type, ID: c.Doc.ID}
	if d.Type == "" && s.engine.Typed() {
		d.Type = "_doc"
	}
	return d
}

// noop is the change as package noop asks the engine for the answer to it.
func (c *change) noop() *noop.Case {
	return &noop.Case{Search: &c.Search, Out: &c.out, Patch: c.patch}
}

// metOthers reports whether a change met changes of other clients. A 409 without an attempt may be the refusal of a rule or of a lock: its
// write would have been refused just so if its client were alone.
func (c *change) metOthers() bool {
	refused := c.answer != nil && c.answer.Status == http.StatusConflict
	alone := c.attempts == 0 && (c.obstacle == unfit || c.obstacle == locked)
	return c.attempts > 1 || c.Outcome.Kind.IsMerge() || refused && !alone
}

// reportCollision calls Events.Collision for a change that met changes of other clients.
func (s *Service) reportCollision(c *change) {
	if s.events.Collision == nil || !c.metOthers() {
		return
	}
	l := learn.Conflict{Ref: c.Ref(), Name: c.Name, Client: c.req.Client, Rule: c.Rule.Name, Merger: c.Rule.Merger, Setter: c.Rule,
		Outcome: c.Outcome.Kind.String(), Network: c.Caller.Client.Network}
	switch {
	case c.answer == nil, c.leavesDoubt():
		l.Outcome = "failed"
	case c.answer.Status == http.StatusConflict:
		l.Outcome = "refused"
	case c.answer.Status < 300 && c.draft.Made != nil:
		l.Base, l.Sent, l.Current = c.Base.View, c.draft.Made, c.draft.From
	}
	s.events.Collision(&l)
}
