// Package intercept decides how each request goes on from the door: package watch looks at reads that can become bases, package
// write carries out the writes that a rule takes, and everything else passes.
//
// It parses only bodies that it needs: for a request that no rule takes, it looks only at the request line, and at who sends it.
package intercept

import (
	"time"

	"optimist/internal/api"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/wire"
	"optimist/proxy"
)

// Intercept is the door's hook. It reports false for requests that are to be forwarded as they are.
func (i *Interceptor) Intercept(x *proxy.Exchange) bool {
	r := i.of(x)
	r.Op().Settle(r.Head().Method, i.Types())
	if r.takeTokens() || i.dryRun(r) || i.once(r) {
		return true
	}
	return i.dispatch(r)
}

// dispatch is Intercept for what is carried out.
func (i *Interceptor) dispatch(r *request) bool {
	if refused := r.takeJournal(i); refused {
		return true
	}
	switch op := r.Op(); {
	case op.Kind == api.Other && op.Ambiguous && !wire.IsSafe(r.Head().Method):
		i.writeByEngine(r, outcome.ReasonUnasked, func() (takers, error) { return i.guarding(), nil }, nil)
		return true
	case op.Kind == api.IndexAdmin:
		i.changeIndices(r)
		return true
	case i.Rules.Mode() == rule.Off:
		return op.Kind == api.Bulk && i.pass(r, nil)
	case op.Kind.Write():
		begun := time.Now()
		taken := i.write(r)
		if taken {
			i.Metrics.WriteTook(op.Kind.String(), time.Since(begun))
		}
		return taken
	case op.Kind == api.IndexAuto:
		return i.auto(r)
	case op.Kind.Read(), op.Kind == api.Other:
		return r.reading.Serve(i.watcher, &r.Request)
	case op.Kind == api.Bulk:
		return i.bulk(r)
	case op.Kind == api.UpdateByQuery, op.Kind == api.DeleteByQuery:
		i.changeByQuery(r)
		return true
	case op.Kind == api.Reindex:
		i.reindex(r)
		return true
	}
	return false
}
