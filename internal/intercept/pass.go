package intercept

import (
	"context"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/watch"
	"optimist/internal/wire"
	"optimist/proxy"
)

// pass forwards a write that isn't guarded, without the stamps that are in it, and adds fields to its answer. It reports false
// where there is nothing to be done about it.
func (i *Interceptor) pass(r *request, fields []wire.Field) bool {
	s, err := i.withoutStamps(r)
	if err != nil {
		r.Fail(err)
		return true
	}
	return i.forward(r, &s, fields, nil)
}

// forward is pass for a write whose stamps were looked for. The answer goes through the capture, if there is one.
func (i *Interceptor) forward(r *request, s *substitute, fields []wire.Field, capture *watch.Capture) bool {
	if s.changed {
		i.sendInstead(r, s, fields, capture)
		return true
	}
	if fields == nil && capture == nil {
		return false
	}
	o := proxy.ForwardOptions{}
	if capture != nil {
		o.Copy, o.Last = capture.Copy, capture.Last
	}
	o.OnHead = func(h *wire.Head, first []byte) []wire.Field {
		if capture != nil {
			capture.Head(h, first)
		}
		return fields
	}
	r.Pass(o)
	return true
}

// sendInstead sends the request with another body, and gives the client the answer.
func (i *Interceptor) sendInstead(r *request, s *substitute, fields []wire.Field, capture *watch.Capture) {
	res, err := i.send(r.Context(), r, s.body, s.fields)
	if err != nil {
		r.Fail(err)
		return
	}
	a := respond.FromEngine(res)
	defer a.Release()
	if capture != nil {
		capture.Head(&res.Head, nil)
		capture.Copy(res.Payload)
		capture.Last()
	}
	_ = r.Answer(a.Status, append(a.Fields, fields...), a.Body)
}

// send sends the client's request with another body and collects the answer.
func (i *Interceptor) send(ctx context.Context, r *request, body []byte, fields []wire.Field) (*upstream.Response, error) {
	u := &upstream.Request{Method: wire.MethodString(r.Head().Method), Target: r.Head().Target, Body: body}
	u.Fields = wire.Without(fields, "content-length", "expect")
	return i.Upstream.Do(ctx, u)
}

// passedField counts a write that is passed though a rule takes it, and is the field that says so.
func (i *Interceptor) passedField(r *request, ru *rule.Rule, reason string) wire.Field {
	i.Metrics.Outcome(outcome.Passed.String(), reason)
	o := outcome.Outcome{Kind: outcome.Passed, Attempts: 1, Reason: reason, Untransformed: ru.Transform != nil && r.Op().Kind != api.Delete}
	if o.Untransformed {
		i.Metrics.Untransformed(ru.Name)
	}
	return outcomeField(&o)
}

// observe forwards a write as it is and counts what it did: where the version that it made isn't the one after the version that
// its client had read, it overwrote a change that the client hadn't seen.
func (i *Interceptor) observe(r *request, ru *rule.Rule) bool {
	s, err := i.withoutStamps(r)
	if err != nil {
		r.Fail(err)
		return true
	}
	c := r.Client()
	ref, ok := r.Ref()
	if r.Op().Kind != api.Index || !ru.Session || !c.Known || !ok || r.Op().Fragment {
		return i.forward(r, &s, nil, nil)
	}
	body := s.body
	if !s.changed {
		if body, _, err = r.Plain(i.MaxBody); err != nil {
			return false
		}
	}
	if ix, err := i.catalog.Describe(r.Context(), c.Asker(), ref.Index, 0); err == nil {
		ref.Index = ix.Name
	}
	base, err := i.Sessions.Take(r.Context(), c.Session, ref, body)
	if err != nil {
		return i.forward(r, &s, nil, nil)
	}
	defer func() {
		base.Release()
		base.Answered()
	}()
	capture := watch.NewCapture(1 << 20) // an answer to a write is short
	capture.Whole = func() {
		rev, created, ok := acknowledged(capture)
		if !ok {
			return
		}
		lost := base.Version != 0 && rev.Version != base.Version+1 || base.Kind == session.KindAbsent && !created
		i.Metrics.Observed(would(&base, lost, ru).String(), ref.Index, lost)
		rev.Source = body
		base.Commit(session.Ack{Stored: rev, Sent: body, Told: rev.Numbers, Created: created})
	}
	return i.forward(r, &s, nil, capture)
}

// would is what guarding would have done.
func would(base *session.Base, lost bool, ru *rule.Rule) outcome.Kind {
	switch {
	case base.Version == 0 && base.Kind != session.KindAbsent:
		return outcome.Passed
	case !lost || ru.OnConflict == rule.ConflictFail:
		return outcome.Guarded
	}
	return outcome.Merged
}

// acknowledged reads the answer to a write of one document.
func acknowledged(capture *watch.Capture) (rev doc.Revision, created, ok bool) {
	body, ok := capture.Body()
	if !ok || capture.Status != 200 && capture.Status != 201 {
		return rev, false, false
	}
	it := es.ParseItem(body)
	return it.Revision, string(it.Result) == "created", it.Numbered
}
