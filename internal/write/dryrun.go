package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"

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

// Explain tells what Do would do with the write, without doing it: it is Do, with a stand-in for the engine where writes are sent, which
// answers as the engine would to the document as it is now. The session's base is looked at and given back at once; nobody's lane is held
// up; nothing is counted. What the engine would find wrong with the document itself it doesn't know.
//
// Errors are those of Do. With those that are the client's answer (a rule that demands a base, say) the account comes, too.
func (s *Service) Explain(ctx context.Context, r *Request) (*Account, error) {
	a := &Account{Requests: []AccountRequest{}}
	r.account = a
	defer func() { r.account = nil }()
	play := &rehearsal{account: a, req: r}
	eyes := &onlooker{Engine: s.engine}
	stage := &Service{up: play, engine: eyes, sessions: s.store.Glance(), store: s.store, events: Events{}.orNothing(), log: s.log,
		timeout: s.timeout, now: s.now, catalog: s.catalog}
	stage.lanes = retry.NewLanes(1, share)
	play.s = stage
	answer, err := stage.Do(ctx, r)
	if play.failed != nil {
		return nil, play.failed
	}
	c := &r.change
	a.place(c)
	if eyes.seen {
		a.Current = accountRevision(eyes.last.Numbers, eyes.last.Version, eyes.last.Source)
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
	a.said(&c.outcome, answer)
	return a, err
}

// place fills in what the write is about.
func (a *Account) place(c *change) {
	a.Operation, a.Index, a.ID, a.Routing = c.req.Op.Kind.String(), c.doc.Index, c.doc.ID, c.doc.Routing
	a.Mode = rule.Guard.String()
	ru := c.req.Rule
	a.Rule = &AccountRule{Name: ru.Name, Place: ru.N + 1, Index: ru.Pattern(c.name, c.index.Name, c.index.DataStream)}
	b := &c.base
	a.Base = accountRevision(b.Numbers, b.Version, b.View)
	a.Base.Kind, a.Base.Ambiguous = c.outcome.Base.String(), c.outcome.Ambiguous
	from, to := b.View, c.sent
	switch {
	case c.patch != nil:
		from, to = c.patch.before, c.patch.after
	case !c.json || c.req.Op.Kind == api.Update || b.View == nil && b.Kind != session.KindAbsent:
		return
	}
	if to == nil {
		return
	}
	if p, err := rewrite.Diff(from, to, rewrite.WithTests); err == nil {
		a.Change = p.AppendJSON(nil)
	}
}

// merge merges the change into body. A dry run is told what was decided.
func (c *change) merge(body []byte) (rewrite.Result, error) {
	m := c.req.Rule.Merger
	if c.req.account == nil {
		return m.Merge(c.base.View, c.sent, body)
	}
	r, list, err := m.Explain(c.base.View, c.sent, body)
	c.req.account.decided(list)
	return r, err
}

// steps applies the rule's transform. A dry run is told what became of each step.
func (c *change) steps(t *rewrite.Transformer, candidate []byte, in *rewrite.Inputs) ([]byte, error) {
	if c.req.account == nil {
		return t.Apply(candidate, in)
	}
	doc, told, err := t.Explain(candidate, in)
	c.req.account.stepped(told)
	return doc, err
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
	account *Account

	undecided string // why only the engine can tell what becomes of the write
	failed    error  // the engine couldn't be asked
}

// Do implements es.Doer: nothing is sent.
func (p *rehearsal) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	var op api.Op
	api.Parse([]byte(r.Method), r.Target, &op)
	n, guarded := explicit(op.Query)
	entry := AccountRequest{Method: r.Method, Target: string(r.Target), Create: op.Kind == api.Create}
	if n.Known() {
		entry.Guard = &AccountGuard{n.SeqNo, n.PrimaryTerm}
	}
	p.account.Document = document(r.Body)
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
	res.Fields = []wire.Field{jsonType}
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
func (p *rehearsal) answer(op *api.Op, n doc.Numbers, rev doc.Revision) *Answer {
	d := p.req.change.doc
	next := doc.Revision{Numbers: doc.Numbers{SeqNo: rev.SeqNo + 1, PrimaryTerm: max(rev.PrimaryTerm, 1)}, Version: rev.Version + 1}
	switch {
	case op.Kind == api.Create && rev.Known():
		return p.req.change.exists(rev.Version)
	case n.Known() && !rev.Known():
		return conflict(d, fmt.Sprintf("required seqNo [%d], primary term [%d]. but no document was found", n.SeqNo, n.PrimaryTerm))
	case n.Known() && rev.Numbers != n:
		return conflict(d, fmt.Sprintf("required seqNo [%d], primary term [%d]. current document has seqNo [%d] and primary term [%d]",
			n.SeqNo, n.PrimaryTerm, rev.SeqNo, rev.PrimaryTerm))
	case op.Kind == api.Delete && !rev.Known():
		return notFound(d, next)
	case op.Kind == api.Delete:
		return written(d, next, "deleted", 200)
	case !rev.Known():
		return written(d, next, "created", 201)
	}
	return written(d, next, "updated", 200)
}

// Untaken is the account of a write that is forwarded as it is, because no rule takes it, or its rule is off.
func Untaken(op *api.Op, method []byte, ru *rule.Rule, mode rule.Mode) *Account {
	target := op.Path
	if len(op.Query) > 0 {
		target = append(append(bytes.Clone(op.Path), '?'), op.Query...)
	}
	o := Outcome{Kind: Passed, Attempts: 1}
	a := &Account{Operation: op.Kind.String(), Index: plainName(op.Index), ID: plainName(op.ID), Mode: mode.String(),
		Requests: []AccountRequest{{Method: string(method), Target: string(target)}}}
	a.said(&o, nil)
	a.Outcome.Field = "" // nothing is said of it
	if ru == nil {
		a.Notes = []string{"no rule takes it: it is forwarded as it is"}
		return a
	}
	a.Rule = &AccountRule{Name: ru.Name, Place: ru.N + 1, Index: ru.Pattern(a.Index)}
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
