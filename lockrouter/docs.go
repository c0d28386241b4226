package lockrouter

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"optimist/internal/budget"
	"optimist/internal/undo"
	"optimist/lockrouter/state"
)

// maxDocs is how many documents one request may lock.
const maxDocs = 10_000

// chunk is how many are tried for at once: what is got out of turn is given back, and has kept others out for that long.
const chunk = 250

// docsParameters is a request for the locks of several documents. What is answered to one can be sent back to renew or release it.
type docsParameters struct {
	parameters
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

// batch is one request for the locks of several documents. It gets all of them or none.
type batch struct {
	r      *Router
	a      *parameters
	client string // see Request.client
	index  string
	began  time.Time
	items  []*item // sorted, so that no two requests wait for each other
}

// item is one document of a batch, with its lock.
type item struct {
	id    string
	t     *target
	rid   string
	token int64
	mine  bool          // this request acquired the lock; its owner didn't hold it before
	sent  time.Time     // when the call was sent by which the lease began
	seen  int64         // that moment by the document's clock
	ttl   time.Duration // the length of the lease, from that moment on
	doc   *state.Doc    // as the last call has found it, where that is of use: not if the lock was acquired
}

// docs answers what is asked of the locks of several documents. end says what is to become of what was written under them.
func (r *Router) docs(ctx context.Context, q *Request, t *target, end journalEnd) (*Answer, error) {
	var want docsParameters
	if err := budget.Of(ctx).Take(readBytes * int64(bytes.Count(q.Body, []byte(",")))); err != nil {
		return nil, err
	}
	switch err := r.read(q, &want, &want.parameters); {
	case err != nil:
		return nil, err
	case want.Owner == "":
		return nil, badRequest("owner is missing")
	case want.mode == state.Shared:
		return nil, badRequest("only locks of a tree can be shared")
	case len(want.Resource) > 0:
		return nil, badRequest(onlyGlobal)
	}
	b := &batch{r: r, a: &want.parameters, client: q.client(), index: t.index, began: time.Now()}
	if q.Method == http.MethodPost && end == noEnd {
		if err := r.mayUndo(b.a); err != nil {
			return nil, err
		}
		return b.acquireAll(ctx, q, t.gate, &want)
	}
	if q.Method == http.MethodPut && !want.renew {
		return nil, badRequest("the locks of several documents are acquired with POST; PUT renews them, with ?renew")
	}
	if want.Locks == nil || len(want.Locks) > maxDocs {
		return nil, badRequest(fmt.Sprintf(`locks are missing, or more than %d: {"locks":[{"id":…,"token":…}]}, as they were answered`, maxDocs))
	}
	for i := range want.Locks {
		l := &want.Locks[i]
		if err := b.add(ctx, &item{id: l.ID, token: l.Token}); err != nil {
			return nil, err
		}
	}
	b.sort()
	switch {
	case len(b.items) == 0:
		return b.nothing(q.Method, end), nil
	case q.Method == http.MethodPut:
		return b.extend(ctx)
	case end == rollsBack:
		return b.rollback(ctx)
	}
	return b.give(ctx)
}

// nothing is the answer about the locks of a query that found no document: there is nothing to renew, to release, or to undo.
func (b *batch) nothing(method string, end journalEnd) *Answer {
	switch {
	case method == http.MethodPut:
		return reply(http.StatusOK, b.answer())
	case end == rollsBack:
		return reply(http.StatusOK, map[string]any{"released": true, "undone": true, "left": 0, "count": 0})
	}
	return reply(http.StatusOK, map[string]any{"released": true, "count": 0})
}

// ids are the documents that a request names, or that its query finds as of now.
func (b *batch) ids(ctx context.Context, q *Request, want *docsParameters) error {
	ids := want.IDs
	switch {
	case (len(ids) > 0) == (len(want.Query) > 0):
		return badRequest("say either ids or a query")
	case len(want.Query) > 0 && b.r.o.Search == nil:
		return badRequest("documents can't be locked by a query here")
	case len(want.Query) > 0:
		var err error
		if ids, err = b.r.o.Search(ctx, q, b.index, want.Query, maxDocs+1); err != nil {
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
		if err := text("an id", id); err != nil {
			return err
		}
		if err := b.add(ctx, &item{id: id, rid: b.r.Rid()}); err != nil {
			return err
		}
	}
	want.IDs = nil // the request may wait for long
	b.sort()
	return nil
}

// What a request for the locks of several documents takes from the memory for all requests, before it holds it. Nobody has checked its
// client's credentials yet, and it may wait for long.
const (
	readBytes = 100 // for each comma of the body: its values, while they are read
	itemBytes = 400 // for each document, beside its names
)

// add adds a document. Its lock has the names of the index and of the document five times, where they are longest.
func (b *batch) add(ctx context.Context, it *item) error {
	if err := budget.Of(ctx).Take(itemBytes + 5*int64(len(b.index)+len(it.id))); err != nil {
		return err
	}
	it.t = b.r.docOf(b.index, it.id)
	b.items = append(b.items, it)
	return nil
}

func (b *batch) sort() {
	slices.SortFunc(b.items, func(x, y *item) int { return strings.Compare(x.id, y.id) })
	b.items = slices.CompactFunc(b.items, func(x, y *item) bool { return x.id == y.id })
}

// acquireAll gets all locks or none.
func (b *batch) acquireAll(ctx context.Context, q *Request, gate string, want *docsParameters) (*Answer, error) {
	if err := b.ids(ctx, q, want); err != nil {
		return nil, err
	}
	if len(b.items) == 0 {
		b.r.countRequest(b.a.class, ending(&Lease{}, nil), b.began)
		return reply(http.StatusCreated, b.answer()), nil
	}
	b.r.past.Add(1)
	defer b.r.past.Add(-1)
	err := b.r.prepare(ctx, gate)
	if err == nil {
		err = b.acquireSettled(ctx)
	}
	for waited := true; err == nil && waited; {
		if waited, err = b.r.confirm(ctx, gate); err == nil && waited {
			err = b.refresh(b.items, 10)
		}
	}
	if err == nil && b.a.Fence != "" {
		err = b.touch(ctx, q)
	}
	if err == nil && b.a.Undo {
		err = b.openJournal(ctx)
	}
	if why := gone(ctx); why != nil {
		err = why
	}
	b.r.countRequest(b.a.class, ending(&Lease{}, err), b.began)
	if err != nil {
		b.release(b.items)
		return nil, err
	}
	for _, it := range b.items {
		b.r.held.add(it.t.root, it.token, it.sent.Add(it.ttl))
	}
	return reply(http.StatusCreated, b.answer()), nil
}

// touch has the locked documents touched, and keeps the leases alive.
func (b *batch) touch(ctx context.Context, q *Request) error {
	if b.r.o.Touch == nil {
		return badRequest("documents can't be touched here")
	}
	for part := range slices.Chunk(b.items, chunk) {
		ids := make([]string, len(part))
		for i, it := range part {
			ids[i] = it.id
		}
		if err := b.r.o.Touch(ctx, q, b.index, ids); err != nil {
			return err
		}
		if err := b.refresh(b.items, 3); err != nil {
			return err
		}
	}
	return nil
}

// answer is the answer: the earliest of all leases counts.
func (b *batch) answer() map[string]any {
	locks := make([]map[string]any, len(b.items))
	sent, seen, ttl := time.Now(), b.r.Now(), b.r.ttl(b.a)
	for i, it := range b.items {
		locks[i] = map[string]any{"id": it.id, "lock": it.t.lock, "token": it.token}
		if i == 0 || it.sent.Before(sent) {
			sent = it.sent
		}
		if i == 0 || it.seen < seen {
			seen = it.seen
		}
	}
	for i, it := range b.items {
		if left := it.sent.Add(it.ttl).Sub(sent); i == 0 || left < ttl {
			ttl = left
		}
	}
	ms := max(ttl.Milliseconds(), 0)
	return map[string]any{"owner": b.a.Owner, "acquired_at": instant(seen), "expires_at": instant(seen + ms), "expires_in_ms": ms,
		"waited_ms": max(sent.Sub(b.began).Milliseconds(), 0), "note": b.a.Note, "locks": locks}
}

// give releases the locks of a request that names them with their tokens. What was written under them stays.
func (b *batch) give(ctx context.Context) (*Answer, error) {
	committed, err := b.commit(ctx)
	if errors.Is(err, undo.ErrEnded) {
		_, _ = b.end(func(state.Verdict) bool { return true }) // they protect nothing any more
	}
	if err != nil {
		return nil, undoFailure(ctx, b.items[0].t, err)
	}
	// What is committed stays: if a lease has ended since, nobody else had the lock before.
	released, err := b.end(func(v state.Verdict) bool { return v == state.Released || committed && v.Ended() })
	if err != nil {
		return nil, err // those that could be are released all the same; the request can be repeated
	}
	return reply(http.StatusOK, map[string]any{"released": true, "count": released}), nil
}

// end releases the locks. ended says which verdicts mean that a lease is over, as it is to be.
func (b *batch) end(ended func(state.Verdict) bool) (released int, err error) {
	b.do(b.items, func(it *item) state.Op {
		return state.Op{Do: state.Release, Owner: b.a.Owner, Token: it.token, Mode: state.Exclusive, Class: b.a.class}
	}, func(_ int, it *item, d *Changed) {
		switch {
		case d.Err != nil:
			err = d.Err
		case ended(d.Results[0].Verdict):
			b.r.held.remove(it.t.root, it.token)
			released++
		case err == nil:
			err = Refuse(it.t.asLock(), d.Results[0].Verdict)
		}
	})
	b.r.runLanes(b.items)
	return released, err
}

// extend renews them: for as long as the request says, or else for as long as each was.
func (b *batch) extend(ctx context.Context) (*Answer, error) {
	if err := b.renew(b.items, b.a.ttl); err != nil {
		return nil, err
	}
	if _, err := b.r.confirm(ctx, b.items[0].t.gate); err != nil {
		return nil, err
	}
	for _, it := range b.items {
		b.r.held.add(it.t.root, it.token, it.sent.Add(it.ttl))
	}
	return reply(http.StatusOK, b.answer()), nil
}
