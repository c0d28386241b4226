package guard

import (
	"errors"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/explain"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// DryRunField is the request field by which a client asks what a write would do. Its values are true and false.
const DryRunField = "Optimist-Dry-Run"

// The types of the errors to dry runs. Nothing was sent upstream where they are answered.
const (
	TypeBadDryRun = "invalid_dry_run"       // the field's value is neither true nor false
	TypeNoDryRun  = "dry_run_not_available" // there is none for this request, or in this mode
)

// asks reports whether the request is to be rehearsed only. Every field of the name counts: one that was put behind another must not turn a
// dry run into a write. wrong says that a value is none.
func asks(fields []wire.Field) (dry, wrong bool) {
	no := false
	for i := range fields {
		if !wire.EqualFold(fields[i].Name, DryRunField) {
			continue
		}
		switch {
		case wire.EqualFold(fields[i].Value, "true"):
			dry = true
		case wire.EqualFold(fields[i].Value, "false"):
			no = true
		default:
			wrong = true
		}
	}
	return dry, wrong || dry && no
}

// DryRun answers a request that has the field, unless it only reads, and reports false for all others. It is for those that Intercept never
// sees: a request for a lock isn't to be carried out either.
func (g *Guard) DryRun(x *proxy.Exchange) bool { return g.rehearse(x) }

// rehearse deals with requests that have the field, and reports false for all others, and for reads. A client that asks for a dry run must
// never have its request carried out, whatever it is and whatever mode is on: a mistake that is told can be put right.
func (g *Guard) rehearse(x *proxy.Exchange) bool {
	dry, wrong := asks(x.Head().Fields)
	op := x.Op()
	switch {
	case wrong:
		x.Fail(&proxy.Failure{Status: 400, Type: TypeBadDryRun,
			Reason: "the values of " + DryRunField + " are true and false; the request was not carried out"})
		return true
	case !dry || op.Kind.Read() || reads(x.Head().Method):
		return false
	case !op.Kind.Write() && op.Kind != api.IndexAuto:
		x.Fail(&proxy.Failure{Status: 400, Type: TypeNoDryRun,
			Reason: "a dry run is there for writes of one document; the request was not carried out"})
		return true
	case g.rules.Mode() == rule.Off:
		x.Fail(&proxy.Failure{Status: 409, Type: TypeNoDryRun,
			Reason: "the mode is off: writes are forwarded as they are, and there is nothing to explain; the request was not carried out"})
		return true
	}
	g.explain(x)
	return true
}

func reads(method []byte) bool {
	switch string(method) {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return false
}

// explain answers a write with the account of what it would do.
func (g *Guard) explain(x *proxy.Exchange) {
	op, l := x.Op(), of(x)
	ru, err := g.taker(x)
	if err != nil {
		x.Fail(failure(err))
		return
	}
	mode := g.rules.Effective(ru)
	asked := rule.Asked{Index: l.decoded(op.Index), Kind: op.Kind, Fields: x.Head().Fields}
	if mode == rule.Off {
		a := explain.Untaken(op, x.Head().Method, ru, mode)
		a.Skip(g.rules.Rules().Skipped(&asked, ru))
		g.tell(x, a)
		return
	}
	r := &l.write
	defer func() { *r = write.Request{} }()
	reason, err := g.prepare(x, ru, r)
	if err != nil {
		x.Fail(err)
		return
	}
	r.Reason = reason
	a, err := g.writes.Explain(x.Context(), r)
	if err != nil {
		f := proxy.FailureOf(failure(err), false)
		if f == nil || !answers(err) {
			x.Fail(failure(err))
			return
		}
		a.Outcome.Status, a.Outcome.Error = f.Status, &explain.Error{Type: f.Type, Reason: f.Reason}
	}
	asked.Concrete = a.Index
	a.Skip(g.rules.Rules().Skipped(&asked, ru))
	if mode == rule.Observe {
		a.Mode = mode.String()
		a.Notes = append(a.Notes, "the mode is observe: the write would be forwarded as it is; this is what guard would do")
	}
	g.tell(x, a)
}

// answers reports whether an error of package write is what the client would be answered, rather than that it can't be said.
func answers(err error) bool {
	var f *write.Failure
	var up *upstream.Error
	return errors.As(err, &f) && !errors.Is(err, write.ErrNotWritten) && !errors.Is(err, write.ErrTimeout) &&
		!errors.Is(err, write.ErrUnknownOutcome) && !errors.As(err, &up)
}

func (g *Guard) tell(x *proxy.Exchange, a *explain.Account) {
	body, err := a.AppendJSON(nil)
	if err != nil {
		x.Fail(err)
		return
	}
	fields := []wire.Field{
		{Name: []byte("Content-Type"), Value: []byte("application/json")},
		{Name: []byte(DryRunField), Value: []byte("true")},
	}
	_ = x.AnswerOwn(http.StatusOK, fields, body)
}
