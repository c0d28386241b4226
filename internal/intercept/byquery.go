package intercept

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"unicode/utf8"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"optimist/internal/api"
	"optimist/internal/coding"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/jsontext"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/proxy"
	"optimist/retry"
)

// changesUnknown notes, once r has its status, that r has changed unknown documents. Call the returned function when r is done. Earlier
// reads of r's client are no base for a merge any more.
func (i *Interceptor) changesUnknown(r *request) (over func()) {
	return judged(r, func(status int) {
		if status != http.StatusUnauthorized { // with any other the engine may have changed some documents: it stops at what fails
			i.Sessions.ChangedUnknown(r.Client().Session)
		}
	})
}

// reindex forwards a request that copies what a query finds into another index. The engine writes the documents there by itself.
func (i *Interceptor) reindex(r *request) {
	defer i.changesUnknown(r)()
	i.writeByEngine(r, outcome.ReasonByQuery, func() (takers, error) {
		body, _, err := r.Plain(i.MaxBody)
		if err != nil || !jsontext.Valid(body) || !utf8.Valid(body) {
			return i.guarding(), nil // nobody knows which index it is: the engines take C1 A5 for an e
		}
		return i.takersOf(r, gjson.GetBytes(body, "dest.index").String())
	}, nil)
}

// changeByQuery deals with a request that changes what a query finds, in any of the indices that it names.
func (i *Interceptor) changeByQuery(r *request) {
	defer i.changesUnknown(r)()
	find := func() (takers, error) { return i.takersOfAny(r, r.Op().Index) }
	i.writeByEngine(r, outcome.ReasonByQuery, find, func(t *takers) bool { return i.byQuery(r, t) })
}

// writeByEngine deals with a request whose documents only the engine knows. If the request may write to an index where locks are enforced,
// it is refused. If rules take all of it, carryOut has it done (nil: nobody does). Else it is forwarded as it is. If a rule takes any of
// its writes, the answer says so, with the reason.
func (i *Interceptor) writeByEngine(r *request, reason string, find func() (takers, error), carryOut func(t *takers) bool) {
	var fields []wire.Field
	t := i.guarding()
	if t.rules != nil {
		found, err := find()
		switch {
		case err == nil:
			t = found
		case t.enforcing() != nil:
			fail(r, err)
			return
		}
	}
	switch locks := t.enforcing(); {
	case locks != nil:
		i.bar(r, locks, reason)
		return
	case t.all && t.rules != nil && carryOut != nil && carryOut(&t):
		return
	case t.rules != nil:
		fields = []wire.Field{i.passedField(r, t.spokesman(), reason)}
	}
	if !i.pass(r, fields) {
		r.Pass(proxy.ForwardOptions{})
	}
}

// byQuery deals with a request that deletes, or updates, what a query finds. The engine changes one document after the other, each under a
// guard of its own, and stops at the first conflict, or leaves out those that conflict. Such a request is sent again until nothing is left
// to be done: the query then finds what is left. It reports false for one that has to be forwarded as it is.
func (i *Interceptor) byQuery(r *request, t *takers) (done bool) {
	if !i.mayRerun(r, t) {
		return false
	}
	body, fields, err := r.Plain(i.MaxBody)
	switch {
	case errors.Is(err, proxy.ErrTooLarge):
		return false
	case err != nil:
		r.Fail(err)
		return true
	case limited(body):
		return false
	}
	q := queryRun{i: i, r: r, body: body, fields: fields, untransformed: untransformed(r, t.spokesman())}
	err = retry.Do(r.Context(), retry.Policy(t.rules[0].Retry), q.attempt)
	switch {
	case q.last == nil, err != nil && !errors.Is(err, doc.ErrConflict):
		i.failForwarded(r, err, true)
		return true
	}
	q.answer()
	return true
}

// mayRerun reports whether it is known that the request may be carried out twice, as far as its head tells. A delete may. An update runs a
// script, or a pipeline, over documents that it may have changed before: only where all rules say so.
func (i *Interceptor) mayRerun(r *request, t *takers) bool {
	op := r.Op()
	once := func(ru *rule.Rule) bool { return !ru.Rerun }
	if op.Kind == api.UpdateByQuery && t.first(once) != nil || i.bulkReason(r) != "" {
		return false
	}
	for _, name := range append(bounds[:], "pretty") {
		if _, given := uri.Param(op.Query, name); given {
			return false
		}
	}
	waits, given := uri.Param(op.Query, "wait_for_completion")
	return !given || len(waits) == 0 || string(waits) == "true"
}

// bounds are the parameters, and the members of the body, that bound how many documents are changed. Carried out twice, a request with one
// would change more.
var bounds = [...]string{"max_docs", "size", "terminate_after"}

// limited reports whether the body bounds how many documents are changed.
func limited(body []byte) bool {
	return slices.ContainsFunc(gjson.GetManyBytes(body, bounds[:]...), gjson.Result.Exists)
}

// queryRun is the way of such a request through its attempts.
type queryRun struct {
	i      *Interceptor
	r      *request
	body   []byte
	fields []wire.Field

	untransformed bool
	attempts      int
	last          *respond.Answer
	before        [len(counters)]int64 // what the attempts before the last one have counted
}

// counters are added up over all attempts. The first of them, as many as ofDocuments says, count documents, which the next attempt doesn't
// find again.
var counters = [...]string{"updated", "deleted", "created", "noops",
	"took", "batches", "throttled_millis", "retries.bulk", "retries.search"}

const ofDocuments = 4

// attempt sends the request. Its error is doc.ErrConflict where documents are left that conflicted.
func (q *queryRun) attempt(ctx context.Context, n int) error {
	if q.last != nil {
		q.count()
		q.refresh(ctx)
	}
	res, err := q.send(ctx)
	if err != nil {
		return err
	}
	q.attempts = n
	q.last = respond.CopyEngine(res)
	res.Release()
	if body, err := coding.Decode(q.last.Body, wire.Value(q.last.Fields, "content-encoding"), q.i.MaxBody); err == nil {
		q.last.Body, q.last.Fields = body, wire.Without(q.last.Fields, "content-encoding") // a balancer may have compressed it
	}
	if !conflicted(q.last) {
		return nil
	}
	return fmt.Errorf("%w: of a change by query", doc.ErrConflict)
}

func (q *queryRun) send(ctx context.Context) (*upstream.Response, error) {
	op := q.r.Op()
	query := uri.Without(nil, op.Query, "filter_path")
	if pace := q.pace(); pace != "" {
		query = append(append(uri.Without(nil, query, speed), "&"+speed+"="...), pace...)
		query = bytes.TrimPrefix(query, []byte("&"))
	}
	target := uri.WithParams(op.Path, query)
	u := &upstream.Request{Method: http.MethodPost, Target: target, Body: q.body, Client: q.r.Place()}
	u.Fields = wire.Without(q.fields, "content-length", "expect", "accept-encoding")
	return q.i.Upstream.Do(ctx, u)
}

// speed is the parameter, and the member of the answer, that says how fast documents may be changed. A _rethrottle changes it under way.
const speed = "requests_per_second"

// pace is the speed at which the last attempt ended: somebody may have slowed it down. It is empty before there was one.
func (q *queryRun) pace() string {
	if q.last == nil {
		return ""
	}
	if v := gjson.GetBytes(q.last.Body, speed); v.Type == gjson.Number {
		return v.Raw
	}
	return ""
}

// stops are the members of an answer, or of one of its slices, that say why the engine left documents alone: the time was over, or
// somebody has cancelled the task.
var stops = [...]string{"timed_out", "canceled", "slices.#.canceled|0"}

// stopped reports whether the engine left documents alone for another reason than that they conflicted.
func stopped(a *respond.Answer) bool {
	return slices.ContainsFunc(gjson.GetManyBytes(a.Body, stops[:]...), func(v gjson.Result) bool {
		return v.Exists() && v.Type != gjson.False && v.Type != gjson.Null
	})
}

// conflicted reports whether an answer says that documents are left because of conflicts, and for no other reason.
func conflicted(a *respond.Answer) bool {
	if a.Status != http.StatusOK && a.Status != http.StatusConflict || gjson.GetBytes(a.Body, "version_conflicts").Int() == 0 ||
		stopped(a) {
		return false
	}
	only := true
	gjson.GetBytes(a.Body, "failures").ForEach(func(_, f gjson.Result) bool {
		only = f.Get("status").Int() == http.StatusConflict
		return only
	})
	return only
}

// count keeps what the last attempt has done.
func (q *queryRun) count() {
	for k, name := range counters {
		q.before[k] += gjson.GetBytes(q.last.Body, name).Int()
	}
}

// refresh lets the next search find the documents that conflicted as they are now. Where it isn't allowed, the index is refreshed when it
// is.
func (q *queryRun) refresh(ctx context.Context) {
	req := esapi.IndicesRefreshRequest{Index: []string{string(q.r.Op().Index)}}
	_, _ = es.Ask(ctx, q.i.Upstream, req, es.Way{Caller: q.r.Caller()})
}

// added is the last answer with what the attempts before it have done. The parts of a request that is done in slices are those of the last
// attempt alone: they are left out.
func (q *queryRun) added() []byte {
	total := int64(0)
	for _, n := range q.before[:ofDocuments] {
		total += n
	}
	body := addTo(q.last.Body, "total", total)
	for k, name := range counters {
		body = addTo(body, name, q.before[k])
	}
	if whole, err := sjson.DeleteBytes(body, "slices"); err == nil && gjson.GetBytes(body, "slices").Exists() {
		body = whole
	}
	return body
}

// answer gives the client the last answer, with what all attempts have done.
func (q *queryRun) answer() {
	body := q.last.Body
	if q.attempts > 1 {
		body = q.added()
	}
	if !gjson.GetBytes(body, "error").Exists() { // the engine filters no error
		body = respond.Filtered(q.r.Op().Query, body)
	}
	o := outcome.Outcome{Kind: outcome.Passed, Attempts: q.attempts, Reason: outcome.ReasonByQuery, Untransformed: q.untransformed}
	if q.attempts > 1 {
		o.Kind, o.Reason = outcome.Retried, ""
	}
	q.i.Metrics.Outcomes.Inc(o.Kind.String(), o.Reason)
	_ = q.r.Answer(q.last.Status, append(q.last.Fields, outcomeField(&o)), body)
}

// addTo adds n to a counter of an answer. An error has none.
func addTo(body []byte, name string, n int64) []byte {
	v := gjson.GetBytes(body, name)
	if with, err := sjson.SetBytes(body, name, v.Int()+n); err == nil && v.Exists() && n > 0 {
		return with
	}
	return body
}
