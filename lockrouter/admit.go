package lockrouter

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"optimist/internal/fencing"
	"optimist/lockrouter/state"
)

// The types of the errors of writes that locks refuse.
const (
	TypeLocked = "document_locked"
	TypeStale  = "stale_token"
	// TypeUnguardable is that of a write of which nobody can tell which locks protect its document.
	TypeUnguardable = "unguardable_write"
)

// Refusal is why a write isn't admitted.
type Refusal uint8

// The reasons. 0 means that the write is admitted.
const (
	Locked           Refusal = iota + 1 // another owner holds a lock that protects the document
	Stale                               // none of the write's tokens belongs to a lease that protects the document now
	StoreUnavailable                    // the store couldn't be asked who holds the locks
	Unplaced                            // a path of the document doesn't say where in the tree it is
)

// Admit decides whether a write may go, and gives the answer to one that may not.
//
// The decision is true at some moment during the call. After that, another owner may acquire the lock and write first. So the caller has to
// guard its write with a revision that it knew before the call. The write then conflicts with the other owner's writes.
func (r *Router) Admit(ctx context.Context, q *fencing.Question) (*Answer, Refusal) {
	a, err := r.protecting(q)
	if err != nil {
		f := &Failure{Status: http.StatusBadRequest, Type: TypeUnguardable}
		f.Reason = "nobody can tell which locks of the tree protect the document: " + err.Error() + ". Nothing was written"
		return f.answer(), Unplaced
	}
	if len(q.Tokens) == 0 && !q.NoIndex && r.allFree(a.gates) {
		return nil, 0
	}
	if err := r.lookAt(ctx, a); err != nil {
		return undecided(err)
	}
	if q.Dry {
		a.dropEnded(r.Now())
	}
	for again := 0; ; again++ {
		v := a.judge(q)
		var err error
		switch {
		case v.admits, q.Dry && v.promised != nil:
			return nil, 0
		case q.Dry:
			return r.refusedWrite(q, v)
		case v.promised != nil && again < 2:
			err = r.handOver(ctx, v)
		case v.holder != nil && !v.stale && again < 2:
			err = r.lapseAll(ctx, a) // before a refusal: the store's clock decides which leases have ended
		default:
			return r.refusedWrite(q, v)
		}
		if err != nil {
			return undecided(err)
		}
	}
}

// undecided refuses a write because the store, which holds the locks, answered with the error err.
func undecided(err error) (*Answer, Refusal) {
	f := &Failure{Status: http.StatusServiceUnavailable, Type: TypeStore, Reason: err.Error() + "; nothing was written", Retry: time.Second}
	return f.answer(), StoreUnavailable
}

// admission is a decision about one write.
type admission struct {
	locks []protection
	gates []string
}

// protection is one lock document that may protect the written document.
type protection struct {
	t     *target
	paths []string // of a tree: the paths of the written document, as of state.Place; nil for other locks
	doc   *state.Doc
}

// protecting returns the locks that may protect the written document, and the gates that these are behind. The error is of a path that
// may be read in two ways: one of them may be below a lock.
func (r *Router) protecting(q *fencing.Question) (*admission, error) {
	a := &admission{}
	var paths []string
	for _, p := range q.Paths {
		path, err := state.Place(p)
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	for _, index := range q.Indices {
		if !q.NoIndex {
			a.gates = append(a.gates, indexGate+index)
		}
		if q.ID != "" && len(q.ID) <= longestID {
			a.locks = append(a.locks, protection{t: r.docOf(index, q.ID)})
		}
		if len(paths) > 0 {
			a.locks = append(a.locks, protection{t: r.treeOf(index, "/"), paths: paths})
		}
	}
	if q.Global != "" {
		a.gates = append(a.gates, globalGate+q.Global)
		a.locks = append(a.locks, protection{t: r.globalOf(q.Global)})
	}
	return a, nil
}

// allFree reports whether all of the gates are known to be free now: nobody holds a lock behind them.
func (r *Router) allFree(names []string) bool {
	now, all := time.Now(), true
	for _, name := range names {
		free, again := r.gates.free(name, now)
		if again { // in the background, so that no write has to wait for it; if it fails, the next write reads the gate itself
			r.beside(func() { _, _ = r.looks.do(r.ctx, nil, []string{name}) })
		}
		all = all && free
	}
	return all
}

// lookAt reads the documents of the locks.
func (r *Router) lookAt(ctx context.Context, a *admission) error {
	if r.o.Gates == nil {
		return fmt.Errorf("%w: it can't enforce locks", ErrStore)
	}
	if len(a.locks)+len(a.gates) == 0 {
		return nil
	}
	ids := make([]string, len(a.locks))
	for i := range a.locks {
		ids[i] = a.locks[i].t.id
	}
	found, err := r.looks.do(ctx, ids, a.gates)
	if err != nil {
		return err
	}
	for i := range a.locks {
		a.locks[i].doc = found.docs[a.locks[i].t.id]
	}
	return nil
}

// verdict says whether the locks admit a write, and if not, why.
type verdict struct {
	admits   bool
	stale    bool        // the write has tokens, and none of them counts
	holder   *state.Hold // a lease that keeps the write out; nil: none
	promised *state.Hold // the writer's own lease, if it was handed over and the lock's document doesn't know that yet
	at       *protection // the lock of holder or promised
}

// judge decides, from the locks' documents, whether a write is admitted.
func (a *admission) judge(q *fencing.Question) (v verdict) {
	matched := false
	for i := range a.locks {
		p := &a.locks[i]
		if p.doc == nil {
			continue
		}
		for k := range p.doc.Chain {
			if h := &p.doc.Chain[k]; q.Tokens.Has(h.Token) {
				return verdict{at: p, promised: h}
			}
		}
		for k := range p.doc.Holds {
			switch h := &p.doc.Holds[k]; {
			case !p.covers(h):
			case q.Tokens.Has(h.Token) && h.Mode != state.Shared:
				matched = true
			case v.holder == nil:
				v.at, v.holder = p, h
			}
		}
	}
	v.stale = len(q.Tokens) > 0 && !matched && !(v.holder != nil && q.Tokens.Has(v.holder.Token))
	v.admits = v.holder == nil && !v.stale
	return v
}

// covers reports whether the lease h protects the written document.
func (p *protection) covers(h *state.Hold) bool {
	return p.paths == nil || slices.ContainsFunc(p.paths, func(path string) bool { return strings.HasPrefix(path, h.Path) })
}

// dropEnded leaves out the leases that have ended by now. It changes copies of the documents, because other writes may look at them, too.
func (a *admission) dropEnded(now int64) {
	for i := range a.locks {
		if d := a.locks[i].doc; d != nil {
			left := *d
			left.Holds = slices.DeleteFunc(slices.Clone(d.Holds), func(h state.Hold) bool { return h.Until < now })
			a.locks[i].doc = &left
		}
	}
}

// handOver stores in the lock's document that the writer's promised lease was handed over to it. After that, the previous holder can't
// write any more.
func (r *Router) handOver(ctx context.Context, v verdict) error {
	op := state.Op{Do: state.Renew, Owner: v.promised.Owner, Token: v.promised.Token, Path: v.at.t.path, Class: state.Foreground,
		Mode: state.Exclusive}
	done := r.o.Store.Do(ctx, []Change{r.change(v.at.t, op)})[0]
	if done.Err == nil {
		v.at.doc = done.Doc
	}
	return done.Err
}

// lapseAll makes the store end the leases whose time is over.
func (r *Router) lapseAll(ctx context.Context, a *admission) error {
	var held []*protection
	var changes []Change
	for i := range a.locks {
		if p := &a.locks[i]; p.doc != nil && len(p.doc.Holds) > 0 {
			held, changes = append(held, p), append(changes, Change{p.t.id, p.doc.Lapse()})
		}
	}
	for i, done := range r.o.Store.Do(ctx, changes) {
		if done.Err != nil {
			return done.Err
		}
		if before := held[i].doc; done.Doc.Beat == before.Beat+1 {
			r.lapses(done.Doc)
		}
		held[i].doc = done.Doc
	}
	return nil
}

// refusedWrite is the answer to a write that isn't admitted.
func (r *Router) refusedWrite(q *fencing.Question, v verdict) (*Answer, Refusal) {
	f := &Failure{Status: http.StatusLocked, Type: TypeLocked, Detail: map[string]any{}}
	why := Locked
	if v.stale {
		f.Status, f.Type, why = http.StatusConflict, TypeStale, Stale
		f.Reason = "none of the write's lock tokens is of a lease that protects this document now: the lease has ended, or is of another lock. " +
			"Nothing was written"
	}
	if v.holder == nil {
		return f.answer(), why
	}
	l := leaseOf(v.at.doc, v.holder, r.Now(), false)
	f.Detail["lock"], f.Detail["holder"] = l.Lock, l
	if v.stale {
		return f.answer(), why
	}
	f.Retry = max(time.Duration(l.ExpiresIn)*time.Millisecond, time.Second)
	f.Reason = fmt.Sprintf("%s is held by %s until %s; nothing was written", l.Lock, l.Owner, l.ExpiresAt)
	if q.Tokens.Has(v.holder.Token) {
		f.Reason = fmt.Sprintf("%s is held for reading; only an exclusive lock lets its holder write. Nothing was written", l.Lock)
	}
	return f.answer(), why
}
