package write

import (
	"bytes"
	"context"
	"errors"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/explain"
	"optimist/internal/intent"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/retry"
	"optimist/rewrite"
)

// Explain tells what Do would do with the write, without doing it: it is Do, with a stand-in for the engine where writes are sent, which
// answers as the engine would to the document as it is now. The session's base is looked at and given back at once; nobody's lane is held
// up; nothing is counted. What the engine would find wrong with the document itself it doesn't know.
//
// Errors are those of Do. With those that are the client's answer (a rule that demands a base, say) the account comes, too.
func (s *Service) Explain(ctx context.Context, r *Request) (*explain.Account, error) {
	a := &explain.Account{Requests: []explain.Request{}}
	play := &rehearsal{account: a, req: r}
	eyes := &onlooker{Engine: s.engine}
	stage := *s
	stage.engine, stage.sessions, stage.observer, stage.primaries = eyes, s.sessions.Glance(), a, undoubted{}
	stage.direct, stage.events = single{play, s.timeout}, Events{}.orNothing()
	stage.carrier, stage.questions = stage.direct, single{silence{}, s.timeout}
	stage.lanes = retry.NewLanes(1, share)
	play.s = &stage
	answer, err := stage.Do(ctx, r)
	if play.failed != nil {
		return nil, play.failed
	}
	c := &r.change
	c.describe(a)
	if eyes.seen {
		a.Current = explain.NewRevision(eyes.last.Numbers, eyes.last.Version, eyes.last.Source)
	}
	if answer != nil {
		defer answer.Release()
	}
	if n := len(a.Requests); n > 0 && a.Requests[n-1].Status >= 300 {
		a.Document = nil
	}
	if play.undecided != "" && answer != nil && answer.Status < 300 {
		answer.Status, answer.Body = 0, nil
		a.Notes = append(a.Notes, play.undecided)
	}
	a.Outcome = c.outcome.account()
	if answer != nil {
		a.SetAnswer(answer.Status, answer.Body)
	}
	return a, err
}

// account is the outcome as an account has it.
func (o *Outcome) account() explain.Outcome {
	return explain.Outcome{Kind: o.Kind.String(), Attempts: o.Attempts, Base: o.Base.String(), Ambiguous: o.Ambiguous,
		Reason: o.Reason, Overwrote: o.Overwrote, Field: string(o.Append(nil))}
}

// describe fills in what the write is about.
func (c *change) describe(a *explain.Account) {
	a.Operation, a.Index, a.ID, a.Routing = c.req.Op.Kind.String(), c.doc.Index, c.doc.ID, c.doc.Routing
	a.Mode = rule.Guard.String()
	ru := c.req.Rule
	a.Rule = &explain.Rule{Name: ru.Name, Place: ru.N + 1, Index: ru.Pattern(c.name, c.index.Name, c.index.DataStream)}
	b := &c.base
	a.Base = explain.NewRevision(b.Numbers, b.Version, b.View)
	a.Base.Kind, a.Base.Ambiguous = c.outcome.Base.String(), c.outcome.Ambiguous
	from, to := b.View, c.sent
	switch {
	case c.patch != nil:
		from, to = c.draft.From, c.draft.Edited
	case !c.json || c.req.Op.Kind == api.Update || !c.baseKnown():
		return
	}
	if to == nil {
		return
	}
	if p, err := rewrite.Diff(from, to, rewrite.WithTests); err == nil {
		a.Change = p.AppendJSON(nil)
	}
}

// undoubted has every conflict be one with others: of a dry run nothing was sent that could have been applied.
type undoubted struct{}

func (undoubted) SamePrimary(context.Context, catalog.Asker, *catalog.Conflict, int64) bool {
	return true
}

// silence answers nothing.
type silence struct{}

func (silence) Do(context.Context, *upstream.Request) (*upstream.Response, error) {
	return nil, upstream.ErrNotSent
}

// onlooker remembers the revision that was last fetched.
type onlooker struct {
	Engine
	last doc.Revision
	seen bool
}

// Fetch implements Engine.
func (o *onlooker) Fetch(ctx context.Context, who es.Caller, d es.Document) (doc.Revision, error) {
	rev, err := o.Engine.Fetch(ctx, who, d)
	if err == nil || errors.Is(err, doc.ErrMissing) || errors.Is(err, es.ErrNoIndex) || errors.Is(err, es.ErrNoSource) && rev.Known() {
		o.last, o.seen = rev, true
	}
	return rev, err
}

// rehearsal stands in for the engine's side of writes.
type rehearsal struct {
	s       *Service
	req     *Request
	account *explain.Account

	undecided string // why only the engine can tell what becomes of the write
	failed    error  // the engine couldn't be asked
}

// Do implements es.Doer: nothing is sent.
func (p *rehearsal) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	var op api.Op
	api.Parse([]byte(r.Method), r.Target, &op)
	n, guarded := ownGuard(op.Query)
	entry := explain.Request{Method: r.Method, Target: string(r.Target), Create: op.Kind == api.Create}
	if n.Known() {
		entry.Guard = &explain.Guard{SeqNo: n.SeqNo, PrimaryTerm: n.PrimaryTerm}
	}
	p.account.Document = explain.Document(r.Body)
	rev, err := p.look(ctx)
	if err != nil {
		p.failed = err
		return nil, &upstream.Error{Class: upstream.NotSent, Err: err}
	}
	switch {
	case p.undecided != "":
	case op.Kind == api.Update:
		p.undecided = "the engine merges an _update itself, and answers it"
		p.account.Document = nil
	case guarded && !n.Known():
		p.undecided = "the engine compares the version that the client gave"
	}
	res := &upstream.Response{}
	res.Status, res.Payload = 200, []byte("{}")
	res.Fields = []wire.Field{respond.JSON}
	if p.undecided == "" {
		a := p.answer(&op, n, rev)
		res.Status, res.Payload = a.Status, a.Body
		entry.Status = a.Status
	}
	p.account.Requests = append(p.account.Requests, entry)
	return res, nil
}

// look reads the document as the client may.
func (p *rehearsal) look(ctx context.Context) (doc.Revision, error) {
	switch p.req.Reason {
	case "":
	case ReasonFragment:
		p.undecided = "engines differ in which document a target with a number sign is of, and heed no guard behind it"
		return doc.Revision{}, nil
	default:
		p.undecided = "the document can't be read with the credentials of a request that may not be changed"
		return doc.Revision{}, nil
	}
	if p.req.Op.Kind == api.IndexAuto {
		return doc.Revision{}, nil // nobody else has its id
	}
	rev, err := p.s.current(ctx, &p.req.change)
	switch {
	case err == nil, errors.Is(err, doc.ErrMissing), errors.Is(err, es.ErrNoSource) && rev.Known():
		return rev, nil
	case es.Answered(err):
		p.undecided = "the document can't be read: " + err.Error()
		return rev, nil
	}
	return rev, err
}

// answer is what the engine says to the request, with the document at rev.
func (p *rehearsal) answer(op *api.Op, n doc.Numbers, rev doc.Revision) *respond.Answer {
	c := &p.req.change
	d := p.s.named(c)
	next := doc.Revision{Numbers: doc.Numbers{SeqNo: rev.SeqNo + 1, PrimaryTerm: max(rev.PrimaryTerm, 1)}, Version: rev.Version + 1}
	switch {
	case op.Kind == api.Create && rev.Known():
		return c.exists(rev.Version)
	case n.Known() && rev.Numbers != n:
		return c.conflict((&intent.MovedError{Guard: n, Current: rev.Numbers}).Error())
	case op.Kind == api.Delete && !rev.Known():
		return respond.Written(d, next, respond.NotFound)
	case op.Kind == api.Delete:
		return respond.Written(d, next, respond.Deleted)
	case !rev.Known():
		return respond.Written(d, next, respond.Created)
	}
	return respond.Written(d, next, respond.Updated)
}

// Untaken is the account of a write that is forwarded as it is, because no rule takes it, or its rule is off.
func Untaken(op *api.Op, method []byte, ru *rule.Rule, mode rule.Mode) *explain.Account {
	target := op.Path
	if len(op.Query) > 0 {
		target = append(append(bytes.Clone(op.Path), '?'), op.Query...)
	}
	o := Outcome{Kind: Passed, Attempts: 1}
	a := &explain.Account{Operation: op.Kind.String(), Index: plainName(op.Index), ID: plainName(op.ID), Mode: mode.String(),
		Requests: []explain.Request{{Method: string(method), Target: string(target)}}}
	a.Outcome = o.account()
	a.Outcome.Field = "" // nobody is told
	if ru == nil {
		a.Notes = []string{"no rule takes it: it is forwarded as it is"}
		return a
	}
	a.Rule = &explain.Rule{Name: ru.Name, Place: ru.N + 1, Index: ru.Pattern(a.Index)}
	a.Notes = []string{"the rule's mode is off: it is forwarded as it is"}
	return a
}

// plainName is a part of a path, decoded if it can be.
func plainName(raw []byte) string {
	b, err := api.Decode(nil, raw)
	if err != nil {
		return string(raw)
	}
	return string(b)
}
