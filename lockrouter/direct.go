package lockrouter

import (
	"cmp"
	"context"
	"time"

	"optimist/lockrouter/state"
)

// Ask is one operation on the lock of a document, for requests that aren't under _lock: see package compat. It doesn't wait in a queue. An
// acquisition needs a request id of its own: see Rid.
type Ask struct {
	Index, ID string
	Op        state.Op
}

// AskResult is the result of an Ask. The caller must not change Doc. Err says that it isn't known whether the operation was carried out. If
// it has acquired a lease, that is released.
type AskResult struct {
	Result state.Result
	Doc    *state.Doc
	Err    error
}

// Rid returns a new request id, which no other proxy uses.
func (r *Router) Rid() string { return r.rid() }

// Now is about the time of the documents' clock, in ms. It is good enough for answers, but not for decisions.
func (r *Router) Now() int64 { return r.clockNow() }

// DocLock is the path of a document's lock, as users name it.
func (r *Router) DocLock(index, id string) string { return r.docOf(index, id).lock }

// Find lists lock documents. The list may be out of date: don't decide by it.
func (r *Router) Find(ctx context.Context, q *Query) (*Page, error) { return r.o.Store.Find(ctx, q) }

// Look gives the lock documents of an index's documents as they are now; nil for one that isn't there.
func (r *Router) Look(ctx context.Context, index string, ids []string) ([]*state.Doc, error) {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = r.docOf(index, id).id
	}
	return r.o.Store.Read(ctx, names)
}

// Direct carries out operations. Each succeeds or fails by itself. Those on the same document are carried out in their order.
func (r *Router) Direct(ctx context.Context, asks []Ask) []AskResult {
	r.past.Add(1)
	defer r.past.Add(-1)
	results := make([]AskResult, 0, len(asks))
	for len(results) < len(asks) {
		part := asks[len(results):]
		part = part[:distinct(part)]
		began := time.Now()
		done := r.prepared(ctx, part)
		switch {
		case done != nil:
		case len(part) == 1:
			done = []AskResult{r.direct(ctx, &part[0])}
			r.confirmAll(ctx, part, done)
		default:
			done = r.directMany(ctx, part)
			r.confirmAll(ctx, part, done)
		}
		for i := range done {
			r.countAsk(&part[i], &done[i], began)
		}
		results = append(results, done...)
	}
	return results
}

// prepared shuts the gates of what is to be acquired. It returns results only where that has failed.
func (r *Router) prepared(ctx context.Context, asks []Ask) []AskResult {
	for i := range asks {
		if asks[i].Op.Do != state.Acquire {
			continue
		}
		if err := r.prepare(ctx, r.docOf(asks[i].Index, asks[i].ID)); err != nil {
			failed := make([]AskResult, len(asks))
			for k := range failed {
				failed[k].Err = err
			}
			return failed
		}
	}
	return nil
}

// confirmAll has the gates of what was acquired be shut before that is answered. Each gate is read once, unless it wasn't shut.
func (r *Router) confirmAll(ctx context.Context, asks []Ask, done []AskResult) {
	shut := map[string]bool{}
	for i := range done {
		if asks[i].Op.Do != state.Acquire || done[i].Err != nil || !done[i].Result.Verdict.Grants() {
			continue
		}
		t := r.docOf(asks[i].Index, asks[i].ID)
		if shut[t.gate] {
			continue
		}
		if waited, err := r.confirm(ctx, t.gate); err == nil && !waited {
			shut[t.gate] = true
			continue
		}
		o := r.confirmed(ctx, t, asks[i].Op, outcome{result: done[i].Result, doc: done[i].Doc})
		done[i] = AskResult{o.result, o.doc, o.err}
	}
}

// distinct is how many asks from the first on can be made at once: none of them on the same document as another.
func distinct(asks []Ask) int {
	seen := make(map[[2]string]bool, min(len(asks), chunk))
	for i := range asks {
		name := [2]string{asks[i].Index, asks[i].ID}
		if seen[name] || i == chunk {
			return i
		}
		seen[name] = true
	}
	return len(asks)
}

func (r *Router) direct(ctx context.Context, a *Ask) AskResult {
	o := r.submit(ctx, r.docOf(a.Index, a.ID), a.Op)
	return AskResult{o.result, o.doc, o.err}
}

// directMany carries out several asks. It waits for them even if the client has left: otherwise a lock could be acquired after the call
// that gives it back.
func (r *Router) directMany(ctx context.Context, asks []Ask) []AskResult {
	items := make([]*item, len(asks))
	for i := range asks {
		items[i] = &item{id: asks[i].ID, t: r.docOf(asks[i].Index, asks[i].ID)}
	}
	results := make([]AskResult, len(asks))
	r.carryOut(items, func(i int) state.Op { return asks[i].Op }, func(i int, it *item, d *Changed) {
		results[i].Err = d.Err
		if d.Err == nil {
			results[i] = AskResult{Result: d.Results[0], Doc: d.Doc, Err: context.Cause(ctx)}
		}
		if results[i].Err != nil && uncertain(results[i].Err) && asks[i].Op.Do == state.Acquire {
			r.doubt(it.t, &asks[i].Op)
		}
	})
	r.runLanes(items)
	return results
}

// countAsk counts what became of an operation.
func (r *Router) countAsk(a *Ask, t *AskResult, began time.Time) {
	op, lock := &a.Op, r.DocLock(a.Index, a.ID)
	word := "failed"
	if t.Err == nil {
		word = map[state.Verdict]string{state.Acquired: "acquired", state.Reentered: "reentered", state.Full: "full",
			state.Large: "full", state.Share: "full"}[t.Result.Verdict]
	}
	word = cmp.Or(word, "held")
	switch {
	case op.Do == state.Acquire:
		r.countRequest(op.Class, word, began)
		if word == "acquired" || word == "reentered" {
			r.held.add(lock, t.Result.Token, began.Add(time.Duration(op.TTL)*time.Millisecond))
		}
	case t.Err == nil && t.Result.Verdict == state.Renewed:
		r.held.add(lock, t.Result.Token, began.Add(time.Duration(op.TTL)*time.Millisecond))
	case t.Err == nil && t.Result.Verdict == state.Released:
		r.held.remove(lock, op.Token)
	}
}
