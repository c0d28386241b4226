package intercept

import (
	"errors"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/explain"
	"optimist/internal/intake"
	"optimist/internal/outcome"
	"optimist/internal/respond"
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

// asks reports whether the request is to be rehearsed only. Every field of the name counts: one that was put behind another must
// not turn a dry run into a write. wrong says that a value is none.
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

// DryRun answers a request that has the field, unless it only reads, and reports false for all others. It is for those that
// Intercept never sees: a request for a lock isn't to be carried out either.
func (i *Interceptor) DryRun(x *proxy.Exchange) bool { return i.dryRun(i.of(x)) }

// dryRun deals with requests that have the field, and reports false for all others, and for reads. A request for a dry run must never be
// carried out, of any kind and in any mode: the answer says what is wrong.
func (i *Interceptor) dryRun(r *request) bool {
	dry, wrong := asks(r.Head().Fields)
	op := r.Op()
	switch {
	case wrong:
		return noDryRun(r, http.StatusBadRequest, TypeBadDryRun, "the values of "+DryRunField+" are true and false")
	case !dry || op.Kind.Read() || wire.IsSafe(r.Head().Method):
		return false
	case !op.Kind.Write() && op.Kind != api.IndexAuto:
		return noDryRun(r, http.StatusBadRequest, TypeNoDryRun, "a dry run is there for writes of one document")
	case i.Rules.Mode() == rule.Off:
		return noDryRun(r, http.StatusConflict, TypeNoDryRun,
			"the mode is off: writes are forwarded as they are, and there is nothing to explain")
	}
	a, err := i.account(r)
	var body []byte
	if err == nil {
		body, err = a.AppendJSON(nil)
	}
	if err != nil {
		r.Fail(err)
		return true
	}
	_ = r.AnswerOwn(http.StatusOK, []wire.Field{respond.JSON, {Name: []byte(DryRunField), Value: []byte("true")}}, body)
	return true
}

// noDryRun answers a dry run that there can't be.
func noDryRun(r *request, status int, kind, reason string) (answered bool) {
	r.Fail(&proxy.Failure{Status: status, Type: kind, Reason: reason + "; the request was not carried out"})
	return true
}

// account is the account of what a write would do.
func (i *Interceptor) account(r *request) (*explain.Account, error) {
	ru, err := i.taker(r)
	if err != nil {
		return nil, failure(err)
	}
	rules, mode, a := i.Rules.Rules(), i.Rules.Effective(ru), targetOf(r, r.Op().Kind)
	if mode == rule.Off {
		account := explain.Untaken(r.Op(), r.Head().Method, ru, mode)
		account.Skip(rules.Skipped(&a, ru))
		return account, nil
	}
	defer r.endWrite()
	reason, err := i.prepare(r, ru)
	if err != nil {
		return nil, err
	}
	r.write.Reason = reason
	account, err := i.Writes.Explain(r.Context(), &r.write)
	if err != nil {
		f := proxy.FailureOf(failure(err), false)
		if f == nil || !answers(err) {
			return nil, failure(err)
		}
		account.Outcome.Status, account.Outcome.Error = f.Status, &explain.Error{Type: f.Type, Reason: f.Reason}
	}
	a.Concrete = account.Index
	account.Skip(rules.Skipped(&a, ru))
	if mode == rule.Observe {
		account.Mode = mode.String()
		account.Notes = append(account.Notes, "the mode is observe: the write would be forwarded as it is; this is what guard would do")
	}
	return account, nil
}

// answers reports whether an error of package write is what the client would be answered, rather than that it can't be said.
func answers(err error) bool {
	var f *outcome.Failure
	var up *upstream.Error
	return errors.As(err, &f) && !errors.Is(err, doc.ErrNotWritten) && !errors.Is(err, intake.ErrTimeout) &&
		!errors.Is(err, write.ErrUnknownOutcome) && !errors.As(err, &up)
}
