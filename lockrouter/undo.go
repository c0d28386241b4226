package lockrouter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"optimist/internal/obs"
	"optimist/internal/undo"
	"optimist/lockrouter/state"
)

// Undo keeps the journals of leases whose writes are undone if they aren't released; a *undo.Store does. It is safe for concurrent use.
type Undo interface {
	// Open begins the journal of a lease.
	Open(ctx context.Context, l *undo.Lock) error
	// Find gives the lock of a token's journal, and whether writes are still noted; nil if there is none.
	Find(ctx context.Context, token int64) (l *undo.Lock, open bool, err error)
	// Settle undoes what leases before have left open, as far as blocks says that they were in the way, and have ended.
	Settle(ctx context.Context, l *undo.Lock, blocks func(token int64, path string) (bool, error)) error
	// Registered are those of the locks' documents whose leases have journals.
	Registered(ctx context.Context, docs []string) ([]string, error)
	// Commit has what was written stay, and Rollback has it undone.
	Commit(ctx context.Context, token int64) (had bool, err error)
	Rollback(ctx context.Context, token int64) (had bool, err error)
}

// undoer is a Keeper that gives out a lease only when nothing is left of leases before it whose writes are to be undone. The lease itself
// keeps others out meanwhile: if this proxy dies, it lapses, and whoever gets the lock then goes on.
type undoer struct {
	Keeper
	r *Router
}

// Acquire settles what was left, and begins a journal if the request asks for one.
func (u undoer) Acquire(ctx context.Context, c *Claim) (*Lease, error) {
	began := time.Now()
	l, err := u.Keeper.Acquire(ctx, c)
	if err != nil {
		return nil, err
	}
	mine := *c
	mine.Token = l.Token
	if err := u.ready(ctx, &mine, l, began); err != nil {
		if !l.Reentered {
			u.giveBack(ctx, &mine)
		}
		return nil, err
	}
	return l, nil
}

// ready settles what was left. It renews the lease meanwhile, and for its holder afterwards.
func (u undoer) ready(ctx context.Context, c *Claim, l *Lease, began time.Time) error {
	ttl, patience := c.ttl(u.r), max(c.Wait-time.Since(began), u.r.o.Patience)
	settling, stop := context.WithTimeout(ctx, patience)
	defer stop()
	lock := c.Lock.journal(c.Owner, l.Token)
	done := make(chan error, 1)
	go func() { done <- u.r.o.Undo.Settle(settling, lock, u.blocks(settling, c)) }()
	renewal := *c
	renewal.TTL, renewal.Note = ttl, ""
	tick := time.NewTicker(max(ttl/3, time.Millisecond))
	defer tick.Stop()
	took := time.Now()
	for {
		select {
		case <-tick.C:
			if _, err := u.Keeper.Renew(ctx, &renewal); err != nil {
				return err
			}
			continue
		case err := <-done:
			if err != nil {
				return u.failure(ctx, c, err)
			}
		}
		break
	}
	if c.undo {
		if err := u.r.o.Undo.Open(ctx, lock); err != nil {
			return u.failure(ctx, c, err)
		}
	}
	if time.Since(took) < ttl/10 {
		return nil
	}
	sent := time.Now()
	fresh, err := u.Keeper.Renew(ctx, &renewal)
	if err != nil {
		return err
	}
	ms, again := max(sent.Sub(began).Milliseconds(), 0), l.Reentered
	*l = *fresh
	l.Waited, l.Reentered = &ms, again
	return nil
}

// blocks tells whether a journal's lease was in the way of a claim, and has ended. The lock's document is read for it once, if ever.
func (u undoer) blocks(ctx context.Context, c *Claim) func(token int64, path string) (bool, error) {
	var d *state.Doc
	read := false
	return func(token int64, path string) (bool, error) {
		if !read {
			docs, err := u.r.o.Store.Read(ctx, []string{c.Lock.t.id})
			if err != nil {
				return false, err
			}
			d, read = docs[0], true
		}
		h := state.Hold{Path: path, Mode: state.Exclusive}
		return !d.Has(token) && h.Against(c.Lock.t.path, c.mode), nil
	}
}

// failure is what a client is told for whom the lock couldn't be made ready.
func (u undoer) failure(ctx context.Context, c *Claim, err error) error {
	switch {
	case gone(ctx) != nil:
		return gone(ctx)
	case errors.Is(err, undo.ErrBusy), errors.Is(err, context.DeadlineExceeded):
		return &Failure{Status: http.StatusConflict, Type: TypeHeld, Reason: "what an earlier holder of " + c.Lock.Name +
			" had half done is being undone", Retry: time.Second, Detail: map[string]any{"lock": c.Lock.Name}}
	case errors.Is(err, undo.ErrEnded):
		return refusal(c.Lock.t, state.Expired)
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

// giveBack ends a lease that nobody is told of.
func (u undoer) giveBack(ctx context.Context, c *Claim) {
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.r.o.Patience)
	defer cancel()
	if err := u.Keeper.Release(back, c); err != nil {
		u.r.o.Log.Warn("a lease that nobody is told of lasts until it ends: it couldn't be released", obs.KeyLock, c.Lock.Name,
			obs.KeyError, err)
	}
}

// Release commits what was written under the lease, and then ends it.
func (u undoer) Release(ctx context.Context, c *Claim) error {
	found, open, err := u.r.o.Undo.Find(ctx, c.Token)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrStore, err)
	case found == nil || found.Name != c.Lock.Name || !open:
		return u.Keeper.Release(ctx, c)
	}
	if err := u.held(ctx, c); err != nil {
		return err
	}
	if _, err := u.r.o.Undo.Commit(ctx, c.Token); err != nil {
		return u.failure(ctx, c, err)
	}
	var f *Failure
	if err := u.Keeper.Release(ctx, c); err != nil && !(errors.As(err, &f) && f.Type == TypeExpired) {
		return err
	}
	return nil // it is committed: if the lease has ended since, nobody else had the lock before
}

// held reports, by an error, that the lease of a claim has ended.
func (u undoer) held(ctx context.Context, c *Claim) error {
	renewal := *c
	renewal.TTL, renewal.Note = 0, ""
	_, err := u.Keeper.Renew(ctx, &renewal)
	return err
}

// rollback undoes what was written under the lease, and then ends it.
func (u undoer) rollback(ctx context.Context, c *Claim) error {
	found, _, err := u.r.o.Undo.Find(ctx, c.Token)
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrStore, err)
	case found == nil || found.Name != c.Lock.Name:
		return badRequest("the lock wasn't acquired with undo, or there is no lease of that token: nothing can be undone")
	}
	if err := u.held(ctx, c); err != nil {
		return err
	}
	undoing, stop := context.WithTimeout(ctx, max(c.Wait, u.r.o.Patience))
	defer stop()
	switch _, err := u.r.o.Undo.Rollback(undoing, c.Token); {
	case errors.Is(err, undo.ErrCommitted):
		return refusal(c.Lock.t, state.Expired)
	case err != nil:
		return u.failure(ctx, c, err)
	}
	return u.Keeper.Release(ctx, c)
}

// journal is the lock as journals name it.
func (l *Lock) journal(owner string, token int64) *undo.Lock {
	return &undo.Lock{Doc: l.t.id, Name: l.Name, Path: l.t.path, Owner: owner, Token: token}
}

// The words at the end of a lock's path that end its journal.
var (
	commitWord   = []byte("/_commit")
	rollbackWord = []byte("/_rollback")
)

// finish answers POST /_lock/{…}/_commit and …/_rollback. done is false for other requests.
func (r *Router) finishJournal(ctx context.Context, q *Request) (a *Answer, done bool, err error) {
	if q.Method != http.MethodPost {
		return nil, false, nil
	}
	path, commits := bytes.CutSuffix(q.Path, commitWord)
	if !commits {
		var undoes bool
		if path, undoes = bytes.CutSuffix(q.Path, rollbackWord); !undoes {
			return nil, false, nil
		}
	}
	what, t, _, err := r.locate(path)
	switch {
	case err != nil || what != oneLock:
		return nil, false, nil
	case r.o.Undo == nil:
		return nil, true, r.noUndo()
	}
	p, err := r.parse(q)
	switch {
	case err != nil:
		return nil, true, err
	case p.Owner == "":
		return nil, true, badRequest("owner is missing: say who asks, in the body or as ?owner=")
	}
	c := r.claim(t, p, q.Client)
	if commits {
		a, err = r.release(ctx, c)
		return a, true, err
	}
	if err := r.keeper.(undoer).rollback(ctx, c); err != nil { //nolint:forcetypeassert // it is one where there is Undo
		return nil, true, err
	}
	return reply(http.StatusOK, map[string]any{"released": true, "undone": true}), true, nil
}

// noUndo refuses undo where it can't be had.
func (r *Router) noUndo() error {
	if r.o.Keeper != nil {
		return r.unable("undo")
	}
	return badRequest("undo needs credentials of its own: set undo.auth (basic_file, api_key_file or bearer_file) in optimist's configuration")
}

// mayUndo refuses undo where it makes no sense.
func (r *Router) mayUndo(t *target, a *parameters) error {
	switch {
	case !a.Undo:
		return nil
	case r.o.Undo == nil:
		return r.noUndo()
	case a.mode == state.Shared:
		return badRequest("undo is for exclusive locks: several readers at once have nothing to undo")
	case t == nil:
		return badRequest("undo is for one lock: lock a tree, or a name, for several documents; its token is good for writes to any of them")
	}
	return nil
}

// settleAll settles what was left by leases on the locks of several documents.
func (b *batch) settleAll(ctx context.Context) error {
	u, ok := b.r.keeper.(undoer)
	if !ok {
		return nil
	}
	ids := make([]string, len(b.items))
	for i, it := range b.items {
		ids[i] = it.t.id
	}
	left, err := b.r.o.Undo.Registered(ctx, ids)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStore, err)
	}
	for _, it := range b.items {
		if !slices.Contains(left, it.t.id) {
			continue
		}
		c := &Claim{Lock: it.t.shown(), Owner: b.a.Owner, Wait: b.r.patience(b.a), mode: state.Exclusive}
		settling, stop := context.WithTimeout(ctx, max(c.Wait, b.r.o.Patience))
		err := b.r.o.Undo.Settle(settling, c.Lock.journal(b.a.Owner, it.token), func(token int64, _ string) (bool, error) {
			return token != it.token, nil
		})
		stop()
		if err != nil {
			return u.failure(ctx, c, err)
		}
	}
	return b.refresh(b.items, 10)
}

// sweeper is the owner of leases that are taken for a rollback for which nobody waits.
const sweeper = "optimist: undo"

// Recover undoes what a lease of that lock has left, if it has ended unreleased. It does nothing while the lease lasts, or while somebody
// else has the lock: whoever got it has settled it before.
func (r *Router) Recover(ctx context.Context, name string, token int64) error {
	what, t, _, err := r.locate([]byte(name))
	if err != nil || what != oneLock {
		return err
	}
	docs, err := r.o.Store.Read(ctx, []string{t.id})
	if err != nil {
		return err
	}
	if d := docs[0]; d != nil && r.o.Store.Timed() && d.Lasts(token, r.clockNow()) {
		return nil
	}
	c := &Claim{Lock: t.shown(), Owner: sweeper, Note: "undoes what a dead holder had half done", Class: state.Background, TTL: r.o.TTL,
		mode: state.Exclusive}
	l, err := r.keeper.Acquire(ctx, c)
	var f *Failure
	switch {
	case errors.As(err, &f) && f.Type == TypeHeld:
		return nil
	case err != nil:
		return err
	}
	c.Token = l.Token
	return r.keeper.Release(ctx, c)
}

// JournalOf is the lock of a path as journals name it, without an owner and a token. The error is a *Failure.
func (r *Router) JournalOf(path []byte) (*undo.Lock, error) {
	what, t, _, err := r.locate(path)
	switch {
	case err != nil:
		return nil, err
	case what != oneLock:
		return nil, r.noLock(path)
	}
	l := t.shown()
	return l.journal("", 0), nil
}

// Lasting tells of each lease whether it lasts, as far as is known here: it is for telling, not for deciding. Errors: those of the Store.
func (r *Router) Lasting(ctx context.Context, leases []undo.Lock) ([]bool, error) {
	var ids []string
	nth := map[string]int{}
	for i := range leases {
		if _, known := nth[leases[i].Doc]; !known {
			nth[leases[i].Doc] = len(ids)
			ids = append(ids, leases[i].Doc)
		}
	}
	lasting := make([]bool, len(leases))
	if len(ids) == 0 {
		return lasting, nil
	}
	docs, err := r.o.Store.Read(ctx, ids)
	if err != nil {
		return nil, err
	}
	now := r.clockNow()
	for i := range leases {
		d := docs[nth[leases[i].Doc]]
		lasting[i] = d != nil && d.Lasts(leases[i].Token, now)
	}
	return lasting, nil
}
