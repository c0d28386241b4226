package undo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"optimist/internal/chore"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/obs"
)

// Lock is one lease: of which lock's document, with which token.
type Lock struct {
	Doc   string // the id of the lock's document
	Name  string // the lock as users name it
	Path  string // within a tree, else empty
	Owner string
	Token int64
}

// tries is how often a record is written that others write at the same time.
const tries = 20

// Open begins the journal of a lease, before its holder knows of it. It can be repeated. Errors: ErrEnded, if the lease's journal was
// settled by somebody already, and ErrStore.
func (s *Store) Open(ctx context.Context, l *Lock) error {
	if err := s.own.Prepare(ctx); err != nil {
		return err
	}
	if err := s.changeRegister(ctx, l.Doc, func(r *register) bool {
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
	h := &head{Kind: "head", State: isOpen, Token: l.Token, Doc: l.Doc, Lock: l.Name, Path: l.Path, Owner: l.Owner,
		Began: s.o.Now().UnixMilli()}
	_, ok, err := s.put(ctx, headID(l.Token), h, doc.Numbers{})
	if err != nil || ok {
		return err
	}
	now, err := s.head(ctx, l.Token)
	switch {
	case err != nil:
		return err
	case now == nil:
		return ErrStore
	case now.State != isOpen || now.Doc != l.Doc || now.Path != l.Path: // by chance, two locks' tokens may be the same
		return ErrEnded
	}
	return nil
}

// changeRegister changes the register of a lock's document; change reports false where there is nothing to change.
func (s *Store) changeRegister(ctx context.Context, lock string, change func(*register) bool) error {
	for range tries {
		r, err := s.register(ctx, lock)
		if err != nil || !change(r) {
			return err
		}
		if err := s.fault("register"); err != nil {
			return err
		}
		if _, ok, err := s.put(ctx, registerID(lock), r, r.numbers); err != nil || ok {
			return err
		}
	}
	return ErrStore
}

func (s *Store) register(ctx context.Context, lock string) (*register, error) {
	r := &register{Kind: "lock", Doc: lock}
	n, _, err := s.get(ctx, registerID(lock), r)
	r.numbers = n
	return r, err
}

// Settle ends what leases before this one have left open, where blocks says that they kept others from what the lease is of, and have
// ended: the writes under them are undone. When it returns without an error, nothing of them is left. The lease's holder mustn't know of it
// before. It waits for another proxy that undoes until ctx ends. Errors: ErrBusy, ErrStore, and ctx's cause; then the rollback may go on.
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
		if err := s.settle(ctx, l.Doc, b); err != nil {
			return err
		}
	}
	return nil
}

// Registered are those of the locks' documents whose leases have journals that aren't settled.
func (s *Store) Registered(ctx context.Context, docs []string) ([]string, error) {
	if err := s.own.Prepare(ctx); err != nil {
		return nil, err
	}
	var left []string
	for some := range slices.Chunk(docs, 1000) {
		ids := make([]string, len(some))
		for i, name := range some {
			ids[i] = registerID(name)
		}
		err := s.getAll(ctx, ids, func(it *es.Item) error {
			r := &register{}
			if it.Missing {
				return nil
			}
			if err := json.Unmarshal(it.Source, r); err != nil {
				return fmt.Errorf("%w: a register can't be read: %w", ErrStore, err)
			}
			if len(r.Open) > 0 {
				left = append(left, r.Doc)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return left, nil
}

// Find gives the lock of a token's journal, and whether writes are still noted; nil if there is none.
func (s *Store) Find(ctx context.Context, token int64) (l *Lock, open bool, err error) {
	if token <= 0 {
		return nil, false, nil
	}
	h, err := s.head(ctx, token)
	if err != nil || h == nil {
		return nil, false, err
	}
	return &Lock{Doc: h.Doc, Name: h.Lock, Path: h.Path, Owner: h.Owner, Token: h.Token}, h.State == isOpen || h.State == rolling, nil
}

func (s *Store) settle(ctx context.Context, lock string, b begun) error {
	for {
		h, err := s.head(ctx, b.Token)
		if err != nil {
			return err
		}
		if h == nil { // it was about to be begun: it mustn't be any more
			h = &head{Kind: "head", State: undone, Token: b.Token, Doc: lock, Path: b.Path, Until: s.o.Now().Add(s.o.KeepPages).UnixMilli()}
			if _, ok, err := s.put(ctx, headID(b.Token), h, doc.Numbers{}); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		if h.State == isOpen || h.State == rolling {
			err = s.rollBack(ctx, b.Token)
		}
		switch {
		case err == nil, errors.Is(err, ErrCommitted):
			return s.unregister(ctx, lock, b.Token)
		case !errors.Is(err, ErrBusy):
			return err
		}
		if chore.Sleep(ctx, s.o.Poll) != nil {
			return ErrBusy
		}
	}
}

func (s *Store) unregister(ctx context.Context, lock string, token int64) error {
	return s.changeRegister(ctx, lock, func(r *register) bool {
		before := len(r.Open)
		r.Open = slices.DeleteFunc(r.Open, func(b begun) bool { return b.Token == token })
		return len(r.Open) < before
	})
}

// Commit ends a journal whose writes shall stay: the lock is about to be released. had is false where the token has no journal. It can be
// repeated. Errors: ErrEnded, if the writes are being undone, or are; ErrStore, and then they may be committed or not.
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

// tidy takes what is committed off the register. If that fails, whoever gets the lock next does it.
func (s *Store) tidy(ctx context.Context, h *head) error {
	s.journals.Delete(h.Token)
	if err := s.fault("tidy"); err != nil {
		return err
	}
	if err := s.unregister(ctx, h.Doc, h.Token); err != nil {
		s.o.Log.Warn("a journal stays on the register of its lock", "lock", h.Lock, obs.KeyError, err.Error())
	}
	return nil
}

// Rollback undoes what was written under a lease, at its holder's wish. It waits as Settle does. had is false where the token has no
// journal.
// Errors: ErrCommitted, ErrBusy, ErrStore.
func (s *Store) Rollback(ctx context.Context, token int64) (had bool, err error) {
	h, err := s.head(ctx, token)
	if err != nil || h == nil {
		return false, err
	}
	if h.State == committed {
		return true, ErrCommitted
	}
	return true, s.settle(ctx, h.Doc, begun{h.Token, h.Path})
}
