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
	// Open begins one journal of leases that were acquired together. Its token is the first one's.
	Open(ctx context.Context, leases []undo.Lock) error
	// Begun finds the journals of leases.
	Begun(ctx context.Context, leases []undo.Lock) ([]undo.Begun, error)
	// Settle undoes what leases before have left open, as far as blocks says that they were in the way, and have ended.
	Settle(ctx context.Context, l *undo.Lock, blocks func(token int64, path string) (bool, error)) error
	// Registered are those of the locks that leases before have left journals of.
	Registered(ctx context.Context, locks []undo.Lock) ([]undo.Lock, error)
	// Commit has what was written stay, and Rollback has it undone. left is of how many documents that can't be.
	Commit(ctx context.Context, token int64) (had bool, err error)
	Rollback(ctx context.Context, token int64) (left int, err error)
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
	l, err := u.acquire(ctx, c)
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

// acquire acquires. If the owner still has a lease whose journal has ended, it ends that lease, and acquires another one: no write can be
// made under the token of the old one, and by asking again the owner would only make it longer.
func (u undoer) acquire(ctx context.Context, c *Claim) (*Lease, error) {
	l, err := u.Keeper.Acquire(ctx, c)
	if err != nil || !l.Reentered {
		return l, err
	}
	old := *c
	old.Token = l.Token
	switch over, err := u.over(ctx, []undo.Lock{*c.Lock.journal(c.Owner, l.Token)}); {
	case err != nil:
		return nil, err
	case len(over) == 0:
		return l, nil
	}
	if err := u.Keeper.Release(ctx, &old); err != nil && !isOver(err) {
		return nil, err
	}
	return u.Keeper.Acquire(ctx, c)
}

// over are those of some leases whose journal has ended: the ids of their locks' documents. A lease may outlast its journal, if that is of
// several leases and another one of them has ended, or if a proxy dies between the end of the journal and that of the lease.
func (u undoer) over(ctx context.Context, leases []undo.Lock) (over []string, err error) {
	journals, err := u.r.o.Undo.Begun(ctx, leases)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStore, err)
	}
	for i := range journals {
		if j := &journals[i]; j.Committed || j.Ended {
			over = append(over, j.Asked...)
		}
	}
	return over, nil
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
				return u.failure(ctx, c.Lock.t, err)
			}
		}
		break
	}
	if c.undo {
		if err := u.r.o.Undo.Open(ctx, []undo.Lock{*lock}); err != nil {
			return u.failure(ctx, c.Lock.t, err)
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
func (u undoer) failure(ctx context.Context, t *target, err error) error {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return err
	case gone(ctx) != nil:
		return gone(ctx)
	case errors.Is(err, undo.ErrBusy), errors.Is(err, context.DeadlineExceeded):
		return &Failure{Status: http.StatusConflict, Type: TypeHeld, Reason: "what was written under " + t.lock +
			" is being undone", Retry: time.Second, Detail: map[string]any{"lock": t.lock}}
	case errors.Is(err, undo.ErrEnded), errors.Is(err, undo.ErrCommitted):
		return &Failure{Status: http.StatusGone, Type: TypeExpired, Reason: t.lock + ": " + err.Error(),
			Detail: map[string]any{"undone": errors.Is(err, undo.ErrEnded)}}
	case errors.Is(err, undo.ErrTaken):
		return &Failure{Status: http.StatusConflict, Type: TypeHeld, Reason: err.Error() + ": release the locks that you hold, and ask again",
			Retry: time.Second, Detail: map[string]any{"lock": t.lock}}
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

// giveBack ends a lease that nobody is told of.
func (u undoer) giveBack(ctx context.Context, c *Claim) {
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), u.r.o.Patience)
	defer cancel()
	if err := u.Keeper.Release(back, c); err != nil {
		u.r.o.Log.Warn("a lease couldn't be released: it lasts until it ends, and no client has it", obs.KeyLock, c.Lock.Name,
			obs.KeyError, err)
	}
}

// Release commits what was written under the lease, and then ends it.
func (u undoer) Release(ctx context.Context, c *Claim) error {
	committed, err := u.commit(ctx, []undo.Lock{*c.Lock.journal(c.Owner, c.Token)}, func() error { return u.held(ctx, c) })
	if errors.Is(err, undo.ErrEnded) {
		_ = u.Keeper.Release(ctx, c) // it protects nothing any more. If this fails, it ends by itself
	}
	if err != nil {
		return u.failure(ctx, c.Lock.t, err)
	}
	if err := u.Keeper.Release(ctx, c); err != nil && !(committed && isOver(err)) {
		return err
	}
	return nil // it is committed: if the lease has ended since, nobody else had the lock before
}

// commit commits the journals of leases. It can be repeated. held reports, by an error, that one of the leases has ended. had is false
// where nothing was ever noted. The error is undo.ErrEnded where something is undone already: the operator may have ended the lease.
func (u undoer) commit(ctx context.Context, leases []undo.Lock, held func() error) (had bool, err error) {
	journals, err := u.journals(ctx, leases)
	if err != nil {
		return false, err
	}
	if slices.ContainsFunc(journals, func(j undo.Begun) bool { return j.Ended }) {
		return false, undo.ErrEnded
	}
	had = len(journals) > 0
	journals = slices.DeleteFunc(journals, func(j undo.Begun) bool { return j.Committed })
	if len(journals) == 0 {
		return had, nil
	}
	if err := held(); err != nil {
		return false, err
	}
	for i := range journals {
		if _, err := u.r.o.Undo.Commit(ctx, journals[i].Token); err != nil {
			return false, err
		}
	}
	return true, nil
}

// rollback undoes what was written under leases. It can be repeated, and does the same where a lease has ended: whoever gets the lock next
// would do it. held reports, by an error, that the leases are another owner's, or have ended. left is of how many documents a dead letter
// holds what couldn't be undone. The error is errNothingToUndo where nothing was ever noted.
func (u undoer) rollback(ctx context.Context, wait time.Duration, leases []undo.Lock, held func() error) (left int, err error) {
	ctx, stop := context.WithTimeout(ctx, max(wait, u.r.o.Patience))
	defer stop()
	journals, err := u.journals(ctx, leases)
	switch {
	case err != nil:
		return 0, err
	case len(journals) == 0:
		return 0, errNothingToUndo
	}
	if err := held(); err != nil && !isOver(err) {
		return 0, err
	}
	for i := range journals {
		n, err := u.r.o.Undo.Rollback(ctx, journals[i].Token)
		if err != nil {
			return 0, err
		}
		left += n
	}
	return left, nil
}

// isOver reports whether an error says that a lease has ended.
func isOver(err error) bool {
	var f *Failure
	return errors.As(err, &f) && (f.Type == TypeExpired || f.Type == TypeMissing)
}

// errNothingToUndo refuses a rollback of what was never noted.
var errNothingToUndo = badRequest("the lock wasn't acquired with undo, or there is no lease of that token, or it ended more than " +
	"a day ago: nothing can be undone")

// journals are those of leases. A journal of several leases that is open can't be ended for some of them: that is refused.
func (u undoer) journals(ctx context.Context, leases []undo.Lock) ([]undo.Begun, error) {
	journals, err := u.r.o.Undo.Begun(ctx, leases)
	if err != nil {
		return nil, err
	}
	for i := range journals {
		if j := &journals[i]; !j.Committed && !j.Ended && len(j.Missing) > 0 {
			return nil, badRequest(fmt.Sprintf("this lock was acquired with undo, together with others. The writes under them "+
				"stay, or are undone, together. Release all %d at once: DELETE /{index}/_lock/docs, or POST /{index}/_lock/docs/_rollback, "+
				"with the answer that named them. %s is missing", j.Of, j.Missing[0]))
		}
	}
	return journals, nil
}

// held reports, by an error, that the lease of a claim has ended.
func (u undoer) held(ctx context.Context, c *Claim) error {
	renewal := *c
	renewal.TTL, renewal.Note = 0, ""
	_, err := u.Keeper.Renew(ctx, &renewal)
	return err
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

// cutEnd cuts the word off a path that ends a journal: POST …/_commit, or …/_rollback.
func cutEnd(q *Request) (path []byte, end journalEnd) {
	if q.Method != http.MethodPost {
		return q.Path, noEnd
	}
	if path, ok := bytes.CutSuffix(q.Path, commitWord); ok {
		return path, commits
	}
	if path, ok := bytes.CutSuffix(q.Path, rollbackWord); ok {
		return path, rollsBack
	}
	return q.Path, noEnd
}

// journalEnd is what a request says is to become of what was written.
type journalEnd int

const (
	noEnd journalEnd = iota
	commits
	rollsBack
)

// finishJournal answers POST /_lock/{…}/_commit and …/_rollback.
func (r *Router) finishJournal(ctx context.Context, q *Request, t *target, end journalEnd) (*Answer, error) {
	p, err := r.parse(q)
	switch {
	case err != nil:
		return nil, err
	case p.Owner == "":
		return nil, badRequest("owner is missing: name it in the body, or as ?owner=")
	}
	if t, err = r.resource(t, p); err != nil {
		return nil, err
	}
	c := r.claim(t, p, q.Client)
	if end == commits {
		return r.release(ctx, c)
	}
	u, ok := r.keeper.(undoer)
	if !ok {
		return nil, r.noUndo()
	}
	left, err := u.rollback(ctx, c.Wait, []undo.Lock{*c.Lock.journal(c.Owner, c.Token)}, func() error { return u.held(ctx, c) })
	if err != nil {
		return nil, u.failure(ctx, t, err)
	}
	if err := u.Keeper.Release(ctx, c); err != nil && !isOver(err) {
		return nil, err
	}
	return reply(http.StatusOK, map[string]any{"released": true, "undone": true, "left": left}), nil
}

// noUndo refuses undo where it can't be had.
func (r *Router) noUndo() error {
	if r.o.Keeper != nil {
		return r.unable("undo")
	}
	return badRequest("undo needs credentials of its own: set undo.auth (basic_file, api_key_file or bearer_file) in optimist's configuration")
}

// mayUndo refuses undo where it makes no sense.
func (r *Router) mayUndo(a *parameters) error {
	switch {
	case !a.Undo:
		return nil
	case r.o.Undo == nil:
		return r.noUndo()
	case a.mode == state.Shared:
		return badRequest("undo is for exclusive locks: several readers at once have nothing to undo")
	}
	return nil
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
	c := &Claim{Lock: t.asLock(), Owner: sweeper, Note: "undoes what a dead holder had half done", Class: state.Background, TTL: r.o.TTL,
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
	l := t.asLock()
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
