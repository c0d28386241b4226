package intercept

import (
	"net/http"
	"unicode/utf8"

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

// barredBulk refuses a bulk whose items can't be guarded, if one of them may be of an index where locks are enforced. It reports whether
// the request has its answer.
func (i *Interceptor) barredBulk(r *request, reason string) bool {
	rules := i.guarding()
	first := rules.enforcing()
	if first == nil {
		return false
	}
	body, _, err := r.Plain(i.MaxBody)
	d, why := i.defaults(r)
	names, all := bulk.Names(body, d)
	if err != nil || why != "" || !all || !utf8.Valid(body) { // nobody knows what is in it
		i.bar(r, first, reason)
		return true
	}
	for k := range names {
		if k > 0 && names[k].Index == names[k-1].Index {
			continue
		}
		t, err := i.takersOf(r, names[k].Index)
		if err != nil {
			fail(r, err)
			return true
		}
		if ru := t.enforcing(); ru != nil {
			i.bar(r, ru, reason)
			return true
		}
	}
	return false
}
