package explain

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// OutcomeOf is a write's outcome as an account has it.
func OutcomeOf(o *outcome.Outcome) Outcome {
	return Outcome{Kind: o.Kind.String(), Attempts: o.Attempts, Base: o.Base.String(), Ambiguous: o.Ambiguous,
		Reason: o.Reason, Overwrote: o.Overwrote, Field: string(o.Append(nil))}
}

// Rehearsal stands in for the engine's side of writes.
type Rehearsal struct {
	Account *Account
	Passed  string // why the write can't be guarded at all; "" if it can
	// Look reads the document as it is now, as its client may.
	Look func(ctx context.Context) (doc.Revision, error)
	// Named is the document as the engine's answers name it.
	Named func() respond.Document

	Undecided string // why only the engine can tell what becomes of the write
	Failed    error  // the engine couldn't be asked
}

// Do implements es.Doer: nothing is sent.
func (p *Rehearsal) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	var op api.Op
	api.Parse([]byte(r.Method), r.Target, &op)
	n, guarded := api.OwnGuard(op.Query)
	entry := Request{Method: r.Method, Target: string(r.Target), Create: op.Kind == api.Create}
	if n.Known() {
		entry.Guard = &Guard{SeqNo: n.SeqNo, PrimaryTerm: n.PrimaryTerm}
	}
	p.Account.Document = Document(r.Body)
	rev, err := p.look(ctx, &op)
	if err != nil {
		p.Failed = err
		return nil, &upstream.Error{Class: upstream.NotSent, Err: err}
	}
	answer := p.answer
	switch {
	case p.Undecided != "":
	case op.Kind == api.Update:
		u, ok := readUpdate(r.Body, op.Query)
		p.Account.Document, answer = nil, u.answer(p)
		if !ok {
			p.Undecided = "the engine runs the script of an _update itself, and answers it"
		}
	case guarded && !n.Known():
		p.Undecided = "the engine compares the version that the client gave"
	}
	res := &upstream.Response{}
	res.Status, res.Payload = 200, respond.Written(p.Named(), doc.Revision{}, respond.Updated).Body
	res.Fields = []wire.Field{respond.JSON}
	if p.Undecided == "" {
		a := answer(&op, n, rev)
		res.Status, res.Payload = a.Status, a.Body
		entry.Status = a.Status
	}
	p.Account.Requests = append(p.Account.Requests, entry)
	return res, nil
}

// look reads the document as the client may.
func (p *Rehearsal) look(ctx context.Context, op *api.Op) (doc.Revision, error) {
	switch p.Passed {
	case "":
	case outcome.ReasonFragment:
		p.Undecided = "engines differ in which document a target with a number sign names, and ignore a guard behind it"
		return doc.Revision{}, nil
	default:
		p.Undecided = "the document can't be read with the credentials of a request that may not be changed"
		return doc.Revision{}, nil
	}
	if op.Kind == api.IndexAuto {
		return doc.Revision{}, nil // nobody else has its id
	}
	rev, err := p.Look(ctx)
	switch {
	case err == nil, errors.Is(err, doc.ErrMissing), errors.Is(err, es.ErrNoSource) && rev.Known():
		return rev, nil
	case es.IsAnswer(err):
		p.Undecided = "the document can't be read: " + err.Error()
		return rev, nil
	}
	return rev, err
}

// answer is what the engine says to the request, with the document at rev.
func (p *Rehearsal) answer(op *api.Op, n doc.Numbers, rev doc.Revision) *respond.Answer {
	d := p.Named()
	next := doc.Revision{Numbers: doc.Numbers{SeqNo: rev.SeqNo + 1, PrimaryTerm: max(rev.PrimaryTerm, 1)}, Version: rev.Version + 1}
	switch {
	case op.Kind == api.Create && rev.Known():
		return respond.Exists(d.Index, d.ID, rev.Version)
	case n.Known() && rev.Numbers != n:
		return respond.Conflict(d.Index, d.ID, (&intent.MovedError{Guard: n, Current: rev.Numbers}).Error())
	case op.Kind == api.Delete && !rev.Known():
		return respond.Written(d, next, respond.NotFound)
	case op.Kind == api.Delete:
		return respond.Written(d, next, respond.Deleted)
	case !rev.Known():
		return respond.Written(d, next, respond.Created)
	}
	return respond.Written(d, next, respond.Updated)
}

// Silence answers nothing.
type Silence struct{}

// Do implements es.Doer.
func (Silence) Do(context.Context, *upstream.Request) (*upstream.Response, error) {
	return nil, upstream.NotSent
}

// Untaken is the account of a write that is forwarded as it is, because no rule takes it, or its rule is off.
func Untaken(op *api.Op, method []byte, ru *rule.Rule, mode rule.Mode) *Account {
	target := op.Path
	if len(op.Query) > 0 {
		target = append(append(bytes.Clone(op.Path), '?'), op.Query...)
	}
	o := outcome.Outcome{Kind: outcome.Passed, Attempts: 1}
	a := &Account{Operation: op.Kind.String(), Index: plainName(op.Index), ID: plainName(op.ID), Mode: mode.String(),
		Requests: []Request{{Method: string(method), Target: string(target)}}}
	a.Outcome = OutcomeOf(&o)
	a.Outcome.Field = "" // nobody is told
	if ru == nil {
		a.Notes = []string{"no rule takes it: it is forwarded as it is"}
		return a
	}
	a.Rule = &Rule{Name: ru.Name, Place: ru.N + 1, Index: ru.Pattern(a.Index)}
	a.Notes = []string{"the rule's mode is off: it is forwarded as it is"}
	return a
}

// plainName is a part of a path, decoded if it can be.
func plainName(raw []byte) string {
	b, err := uri.Decode(nil, raw)
	if err != nil {
		return string(raw)
	}
	return string(b)
}

// answer is what the engine says to it, with the document at a revision. What it would leave is put into the account.
func (u *update) answer(p *Rehearsal) func(op *api.Op, n doc.Numbers, rev doc.Revision) *respond.Answer {
	return func(op *api.Op, n doc.Numbers, rev doc.Revision) *respond.Answer {
		d := p.Named()
		switch {
		case !rev.Known() && u.first == nil:
			return respond.ErrorIn(d.Index, http.StatusNotFound, "document_missing_exception", "["+d.ID+"]: document missing")
		case !rev.Known():
			p.Account.Document = Document(u.first)
			return p.answer(op, n, rev)
		case n.Known() && rev.Numbers != n:
			return respond.Conflict(d.Index, d.ID, (&intent.MovedError{Guard: n, Current: rev.Numbers}).Error())
		}
		after, err := edit.EngineMerge(rev.Source, u.part, tree.Limits{})
		if err != nil {
			return p.answer(op, n, rev)
		}
		p.Account.Document = Document(after)
		if string(after) == string(rev.Source) && !u.always {
			return respond.Written(d, rev, respond.Noop)
		}
		return p.answer(op, n, rev)
	}
}
