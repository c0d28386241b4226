package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/retry"
	"optimist/rewrite"
)

// edits performs a PATCH: the document is read, the patch applied to it, then the rule's transform, and what comes of it written under
// the guard of what was read; on a conflict again. PATCHes of one document that wait together share a write, as other changes do.
//
// A patch that changes nothing is not written, and then nor is what the transform would make of the document. A rule's base.unknown,
// base.lost, merge strategies and on_conflict are for clients that write documents whole: a patch is never stale. Where the proxy can't
// read the document as it is stored, a patch is refused, never written back from a part of it.
func (s *Service) edits(ctx context.Context, c *change) error {
	if c.answer != nil {
		return nil // refused when it was read
	}
	if err := s.describe(ctx, c); err != nil {
		return err
	}
	if c.answer = s.unpatchable(c); c.answer != nil {
		return nil
	}
	switch whole, err := s.whole(ctx, c); {
	case err != nil:
		return cantAsk(err)
	case !whole:
		c.outcome.Reason = ReasonFiltered
		c.answer = refuse(http.StatusBadRequest, "security_exception", "["+c.doc.ID+"]: the document can't be patched: "+
			"the engine refuses updates with these credentials, as it does where they don't show all of a document")
		return nil
	}
	c.epoch = s.store.Epoch()
	if err := s.patchGuard(ctx, c); err != nil {
		return err
	}
	c.ready = !c.once && !c.only && c.plain && c.neverPatchedAgain() == "" && s.knownMergeable(c)
	if err := s.lanes.Do(ctx, c.doc.Ref, c, c.req.Background, func(b *retry.Batch[*change]) { s.run(ctx, b) }); err != nil {
		return err
	}
	if errors.Is(c.err, errNoGuard) && (c.req.Op.Kind == api.Patch || c.only) {
		c.err, c.answer = nil, s.unpatchable(c)
		return nil
	}
	if c.base.Kind != session.KindNone && c.answer != nil && c.answer.Status < 300 {
		c.partWritten(es.ParseItem(c.answer.Body).Revision)
	}
	if p := c.patch; p.filter != nil && c.answer != nil && c.answer.Status < 300 {
		c.answer.Body = p.filter.Append(nil, c.answer.Body)
	}
	return c.err
}

// errNoGuard reports that the engine can't guard a write, so that nothing that is made of what was read may be written. Nothing was.
var errNoGuard = errors.New("the index has no sequence numbers")

// cantAsk says that it couldn't be asked whether the client's view is whole.
func cantAsk(err error) error {
	return fmt.Errorf("%w: it can't be asked whether the document can be read whole: %w", ErrNotWritten, err)
}

// patchGuard finds what else than if_seq_no may guard a patch: If-Match, or the stamp of a copy. If-Match: * asks for any document.
func (s *Service) patchGuard(ctx context.Context, c *change) error {
	if c.once {
		return nil
	}
	m, found, err := c.ifMatch()
	switch {
	case err != nil:
		return err
	case found && m.any:
		c.patch.upsert, c.outcome.Base = false, BaseIfMatch
		return nil
	}
	n, found, err := s.guarded(ctx, c)
	if found {
		c.once, c.guard = true, n
	}
	return err
}

// unpatchable is the refusal of a patch that can't be done safely, as far as that is known without a look at the document.
func (s *Service) unpatchable(c *change) *Answer {
	why := ""
	switch {
	case c.index.UUID != "" && c.name == c.index.Name && c.demandsAlias():
		return noSuchIndex(c.name, " and [require_alias] request flag is [true] and ["+c.name+"] is not an alias")
	case c.index.DataStream != "" && c.name == c.index.DataStream:
		return refuse(http.StatusBadRequest, "illegal_argument_exception",
			"only write ops with an op_type of create are allowed in data streams")
	case !s.catalog.Guardable(c.index):
		c.outcome.Reason, why = ReasonSeqNo, "index ["+c.doc.Index+"] has no sequence numbers to guard it with"
	case c.index.Unknown != "":
		c.outcome.Reason, why = c.index.Unknown, "these credentials may not ask what index ["+c.doc.Index+"] is, so that it isn't known "+
			"whether its documents can be read as they are stored (view_index_metadata lets them, or upstream.auth of optimist's own)"
	case c.index.Partial:
		c.outcome.Reason, why = ReasonSource, "index ["+c.doc.Index+"] doesn't keep or serve _source whole: what isn't shown would be lost"
	default:
		return nil
	}
	return refuse(http.StatusBadRequest, "illegal_argument_exception", "["+c.doc.ID+"]: the document can't be patched: "+why)
}

// demandsAlias reports whether the request is for an alias only. One that changes nothing never gets to the engine, which would refuse it.
func (c *change) demandsAlias() bool {
	v, said := api.Param(c.req.Op.Query, "require_alias")
	return said && (len(v) == 0 || string(v) == "true")
}

// barred reports whether a patch turns out to be one that may not be made here, and answers it; an _update is left to the engine.
func (s *Service) barred(c *change) bool {
	c.answer = s.unpatchable(c)
	if c.answer == nil && c.req.Op.Kind == api.Update && !c.only {
		c.outcome.Reason = c.neverPatchedAgain()
		c.patch.unfit = c.outcome.Reason != ""
		return c.patch.unfit
	}
	c.patch.unfit = c.answer != nil
	return c.patch.unfit
}

// neverPatchedAgain tells why a conflict is a patch's answer, or "". In an index with an ingest pipeline it is, unless the rule says that
// the pipeline may run again; the pipeline does run over what a patch leaves, as over what an _update leaves.
func (c *change) neverPatchedAgain() string {
	if (c.pipeline || c.index.Pipeline) && c.req.Rule.Pipeline != rule.PipelineRerun {
		return ReasonPipeline
	}
	return ""
}

// applyPatch applies a patch to body, which is what the changes before it in the batch made of the current revision.
func (f *flight) applyPatch(c *change, body []byte) mergeResult {
	p := c.patch
	from := body
	switch {
	case body != nil && c.only:
		return mergeResult{refusal: c.exists(f.cur.Version)}
	case body == nil && c.once && p.upsert:
		return mergeResult{refusal: c.moved(f.cur.Numbers)}
	case body == nil && !p.upsert:
		return mergeResult{refusal: c.documentMissing(), missing: true}
	case body == nil:
		if from = p.first; from == nil {
			from = []byte("{}")
		}
	case c.once && c.guard != f.cur.Numbers:
		return mergeResult{refusal: c.moved(f.cur.Numbers)}
	}
	in, after := c.inputs(body), from
	if body != nil || p.first == nil {
		var err error
		if after, err = p.edit.apply(from, in); err == nil && firstByte(after) != '{' {
			err = rewrite.ErrNotObject
		}
		if p.unfit = unreadable(err); err != nil {
			return mergeResult{refusal: c.unapplied("the patch", err)}
		}
	}
	p.before, p.after, p.idle = body, after, body != nil && !p.always && p.edit.same(body, after)
	if p.idle {
		return mergeResult{doc: body}
	}
	r := c.transformed(mergeResult{doc: after, changed: true}, body)
	if r.refusal == nil && body != nil && !p.always && p.edit.same(body, r.doc) {
		p.idle = true // the transform took back what the patch did
		return mergeResult{doc: body}
	}
	r.changed = r.refusal == nil
	return r
}

// equal reports whether two documents say the same.
func equal(a, b []byte) bool {
	if bytes.Equal(a, b) {
		return true
	}
	_, same, err := rewrite.MeasureBelow(a, b, 0)
	return same && err == nil
}

// repeatable reports whether the patch may be applied to cur, although it may have been applied before: all that it touches is as it was.
func (p *patch) repeatable(cur []byte) bool {
	if cur == nil || !p.edit.repeatable() || p.after == nil {
		return false
	}
	ok, err := rewrite.Repeatable(p.before, p.after, cur)
	return ok && err == nil
}

// asPut makes the request that writes the patched document.
func (c *change) asPut(r *upstream.Request) {
	r.Method = http.MethodPut
	kept := r.Fields[:0]
	for _, f := range r.Fields {
		if !wire.EqualFold(f.Name, "content-type") {
			kept = append(kept, f)
		}
	}
	r.Fields = append(kept, wire.Field{Name: jsonType.Name, Value: c.patch.media})
}

// patched answers a patch that was written, with what the write stored.
func (f *flight) patched(ctx context.Context, c *change, stored doc.Revision, body []byte) {
	if c.patch.idle {
		f.unpatched(ctx, c, stored)
		return
	}
	c.patch.show(c.answer, stored, body)
	f.s.sawPatched(c, stored)
}

// unpatched answers a patch that changed nothing: the engine's noop.
func (f *flight) unpatched(ctx context.Context, c *change, rev doc.Revision) {
	if c.answer != nil { // of a write that it shared
		c.answer.Release()
	} else {
		c.outcome.Kind = Guarded
	}
	if c.answer = f.s.rendered(ctx, c, rev.Numbers); c.answer == nil {
		c.answer = noop(f.s.shaped(c.doc), rev)
		c.patch.show(c.answer, rev, rev.Source)
	}
	f.s.sawPatched(c, rev)
}

// show puts what the client asked to see of the document into the answer, as an _update does.
func (p *patch) show(a *Answer, rev doc.Revision, source []byte) {
	if !p.asked.asked || source == nil {
		return
	}
	b := fmt.Appendf(nil, `{"_seq_no":%d,"_primary_term":%d,"found":true,"_source":`, rev.SeqNo, rev.PrimaryTerm)
	b = append(p.asked.of(b, source), '}')
	if out, err := sjson.SetRawBytes(a.Body, "get", b); err == nil {
		a.Body = out
	}
}

// sawPatched tells the session what its client has seen of the revision that a patch left: see patch.
func (s *Service) sawPatched(c *change, rev doc.Revision) {
	ru, p := c.req.Rule, c.patch
	known := rev.Known() && rev.Source != nil
	if known && p.asked.whole() {
		c.answer.setETag(tag{Numbers: rev.Numbers})
	}
	if !known || !ru.Session || c.req.Anonymous || c.req.account != nil {
		return
	}
	if p.asked.whole() {
		s.store.Read(c.req.Session, c.doc.Ref, rev, c.epoch)
		return
	}
	b, ok := s.seen(c)
	if !ok {
		return
	}
	defer b.Release()
	saw, err := b.View, error(nil)
	if b.Kind == session.KindAbsent && p.upsert {
		if saw = p.first; saw == nil {
			saw = []byte("{}")
		}
	}
	if saw == nil || b.Doubtful {
		return
	}
	if p.first == nil || b.Kind != session.KindAbsent {
		if saw, err = p.edit.apply(saw, c.inputs(saw)); err != nil || firstByte(saw) != '{' {
			return
		}
	}
	b.Commit(session.Ack{Stored: rev, Sent: saw, Told: rev.Numbers})
	if equal(saw, rev.Source) {
		c.answer.setETag(tag{Numbers: rev.Numbers})
	}
}

// seen is what the client of a patch had seen of the document, as far as it is known: what it named by If-Match or a stamp, or, in a
// session that names itself, what it read or wrote. It is reserved.
func (s *Service) seen(c *change) (b *session.Base, ok bool) {
	if c.base.Kind != session.KindNone {
		return &c.base, true
	}
	if !c.req.Session.IsNamed() {
		return nil, false
	}
	now, cancel := context.WithCancel(context.Background())
	cancel() // what another write of the session has reserved is not waited for
	taken, err := s.sessions.Take(now, c.req.Session, c.doc.Ref, nil)
	return &taken, err == nil
}

// missing is the answer to a patch of a document that isn't there: the engine's own, to an _update of it, with an index's id and a shard's
// number that only the engine knows. It changes nothing. Where the document is there by now, or the engine can't say, the answer is own.
func (s *Service) missing(ctx context.Context, c *change, own *Answer) *Answer {
	if c.noIndex && c.req.Op.Kind == api.Patch {
		return noSuchIndex(c.name, "")
	}
	if c.req.account != nil {
		return own
	}
	r := c.request([]byte(`{"doc":{}}`), doc.Numbers{}, false)
	r.Method, r.Target = http.MethodPost, c.updateTarget()
	res, err := s.exchange(ctx, r)
	if err != nil {
		return own
	}
	if res.Status != http.StatusNotFound || gjson.GetBytes(res.Payload, "error.type").Str != "document_missing_exception" {
		res.Release()
		return own
	}
	return passOn(res)
}

// noSuchIndex is the engine's answer to what needs an index that isn't there, or that isn't what is needed: more says why.
func noSuchIndex(name, more string) *Answer {
	entry := gjson.AppendJSONString([]byte(`"type":"index_not_found_exception","reason":`), "no such index ["+name+"]"+more)
	if more == "" {
		entry = gjson.AppendJSONString(append(entry, `,"resource.type":"index_or_alias","resource.id":`...), name)
	}
	entry = gjson.AppendJSONString(append(entry, `,"index_uuid":"_na_","index":`...), name)
	body := fmt.Appendf(nil, `{"error":{"root_cause":[{%s}],%s},"status":404}`, entry, entry)
	return &Answer{Status: http.StatusNotFound, Fields: []wire.Field{jsonType}, Body: body, Own: true}
}

// updateTarget is where an _update of the change's document goes.
func (c *change) updateTarget() []byte {
	op := c.req.Op
	t := append(append([]byte{'/'}, op.Index...), '/')
	if op.Typed {
		t = append(append(append(append(t, op.Type...), '/'), op.ID...), "/_update"...)
	} else {
		t = append(append(t, "_update/"...), op.ID...)
	}
	sep := byte('?')
	for _, name := range [...]string{"routing", "require_alias"} {
		if v, said := api.Param(op.Query, name); said {
			t = append(append(append(append(t, sep), name...), '='), v...)
			sep = '&'
		}
	}
	return t
}

// documentMissing is missing's answer as far as it is known here.
func (c *change) documentMissing() *Answer {
	return refuseIn(c.doc.Index, http.StatusNotFound, "document_missing_exception", "["+c.doc.ID+"]: document missing")
}

// moved is the engine's conflict for a guard that isn't the current revision's.
func (c *change) moved(current doc.Numbers) *Answer {
	reason := fmt.Sprintf("required seqNo [%d], primary term [%d]. ", c.guard.SeqNo, c.guard.PrimaryTerm)
	if !current.Known() {
		return conflict(c.doc, reason+"but no document was found")
	}
	reason += fmt.Sprintf("current document has seqNo [%d] and primary term [%d]", current.SeqNo, current.PrimaryTerm)
	return conflict(c.doc, reason)
}

// unapplied is the answer to a write of which something, the patch or a rule's transform, can't be applied to the document.
func (c *change) unapplied(what string, err error) *Answer {
	var test *rewrite.TestError
	if errors.As(err, &test) {
		return conflict(c.doc, what+": "+err.Error())
	}
	reason := "[" + c.doc.ID + "]: " + what + " can't be applied: " + err.Error()
	return refuseIn(c.doc.Index, http.StatusBadRequest, "illegal_argument_exception", reason)
}

// badPatch is the answer to a body that is no patch.
func badPatch(err error) *Answer {
	var syntax *rewrite.SyntaxError
	if errors.As(err, &syntax) {
		return refuse(http.StatusBadRequest, "x_content_parse_exception", err.Error())
	}
	return refuse(http.StatusBadRequest, "parsing_exception", err.Error())
}
