package undo

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"optimist/internal/doc"
)

// State is how far a journal has come, as it is listed.
type State string

// The states of journals that are listed. A journal that is committed, or undone without a dead letter, isn't.
const (
	Open    State = "open"         // writes are noted; whether the lease still lasts isn't known here
	Rolling State = "being_undone" // a proxy undoes the writes
	Kept    State = "left"         // the writes are undone, but for those that dead letters hold
)

// Listed is a journal, without what is noted in it.
type Listed struct {
	Lock
	State State
	Began time.Time // zero: a program that doesn't note it has begun the journal
	Left  int       // of so many documents there are dead letters
	// Leases is of how many leases the journal is. Where there are several, the Lock is the first of them.
	Leases int
	// Purged says that the writes have been removed since, and only the journal's record is there.
	Purged bool
}

func (h *head) listed() Listed {
	l := Listed{Lock: Lock{Doc: h.Doc, Name: h.Lock, Path: h.Path, Owner: h.Owner, Token: h.Token}, State: Open, Left: len(h.Left),
		Began: timeOf(h.Began), Purged: h.Purged, Leases: max(h.Leases, 1)}
	switch h.State {
	case rolling:
		l.State = Rolling
	case undone:
		l.State = Kept
	}
	return l
}

// timeOf is a time in ms; 0 is none.
func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// The conditions under which journals are listed: they aren't settled, or they are undone.
const (
	shownUnsettled = `{"terms":{"state":["open","rolling"]}}`
	shownUndone    = `{"term":{"state":"undone"}}`
	shownAll       = `{"terms":{"state":["open","rolling","undone"]}}`
)

// List lists journals that aren't settled, and those that have left dead letters: of size records behind after, which is -1 for the first
// page. A page may have fewer. next is after for the next page, or -1. A journal that changes meanwhile may come twice; none is missed. The
// list may be a second behind. Errors: ErrStore.
func (s *Store) List(ctx context.Context, after int64, size int) (some []Listed, next int64, err error) {
	return s.list(ctx, shownAll, after, size)
}

func (s *Store) list(ctx context.Context, which string, after int64, size int) (some []Listed, next int64, err error) {
	found, err := s.search(ctx, `"_source":{"excludes":["plan"]},`, which, after, size)
	if err != nil {
		return nil, -1, err
	}
	for i := range found {
		h := &head{}
		if json.Unmarshal(found[i].Source, h) == nil && (h.State != undone || len(h.Left) > 0) {
			some = append(some, h.listed())
		}
	}
	if len(found) == 0 || len(found) < size {
		return some, -1, nil
	}
	return some, found[len(found)-1].SeqNo, nil
}

// Of lists the journals of one lock as List does, the oldest lease first. Those that aren't settled are as they are now. Errors: ErrStore.
func (s *Store) Of(ctx context.Context, l *Lock) ([]Listed, error) {
	r, err := s.register(ctx, l.Doc)
	if err != nil {
		return nil, err
	}
	var all []Listed
	for _, b := range r.Open {
		if b.Path != l.Path {
			continue
		}
		switch h, _, _, err := s.headOf(ctx, b.Token); {
		case err != nil:
			return nil, err
		case h != nil && (h.State == isOpen || h.State == rolling):
			all = append(all, h.listed())
		}
	}
	for after := int64(-1); ; {
		some, next, err := s.list(ctx, shownUndone, after, 10*atOnce)
		if err != nil {
			return nil, err
		}
		for _, j := range some {
			if j.Doc == l.Doc && j.Path == l.Path && !slices.ContainsFunc(all, func(o Listed) bool { return o.Token == j.Token }) {
				all = append(all, j)
			}
		}
		if after = next; after < 0 {
			break
		}
	}
	slices.SortFunc(all, func(a, b Listed) int { return int(min(max(a.Token-b.Token, -1), 1)) })
	return all, nil
}

// Entry is one write of a journal.
type Entry struct {
	doc.Ref
	Nth       int    // in the journal, from 1
	Rule      string // that guarded it
	Operation string // create, update or delete: what it does to the document
	Noted     time.Time
	// State is what is known of it: noted, so that it was sent or is about to be; applied; not_applied; being_undone, where the document is
	// about to be restored, or is already; undone; or left, where a dead letter holds it.
	State string
	// Before and After are the document's images; nil is no document, or one that wasn't asked for.
	Before, After []byte
}

// Entries are writes of a journal.
type Entries struct {
	Entries []Entry
	Writes  int   // in the whole journal
	Bytes   int64 // of the whole journal, as undo.max_bytes counts them
}

// Entries reads the writes of a journal behind the nth, most of them at most. Images are read only on demand. The result has the stored
// writes, and this process's knowledge of their answers: the answers that another proxy has got come with its next write. Errors:
// ErrStore.
func (s *Store) Entries(ctx context.Context, token int64, behind, most int, images bool) (*Entries, error) {
	h, err := s.head(ctx, token)
	if err != nil || h == nil {
		return &Entries{}, err
	}
	inside := func(nth int) bool { return nth > behind && nth <= behind+most }
	pages, err := s.readPages(ctx, token, func(nth int) bool { return images && inside(nth) })
	if err != nil {
		return nil, err
	}
	state := h.states(append(slices.Clone(pages), s.known(token).heard()))
	e := &Entries{}
	for i, p := range pages {
		e.Bytes = p.Bytes
		for n := range p.Notes {
			if e.Writes++; inside(e.Writes) {
				e.Entries = append(e.Entries, p.entry(n, e.Writes, images, state(Place{i + 1, n})))
			}
		}
	}
	return e, nil
}

func (p *page) entry(n, nth int, images bool, state string) Entry {
	w := &p.Notes[n]
	e := Entry{Ref: doc.Ref{Index: w.Index, ID: w.ID, Routing: w.Routing}, Nth: nth, Rule: w.Rule, Operation: "update",
		Noted: timeOf(p.At), State: state}
	switch {
	case w.After == nil:
		e.Operation = "delete"
	case w.Before == nil:
		e.Operation = "create"
	}
	if images {
		e.Before, e.After = w.Before, w.After
	}
	return e
}

// readPages reads all pages of a journal up to its end. Of the images it keeps those of the writes that keep names, and of others only
// whether there is one.
func (s *Store) readPages(ctx context.Context, token int64, keep func(nth int) bool) (all []*page, err error) {
	nth := 0
	for {
		more, err := s.pages(ctx, token, len(all)+1, 20)
		if err != nil || len(more) == 0 {
			return all, err
		}
		for _, p := range more {
			if p.Kind == "end" {
				return all, nil
			}
			for n := range p.Notes {
				if nth++; !keep(nth) {
					p.Notes[n].Before, p.Notes[n].After = emptied(p.Notes[n].Before), emptied(p.Notes[n].After)
				}
			}
			all = append(all, p)
		}
	}
}

// emptied is an image without its bytes.
func emptied(img image) image {
	if img == nil {
		return nil
	}
	return image{}
}

// states tells what is known of a noted write.
func (h *head) states(pages []*page) func(Place) string {
	failed, applied, nth := map[Place]bool{}, map[Place]bool{}, map[tenantRef]int{}
	for _, p := range pages {
		for _, at := range p.Acked {
			applied[at.Place] = true
		}
		for _, at := range p.Failed {
			failed[at] = true
		}
	}
	for i, d := range collect(pages) {
		nth[d.tenantRef] = i
	}
	return func(at Place) string {
		number := nth[pages[at.Page-1].Notes[at.Nth].tenantRef()]
		switch {
		case failed[at]:
			return "not_applied"
		case h.State != isOpen && h.State != committed && slices.Contains(h.Left, number):
			return "left"
		case h.State == undone || h.State == rolling && h.restored(number):
			return "undone"
		case h.State == rolling && h.plans(number):
			return string(Rolling)
		case applied[at]:
			return "applied"
		}
		return "noted"
	}
}

// plans reports whether the rollback is about to restore a document.
func (h *head) plans(nth int) bool {
	return slices.ContainsFunc(h.Plan, func(p planned) bool { return p.Doc == nth })
}

// restored reports whether the rollback has dealt with a document already.
func (h *head) restored(nth int) bool {
	return nth/batchDocs+1 < h.Batch || slices.ContainsFunc(h.Plan, func(p planned) bool { return p.Doc == nth && p.Done })
}
