package write

import (
	"context"
	"errors"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/internal/undeliverable"
)

// asPatch makes the change one that applies a patch to the document.
//
// With `_source=true`, the client then has seen the document, as by a read. Otherwise, in a named session, its view becomes the earlier
// view with the patch applied, if the patch fits. A client that keeps a copy patches the copy, too, or wants to put the old values back
// later. In both cases it hasn't seen other clients' changes in between. In an inferred session nobody knows which client has patched.
//
// The answer has the numbers of the stored revision, like the answer to an _update. It has an ETag only if the client has seen the whole
// document.
func (c *change) asPatch(p *patch.Request) {
	c.patch, c.fromBase, c.JSON, c.Plain = p, false, true, patch.AnsweredInJSON(c.Op, c.Fields)
	c.intents.Patch, p.Source, p.OnlyNew = p, &c.intents, c.OnlyNew
	c.out.AsDocument(p.Media, patch.Params...)
	if p.Guard.Known() {
		c.guard = p.Guard
		c.Outcome.Base, c.Outcome.Reason = outcome.BaseExplicit, outcome.ReasonExplicit
	}
}

// guardPatch lets the patch replace only the revision n.
func (c *change) guardPatch(n doc.Numbers) { c.guard, c.patch.Guard = n, n }

// patchDocument performs a PATCH.
func (s *Service) patchDocument(ctx context.Context, c *change) error {
	p, refusal, err := patch.Read(c.Op, c.Fields, c.Sent, c.Room)
	c.asPatch(p)
	if err != nil || refusal != nil {
		c.answer = refusal
		return err
	}
	return s.edit(ctx, c)
}

// edit performs a patch. It reads the document, applies the patch and then the rule's transform, and writes the result under the guard of
// the read. On a conflict it does so again. Patches of one document that wait together share a write, as other changes do.
//
// A patch that changes nothing is not written, even if the transform would change the document. A patch is never stale. If optimist
// can't read the document as it is stored, it refuses the patch: it never writes a document back from a part.
func (s *Service) edit(ctx context.Context, c *change) error {
	if err := s.bases.Locate(ctx, &c.Search); err != nil {
		return err
	}
	if s.barPatch(c) {
		return nil
	}
	if c.InOthersStream() {
		c.Outcome.Reason, c.Outcome.Untransformed = outcome.ReasonDataStream, c.Rule.Transform != nil
	}
	switch whole, err := s.bases.SeesWhole(ctx, &c.Search); {
	case err != nil:
		return delivery.CantAsk(err)
	case !whole:
		c.obstacle, c.Outcome.Reason = unpatchable, outcome.ReasonFiltered
		c.answer = respond.Error(http.StatusBadRequest, "security_exception", "["+c.Doc.ID+"]: the document can't be patched: "+
			"the engine refuses updates with these credentials, as it does where they don't show all of a document")
		return nil
	}
	c.epoch, c.epochAt = s.sessions.Epoch(), s.sessions.Now()
	if _, named := c.Session.Thread(); named && c.Base.Kind == session.KindNone {
		c.began = s.sessions.Place(c.Session, c.Ref())
	}
	if err := s.choosePatchGuard(ctx, c); err != nil {
		return err
	}
	c.intent = c.intents.Transforming(&c.patch.Patch)
	err := s.inLane(ctx, c)
	switch {
	case errors.Is(err, errNoGuard) && !c.engineCanPatch():
		c.answer = s.whyUnpatchable(c)
		return nil
	case c.answer == nil || c.answer.Status >= 300:
		return err
	}
	if c.Base.Kind != session.KindNone && c.Outcome.Kind != outcome.Passed {
		rev := es.ParseItem(c.answer.Body).Revision
		c.Base.Commit(session.Ack{Stored: rev, AnswerNumbers: rev.Numbers}) // nothing, if rememberPatched has done so
	}
	if f := c.patch.Filter; f != nil {
		c.answer.Body = f.Append(nil, c.answer.Body)
	}
	return err
}

// engineCanPatch reports whether the patch stands for an _update that the engine, too, can carry out.
func (c *change) engineCanPatch() bool { return c.Op.Kind == api.Update && !c.OnlyNew }

// whyUnpatchable is the refusal of a patch that can't be done safely, as far as that is known; nil: it can be done.
func (s *Service) whyUnpatchable(c *change) *respond.Answer {
	return undeliverable.Unpatchable(&c.Search, s.catalog.Guardable(c.Asker(), c.Index))
}

// barPatch reports whether optimist must not apply the patch after all. It answers a PATCH, and leaves an _update to the engine.
func (s *Service) barPatch(c *change) bool {
	c.answer = s.whyUnpatchable(c)
	barred := c.answer != nil
	if !barred && c.engineCanPatch() {
		c.Outcome.Reason = c.WhyPipelineForbids()
		barred = c.Outcome.Reason != ""
	}
	if barred {
		c.obstacle = unpatchable
	}
	return barred
}

// choosePatchGuard guards a patch that has no if_seq_no: by If-Match, or by the stamp of a copy. If-Match: * asks for any document.
func (s *Service) choosePatchGuard(ctx context.Context, c *change) error {
	if c.guard.Known() || c.Part != nil {
		return nil
	}
	m, found, err := c.IfMatch()
	switch {
	case err != nil:
		return err
	case found && m.Any:
		c.patch.Upsert, c.Outcome.Base = false, outcome.BaseIfMatch
		return nil
	}
	n, found, err := s.bases.GuardOfPart(ctx, &c.Search)
	if found {
		c.guardPatch(n)
	}
	return err
}
