package lockrouter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"optimist/lockrouter/state"
)

// Serve answers a request whose path the Router takes. It waits as long as the request says, and returns an error only where
// nobody is left to be answered: the context's cause.
func (r *Router) Serve(ctx context.Context, q *Request) (*Answer, error) {
	a, err := r.serve(ctx, q)
	if err == nil {
		return a, nil
	}
	var f *Failure
	switch {
	case errors.As(err, &f):
		return f.answer(), nil
	case errors.Is(err, ErrStore):
		f = &Failure{Status: http.StatusServiceUnavailable, Type: TypeStore, Reason: err.Error(), Retry: time.Second}
		return f.answer(), nil
	}
	return nil, err
}

func (r *Router) serve(ctx context.Context, q *Request) (*Answer, error) {
	what, t, index, err := r.locate(q.Path)
	if err != nil {
		return nil, err
	}
	if r.reserves(q, what, t, index) {
		return nil, &Failure{Status: http.StatusForbidden, Type: TypeReserved, Reason: "the locks of documents of [" + index +
			"] are the Definitive Guide's (locks.compat): they are acquired and released by its requests"}
	}
	switch {
	case what == listing && q.Method == http.MethodGet:
		return r.list(ctx, q)
	case what == releasing && q.Method == http.MethodPost:
		return r.releaseAll(ctx, q)
	case what == manyDocs:
		return r.docs(ctx, q, index)
	case what != oneLock:
		return nil, wrongMethod(q.Method)
	}
	a, err := r.parse(q)
	if err != nil {
		return nil, err
	}
	if t.kind != state.Tree && a.mode == state.Shared {
		return nil, badRequest("only locks of a tree can be shared")
	}
	switch {
	case q.Method == http.MethodGet:
		return r.get(ctx, t, q.Admin)
	case q.Admin && q.Method == http.MethodDelete:
		return r.evict(ctx, t, a)
	case a.Owner == "":
		return nil, badRequest("owner is missing: say who asks, in the body or as ?owner=")
	case q.Method == http.MethodPut && a.renew:
		return r.renew(ctx, t, a, q.Client)
	case q.Method == http.MethodPut:
		return r.acquire(ctx, t, a, q.Client)
	case q.Method == http.MethodDelete:
		return r.release(ctx, t, a)
	}
	return nil, wrongMethod(q.Method)
}

// reserves reports whether a request would change a lock that is reserved.
func (r *Router) reserves(q *Request, what endpoint, t *target, index string) bool {
	if r.o.Reserved == "" || index != r.o.Reserved || q.Admin || q.Method == http.MethodGet {
		return false
	}
	return what == manyDocs || what == oneLock && t.kind == state.Document
}

func wrongMethod(method string) error {
	return &Failure{Status: http.StatusMethodNotAllowed, Type: TypeBad,
		Reason: "a lock is acquired and renewed with PUT, released with DELETE and looked at with GET; not with " + method}
}

// acquire gets a lock, or says who has it.
func (r *Router) acquire(ctx context.Context, t *target, a *parameters, client string) (*Answer, error) {
	began := time.Now()
	op := state.Op{Do: state.Acquire, Owner: a.Owner, Rid: r.rid(), Path: t.path, Mode: a.mode, Class: a.class, Note: a.Note,
		TTL: r.ttl(a).Milliseconds(), Client: client}
	limit := r.patience(a)
	var o outcome
	if limit <= 0 {
		o = r.submit(ctx, t, op)
	} else {
		o = r.wait(ctx, t, op, limit)
	}
	answer, word, err := r.acquisition(t, &op, o, limit > 0, began)
	r.countRequest(a.class, word, began)
	return answer, err
}

// countRequest counts a request for a lock, which has ended, by what became of it.
func (r *Router) countRequest(class state.Class, word string, began time.Time) {
	r.o.Events.Acquired.Call(class, word, time.Since(began))
	if word == "held" {
		r.o.Events.Contended.Call(class)
	}
}

func (r *Router) ttl(a *parameters) time.Duration {
	if a.ttl > 0 {
		return a.ttl
	}
	return r.o.TTL
}

// patience is how long a request waits.
func (r *Router) patience(a *parameters) time.Duration {
	switch {
	case a.wait >= 0:
		return a.wait
	case a.class == state.Background:
		return r.o.Background
	}
	return r.o.Foreground
}

// acquisition is the answer to an acquisition, and a word for the metrics.
func (r *Router) acquisition(t *target, op *state.Op, o outcome, waited bool, began time.Time) (a *Answer, word string, err error) {
	switch {
	case errors.Is(o.err, ErrStore):
		return nil, "failed", o.err
	case o.err != nil:
		return nil, "left", o.err
	}
	switch o.result.Verdict {
	case state.Acquired, state.Reentered:
		l := leaseOf(o.doc, &o.hold, o.doc.Seen, true)
		// Who counts the lease from when the request was sent, and this much on, never counts on it for too long.
		ms := max(o.sent.Sub(began).Milliseconds(), 0)
		l.Waited = &ms
		r.held.add(t.root, l.Token, o.sent.Add(time.Duration(o.hold.TTL)*time.Millisecond))
		if o.result.Verdict == state.Acquired {
			return reply(http.StatusCreated, l), "acquired", nil
		}
		return reply(http.StatusOK, l), "reentered", nil
	case state.Full, state.Large, state.Share:
		return nil, "full", r.fullFailure(o.result.Verdict)
	}
	f := r.heldFailure(t, op, o.doc)
	if waited && !o.tried {
		f.Type, f.Reason = TypeTimeout, "the lock was not to be had in time: "+f.Reason
		if o.nth > 0 {
			f.Detail["queue"] = map[string]any{"place": o.nth}
		}
		return nil, "timeout", f
	}
	return nil, "held", f
}

// fullFailure says what a tree has no room for.
func (r *Router) fullFailure(v state.Verdict) *Failure {
	f := &Failure{Status: http.StatusTooManyRequests, Type: TypeFull, Retry: time.Second}
	switch most := int64(r.o.MostHeld); v {
	case state.Large:
		f.Reason = fmt.Sprintf("the leases of the tree take as many of its %d bytes as they may; shorter paths, owners and notes take less",
			state.Bytes(most))
	case state.Share:
		f.Reason = "this owner, or this client's address, has as much of the tree as it may: it must leave room for others"
	default:
		f.Reason = fmt.Sprintf("the tree holds %d leases, as many as it may", most)
	}
	return f
}

// heldFailure says why a lock isn't to be had.
func (r *Router) heldFailure(t *target, op *state.Op, d *state.Doc) *Failure {
	f := &Failure{Status: http.StatusConflict, Type: TypeHeld, Reason: "others come first for " + t.lock, Retry: time.Second,
		Detail: map[string]any{"lock": t.lock}}
	if d == nil {
		return f
	}
	f.Detail["queue"] = map[string]any{"place": d.Ahead("", op.Class, op.Path, op.Mode, int64(r.o.Bound)) + 1}
	h, ok := d.Conflict(op.Owner, op.Path, op.Mode)
	if !ok {
		return f
	}
	l := leaseOf(d, &h, r.clockNow(), false)
	f.Detail["holder"] = l
	f.Reason = fmt.Sprintf("%s is held by %s until %s", l.Lock, l.Owner, l.ExpiresAt)
	f.Retry = time.Duration(l.ExpiresIn) * time.Millisecond
	return f
}

// renew makes a lease longer.
func (r *Router) renew(ctx context.Context, t *target, a *parameters, client string) (*Answer, error) {
	op := state.Op{Do: state.Renew, Owner: a.Owner, Token: a.token, Note: a.Note, TTL: a.ttl.Milliseconds(), Path: t.path,
		Class: state.Foreground, Mode: state.Exclusive, Client: client}
	o := r.submit(ctx, t, op)
	if o.err != nil {
		return nil, o.err
	}
	if o.result.Verdict != state.Renewed {
		return nil, refusal(t, o.result.Verdict)
	}
	r.held.add(t.root, a.token, o.sent.Add(time.Duration(o.hold.TTL)*time.Millisecond))
	return reply(http.StatusOK, leaseOf(o.doc, &o.hold, o.doc.Seen, true)), nil
}

// release gives a lock back.
func (r *Router) release(ctx context.Context, t *target, a *parameters) (*Answer, error) {
	switch verdict, err := r.end(ctx, t, a.Owner, a.token); {
	case err != nil:
		return nil, err
	case verdict != state.Released:
		return nil, refusal(t, verdict)
	}
	return reply(http.StatusOK, map[string]any{"released": true}), nil
}

// end ends a lease. Other verdicts than Released say why it couldn't.
func (r *Router) end(ctx context.Context, t *target, owner string, token int64) (state.Verdict, error) {
	o := r.submit(ctx, t, state.Op{Do: state.Release, Owner: owner, Token: token, Path: t.path, Class: state.Foreground,
		Mode: state.Exclusive})
	if o.err == nil && o.result.Verdict == state.Released {
		r.held.remove(t.root, token)
	}
	return o.result.Verdict, o.err
}

// refusal says why a lease can't be renewed or released. Nothing has changed by it.
func refusal(t *target, v state.Verdict) error {
	switch v {
	case state.Expired:
		return &Failure{Status: http.StatusGone, Type: TypeExpired,
			Reason: "the lease of that token on " + t.lock + " has ended, or there never was one"}
	case state.NotOwner:
		return &Failure{Status: http.StatusForbidden, Type: TypeNotOwner, Reason: t.lock + " is held by another owner"}
	case state.NoToken:
		return badRequest("token is missing: say the one that was given with the lock, in the body or as ?token=")
	}
	return missing("there is no lease of that token on " + t.lock)
}

// get tells who holds a lock; to the operator with the tokens.
func (r *Router) get(ctx context.Context, t *target, admin bool) (*Answer, error) {
	docs, err := r.o.Store.Read(ctx, []string{t.id})
	if err != nil {
		return nil, err
	}
	now := r.clockNow()
	var leases []lease
	if d := docs[0]; d != nil {
		waiting := d.Waiting(t.path)
		for i := range d.Holds {
			if h := &d.Holds[i]; h.Until >= now && h.Against(t.path, state.Exclusive) {
				l := leaseOf(d, h, now, admin)
				if l.Lock == t.lock {
					l.Waiting = &waiting
				}
				leases = append(leases, l)
			}
		}
	}
	switch {
	case len(leases) == 0:
		return nil, missing("nobody holds " + t.lock)
	case t.kind == state.Tree || len(leases) > 1:
		return reply(http.StatusOK, map[string]any{"lock": t.lock, "leases": leases}), nil
	}
	return reply(http.StatusOK, leases[0]), nil
}
