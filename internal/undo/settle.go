package undo

import (
	"context"
	"errors"
	"slices"

	"optimist/internal/doc"
	"optimist/internal/timer"
)

// Lock is one lease: of which lock's document, with which token.
type Lock struct {
	Doc   string `json:"doc"`  // the id of the lock's document
	Name  string `json:"lock"` // the lock as users name it
	Path  string `json:"-"`    // within a tree, else empty
	Owner string `json:"-"`
	Token int64  `json:"token"`
}

// lease is the lock as lists of leases have it.
func (l Lock) lease() Lock { return Lock{Doc: l.Doc, Name: l.Name, Token: l.Token} }

// tries is the number of tries to write a record that other proxies write at the same time.
const tries = 20

// Open begins one journal for leases that were acquired together. Call it before the holder learns of its leases. The journal's token is
// the token of the first lease. Writes under any of the tokens are noted in this journal. Open can be repeated. Errors: ErrEnded or
// ErrCommitted, if another process has settled the journal already; ErrTaken; and ErrStore.
func (s *Store) Open(ctx context.Context, leases []Lock) error {
	if err := s.own.Prepare(ctx); err != nil {
		return err
	}
	if err := s.changeRegisters(ctx, leases, func(r *register, l *Lock) bool {
		if slices.ContainsFunc(r.Open, func(b begun) bool { return b.Token == l.Token }) {
			return false
		}
		r.Open = append(r.Open, begun{l.Token, l.Path})
		return true
	}); err != nil {
		return err
	}
	if err := s.fault("open"); err != nil {
		return err
	}
	l := &leases[0]
	h := &head{Kind: kindHead, State: isOpen, Token: l.Token, Doc: l.Doc, Lock: l.Name, Path: l.Path, Owner: l.Owner,
		Began: s.o.Now().UnixMilli()}
	if len(leases) > 1 {
		h.Leases = len(leases)
		if err := s.openMembers(ctx, h, leases); err != nil {
			return err
		}
	}
	_, ok, err := s.put(ctx, headID(l.Token), h, doc.Numbers{})
	if err != nil || ok {
		return err
	}
	now, of, _, err := s.headOf(ctx, l.Token)
	switch {
	case err != nil:
		return err
	case now == nil:
		return ErrStore
	case now.State == committed:
		return ErrCommitted
	case now.State != isOpen:
		return ErrEnded
	case len(leases) > 1 && (of != l.Token || now.Leases != len(leases)): // openMembers has checked that the lists name these leases
		return ErrTaken
	}
	// A single lease may be one of several that were acquired together before: then it has their journal.
	if is, err := s.isOf(ctx, now, l); err != nil || is {
		return err
	}
	return ErrTaken
}

// Settle undoes the writes under earlier leases of the same lock document, and ends their journals. It does so for those leases of which
// blocks says that they excluded this one. When it returns without an error, their writes are undone. Only then may the holder learn of its
// lease. If another proxy undoes the writes, Settle waits for it until ctx ends. Errors: ErrBusy, ErrStore, and ctx's cause. The rollback
// may go on after an error.
func (s *Store) Settle(ctx context.Context, l *Lock, blocks func(token int64, path string) (bool, error)) error {
	if err := s.own.Prepare(ctx); err != nil {
		return err
	}
	r, err := s.register(ctx, l.Doc)
	if err != nil {
		return err
	}
	for _, b := range slices.Clone(r.Open) {
		if b.Token == l.Token {
			continue
		}
		switch blocked, err := blocks(b.Token, b.Path); {
		case err != nil:
			return err
		case !blocked:
			continue
		}
		if err := s.settle(ctx, &Lock{Doc: l.Doc, Path: b.Path, Token: b.Token}); err != nil {
			return err
		}
	}
	return nil
}

// settle ends the journal of a lease that is on a register, and takes it off the register.
func (s *Store) settle(ctx context.Context, l *Lock) error {
	for {
		h, of, m, err := s.headOf(ctx, l.Token)
		if err == nil && h == nil {
			if h, err = s.forbid(ctx, of, m, l); err == nil && h == nil {
				continue
			}
		}
		if err != nil {
			return err
		}
		is, err := s.isOf(ctx, h, l)
		switch {
		case err != nil:
			return err
		case !is: // by chance, another lock got the same token, and began a journal under it. So this lock's journal was never begun
			return s.unregister(ctx, []Lock{*l})
		case h.State == isOpen, h.State == rolling:
			err = s.rollBack(ctx, of)
		}
		switch {
		case err == nil, errors.Is(err, ErrCommitted):
			if h.Leases > 1 {
				s.unregisterAll(ctx, h)
			}
			return s.unregister(ctx, []Lock{*l})
		case !errors.Is(err, ErrBusy):
			return err
		}
		if timer.Sleep(ctx, s.o.Poll) != nil {
			return ErrBusy
		}
	}
}

// forbid prevents a registered journal from being begun: another proxy may be about to begin it. m is a member of the journal, if one is
// known. h is nil if the journal was begun meanwhile.
func (s *Store) forbid(ctx context.Context, token int64, m *head, l *Lock) (h *head, err error) {
	h = &head{Kind: kindHead, State: undone, Token: token, Doc: l.Doc, Path: l.Path, Until: s.o.Now().Add(s.o.KeepPages).UnixMilli()}
	if m != nil {
		h.Leases = m.Leases
	}
	if _, ok, err := s.put(ctx, headID(token), h, doc.Numbers{}); err != nil || !ok {
		return nil, err
	}
	return h, nil
}

// Commit ends a journal whose writes shall stay, because the holder is about to release the lock. had is false if the token has no journal.
// Commit can be repeated. Errors: ErrEnded, if the writes are undone, or about to be; ErrStore, and then the writes may be committed or
// not.
func (s *Store) Commit(ctx context.Context, token int64) (had bool, err error) {
	for range tries {
		h, err := s.head(ctx, token)
		switch {
		case err != nil || h == nil:
			return false, err
		case h.State == committed:
			return true, s.tidy(ctx, h)
		case h.State != isOpen:
			return true, ErrEnded
		}
		pages, err := s.fence(ctx, token)
		if err != nil {
			return true, err
		}
		h.State, h.Claim, h.Pages, h.Until = committed, s.self, len(pages)+1, s.o.Now().Add(s.o.KeepPages).UnixMilli()
		if err := s.fault("commit"); err != nil {
			return true, err
		}
		switch err := s.putHead(ctx, h); {
		case errors.Is(err, errLost):
			continue
		case err != nil:
			return true, err
		}
		s.o.Events.Ended.Call("committed")
		return true, s.tidy(ctx, h)
	}
	return true, ErrStore
}

// tidy forgets a committed journal, and takes it off its registers.
func (s *Store) tidy(ctx context.Context, h *head) error {
	s.forget(h.Token)
	if err := s.fault("tidy"); err != nil {
		return err
	}
	s.unregisterAll(ctx, h)
	return nil
}

// Rollback undoes the writes under a lease, because the holder asks for it. It waits for another proxy as Settle does. It can be repeated.
// left is the number of documents that it couldn't restore: each has a dead letter. Errors: ErrCommitted, ErrBusy, ErrStore.
func (s *Store) Rollback(ctx context.Context, token int64) (left int, err error) {
	h, err := s.head(ctx, token)
	switch {
	case err != nil || h == nil:
		return 0, err
	case h.State == committed:
		return 0, ErrCommitted
	}
	lock := h.lock()
	if err := s.settle(ctx, &lock); err != nil {
		return 0, err
	}
	switch h, err = s.head(ctx, token); {
	case err != nil || h == nil:
		return 0, err
	case h.State == committed: // by another proxy, at the same moment
		return 0, ErrCommitted
	}
	return len(h.Left), nil
}
