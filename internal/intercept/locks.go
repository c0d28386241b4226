package intercept

import (
	"bytes"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/bulk"
	"optimist/internal/gate"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/proxy"
)

// unguardable is the answer to a write that can't be guarded, where locks are enforced: one that comes late would not be noticed.
func unguardable(ru *rule.Rule, reason string) error {
	return &proxy.Failure{Status: http.StatusBadRequest, Type: gate.TypeUnguardable, Reason: "rule [" + ru.Name +
		"] enforces locks, and this write can't be guarded (" + reason + "); nothing was written. Write the documents one by one, or in a bulk " +
		"that optimist can read"}
}

// bar answers a request with that, and counts it.
func (i *Interceptor) bar(r *request, ru *rule.Rule, reason string) {
	o := outcome.Outcome{Kind: outcome.Refused, Reason: outcome.ReasonUnguardable}
	i.Metrics.Outcomes.Inc(o.Kind.String(), o.Reason)
	r.Fail(unguardable(ru, reason), outcomeField(&o))
}

// barred refuses a change by query of an index where locks are enforced: which documents it changes, nobody knows before. It reports
// whether the request has its answer.
func (i *Interceptor) barred(r *request) bool {
	ru, err := i.enforcing(r, r.Op().Index)
	switch {
	case err != nil:
		fail(r, err)
	case ru != nil:
		i.bar(r, ru, outcome.ReasonByQuery)
	}
	return err != nil || ru != nil
}

// enforcing is the rule that enforces locks on any of the indices that an expression of a path names, or nil.
func (i *Interceptor) enforcing(r *request, raw []byte) (*rule.Rule, error) {
	name := api.Name(raw)
	if api.OneIndex(name) {
		return i.enforcingOne(r, name)
	}
	expression := string(raw)
	if len(bytes.TrimSpace(raw)) == 0 {
		expression = "*"
	}
	listed, err := i.catalog.List(r.Context(), r.Asker(), expression)
	if err != nil {
		return nil, unasked(err)
	}
	rules := i.Rules.Rules()
	for index, what := range listed {
		names := []string{index}
		for other := range what.Names {
			names = append(names, other)
		}
		if ru := rules.MatchAny(names...); ru != nil && ru.Locks != nil && i.Rules.Effective(ru) == rule.Guard {
			return ru, nil
		}
	}
	return nil, nil
}

// enforcingOne is enforcing for one name.
func (i *Interceptor) enforcingOne(r *request, name string) (*rule.Rule, error) {
	rules := i.Rules.Rules()
	a := rule.Target{Index: name, Kind: api.Index, Fields: r.Head().Fields}
	ru := rules.MatchRequest(&a)
	if rules.Elsewhere(&a, ru) {
		ix, err := i.catalog.Resolve(r.Context(), r.Asker(), name, 0)
		if err != nil {
			return nil, err
		}
		a.Concrete, a.Stream = ix.Name, ix.DataStream
		ru = rules.MatchRequest(&a)
	}
	if ru == nil || ru.Locks == nil || i.Rules.Effective(ru) != rule.Guard {
		return nil, nil
	}
	return ru, nil
}

// barredBulk refuses a bulk whose items can't be guarded, if one of them may be of an index where locks are enforced. It reports whether
// the request has its answer.
func (i *Interceptor) barredBulk(r *request, reason string) bool {
	first := i.Rules.Rules().Enforces()
	if first == nil || i.Rules.Effective(first) != rule.Guard {
		return false
	}
	body, _, err := r.Plain(i.MaxBody)
	d, why := i.defaults(r)
	names := bulk.Names(body, d)
	if err != nil || why != "" || len(names) == 0 { // nobody knows what is in it
		i.bar(r, first, reason)
		return true
	}
	for k := range names {
		ru, err := i.enforcingOne(r, names[k].Index)
		switch {
		case err != nil:
			fail(r, err)
			return true
		case ru != nil:
			i.bar(r, ru, reason)
			return true
		}
	}
	return false
}
