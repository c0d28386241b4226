package lockrouter

import (
	"cmp"
	"context"
	"slices"
	"time"

	"optimist/lockrouter/state"
)

// Ask is one operation on the lock of a document, for requests that aren't under _lock: see package compat. It doesn't wait in a queue. An
// acquisition needs a request id of its own: see Rid.
type Ask struct {
	ID string // of the document
	Op state.Op
}

// AskResult is the result of an Ask. The caller must not change Doc. Err says that it isn't known whether the operation was carried out. If
// it has acquired a lease, that is released.
type AskResult struct {
	Result state.Result
	Doc    *state.Doc
	Err    error
}

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

// Direct carries out operations on the locks of an index's documents. Each succeeds or fails by itself. Those on the same document are
// carried out in their order.
func (r *Router) Direct(ctx context.Context, index string, asks []Ask) []AskResult {
	r.past.Add(1)
	defer r.past.Add(-1)
	results := make([]AskResult, 0, len(asks))
	for len(results) < len(asks) {
		part := asks[len(results):]
		part = part[:distinct(part)]
		began := time.Now()
		done := r.direct(ctx, index, part)
		for i := range done {
			r.countAsk(r.docOf(index, part[i].ID), &part[i].Op, &done[i], began)
		}
		results = append(results, done...)
	}
	return results
}

// distinct is how many asks from the first on can be made at once: none of them on the same document as another.
func distinct(asks []Ask) int {
	seen := make(map[string]bool, min(len(asks), chunk))
	for i := range asks {
		if seen[asks[i].ID] || i == chunk {
			return i
		}
		seen[asks[i].ID] = true
	}
	return len(asks)
}

// direct carries out operations on different documents. Acquisitions shut the gate of the index before and after.
func (r *Router) direct(ctx context.Context, index string, asks []Ask) []AskResult {
	results := make([]AskResult, len(asks))
	gate := indexGate + index
	if slices.ContainsFunc(asks, func(a Ask) bool { return a.Op.Do == state.Acquire }) {
		if err := r.prepare(ctx, gate); err != nil {
			for i := range results {
				results[i].Err = err
			}
			return results
		}
	}
	if len(asks) == 1 {
		o := r.submit(ctx, r.docOf(index, asks[0].ID), asks[0].Op)
		results[0] = AskResult{o.result, o.doc, o.err}
	} else {
		r.directMany(ctx, index, asks, results)
	}
	shut := false
	for i := range results {
		if asks[i].Op.Do != state.Acquire || results[i].Err != nil || !results[i].Result.Verdict.Grants() || shut {
			continue
		}
		if waited, err := r.confirm(ctx, gate); err == nil && !waited {
			shut = true
			continue
		}
		o := r.confirmed(ctx, r.docOf(index, asks[i].ID), asks[i].Op, outcome{result: results[i].Result, doc: results[i].Doc})
		results[i] = AskResult{o.result, o.doc, o.err}
	}
	return results
}

// directMany carries out several asks. It waits for them even if the client has left: otherwise a lock could be acquired after the call
// that gives it back.
func (r *Router) directMany(ctx context.Context, index string, asks []Ask, results []AskResult) {
	items := make([]*item, len(asks))
	for i := range asks {
		items[i] = &item{id: asks[i].ID, t: r.docOf(index, asks[i].ID)}
	}
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
}

// countAsk counts what became of an operation on a lock.
func (r *Router) countAsk(t *target, op *state.Op, a *AskResult, began time.Time) {
	word := "failed"
	if a.Err == nil {
		word = map[state.Verdict]string{state.Acquired: "acquired", state.Reentered: "reentered", state.Full: "full",
			state.Large: "full", state.Share: "full"}[a.Result.Verdict]
	}
	word = cmp.Or(word, "held")
	switch {
	case op.Do == state.Acquire:
		r.countRequest(op.Class, word, began)
		if word == "acquired" || word == "reentered" {
			r.held.add(t.root, a.Result.Token, began.Add(time.Duration(op.TTL)*time.Millisecond))
		}
	case a.Err == nil && a.Result.Verdict == state.Renewed:
		r.held.add(t.root, a.Result.Token, began.Add(time.Duration(op.TTL)*time.Millisecond))
	case a.Err == nil && a.Result.Verdict == state.Released:
		r.held.remove(t.root, op.Token)
	}
}
