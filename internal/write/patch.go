package write

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/glob"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/respond"
	"optimist/internal/session"
)

// asPatch has the change written as a document that the patch has been applied to.
//
// What the session of its client knows afterwards: with `_source=true` the client was shown the document, as by a read. Else, in a session
// that names itself, it knows what the client had seen, with the patch applied to that: a client that patches a document of which it keeps a
// copy either patches the copy, too, or means to put the old values back, as it would without optimist; it hasn't seen what others changed
// in between either way. Where the patch doesn't fit what the client had seen, that stays. In an inferred session nobody can tell whose copy
// it was: what its threads have read stays as it is.
//
// The answer carries the numbers of what was stored, as that of an _update does, and an ETag only if the client has seen all of that.
func (c *change) asPatch(p *patch.Request) {
	c.patch, c.json, c.plain = p, true, patch.AnsweredInJSON(c.req.Op, c.req.Fields)
	p.Source, p.New = c, c.onlyNew
	c.method, c.media, c.query = []byte(http.MethodPut), p.Media, api.Without(nil, c.query, patch.Params...)
	op := c.req.Op
	kind := op.Type
	if !op.Typed {
		kind = []byte("_doc")
	}
	c.path = bytes.Join([][]byte{nil, op.Index, kind, op.ID}, []byte("/"))
	if p.Guard.Known() {
		c.guard = p.Guard
		c.outcome.Base, c.outcome.Reason = outcome.BaseExplicit, outcome.ReasonExplicit
	}
}

// guardPatch has the patch made only in place of the revision n.
func (c *change) guardPatch(n doc.Numbers) { c.guard, c.patch.Guard = n, n }

// patchDocument performs a PATCH.
func (s *Service) patchDocument(ctx context.Context, c *change) error {
	p, refusal := patch.Read(c.req.Op, c.req.Fields, c.sent)
	if c.asPatch(p); refusal != nil {
		c.answer = refusal
		return nil
	}
	return s.edit(ctx, c)
}

// edit performs a patch: the document is read, the patch applied to it, then the rule's transform, and what comes of it written under the
// guard of what was read; on a conflict again. Patches of one document that wait together share a write, as other changes do.
//
// A patch that changes nothing is not written, and then nor is what the transform would make of the document. A rule's base.unknown,
// base.lost, merge strategies and on_conflict are for clients that write documents whole: a patch is never stale. Where the proxy can't
// read the document as it is stored, a patch is refused, never written back from a part of it.
func (s *Service) edit(ctx context.Context, c *change) error {
	if err := s.locate(ctx, c); err != nil {
		return err
	}
	if c.answer = s.unpatchable(c); c.answer != nil {
		return nil
	}
	switch whole, err := s.seesWhole(ctx, c); {
	case err != nil:
		return cantAsk(err)
	case !whole:
		c.outcome.Reason = outcome.ReasonFiltered
		c.answer = respond.Error(http.StatusBadRequest, "security_exception", "["+c.doc.ID+"]: the document can't be patched: "+
			"the engine refuses updates with these credentials, as it does where they don't show all of a document")
		return nil
	}
	c.epoch = s.sessions.Epoch()
	if err := s.choosePatchGuard(ctx, c); err != nil {
		return err
	}
	c.intent = s.underRule(c, &c.patch.Patch)
	c.shares = !c.guard.Known() && !c.onlyNew && c.plain && c.whyPipelineStands() == "" &&
		c.whyUnmergeable() == "" && s.catalog.KnownWhole(c.req.Session.Credentials(), c.name)
	err := s.inLane(ctx, c)
	if errors.Is(err, errNoGuard) && (c.req.Op.Kind == api.Patch || c.onlyNew) {
		c.answer = s.unpatchable(c)
		return nil
	}
	if c.answer != nil && c.answer.Status < 300 {
		if c.base.Kind != session.KindNone {
			c.settlePart(es.ParseItem(c.answer.Body).Revision)
		}
		if f := c.patch.Filter; f != nil {
			c.answer.Body = f.Append(nil, c.answer.Body)
		}
	}
	return err
}

// choosePatchGuard finds what else than if_seq_no may guard a patch: If-Match, or the stamp of a copy. If-Match: * asks for any document.
func (s *Service) choosePatchGuard(ctx context.Context, c *change) error {
	if c.guard.Known() {
		return nil
	}
	m, found, err := c.ifMatch()
	switch {
	case err != nil:
		return err
	case found && m.any:
		c.patch.Upsert, c.outcome.Base = false, outcome.BaseIfMatch
		return nil
	}
	n, found, err := s.guardOfPart(ctx, c)
	if found {
		c.guardPatch(n)
	}
	return err
}

// unpatchable is the refusal of a patch that can't be done safely, as far as that is known without a look at the document.
func (s *Service) unpatchable(c *change) *respond.Answer {
	why := ""
	switch {
	case c.index.UUID != "" && c.name == c.index.Name && c.demandsAlias():
		return respond.NoSuchIndex(c.name, " and [require_alias] request flag is [true] and ["+c.name+"] is not an alias")
	case c.index.DataStream != "" && c.name == c.index.DataStream:
		return patch.Illegal("only write ops with an op_type of create are allowed in data streams")
	case !s.catalog.Guardable(c.index):
		c.outcome.Reason, why = outcome.ReasonSeqNo, "index ["+c.doc.Index+"] has no sequence numbers to guard it with"
	case c.index.Unknown != "":
		c.outcome.Reason, why = c.index.Unknown, "these credentials may not ask what index ["+c.doc.Index+"] is, so that it isn't known "+
			"whether its documents can be read as they are stored (view_index_metadata lets them, or upstream.auth of optimist's own)"
	case c.index.Partial:
		c.outcome.Reason, why = outcome.ReasonSource, "index ["+c.doc.Index+"] doesn't keep or serve _source whole: what isn't shown would be lost"
	default:
		return nil
	}
	return patch.Illegal("[%s]: the document can't be patched: %s", c.doc.ID, why)
}

// demandsAlias reports whether the request is for an alias only. One that changes nothing never gets to the engine, which would refuse it.
func (c *change) demandsAlias() bool {
	v, given := api.Param(c.req.Op.Query, "require_alias")
	return given && (len(v) == 0 || string(v) == "true")
}

// barPatch reports whether a patch turns out to be one that may not be made here, and answers it; an _update is left to the engine.
func (s *Service) barPatch(c *change) bool {
	c.answer = s.unpatchable(c)
	if c.answer == nil && c.req.Op.Kind == api.Update && !c.onlyNew {
		c.outcome.Reason = c.whyPipelineStands()
	}
	c.unpatchable = c.answer != nil || c.req.Op.Kind == api.Update && !c.onlyNew && c.outcome.Reason != ""
	return c.unpatchable
}

// settleIdlePatch answers a patch that changed nothing: the engine's noop.
func (s *Service) settleIdlePatch(ctx context.Context, c *change, rev doc.Revision) {
	if c.answer != nil { // of a write that it shared
		c.answer.Release()
	} else {
		c.outcome.Kind = outcome.Guarded
	}
	if c.answer = s.askNoop(ctx, c, rev.Numbers); c.answer == nil {
		c.answer = respond.Written(s.named(c), rev, respond.Noop)
		c.patch.Show(c.answer, rev, rev.Source)
	}
	s.sawPatched(c, rev)
}

// sawPatched tells the session what its client has seen of the revision that a patch left: see patch.
func (s *Service) sawPatched(c *change, rev doc.Revision) {
	p := c.patch
	known := rev.Known() && rev.Source != nil
	if known && p.Shows.Whole() {
		c.answer.Add(etagName, tag{Numbers: rev.Numbers}.append)
	}
	switch {
	case !known || !c.req.Rule.Session || c.req.Anonymous:
	case p.Shows.Whole():
		s.sessions.Read(c.req.Session, c.doc.Ref, rev, c.epoch)
	default:
		s.patchView(c, rev)
	}
}

// patchView applies a patch to what its client had seen, as far as that is known: what it named by If-Match or a stamp, or, in a session that
// names itself, what it read or wrote.
func (s *Service) patchView(c *change, rev doc.Revision) {
	b, p := &c.base, c.patch
	if b.Kind == session.KindNone {
		if !c.req.Session.IsNamed() {
			return
		}
		now, cancel := context.WithCancel(context.Background())
		cancel() // what another write of the session has reserved is not waited for
		taken, err := s.sessions.Take(now, c.req.Session, c.doc.Ref, nil)
		if err != nil {
			return
		}
		b = &taken
	}
	defer b.Release()
	saw := doc.Revision{Source: b.View}
	if b.Doubtful || b.View == nil && b.Kind != session.KindAbsent {
		return
	}
	alone := p.Patch
	alone.Guard, alone.New, alone.Always = doc.Numbers{}, false, true
	d, err := alone.Next(saw)
	if err != nil {
		return
	}
	b.Commit(session.Ack{Stored: rev, Sent: d.Edited, Told: rev.Numbers})
	if intent.Equal(d.Edited, rev.Source) {
		c.answer.Add(etagName, tag{Numbers: rev.Numbers}.append)
	}
}

// askMissing is the answer to a patch of a document that isn't there: the engine's own, to an _update of it, with an index's id and a shard's
// number that only the engine knows. It changes nothing. Where the document is there by now, or the engine can't say, the answer is made here.
func (s *Service) askMissing(ctx context.Context, c *change, noIndex bool) *respond.Answer {
	if noIndex && c.req.Op.Kind == api.Patch {
		return respond.NoSuchIndex(c.name, "")
	}
	if res := s.askUpdate(ctx, c, nil, http.StatusNotFound); res != nil {
		if gjson.GetBytes(res.Body, "error.type").Str == "document_missing_exception" {
			return res
		}
		res.Release()
	}
	return respond.ErrorIn(c.doc.Index, http.StatusNotFound, "document_missing_exception", "["+c.doc.ID+"]: document missing")
}

// askNoop is the noop, with what of the document a patch is to show, of a client that wants its answer in a form of its own (filter_path,
// pretty, another format than JSON): the engine's to an update that changes nothing, under the guard of the revision. It is nil where the
// plain form is wanted, which is made here, and where the engine gives none now: the plain form is then better than no answer.
func (s *Service) askNoop(ctx context.Context, c *change, n doc.Numbers) *respond.Answer {
	form := api.Only(nil, c.query, "filter_path", "pretty", "format", "human")
	if len(form) == 0 && c.plain {
		return nil
	}
	params := append(appendGuard(nil, n), '&')
	params = append(params, form...)
	if p := c.patch; p != nil && p.Shows.Shows() {
		if p.ShowsByBody {
			params = append(params, "&_source=true"...)
		} else {
			params = append(append(params, '&'), api.Only(nil, c.req.Op.Query, respond.SourceParams...)...)
		}
	}
	return s.askUpdate(ctx, c, params, http.StatusOK)
}

// askUpdate asks the engine for its answer to an update of the change's document that changes nothing; nil is one of another status than want.
func (s *Service) askUpdate(ctx context.Context, c *change, params []byte, want int) *respond.Answer {
	r := c.request([]byte(`{"doc":{}}`), doc.Numbers{}, false)
	r.Method, r.Repeatable = http.MethodPost, want == http.StatusOK
	r.Target = c.updateTarget(params)
	res, err := s.questions.exchange(ctx, r)
	if err != nil {
		return nil
	}
	if res.Status != want {
		res.Release()
		return nil
	}
	return respond.FromEngine(res)
}

// updateTarget is where an _update of the change's document goes, with more parameters.
func (c *change) updateTarget(more []byte) []byte {
	op := c.req.Op
	path := [][]byte{nil, op.Index, []byte("_update"), op.ID}
	if op.Typed {
		path = [][]byte{nil, op.Index, op.Type, op.ID, []byte("_update")}
	}
	t := bytes.Join(path, []byte("/"))
	params := api.Only(nil, op.Query, "routing", "require_alias")
	if len(params) > 0 && len(more) > 0 {
		params = append(params, '&')
	}
	if params = append(params, more...); len(params) > 0 {
		t = append(append(t, '?'), params...)
	}
	return t
}

// filtered takes out of an answer that is made here what the client's filter_path doesn't want.
func (c *change) filtered(a *respond.Answer) *respond.Answer {
	raw, given := api.Param(c.query, "filter_path")
	if v, err := api.DecodeValue(nil, raw); given && len(v) > 0 && err == nil {
		filter := glob.ParseFilter(string(v))
		a.Body = filter.Append(nil, a.Body)
	}
	return a
}
