package intercept

import (
	"context"

	"optimist/internal/api"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/internal/watch"
	"optimist/internal/wire"
	"optimist/proxy"
)

// pass forwards a write that isn't guarded, without what is in it for optimist, and adds fields to its answer. It reports false
// where there is nothing to be done about it.
func (i *Interceptor) pass(r *request, fields []wire.Field) bool {
	s, err := i.withoutOurs(r)
	if err != nil {
		r.Fail(err)
		return true
	}
	return i.forward(r, &s, fields, nil)
}

// forward is pass for a write in which withoutOurs has looked. The answer goes through the capture, if there is one.
func (i *Interceptor) forward(r *request, s *substitute, fields []wire.Field, capture *watch.Capture) bool {
	if r.claim != nil && !s.changed { // its answer is recorded, whole
		body, plain, err := r.Plain(i.MaxBody)
		if err != nil {
			r.Fail(err)
			return true
		}
		s = &substitute{changed: true, body: body, fields: plain}
	}
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
	if err := r.Forward(o); err != nil {
		i.failForwarded(r, err, fields != nil)
	}
	return true
}

// failForwarded tells the client why a write that was forwarded has no answer. taken says that a rule takes it: then the outcome says, too,
// that nobody knows whether it was applied.
func (i *Interceptor) failForwarded(r *request, err error, taken bool) {
	if f := proxy.FailureOf(err, false); !taken || f == nil || f.Type != proxy.TypeUnknown {
		r.Fail(err)
		return
	}
	i.Metrics.Outcomes.Inc(outcome.Unknown.String(), "")
	r.Fail(err, outcomeField(&outcome.Outcome{Kind: outcome.Unknown, Attempts: 1}))
}

// sendInstead sends the request with another body, and gives the client the answer.
func (i *Interceptor) sendInstead(r *request, s *substitute, fields []wire.Field, capture *watch.Capture) {
	sent := s.fields
	if capture != nil {
		sent = wire.Without(sent, "accept-encoding")
	}
	res, err := i.send(r.Context(), r, s.body, sent)
	if err != nil {
		i.failForwarded(r, err, fields != nil)
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
	u := &upstream.Request{Method: wire.MethodString(r.Head().Method), Target: r.Head().Target, Body: body, Client: r.Place()}
	u.Fields = wire.Without(fields, "content-length", "expect")
	return i.Upstream.Do(ctx, u)
}

// passedField counts a write that is passed though a rule takes it, and is the field that says so. The rule is nil for a bulk in which
// nothing was to be transformed.
func (i *Interceptor) passedField(r *request, ru *rule.Rule, reason string) wire.Field {
	i.Metrics.Outcomes.Inc(outcome.Passed.String(), reason)
	o := outcome.Outcome{Kind: outcome.Passed, Attempts: 1, Reason: reason, Untransformed: untransformed(r, ru)}
	if o.Untransformed {
		i.Metrics.Untransformed.Inc(ru.Name)
	}
	return outcomeField(&o)
}

// untransformed reports whether a write that goes as it is has something that its rule transforms: a delete has not.
func untransformed(r *request, ru *rule.Rule) bool {
	kind := r.Op().Kind
	return ru != nil && ru.Transform != nil && kind != api.Delete && kind != api.DeleteByQuery
}
