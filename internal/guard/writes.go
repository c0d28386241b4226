package guard

import (
	"errors"

	"optimist/internal/api"
	"optimist/internal/coding"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// write deals with a write of one document. A PATCH is one only where writes are guarded: nobody but optimist knows PATCH, and in the
// modes observe and off it does nothing, so that the engine's refusal of the method is the answer.
func (g *Guard) write(x *proxy.Exchange) bool {
	ru, err := g.taker(x)
	if err != nil {
		g.fail(x, err)
		return true
	}
	switch g.rules.Effective(ru) {
	case rule.Off:
		return g.unstamp(x)
	case rule.Observe:
		return g.observe(x, ru)
	}
	return g.perform(x, ru)
}

// auto deals with a new document whose id the engine makes. It needs no guard: only a rule's transform has anything to do with it, and
// all others are forwarded as they come, with the outcome said. Where no rule transforms, what other names the index has isn't asked.
func (g *Guard) auto(x *proxy.Exchange) bool {
	if rules := g.rules.Rules(); !rules.Transforms() {
		ru := rules.MatchRequest(&rule.Asked{Index: of(x).decoded(x.Op().Index), Kind: api.IndexAuto, Fields: x.Head().Fields})
		return g.forwardAuto(x, ru)
	}
	ru, err := g.taker(x)
	if err != nil {
		g.fail(x, err)
		return true
	}
	if g.rules.Effective(ru) != rule.Guard || ru.Transform == nil {
		return g.forwardAuto(x, ru)
	}
	return g.perform(x, ru)
}

// forwardAuto forwards a new document without a stamp that may be in it.
func (g *Guard) forwardAuto(x *proxy.Exchange, ru *rule.Rule) bool {
	var said func(h *wire.Head, first []byte) []wire.Field
	if g.rules.Effective(ru) == rule.Guard {
		g.events.Passed(ru.Name, "")
		said = saidAuto
	}
	body, fields, stamped, err := g.freed(x)
	switch {
	case err != nil:
		x.Fail(err)
	case stamped && said == nil:
		return g.instead(x, body, fields, nil)
	case stamped:
		return g.instead(x, body, fields, func(*upstream.Response) []wire.Field { return said(nil, nil) })
	case said == nil:
		return false
	default:
		g.forward(x, proxy.ForwardOptions{OnHead: said})
	}
	return true
}

// saidAuto is what an answer to a new document says of it.
func saidAuto(*wire.Head, []byte) []wire.Field { return passedAuto }

// passedAuto is the same for all, and made once: new documents come by the thousand.
var passedAuto = []wire.Field{{Name: []byte("Optimist-Outcome"), Value: (&outcome.Outcome{Kind: outcome.Passed, Attempts: 1}).Append(nil)}}

// perform has package write do a write that a rule takes.
func (g *Guard) perform(x *proxy.Exchange, ru *rule.Rule) bool {
	r := &of(x).write
	defer func() { *r = write.Request{} }() // an idle connection holds no bodies
	reason, err := g.prepare(x, ru, r)
	switch {
	case err != nil:
		x.Fail(err)
		return true
	case reason != "":
		return g.passed(x, ru, reason)
	}
	var shown *serving
	if ru.Stamp != "" && (r.Op.Kind == api.Update || r.Op.Kind == api.Patch) {
		shown = g.serving(x, g.who(x))
	}
	a, err := g.writes.Do(x.Context(), r)
	if err != nil {
		g.fail(x, err)
		return true
	}
	if shown != nil {
		g.stampShown(shown, ru, r, a)
	}
	g.writes.Answered(r) // before: who has its answer may close the connection at once
	if a.Own {
		_ = x.AnswerOwn(a.Status, a.Fields, a.Body)
	} else {
		_ = x.Answer(a.Status, a.Fields, a.Body)
	}
	a.Release()
	return true
}

// prepare makes r the write that the exchange is about, for package write. reason says why it can't be guarded, and then it isn't whole.
func (g *Guard) prepare(x *proxy.Exchange, ru *rule.Rule, r *write.Request) (reason string, err error) {
	op, l := x.Op(), of(x)
	l.fields = x.Head().EndToEnd(l.fields[:0])
	*r = write.Request{Op: op, Method: x.Head().Method, Fields: l.fields, Rule: ru}
	c := g.who(x)
	switch {
	case c.signed || signedQuery(op.Query):
		return outcome.ReasonSigned, nil
	case op.Fragment:
		return outcome.ReasonFragment, nil
	case c.bound:
		return outcome.ReasonAuth, nil
	}
	body, err := x.Body(g.maxBody)
	if err == nil {
		body, r.Fields, err = g.plain(body, r.Fields)
	}
	switch {
	case errors.Is(err, proxy.ErrTooLarge) && op.Kind != api.Patch: // which no engine knows what to do with
		return outcome.ReasonTooLarge, nil
	case err != nil:
		return "", err
	}
	r.Body, r.Session, r.Caller, r.Background = body, c.session, c.caller, background(r.Fields, ru)
	r.Anonymous = !c.known
	return "", g.takeOut(x, ru, r)
}

// plain takes the content coding off a body: a merge needs its JSON. The engine gets it without, too. Codings that aren't known stay, and
// such a body is guarded but never merged.
func (g *Guard) plain(body []byte, fields []wire.Field) ([]byte, []wire.Field, error) {
	return plainUpTo(g.maxBody, body, fields)
}

func plainUpTo(limit int64, body []byte, fields []wire.Field) ([]byte, []wire.Field, error) {
	for i := range fields {
		if !wire.EqualFold(fields[i].Name, "content-encoding") || !coding.IsGzip(fields[i].Value) {
			continue
		}
		out, err := coding.Gunzip(body, limit)
		if err != nil {
			return nil, nil, codingFailure(err)
		}
		return out, append(fields[:i:i], fields[i+1:]...), nil
	}
	return body, fields, nil
}

// codingFailure is what a client is told of a body that can't be decoded.
func codingFailure(err error) error {
	if errors.Is(err, coding.ErrTooLarge) {
		return proxy.ErrTooLarge
	}
	return &proxy.Failure{Status: 400, Type: "parse_exception", Reason: err.Error()}
}

// background tells the class of a write: the request's own word, else the rule's.
func background(fields []wire.Field, ru *rule.Rule) bool {
	for i := range fields {
		if wire.EqualFold(fields[i].Name, "optimist-priority") {
			return wire.EqualFold(fields[i].Value, "background")
		}
	}
	return ru.Priority == rule.Background
}

// passed forwards a write that can't be guarded, and says why: in the answer's field and to the metrics.
func (g *Guard) passed(x *proxy.Exchange, ru *rule.Rule, reason string) bool {
	said := []wire.Field{g.saidPassed(x, ru, reason)}
	g.forward(x, proxy.ForwardOptions{OnHead: func(*wire.Head, []byte) []wire.Field { return said }})
	return true
}

// saidPassed counts a write that is passed, and is the field that says so.
func (g *Guard) saidPassed(x *proxy.Exchange, ru *rule.Rule, reason string) wire.Field {
	g.events.Passed(ru.Name, reason)
	o := outcome.Outcome{Kind: outcome.Passed, Attempts: 1, Reason: reason, Untransformed: ru.Transform != nil && x.Op().Kind != api.Delete}
	if o.Untransformed {
		g.events.Untransformed(ru.Name)
	}
	return wire.Field{Name: []byte("Optimist-Outcome"), Value: o.Append(nil)}
}

// forward has the door forward the request, and tells the client where that fails.
func (g *Guard) forward(x *proxy.Exchange, o proxy.ForwardOptions) bool {
	err := x.Forward(o)
	if err != nil {
		x.Fail(err)
	}
	return err == nil
}

// fail answers a write that package write couldn't: with the outcome, where there is one.
func (g *Guard) fail(x *proxy.Exchange, err error) {
	var f *write.Failure
	if !errors.As(err, &f) {
		x.Fail(failure(err))
		return
	}
	x.Fail(failure(f.Err), wire.Field{Name: []byte("Optimist-Outcome"), Value: f.Outcome.Append(nil)})
}

// failure gives this package's meaning to the errors of package write; others are the door's own.
func failure(err error) error {
	switch {
	case errors.Is(err, write.ErrUnknownOutcome):
		return &proxy.Failure{Status: 504, Type: proxy.TypeUnknown, Reason: err.Error()}
	case errors.Is(err, write.ErrTimeout):
		return &proxy.Failure{Status: 503, Type: "timeout_exception", Reason: err.Error()}
	case errors.Is(err, write.ErrNotWritten):
		return unasked(err)
	case errors.Is(err, write.ErrPreconditionRequired):
		return &proxy.Failure{Status: 428, Type: "precondition_required", Reason: err.Error()}
	case errors.Is(err, write.ErrBaseLost), errors.Is(err, write.ErrAmbiguous), errors.Is(err, write.ErrNoMatch):
		return &proxy.Failure{Status: 409, Type: "version_conflict_engine_exception", Reason: err.Error()}
	case errors.Is(err, write.ErrBadMatch), errors.Is(err, write.ErrContradiction), errors.As(err, new(*uri.EscapeError)):
		return &proxy.Failure{Status: 400, Type: "illegal_argument_exception", Reason: err.Error()}
	}
	return err
}

// unasked is the failure of a write that wasn't sent, because the engine couldn't be asked what had to be known before: what was lost is
// the answer to a read.
func unasked(err error) error {
	var said *es.StatusError
	switch {
	case errors.As(err, &said) && (said.Status == 429 || said.Status == 503 || said.Status == 403 || said.Status == 401):
		return &proxy.Failure{Status: said.Status, Type: proxy.TypeAnswer, Reason: err.Error()}
	case errors.As(err, &said), errors.Is(err, es.ErrNoSource):
		return &proxy.Failure{Status: 502, Type: proxy.TypeAnswer, Reason: err.Error()}
	}
	if f := proxy.FailureOf(err, true); f != nil {
		return f
	}
	return err
}

// observe forwards a write as it is and counts what it did: where the version that it made isn't the one after the version that its
// client had read, it overwrote a change that the client hadn't seen.
func (g *Guard) observe(x *proxy.Exchange, ru *rule.Rule) bool {
	op, c := x.Op(), g.who(x)
	body, fields, freed, err := g.freed(x)
	ref, ok := of(x).ref(op)
	if op.Kind != api.Index || !ru.Session || !c.known || !ok || op.Fragment {
		return freed && g.instead(x, body, fields, nil)
	}
	if !freed {
		if body, err = x.Body(g.maxBody); err == nil {
			body, _, err = g.plain(body, x.Head().Fields)
		}
	}
	if err != nil {
		return false
	}
	if ix, err := g.catalog.Describe(x.Context(), c.asker(), ref.Index, 0); err == nil {
		ref.Index = ix.Name
	}
	base, err := g.sessions.Take(x.Context(), c.session, ref, body)
	if err != nil {
		return freed && g.instead(x, body, fields, nil)
	}
	defer func() {
		base.Release()
		base.Answered()
	}()
	tee := newCapture(watchLimit)
	tee.whole = func() {
		rev, created, ok := tee.written()
		if !ok {
			return
		}
		lost := base.Version != 0 && rev.Version != base.Version+1 || base.Kind == session.KindAbsent && !created
		g.events.Observed(ref.Index, lost, would(&base, lost, ru))
		rev.Source = body
		base.Commit(session.Ack{Stored: rev, Sent: body, Told: rev.Numbers, Created: created})
	}
	if freed {
		return g.instead(x, body, fields, func(res *upstream.Response) []wire.Field {
			tee.head(&res.Head, nil)
			tee.copy(res.Payload)
			tee.end()
			return nil
		})
	}
	g.forward(x, proxy.ForwardOptions{OnHead: tee.head, Copy: tee.copy, Last: tee.end})
	return true
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
