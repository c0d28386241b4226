package lockrouter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"optimist/internal/obs"
	"optimist/internal/wire"
	"optimist/lockrouter/state"
)

// Serve answers a request whose path the Router takes. It waits as long as the request says. It returns an error only if the client has
// left: the context's cause; or if there is no memory for the request: that of package budget.
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
		if n, tell := r.away.Count(); tell && !errors.Is(err, errClosed) {
			r.o.Log.Warn("requests for locks get a 503", obs.KeyError, err.Error(), obs.KeyCount, n)
		}
		f = &Failure{Status: http.StatusServiceUnavailable, Type: TypeStore, Reason: err.Error(), Retry: time.Second}
		return f.answer(), nil
	}
	return nil, err
}

func (r *Router) serve(ctx context.Context, q *Request) (*Answer, error) {
	path, end := cutEnd(q)
	what, t, err := r.locate(path)
	if err != nil {
		return nil, err
	}
	if r.reserves(q, what, t) {
		return nil, &Failure{Status: http.StatusForbidden, Type: TypeReserved, Reason: "the locks of documents of [" + t.index +
			"] are the Definitive Guide's (locks.compat): they are acquired and released by its requests"}
	}
	if err := r.lacks(what, t); err != nil {
		return nil, err
	}
	switch {
	case end == noEnd && !what.allows(q.Method):
		return nil, wrongMethod(what, q.Method)
	case end != noEnd && r.o.Undo == nil && (what == oneLock || what == manyDocs):
		return nil, r.noUndo()
	case end != noEnd && what == oneLock:
		return r.finishJournal(ctx, q, t, end)
	case end != noEnd && what != manyDocs:
		return nil, r.noLock(q.Path)
	case what == listing:
		return r.list(ctx, q)
	case what == releasing:
		return r.releaseAll(ctx, q)
	case what == manyDocs:
		return r.docs(ctx, q, t, end)
	}
	return r.one(ctx, q, t)
}

// one answers a request for one lock.
func (r *Router) one(ctx context.Context, q *Request, t *target) (*Answer, error) {
	a, err := r.parse(q)
	if err != nil {
		return nil, err
	}
	if t, err = r.resource(t, a); err != nil {
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
		return nil, badRequest("owner is missing: name it in the body, or as ?owner=")
	case q.Method == http.MethodPut && a.renew:
		return r.renew(ctx, r.claim(t, a, q.client()))
	case q.Method == http.MethodPut:
		if err := r.mayUndo(a); err != nil {
			return nil, err
		}
		return r.acquireFenced(ctx, q, t, a)
	}
	return r.release(ctx, r.claim(t, a, q.client()))
}

// reserves reports whether a request would change a lock that is reserved.
func (r *Router) reserves(q *Request, wanted endpoint, t *target) bool {
	if r.o.Reserved == "" || t == nil || t.index != r.o.Reserved || q.Admin || q.Method == http.MethodGet {
		return false
	}
	return wanted == manyDocs || t.kind == state.Document
}

// methods are the methods that each endpoint takes, and what they are for.
var methods = [...]struct {
	allow []string
	use   string
}{
	unknownEndpoint: {},
	oneLock:         {[]string{"GET", "PUT", "DELETE"}, "a lock is acquired and renewed with PUT, released with DELETE, and shown with GET"},
	manyDocs: {[]string{"POST", "PUT", "DELETE"},
		"the locks of several documents are acquired with POST, renewed with PUT and ?renew, and released with DELETE"},
	listing:   {[]string{"GET"}, "GET lists the locks; each lock has a path of its own"},
	releasing: {[]string{"POST"}, "POST releases locks of an owner"},
}

func (what endpoint) allows(method string) bool { return slices.Contains(methods[what].allow, method) }

func wrongMethod(what endpoint, method string) error {
	m := &methods[what]
	return &Failure{Status: http.StatusMethodNotAllowed, Type: TypeBad, Reason: m.use + "; not with " + method,
		Fields: []wire.Field{{Name: []byte("Allow"), Value: []byte(strings.Join(m.allow, ", "))}}}
}

// acquireFenced is acquire. If the request says so, it then touches the locked document.
func (r *Router) acquireFenced(ctx context.Context, q *Request, t *target, a *parameters) (*Answer, error) {
	c := r.claim(t, a, q.client())
	switch {
	case a.Fence == "":
		return r.acquire(ctx, c, nil)
	case t.kind != state.Document || r.o.Touch == nil:
		return nil, badRequest("fence: touch is for locks of documents: lock them by their ids, or by a query")
	}
	return r.acquire(ctx, c, func() error { return r.o.Touch(ctx, q, t.index, []string{t.doc}) })
}

// acquire gets a lock, or says who has it.
func (r *Router) acquire(ctx context.Context, c *Claim, touch func() error) (*Answer, error) {
	began := time.Now()
	l, err := r.keeper.Acquire(ctx, c)
	if err == nil && touch != nil {
		if err = touch(); err != nil && !l.Reentered {
			back := *c
			back.Token = l.Token
			r.giveBack(ctx, r.keeper, &back)
		}
	}
	r.countRequest(c.Class, ending(l, err), began)
	switch {
	case err != nil:
		return nil, err
	case l.Reentered:
		return reply(http.StatusOK, r.tell(l, c.Lock)), nil
	}
	return reply(http.StatusCreated, r.tell(l, c.Lock)), nil
}

// tell completes a Keeper's lease for an answer.
func (r *Router) tell(l *Lease, lock Lock) *Lease {
	l.Lock = lock.Name
	if r.o.Keeper != nil {
		l.Store, l.BestEffort = r.o.Ability.Store, r.o.Ability.BestEffort
	}
	return l
}

// ending returns the outcome of a request for a lock, as metrics name it.
func ending(l *Lease, err error) string {
	words := map[string]string{TypeTimeout: "timeout", TypeHeld: "held", TypeFull: "full"}
	var f *Failure
	switch {
	case errors.As(err, &f) && words[f.Type] != "":
		return words[f.Type]
	case f != nil, errors.Is(err, ErrStore):
		return "failed"
	case err != nil:
		return "left"
	case l.Reentered:
		return "reentered"
	}
	return "acquired"
}

// countRequest counts a request for a lock that has ended, by its outcome.
func (r *Router) countRequest(class state.Class, word string, began time.Time) {
	r.o.Events.Acquired.Call(class, word, time.Since(began))
	if word == "held" {
		r.o.Events.Contended.Call(class)
	}
}

func (r *Router) ttl(a *parameters) time.Duration { return cmp.Or(a.ttl, r.o.TTL) }

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

// fullFailure returns the failure of an acquisition for which a tree has no room.
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

// heldFailure returns the failure of an acquisition of a lock that isn't free. d is the lock's document; nil: it isn't known. place is as
// in HeldFailure; if it isn't known, it is that of a request that comes now.
func (r *Router) heldFailure(t *target, op *state.Op, d *state.Doc, waited bool, place int64) *Failure {
	if d == nil {
		return HeldFailure(t.asLock(), nil, waited, place)
	}
	if place == 0 {
		place = d.Ahead("", op.Class, op.Path, op.Mode, int64(r.o.Bound)) + 1
	}
	var holder *Lease
	if h, ok := d.Conflict(op.Owner, op.Path, op.Mode); ok {
		l := leaseOf(d, &h, r.Now(), false)
		holder = &l
	}
	return HeldFailure(t.asLock(), holder, waited, place)
}

// renew makes a lease longer.
func (r *Router) renew(ctx context.Context, c *Claim) (*Answer, error) {
	l, err := r.keeper.Renew(ctx, c)
	if err != nil {
		return nil, err
	}
	return reply(http.StatusOK, r.tell(l, c.Lock)), nil
}

// release gives a lock back.
func (r *Router) release(ctx context.Context, c *Claim) (*Answer, error) {
	if err := r.keeper.Release(ctx, c); err != nil {
		return nil, err
	}
	return reply(http.StatusOK, r.say(map[string]any{"released": true})), nil
}

// end ends a lease. Any other verdict than Released says why it couldn't.
func (r *Router) end(ctx context.Context, t *target, owner string, token int64) (state.Verdict, error) {
	o := r.submit(ctx, t, state.Op{Do: state.Release, Owner: owner, Token: token, Path: t.path, Class: state.Foreground,
		Mode: state.Exclusive})
	if o.err == nil && o.result.Verdict == state.Released {
		r.held.remove(t.root, token)
	}
	return o.result.Verdict, o.err
}

// get answers who holds a lock. Only the operator gets the tokens, too.
func (r *Router) get(ctx context.Context, t *target, admin bool) (*Answer, error) {
	leases, err := r.leases(ctx, t)
	if err != nil {
		return nil, err
	}
	leases = slices.DeleteFunc(leases, func(l Lease) bool { return l.over })
	for i := range leases {
		if !admin {
			leases[i].Token = 0
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

// leases returns the leases that keep others from a lock, with their tokens. Those in lock documents may be over.
func (r *Router) leases(ctx context.Context, t *target) (leases []Lease, err error) {
	if r.o.Keeper != nil {
		l, err := r.o.Keeper.Look(ctx, t.asLock())
		if err != nil || l == nil {
			return nil, err
		}
		return []Lease{*r.tell(l, t.asLock())}, nil
	}
	docs, err := r.o.Store.Read(ctx, []string{t.id})
	if err != nil || docs[0] == nil {
		return nil, err
	}
	d, now := docs[0], r.Now()
	waiting := d.Waiting(t.path)
	for i := range d.Holds {
		h := &d.Holds[i]
		if !h.Against(t.path, state.Exclusive) {
			continue
		}
		l := leaseOf(d, h, now, true)
		l.over, l.near = h.Until < now, h.Path != t.path
		if !l.near {
			l.Waiting = &waiting
		}
		leases = append(leases, l)
	}
	return leases, nil
}
