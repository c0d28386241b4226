package intercept

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/identity"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// Again is a write that is made again in somebody else's name: a dead letter.
type Again struct {
	Method, Target string
	Fields         []wire.Field // with the credentials by which it is made
	Body           []byte
	Rule           string       // by which it was made first
	Name           string       // tells it from other writes
	Preset         *base.Preset // what it is based on; nil: nobody knows
	// Overwrite says that a whole document may be written although its base isn't known.
	Overwrite bool
}

// Done is the result.
type Done struct {
	Status  int
	Outcome string
	Body    []byte
	Unknown bool // it may have been written
}

// Why a write isn't made again. Nothing was sent.
var (
	// ErrNoWrite reports a request that isn't a write of one document.
	ErrNoWrite = errors.New("this isn't a write of one document")
	// ErrNoBase reports a write of a whole document whose base isn't known.
	ErrNoBase = errors.New("it isn't known what the client had seen: the write would replace the stored document (overwrite)")
	// ErrNoRule reports that no rule takes the write, or that rules don't guard now: it would go unguarded.
	ErrNoRule = errors.New("no rule guards this write")
)

// Again makes a write again, under the rule under which the write was first made. If there is no such rule any more, the rule that takes
// the write now counts. If that rule's mode isn't guard, nothing is written. No client's session is asked, or learns of it.
func (i *Interceptor) Again(ctx context.Context, a *Again) (*Done, error) {
	var op api.Op
	method, target := []byte(a.Method), []byte(a.Target)
	api.Parse(method, target, &op)
	switch {
	case !op.Kind.Write() && op.Kind != api.IndexAuto:
		return nil, ErrNoWrite
	case a.Preset == nil && !a.Overwrite && takesAnyPlace(&op, a.Fields):
		return nil, ErrNoBase
	}
	c := i.Identity.Of(a.Fields, op.Query, netip.AddrPort{}, nil)
	caller := es.Caller{Fields: a.Fields, Params: c.Params}
	ru, err := i.ruleAgain(ctx, a, &op, catalog.Asker{Realm: c.Realm, Credentials: c.Session.Credentials(), Caller: caller})
	if err != nil {
		return nil, err
	}
	preset := a.Preset
	if preset == nil {
		preset = &base.Preset{}
	}
	session := identity.Named(c.Session.Credentials(), []byte("dead letter "+a.Name))
	w := &write.Request{
		Request: base.Request{Op: &op, Fields: a.Fields, Rule: ru, Session: session, Anonymous: true, Caller: caller,
			Realm: c.Realm, Preset: preset},
		Method: method, Body: a.Body, Route: c.Route, Background: background(a.Fields, ru)}
	answer, err := i.Writes.Do(ctx, w)
	if err != nil {
		return failedAgain(err), nil
	}
	defer answer.Release()
	done := &Done{Status: answer.Status, Body: bytes.Clone(answer.Body), Outcome: string(w.Outcome().Append(nil))}
	done.Unknown = w.Outcome().Kind == outcome.Unknown
	return done, nil
}

// takesAnyPlace reports whether a write takes the place of whatever document is there, unless it has a base.
func takesAnyPlace(op *api.Op, fields []wire.Field) bool {
	if op.Kind != api.Index && op.Kind != api.Delete {
		return false
	}
	if _, guarded := api.OwnGuard(op.Query); guarded {
		return false
	}
	return wire.Value(fields, "if-match") == nil && wire.Value(fields, "if-none-match") == nil
}

// ruleAgain is the rule for a write that is made again.
func (i *Interceptor) ruleAgain(ctx context.Context, a *Again, op *api.Op, asker catalog.Asker) (*rule.Rule, error) {
	rules := i.Rules.Rules()
	var ru *rule.Rule
	for _, r := range rules.All() {
		if r.Name == a.Rule {
			ru = r
		}
	}
	if ru == nil {
		target := rule.Target{Index: api.Name(op.Index), Kind: op.Kind, Fields: a.Fields}
		var err error
		ru, err = match(rules, &target, func() (catalog.Index, error) { return i.catalog.Resolve(ctx, asker, target.Index, 0) })
		if err != nil {
			return nil, failure(err)
		}
	}
	if mode := i.Rules.Effective(ru); mode != rule.Guard {
		return nil, fmt.Errorf("%w: the mode is %s, or no rule takes it", ErrNoRule, i.Rules.Mode())
	}
	return ru, nil
}

// failedAgain is what came of a write that ended without an answer.
func failedAgain(err error) *Done {
	d := &Done{Unknown: errors.Is(err, write.ErrUnknownOutcome)}
	if f, ok := errors.AsType[*outcome.Failure](err); ok {
		d.Outcome = string(f.Outcome.Append(nil))
	}
	if refusal := proxy.FailureOf(failure(err), false); refusal != nil {
		d.Status, d.Body, d.Unknown = refusal.Status, refusal.Append(nil), d.Unknown || refusal.Type == proxy.TypeUnknown
		return d
	}
	d.Unknown = d.Unknown || !errors.Is(err, doc.ErrNotWritten)
	d.Body = (&api.Error{Type: proxy.TypeInternal, Reason: err.Error()}).Append(nil)
	return d
}
