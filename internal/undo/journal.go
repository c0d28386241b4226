package undo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"sync"
	"time"

	"optimist/internal/doc"
	"optimist/internal/share"
	"optimist/internal/wire"
)

// Write is a write that is about to be sent. Its slices stay as they are until Note returns. A nil image is a document that isn't there.
type Write struct {
	doc.Ref
	UUID          string // the index's, see es.Index; empty: it isn't known, or there is no index yet
	Rule          string
	Guard         doc.Numbers // of Before
	Before, After []byte
	// Fields and Params are those of the write's request: see Options.Tenant.
	Fields []wire.Field
	Params []byte
}

// Journal notes the writes of this process under one lock, or under several that were acquired together. It is safe for concurrent use.
type Journal struct {
	s     *Store
	token int64
	doc   string // the id of the lock's document

	mu      sync.Mutex
	waiting []*entry
	acked   []acked // outcomes that the next page stores, as those in failed
	failed  []Place
	busy    bool      // a goroutine writes pages
	sending *page     // the page under way; nil: there is none
	writes  int       // on the pages that are known
	bytes   int64     // of these writes
	next    int       // the number of the next page
	looked  time.Time // when this process last saw the journal open
	ended   bool
	members []int64                // the tokens of further leases under which writes were noted
	wrote   map[writer]doc.Numbers // the revisions that writes through this process made
}

// writer names a document, and the client that has written it.
type writer struct {
	by any
	doc.Ref
}

// entry is a write that waits for its page.
type entry struct {
	note note
	size int64
	at   Place
	done chan error
	// empty: the entry has no write. It waits for the page that stores the outcomes of other writes.
	empty bool
}

// stale is the time without a write after which Journal reads the journal's record again.
const stale = time.Minute

// Journals are those of some tokens. A token without a journal isn't among them.
type Journals map[int64]found

// found is what is known of the journal of a token. The error is ErrEnded.
type found struct {
	journal *Journal
	err     error
}

// Of returns the journal of the tokens of one write. It is nil if none of them has one. Errors: ErrEnded, ErrTwo.
func (all Journals) Of(tokens []int64) (one *Journal, err error) {
	if len(all) == 0 {
		return nil, nil
	}
	for _, token := range tokens {
		switch f, ok := all[token]; {
		case !ok:
		case f.err != nil:
			return nil, f.err
		case one != nil && one != f.journal:
			return nil, fmt.Errorf("%w: the write carries the tokens of two locks with undo; one lock, of a tree, say, can cover both", ErrTwo)
		default:
			one = f.journal
		}
	}
	return one, nil
}

// Journals finds the journals of the tokens under which a client writes. A token must not be there twice. One request reads the journals
// of up to a thousand tokens that this process doesn't know. These requests take the client's places. Errors: ErrStore.
func (s *Store) Journals(ctx context.Context, by share.Client, tokens []int64) (Journals, error) {
	all := Journals{}
	var unknown []int64
	for _, token := range tokens {
		if j := s.known(token); j != nil && j.fresh(stale) {
			all[token] = found{journal: j}
			continue
		}
		unknown = append(unknown, token)
	}
	heads, err := s.headsFor(ctx, by, unknown)
	if err != nil {
		return nil, err
	}
	for _, token := range unknown {
		switch j, err := s.journal(ctx, token, heads); {
		case errors.Is(err, ErrEnded):
			all[token] = found{err: err}
		case err != nil:
			return nil, err
		case j != nil:
			all[token] = found{journal: j}
		}
	}
	return all, nil
}

// known is the journal of a token, if writes of this process were noted in it; else nil.
func (s *Store) known(token int64) *Journal {
	j, _ := s.journals.Load(token)
	one, _ := j.(*Journal) // nothing else is in it
	return one
}

// distinct are the journals that this process knows, each once.
func (s *Store) distinct() iter.Seq[*Journal] {
	return func(yield func(*Journal) bool) {
		s.journals.Range(func(token, known any) bool {
			j, ok := known.(*Journal)
			return !ok || j.token != token || yield(j) // a journal of several leases is there by each of their tokens
		})
	}
}

// journal is the journal of a token, by the records that were read. It is nil if the token has none. Errors: ErrEnded, ErrStore.
func (s *Store) journal(ctx context.Context, token int64, heads map[int64]*head) (*Journal, error) {
	wasKnown := s.known(token) != nil
	h, of := heads[token], token
	if h != nil && h.Kind == kindMember {
		of = h.Journal
		h = heads[of]
	}
	switch {
	case h == nil && wasKnown: // the journal stays in s.journals, so that the next write is refused, too
		return nil, fmt.Errorf("%w. Its journal is gone", ErrEnded)
	case h == nil && of == token:
		return nil, nil
	case h == nil || h.State != isOpen: // nil: the journal of several leases was never begun, so no client has got these leases
		s.forgetAndTell(of, h)
		return nil, ErrEnded
	}
	// This process meets a journal of the lock for the first time. Its holder may repeat writes that a rollback has undone. So this process
	// must first forget the lock's earlier journals that have ended.
	if s.known(of) == nil {
		if err := s.forgetEnded(ctx, func(o *Journal) bool { return o.doc == h.Doc && o.token != of }); err != nil {
			return nil, err
		}
	}
	known, _ := s.journals.LoadOrStore(of, &Journal{s: s, token: of, doc: h.Doc, next: 1})
	j := known.(*Journal) //nolint:forcetypeassert // nothing else is in it
	j.mu.Lock()
	defer j.mu.Unlock()
	j.looked = s.o.Now()
	if of != token && !slices.Contains(j.members, token) {
		j.members = append(j.members, token)
	}
	if of != token {
		s.journals.Store(token, j)
	}
	return j, nil
}

// forgetAndTell forgets a journal that isn't open any more, and calls Options.Undone for its writes if they are undone. h is nil if the
// journal was never begun.
func (s *Store) forgetAndTell(token int64, h *head) {
	if h != nil && (h.State == rolling || h.State == undone) {
		s.tellUndone(token)
	}
	s.forget(token)
}

// tellUndone calls Options.Undone for each document that was written through this process under a journal.
func (s *Store) tellUndone(token int64) {
	j := s.known(token)
	if j == nil || s.o.Undone == nil {
		return
	}
	j.mu.Lock()
	wrote := j.wrote
	j.wrote = nil
	j.mu.Unlock()
	for w, n := range wrote {
		s.o.Undone(w.by, w.Ref, n)
	}
}

// forget removes what this process knows of a journal.
func (s *Store) forget(token int64) {
	known, _ := s.journals.LoadAndDelete(token)
	j, ok := known.(*Journal)
	if !ok {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.ended = true
	for _, t := range j.members {
		s.journals.CompareAndDelete(t, j)
	}
}

// fresh reports whether this process saw the journal open within that time. The journal may have ended since: the next page shows it.
func (j *Journal) fresh(within time.Duration) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return !j.ended && j.s.o.Now().Sub(j.looked) < within
}

// Note notes a write, and returns when the note is stored. Only then may the caller send the write. If the write was noted before, for an
// earlier try, tell Failed about the earlier note. Errors: ErrEnded, ErrFull, ErrStore: then the write must not be sent. If ctx ends, Note
// returns, but the note may still be stored.
func (j *Journal) Note(ctx context.Context, w *Write) (Place, error) {
	n := note{Index: w.Index, UUID: w.UUID, ID: w.ID, Routing: w.Routing, Rule: w.Rule, Guard: w.Guard, Before: w.Before, After: w.After,
		Tenant: j.s.tenantOf(w)}
	e := &entry{note: n, done: make(chan error, 1)}
	e.size = int64(len(w.Before)+len(w.After)+200) + e.note.Tenant.size()
	j.mu.Lock()
	j.waiting = append(j.waiting, e)
	j.start(ctx)
	j.mu.Unlock()
	select {
	case err := <-e.done:
		return e.at, err
	case <-ctx.Done():
		go func() { // the write isn't sent. Without this, a rollback could take another client's equal document for this write's
			if <-e.done == nil {
				_ = j.Failed(context.WithoutCancel(ctx), e.at)
			}
		}()
		return Place{}, context.Cause(ctx)
	}
}

// start starts the goroutine that writes pages, unless it runs already. The caller holds the lock.
func (j *Journal) start(ctx context.Context) {
	if !j.busy {
		j.busy = true
		go j.write(context.WithoutCancel(ctx))
	}
}

// write writes pages until no entry waits. It writes one page after the other, so that their numbers have no gap, even if another proxy
// writes pages of the same journal.
func (j *Journal) write(ctx context.Context) {
	for {
		j.letOthersCome()
		p, some := j.gather()
		if p == nil {
			return
		}
		n, err := j.append(ctx, p)
		j.mu.Lock()
		j.sending = nil
		if err != nil {
			j.acked, j.failed = append(p.Acked, j.acked...), append(p.Failed, j.failed...)
		} else if len(p.Notes) > 0 {
			j.looked = j.s.o.Now()
		}
		j.mu.Unlock()
		nth := 0
		for _, e := range some {
			if !e.empty {
				e.at = Place{n, nth}
				nth++
			}
			e.done <- err
		}
		if err == nil {
			j.s.o.Events.Noted.Call(nth)
		}
	}
}

// letOthersCome waits until no further goroutine adds an entry. The items of a bulk come at the same moment. Without letOthersCome the
// first item would get a page of its own, and the others would get the next page: one round trip more. If no goroutine comes, it takes no
// time.
func (j *Journal) letOthersCome() {
	for before := -1; ; {
		j.mu.Lock()
		now := len(j.waiting)
		j.mu.Unlock()
		if now == before || now >= pageEntries {
			return
		}
		before = now
		runtime.Gosched()
	}
}

// gather takes as many of the waiting entries as go on one page. It returns nil if none waits. A write that is larger than a page gets a
// page of its own. A write for which the journal has no room gets ErrFull.
func (j *Journal) gather() (*page, []*entry) {
	j.mu.Lock()
	defer j.mu.Unlock()
	var some []*entry
	var size int64
	for len(j.waiting) > 0 && len(some) < pageEntries && (len(some) == 0 || size+j.waiting[0].size <= pageBytes) {
		e := j.waiting[0]
		j.waiting = j.waiting[1:]
		if !e.empty && (j.writes+len(some) >= j.s.o.MaxDocuments || j.bytes+size+e.size > j.s.o.MaxBytes) {
			e.done <- ErrFull
			continue
		}
		some, size = append(some, e), size+e.size
	}
	if len(some) == 0 {
		j.busy = false
		return nil, nil
	}
	p := &page{Kind: kindPage, ID: rand.Text(), At: j.s.o.Now().UnixMilli(), Bytes: size, Acked: j.acked, Failed: j.failed}
	for _, e := range some {
		if !e.empty {
			p.Notes = append(p.Notes, e.note)
		}
	}
	p.Writes = len(p.Notes)
	j.acked, j.failed, j.sending = nil, nil, p
	return p, some
}

// appendTries is the number of tries to store a page if the answers are lost.
const appendTries = 5

// append stores a page behind the last one. If another proxy's page is there already, append goes on to the next number. If the end is
// there, the error is ErrEnded.
func (j *Journal) append(ctx context.Context, p *page) (n int, err error) {
	writes, size := p.Writes, p.Bytes
	for lost := 0; lost < appendTries; {
		p.Writes, p.Bytes = j.writes+writes, j.bytes+size
		if err := j.s.fault("page"); err != nil {
			return 0, err
		}
		_, ok, err := j.s.put(ctx, pageID(j.token, j.next), p, doc.Numbers{})
		if err != nil {
			return 0, err
		}
		there := []*page{p}
		if !ok {
			if there, err = j.s.pages(ctx, j.token, j.next, 1); err != nil {
				return 0, err
			}
		}
		if len(there) == 0 {
			lost++
			continue
		}
		if there[0].Kind == kindEnd {
			return 0, j.end(ctx)
		}
		n = j.step(there[0])
		if there[0].ID == p.ID {
			return n, nil
		}
		if j.writes+writes > j.s.o.MaxDocuments || j.bytes+size > j.s.o.MaxBytes {
			return 0, ErrFull
		}
	}
	return 0, fmt.Errorf("%w: the answers to its writes are lost", ErrStore)
}

// end returns the error for a write to a journal that has ended, and forgets the journal if it is settled.
func (j *Journal) end(ctx context.Context) error {
	h, err := j.s.head(ctx, j.token)
	if err != nil {
		return err
	}
	if h == nil || h.State != isOpen { // if it is open, its holder is committing it
		j.s.forgetAndTell(j.token, h)
	}
	return ErrEnded
}

// step moves the journal's place behind a page, and returns the number of that page.
func (j *Journal) step(p *page) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.writes, j.bytes = p.Writes, p.Bytes
	j.next++
	return j.next - 1
}
