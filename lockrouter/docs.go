package lockrouter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"optimist/lockrouter/state"
)

// maxDocs is how many documents one request may lock.
const maxDocs = 10_000

// chunk is how many are tried for at once: what is got out of turn is given back, and has kept others out for that long.
const chunk = 250

// askedDocs is a request for the locks of several documents. What is answered to one can be sent back to renew or release it.
type askedDocs struct {
	asked
	IDs   []string        `json:"ids"`
	Query json.RawMessage `json:"query"`
	Locks []struct {
		ID    string `json:"id"`
		Lock  string `json:"lock"`
		Token int64  `json:"token"`
	} `json:"locks"`

	AcquiredAt string `json:"acquired_at"` // these four are of an answer, and mean nothing here
	ExpiresAt  string `json:"expires_at"`
	ExpiresIn  int64  `json:"expires_in_ms"`
	Waited     int64  `json:"waited_ms"`
}

// batch is the locks of several documents on their way: all or none.
type batch struct {
	r     *Router
	a     *asked
	began time.Time
	items []*item // sorted, so that no two requests wait for each other
}

// item is one of them.
type item struct {
	id    string
	t     *target
	rid   string
	token int64
	mine  bool      // it wasn't held before
	sent  time.Time // when the call was sent that the lease counts from
	seen  int64     // the document's clock then
	doc   *state.Doc
}

// docs answers what is asked of the locks of several documents.
func (r *Router) docs(ctx context.Context, q *Request, index string) (*Answer, error) {
	var want askedDocs
	if err := strict(q.Body, &want); err != nil {
		return nil, err
	}
	for p := range params(q.Query) {
		if err := want.param(p.key, p.value); err != nil {
			return nil, err
		}
	}
	if want.Owner == "" {
		want.Owner = want.ProcessID
	}
	switch err := r.check(&want.asked); {
	case err != nil:
		return nil, err
	case want.Owner == "":
		return nil, badRequest("owner is missing")
	case len(want.Owner) > longestOwner || len(want.Note) > longestNote:
		return nil, badRequest("owner must be no longer than 512 bytes, and note than 1024")
	case want.mode == state.Shared:
		return nil, badRequest("only locks of a tree can be shared")
	}
	b := &batch{r: r, a: &want.asked, began: time.Now()}
	switch {
	case q.Method == http.MethodPost:
		return b.acquireAll(ctx, q, index, &want)
	case q.Method == http.MethodPut && want.renew, q.Method == http.MethodDelete:
		if len(want.Locks) == 0 {
			return nil, badRequest(`locks are missing: {"locks":[{"id":…,"token":…}]}, as they were answered`)
		}
		for _, l := range want.Locks {
			b.items = append(b.items, &item{id: l.ID, t: r.docOf(index, l.ID), token: l.Token})
		}
		b.sort()
		if q.Method == http.MethodDelete {
			return b.give(ctx)
		}
		return b.extend(ctx)
	}
	return nil, wrongMethod(q.Method)
}

// ids are the documents that a request names, or that its query finds as of now.
func (b *batch) ids(ctx context.Context, q *Request, index string, want *askedDocs) error {
	ids := want.IDs
	switch {
	case (len(ids) > 0) == (len(want.Query) > 0):
		return badRequest("say either ids or a query")
	case len(want.Query) > 0 && b.r.o.Search == nil:
		return badRequest("documents can't be locked by a query here")
	case len(want.Query) > 0:
		var err error
		if ids, err = b.r.o.Search(ctx, q, index, want.Query, maxDocs+1); err != nil {
			return err
		}
	}
	if len(ids) > maxDocs {
		return badRequest(fmt.Sprintf("more than %d documents; lock a tree, or a name for all of them", maxDocs))
	}
	for _, id := range ids {
		if id == "" || len(id) > longestID {
			return badRequest("an id has from 1 to 512 bytes")
		}
		b.items = append(b.items, &item{id: id, t: b.r.docOf(index, id), rid: b.r.rid()})
	}
	b.sort()
	return nil
}

func (b *batch) sort() {
	slices.SortFunc(b.items, func(x, y *item) int { return strings.Compare(x.id, y.id) })
	b.items = slices.CompactFunc(b.items, func(x, y *item) bool { return x.id == y.id })
}

// acquireAll gets all locks or none.
func (b *batch) acquireAll(ctx context.Context, q *Request, index string, want *askedDocs) (*Answer, error) {
	if err := b.ids(ctx, q, index, want); err != nil {
		return nil, err
	}
	err := b.acquire(ctx)
	word := "acquired"
	var f *Failure
	switch {
	case errors.As(err, &f) && f.Type == TypeTimeout:
		word = "timeout"
	case errors.As(err, &f) && f.Type == TypeHeld:
		word = "held"
	case f != nil, errors.Is(err, ErrStore):
		word = "failed"
	case err != nil:
		word = "left"
	}
	b.r.o.Events.Acquired(b.a.class, word, time.Since(b.began))
	if word == "held" {
		b.r.o.Events.Contended(b.a.class)
	}
	if err != nil {
		b.undo()
		return nil, err
	}
	for _, it := range b.items {
		b.r.held.add(it.token, it.sent.Add(b.r.ttl(b.a)))
	}
	return reply(http.StatusCreated, b.told()), nil
}

// told is the answer: the earliest of all leases counts.
func (b *batch) told() map[string]any {
	ttl := b.r.ttl(b.a).Milliseconds()
	locks := make([]map[string]any, len(b.items))
	sent, seen := time.Now(), int64(0)
	for i, it := range b.items {
		locks[i] = map[string]any{"id": it.id, "lock": it.t.lock, "token": it.token}
		if it.sent.Before(sent) {
			sent = it.sent
		}
		if seen == 0 || it.seen < seen {
			seen = it.seen
		}
	}
	return map[string]any{"owner": b.a.Owner, "acquired_at": instant(seen), "expires_at": instant(seen + ttl), "expires_in_ms": ttl,
		"waited_ms": max(sent.Sub(b.began).Milliseconds(), 0), "note": b.a.Note, "locks": locks}
}

// acquire takes the locks in their order. Many are tried for at once; at the first that somebody else has, those behind it are given back,
// and it is waited for: whoever waits holds only what comes before, so that nobody waits in a circle.
func (b *batch) acquire(ctx context.Context) error {
	deadline := b.began.Add(b.r.patience(b.a))
	for next := 0; next < len(b.items); {
		part := b.items[next:min(next+chunk, len(b.items))]
		taken, err := b.try(ctx, part)
		if err != nil {
			return err
		}
		if taken < 0 {
			next += len(part)
		} else {
			b.release(part[taken+1:])
			next += taken
			if err := b.wait(ctx, next, deadline); err != nil {
				return err
			}
			next++
		}
		if err := b.refresh(ctx, b.items[:next], b.r.ttl(b.a)/3); err != nil {
			return err
		}
	}
	return b.refresh(ctx, b.items, b.r.ttl(b.a)/10)
}

func (b *batch) op(it *item) state.Op {
	return state.Op{Do: state.Acquire, Owner: b.a.Owner, Rid: it.rid, Mode: state.Exclusive, Class: b.a.class, Note: b.a.Note,
		TTL: b.r.ttl(b.a).Milliseconds()}
}

// try asks for some at once, and gives the first that isn't to be had, or -1.
func (b *batch) try(ctx context.Context, part []*item) (taken int, err error) {
	taken = -1
	b.do(ctx, part, b.op, func(i int, it *item, d *Changed) {
		switch {
		case d.Err != nil:
			err = d.Err
			it.rid, it.mine = b.doubt(it), false
		case d.Said[0].Verdict == state.Acquired, d.Said[0].Verdict == state.Reentered:
			it.token, it.mine = d.Said[0].Token, d.Said[0].Verdict == state.Acquired
		case taken < 0:
			taken = i
		}
	})
	return taken, err
}

// doubt takes back what a call without an answer may have got, and gives the request another name.
func (b *batch) doubt(it *item) string {
	b.r.doubt(it.t, &state.Op{Rid: it.rid, TTL: b.r.ttl(b.a).Milliseconds()})
	return b.r.rid()
}

// do has the store carry out one operation on each item.
func (b *batch) do(ctx context.Context, part []*item, op func(*item) state.Op, each func(i int, it *item, d *Changed)) {
	if len(part) == 0 {
		return
	}
	r := b.r
	changes := make([]Change, len(part))
	for i, it := range part {
		changes[i] = Change{it.t.id, &state.Call{Lock: it.t.root, Kind: it.t.kind, Proxy: r.name, Ops: []state.Op{op(it)},
			Bound: int64(r.o.Bound), Grace: r.grace(), Most: int64(r.o.MostHeld)}}
	}
	sent := time.Now()
	for i, d := range r.o.Store.Do(ctx, changes) {
		it := part[i]
		if d.Err == nil {
			it.doc = d.Doc
			if v := d.Said[0].Verdict; v == state.Acquired || v == state.Reentered || v == state.Renewed {
				it.sent, it.seen = sent, d.Doc.Seen
			}
			if d.Said[0].Verdict.Positive() {
				r.lapses(d.Doc)
			}
		}
		each(i, it, &d)
	}
}

// wait waits for one lock, and keeps those before it alive.
func (b *batch) wait(ctx context.Context, n int, deadline time.Time) error {
	it, op := b.items[n], b.op(b.items[n])
	left := time.Until(deadline)
	if left <= 0 {
		f := b.r.taken(it.t, &op, it.doc)
		if b.r.patience(b.a) > 0 {
			f.Type, f.Reason = TypeTimeout, "not all locks were to be had in time: "+f.Reason
		}
		return f
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var alive sync.WaitGroup
	alive.Go(func() { b.keep(ctx, cancel, b.items[:n]) })
	o := b.r.wait(ctx, it.t, op, left)
	cancel(nil)
	alive.Wait()
	_, _, err := b.r.acquired(it.t, &op, o, true, b.began)
	if err != nil {
		return err
	}
	it.token, it.mine, it.sent, it.seen, it.doc = o.said.Token, o.said.Verdict == state.Acquired, o.sent, o.doc.Seen, o.doc
	return nil
}

// keep renews leases until ctx ends.
func (b *batch) keep(ctx context.Context, cancel context.CancelCauseFunc, part []*item) {
	every := time.NewTicker(max(b.r.ttl(b.a)/3, time.Millisecond))
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			if err := b.refresh(ctx, part, 0); err != nil {
				cancel(err)
				return
			}
		}
	}
}

// refresh renews the leases of a part if one of them is older than age.
func (b *batch) refresh(ctx context.Context, part []*item, age time.Duration) (err error) {
	if !slices.ContainsFunc(part, func(it *item) bool { return time.Since(it.sent) >= age }) {
		return nil
	}
	b.do(ctx, part, func(it *item) state.Op {
		return state.Op{Do: state.Renew, Owner: b.a.Owner, Token: it.token, Mode: state.Exclusive, Class: b.a.class,
			TTL: b.r.ttl(b.a).Milliseconds()}
	}, func(_ int, it *item, d *Changed) {
		switch {
		case d.Err != nil:
			err = d.Err
		case d.Said[0].Verdict != state.Renewed:
			it.mine, it.token = false, 0
			err = refused(it.t, d.Said[0].Verdict)
		}
	})
	return err
}

// undo gives back what was got before the request failed. Its client may have left: it isn't waited for.
func (b *batch) undo() {
	b.release(b.items)
}

// release gives back what this request has got; what can't be now, the lanes go on with.
func (b *batch) release(part []*item) {
	part = slices.DeleteFunc(slices.Clone(part), func(it *item) bool { return !it.mine })
	r := b.r
	b.do(r.ctx, part, func(it *item) state.Op {
		return state.Op{Do: state.Release, Owner: b.a.Owner, Token: it.token, Mode: state.Exclusive, Class: b.a.class}
	}, func(_ int, it *item, d *Changed) {
		if d.Err != nil {
			it.rid = b.doubt(it)
		}
		it.mine, it.token = false, 0
	})
	r.freed(part)
}

// freed has the lanes of locks that were released past them look who is next.
func (r *Router) freed(part []*item) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, it := range part {
		if l := r.lanes[it.t.id]; l != nil && it.doc != nil && len(l.groups) > 0 && !l.running {
			l.saw(it.doc)
			l.run()
		}
	}
}

// give releases the locks of a request that names them with their tokens.
func (b *batch) give(ctx context.Context) (*Answer, error) {
	released, err := 0, error(nil)
	b.do(ctx, b.items, func(it *item) state.Op {
		return state.Op{Do: state.Release, Owner: b.a.Owner, Token: it.token, Mode: state.Exclusive, Class: b.a.class}
	}, func(_ int, it *item, d *Changed) {
		switch {
		case d.Err != nil:
			err = d.Err
		case d.Said[0].Verdict == state.Released:
			b.r.held.remove(it.token)
			released++
		case err == nil:
			err = refused(it.t, d.Said[0].Verdict)
		}
	})
	b.r.freed(b.items)
	if err != nil {
		return nil, err // those that could be are released all the same; the request can be repeated
	}
	return reply(http.StatusOK, map[string]any{"released": true, "count": released}), nil
}

// extend renews them.
func (b *batch) extend(ctx context.Context) (*Answer, error) {
	if err := b.refresh(ctx, b.items, 0); err != nil {
		return nil, err
	}
	return reply(http.StatusOK, b.told()), nil
}
