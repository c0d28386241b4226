package intercept

import (
	"context"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/budget"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/learn"
	"optimist/internal/mark"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/watch"
	"optimist/internal/wire"
)

// An observation is of a write that is forwarded as it is, and counted.
type observation struct {
	i    *Interceptor
	r    *request
	ru   *rule.Rule
	ref  doc.Ref
	name string         // the index as the client named it
	body []byte         // as it was sent; of a part, what that makes of what the client has seen; nil: not known
	part *patch.Request // nil for a document
	base session.Base
	over bool
}

// observe forwards a write as it is and counts its effect: if the write's version doesn't follow the version that its client had read, it
// overwrote a change that the client hadn't seen.
func (i *Interceptor) observe(r *request, ru *rule.Rule) bool {
	s, err := i.withoutOurs(r)
	if err != nil {
		r.Fail(err)
		return true
	}
	c := r.Client()
	ref, ok := r.Ref()
	kind := r.Op().Kind
	if kind != api.Index && (kind != api.Update || ru.EngineUpdates) || !ru.Session || !c.Known || !ok || r.Op().Fragment {
		return i.forward(r, &s, nil, nil)
	}
	body, fields := s.body, s.fields
	if !s.changed {
		if body, fields, err = r.Plain(i.MaxBody); err != nil {
			return false
		}
	}
	o := observation{i: i, r: r, ru: ru, ref: ref, name: ref.Index, body: body}
	if kind == api.Update {
		if ru.WriteID != "" {
			body = mark.Drop(body, ru.WriteID, "doc", "upsert")
		}
		if o.part = readPart(r.Op(), fields, body, budget.Of(r.Context())); o.part == nil {
			return i.forward(r, &s, nil, nil)
		}
	}
	if ix, err := i.catalog.Resolve(r.Context(), r.Asker(), ref.Index, 0); err == nil {
		o.ref = ix.Ref(ref.Routing, ref.ID)
	}
	if o.take(r.Context()) != nil {
		return i.forward(r, &s, nil, nil)
	}
	i.lineages.begin(r.Place().Network, o.ref)
	defer func() {
		o.end(edge{}) // unless it has been answered
		o.base.Release()
		o.base.NoteAnswer()
	}()
	capture := watch.NewCapture(budget.Of(r.Context()), 1<<20) // an answer to a write is short
	capture.Whole = func() { o.countAnswer(capture) }
	return i.forward(r, &s, nil, capture)
}

// readPart reads an _update of a part, which guarding would merge; nil is another.
func readPart(op *api.Op, fields []wire.Field, body []byte, room *budget.Account) *patch.Request {
	p, refusal, ok := patch.ReadUpdate(op, fields, body, false, room)
	if !ok || refusal != nil {
		return nil
	}
	return p
}

// take reserves what the session has seen as the base.
func (o *observation) take(ctx context.Context) (err error) {
	sess, sent, c := o.r.Client().Session, o.body, base.Comparison(o.ru, o.body, o.part, budget.Of(ctx))
	if o.part != nil {
		sent = o.part.Incoming
	}
	o.base, err = o.i.Sessions.Comparing(c).Take(ctx, sess, o.ref, sent)
	if o.part == nil {
		return err
	}
	o.body = nil
	if b := &o.base; err == nil && (b.View != nil || b.Kind == session.KindAbsent) {
		o.body, _ = o.part.Makes(b.View)
	}
	if err == nil && !sess.IsNamed() && o.overrides() {
		o.base.Release() // perhaps nobody has read the document for it: see package write
	}
	return err
}

// overrides reports whether the write loses nothing whatever its base is: a part that only sets values.
func (o *observation) overrides() bool {
	if o.part == nil || o.base.View == nil && o.base.Kind != session.KindAbsent {
		return false
	}
	return o.ru.NeedsNoBase(o.base.View, o.part.Incoming, o.base.Ambiguous)
}

// countAnswer counts what the write did: where the version that it made isn't the one after the version that its client had read, it
// overwrote a change that the client hadn't seen.
func (o *observation) countAnswer(capture *watch.Capture) {
	body, ok := capture.Body()
	if !ok || capture.Status != 200 && capture.Status != 201 {
		return
	}
	it := es.ParseItem(body)
	if !it.Numbered {
		return
	}
	b, rev, created := &o.base, it.Revision, string(it.Result) == "created"
	stale := b.Version != 0 && rev.Version != b.Version+1 || b.Kind == session.KindAbsent && !created
	lost := stale && string(it.Result) != "noop" && !o.overrides()
	o.i.Metrics.Observed(would(b, lost, o.ru).String())
	made := edge{rev.Version - 1, rev.Version}
	if lost { // else the engine has merged it, or there was nothing to merge
		made.base = b.Version
	}
	o.end(made)
	if o.body != nil {
		met := learn.Conflict{Ref: o.ref, Name: o.name, Client: &o.r.Request, Network: o.r.Place().Network, Merger: o.ru.Merger,
			Setter: o.ru, Rule: o.ru.Name, Outcome: "lost", Base: o.withoutMarks(b.View), Sent: o.withoutMarks(o.body)}
		o.i.Learner.Observed(&met, lost, b.Numbers, rev.Numbers)
	}
	if b.Kind == session.KindNone && !created && o.part == nil {
		o.i.Learner.Blind(o.ref.Index, o.r.Client().Session)
	}
	rev.Source = nil
	if o.part == nil {
		rev.Source = o.body
	}
	b.Commit(session.Ack{Stored: rev, Sent: o.body, AnswerNumbers: rev.Numbers, StoredDiffers: o.part != nil && stale, Created: created})
}

// withoutMarks is a document as clients and rules know it: see write_id.
func (o *observation) withoutMarks(source []byte) []byte {
	if o.ru.WriteID != "" {
		source, _ = mark.Take(source, o.ru.WriteID)
	}
	return source
}

// end notes what the write has made of the document, once.
func (o *observation) end(made edge) {
	if !o.over {
		o.over = true
		o.i.Metrics.LostUpdates(o.ref.Index, o.i.lineages.end(o.ref, made))
	}
}

// would is what guarding would have done.
func would(base *session.Base, lost bool, ru *rule.Rule) outcome.Kind {
	switch {
	case base.Version == 0 && base.Kind != session.KindAbsent:
		return outcome.Passed
	case !lost || ru.FailConflict:
		return outcome.Guarded
	}
	return outcome.Merged
}
