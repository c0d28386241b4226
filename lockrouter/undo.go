package lockrouter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"optimist/internal/undo"
	"optimist/lockrouter/state"
)

// Undo keeps the journals of leases with undo: if the holder doesn't release such a lease, its writes are undone. A *undo.Store is one. It
// is safe for concurrent use.
type Undo interface {
	// Open begins one journal for leases that were acquired together. The journal's token is that of the first lease.
	Open(ctx context.Context, leases []undo.Lock) error
	// Begun finds the journals of leases.
	Begun(ctx context.Context, leases []undo.Lock) ([]undo.Begun, error)
	// Settle undoes the writes of earlier leases whose journals are still open: of those leases for which blocks returns true.
	Settle(ctx context.Context, l *undo.Lock, blocks func(token int64, path string) (bool, error)) error
	// Registered returns those of the locks of which earlier leases have left unsettled journals.
	Registered(ctx context.Context, locks []undo.Lock) ([]undo.Lock, error)
	// Commit ends a journal whose writes stay. Rollback undoes the writes of a journal; left counts the documents that it couldn't restore.
	Commit(ctx context.Context, token int64) (had bool, err error)
	Rollback(ctx context.Context, token int64) (left int, err error)
}

// undoer is a leaser that undoes the writes of dead holders before it hands out a lease. It acquires the lease first, so that no other
// client gets the lock while it undoes. If this proxy dies meanwhile, the lease ends, and the proxy that gets the lock next goes on with
// the undo.
type undoer struct{ documents }

// Acquire acquires the lock, undoes what earlier leases have left, and begins a journal if the request asks for one.
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
			u.r.giveBack(ctx, u.documents, &mine)
		}
		return nil, err
	}
	return l, nil
}

// acquire gets a lease for the claim. The owner may still have an old lease whose journal has ended. No write can be made under its token,
// and a second request of the owner would only make that lease longer. So acquire releases the old lease, and gets a new one.
func (u undoer) acquire(ctx context.Context, c *Claim) (*Lease, error) {
	l, err := u.documents.Acquire(ctx, c)
	if err != nil || !l.Reentered {
		return l, err
	}
	old := *c
	old.Token = l.Token
	switch over, err := u.r.over(ctx, []undo.Lock{c.Lock.journal(c.Owner, l.Token)}); {
	case err != nil:
		return nil, err
	case len(over) == 0:
		return l, nil
	}
	if err := u.documents.Release(ctx, &old); err != nil && !isOver(err) {
		return nil, err
	}
	return u.documents.Acquire(ctx, c)
}

// over returns the ids of the lock documents of those leases whose journal has ended.
//
// A lease can outlast its journal in two cases. The journal is of several leases, and another one of them has ended. Or a proxy has died
// after it ended the journal, and before it ended the lease.
func (r *Router) over(ctx context.Context, leases []undo.Lock) (over []string, err error) {
	journals, err := r.o.Undo.Begun(ctx, leases)
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

// ready undoes what earlier leases have left. It renews the lease l while it waits for that. If that took long, it renews the lease once
// more, so that the holder gets its whole time.
func (u undoer) ready(ctx context.Context, c *Claim, l *Lease, began time.Time) error {
	ttl, patience := c.ttl(u.r), max(c.Wait-time.Since(began), u.r.o.Patience)
	settling, stop := context.WithTimeout(ctx, patience)
	defer stop()
	lock := c.Lock.journal(c.Owner, l.Token)
	done := make(chan error, 1)
	go func() { done <- u.r.o.Undo.Settle(settling, &lock, u.r.blocks(settling, c)) }()
	renewal := *c
	renewal.TTL, renewal.Note = ttl, ""
	tick := time.NewTicker(max(ttl/3, time.Millisecond))
	defer tick.Stop()
	took := time.Now()
	for {
		select {
		case <-tick.C:
			if _, err := u.documents.Renew(ctx, &renewal); err != nil {
				return err
			}
			continue
		case err := <-done:
			if err != nil {
				return undoFailure(ctx, c.Lock.t, err)
			}
		}
		break
	}
	if c.undo {
		if err := u.r.o.Undo.Open(ctx, []undo.Lock{lock}); err != nil {
			return undoFailure(ctx, c.Lock.t, err)
		}
	}
	if time.Since(took) < ttl/10 {
		return nil
	}
	sent := time.Now()
	fresh, err := u.documents.Renew(ctx, &renewal)
	if err != nil {
		return err
	}
	ms, again := max(sent.Sub(began).Milliseconds(), 0), l.Reentered
	*l = *fresh
	l.Waited, l.Reentered = &ms, again
	return nil
}

// blocks returns a function that reports whether a lease with a journal excluded the claim, and has ended. The function reads the lock's
// document at its first call.
func (r *Router) blocks(ctx context.Context, c *Claim) func(token int64, path string) (bool, error) {
	read := sync.OnceValues(func() ([]*state.Doc, error) { return r.o.Store.Read(ctx, []string{c.Lock.t.id}) })
	return func(token int64, path string) (bool, error) {
		docs, err := read()
		if err != nil {
			return false, err
		}
		h := state.Hold{Path: path, Mode: state.Exclusive}
		return !docs[0].Has(token) && h.Against(c.Lock.t.path, c.mode), nil
	}
}

// undoFailure is the error that a client gets if a step of the journal fails with err.
func undoFailure(ctx context.Context, t *target, err error) error {
	var f *Failure
	switch {
	case errors.As(err, &f):
		return err
	case gone(ctx) != nil:
		return gone(ctx)
	case errors.Is(err, undo.ErrBusy):
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

// Release commits what was written under the lease, and then ends it.
func (u undoer) Release(ctx context.Context, c *Claim) error {
	committed, err := u.r.commit(ctx, []undo.Lock{c.Lock.journal(c.Owner, c.Token)}, func() error { return u.r.lasts(ctx, c) })
	if errors.Is(err, undo.ErrEnded) {
		_ = u.documents.Release(ctx, c) // the lease protects nothing any more. If this release fails, the lease ends by itself
	}
	if err != nil {
		return undoFailure(ctx, c.Lock.t, err)
	}
	if err := u.documents.Release(ctx, c); err != nil && !(committed && isOver(err)) {
		return err
	}
	return nil // the writes are committed. If the lease has ended since, no other client had the lock before the commit
}

// commit commits the journals of leases. It can be repeated. held returns an error if one of the leases has ended. had is false if the
// leases have no journal. The error is undo.ErrEnded if writes of a journal are undone already, for example because an operator has ended
// the lease.
func (r *Router) commit(ctx context.Context, leases []undo.Lock, held func() error) (had bool, err error) {
	journals, err := r.journals(ctx, leases)
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
		if _, err := r.o.Undo.Commit(ctx, journals[i].Token); err != nil {
			return false, err
		}
	}
	return true, nil
}

// rollback undoes what was written under leases. It can be repeated. It undoes also if a lease has ended, because the next holder's proxy
// would do that anyway. held returns an error if the leases belong to another owner, or have ended. left counts the documents that couldn't
// be restored, for which there are dead letters. The error is errNothingToUndo if the leases have no journal.
func (r *Router) rollback(ctx context.Context, wait time.Duration, leases []undo.Lock, held func() error) (left int, err error) {
	ctx, stop := context.WithTimeout(ctx, max(wait, r.o.Patience))
	defer stop()
	journals, err := r.journals(ctx, leases)
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
		n, err := r.o.Undo.Rollback(ctx, journals[i].Token)
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

// errNothingToUndo refuses a rollback of leases without a journal.
var errNothingToUndo = badRequest("the lock wasn't acquired with undo, or there is no lease of that token, or it ended more than " +
	"a day ago: nothing can be undone")

// journals returns the journals of leases. If an open journal has further leases, the request must name these, too: the writes of a journal
// stay, or are undone, together. Otherwise the error says which lease is missing.
func (r *Router) journals(ctx context.Context, leases []undo.Lock) ([]undo.Begun, error) {
	journals, err := r.o.Undo.Begun(ctx, leases)
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

// lasts returns an error if the lease of a claim has ended.
func (r *Router) lasts(ctx context.Context, c *Claim) error {
	renewal := *c
	renewal.TTL, renewal.Note = 0, ""
	_, err := r.keeper.Renew(ctx, &renewal)
	return err
}

// journal returns the lease of an owner and a token in the form of the journals.
func (l Lock) journal(owner string, token int64) undo.Lock {
	return undo.Lock{Doc: l.t.id, Name: l.Name, Path: l.t.path, Owner: owner, Token: token}
}

// The ends of a lock's path with which a client ends the journal.
var (
	commitWord   = []byte("/_commit")
	rollbackWord = []byte("/_rollback")
)

// cutEnd separates the path of a lock from the word behind it that ends the journal: POST …/_commit, or …/_rollback.
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

// journalEnd is what a request does with the writes of a journal.
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
	c := r.claim(t, p, q.client())
	if end == commits {
		return r.release(ctx, c)
	}
	left, err := r.rollback(ctx, c.Wait, []undo.Lock{c.Lock.journal(c.Owner, c.Token)}, func() error { return r.lasts(ctx, c) })
	if err != nil {
		return nil, undoFailure(ctx, t, err)
	}
	if err := r.own.Release(ctx, c); err != nil && !isOver(err) {
		return nil, err
	}
	return reply(http.StatusOK, map[string]any{"released": true, "undone": true, "left": left}), nil
}

// noUndo is the error for a request with undo if optimist isn't configured for it.
func (r *Router) noUndo() error {
	if r.o.Keeper != nil {
		return r.unable("undo")
	}
	return badRequest("undo needs credentials of its own: set undo.auth (basic_file, api_key_file or bearer_file) in optimist's configuration")
}

// mayUndo returns an error if a request asks for undo and can't have it.
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

// sweeper is the owner of the leases that Recover acquires.
const sweeper = "optimist: undo"

// Recover undoes the writes of a lease that has ended and wasn't released, though no client asks for its lock. It does nothing while the
// lease lasts. It does nothing either while another client has the lock: that client's proxy has undone the writes before.
func (r *Router) Recover(ctx context.Context, name string, token int64) error {
	what, t, err := r.locate([]byte(name))
	if err != nil || what != oneLock {
		return err
	}
	docs, err := r.o.Store.Read(ctx, []string{t.id})
	if err != nil {
		return err
	}
	now := max(r.Now(), time.Now().UnixMilli()) // one of them is late after a suspend, or where the clock was set; the store decides
	if d := docs[0]; d != nil && r.o.Store.Timed() && d.Lasts(token, now) {
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

// JournalOf returns the lock of a path in the form of the journals, without an owner and a token. The error is a *Failure.
func (r *Router) JournalOf(path []byte) (*undo.Lock, error) {
	what, t, err := r.locate(path)
	switch {
	case err != nil:
		return nil, err
	case what != oneLock:
		return nil, r.noLock(path)
	}
	l := t.asLock().journal("", 0)
	return &l, nil
}

// Lasting reports for each lease whether it lasts, by this proxy's clock. Show the result to operators, but decide nothing by it. Errors:
// those of the Store.
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
	now := r.Now()
	for i := range leases {
		d := docs[nth[leases[i].Doc]]
		lasting[i] = d != nil && d.Lasts(leases[i].Token, now)
	}
	return lasting, nil
}
