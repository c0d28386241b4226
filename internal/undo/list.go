package undo

import (
	"cmp"
	"context"
	"slices"
	"time"

	"optimist/internal/doc"
)

// State is how far a journal has come, as it is listed.
type State string

// The states of journals that are listed. A journal that is committed, or undone without a dead letter, isn't listed.
const (
	Open    State = "open"         // writes are noted; this package doesn't know whether the lease still lasts
	Rolling State = "being_undone" // a proxy undoes the writes
	Kept    State = "left"         // the writes are undone, except for those that dead letters hold
)

// Listed is a journal, without what is noted in it.
type Listed struct {
	Lock
	State State
	Began time.Time // zero: an older program has begun the journal, and has noted no time
	Left  int       // the number of documents with a dead letter
	// Leases is the number of the journal's leases. If there are several, Lock is the first of them.
	Leases int
	// Purged says that the notes of the writes were removed since: only the journal's record is still there.
	Purged bool
}

// lock is the journal's lease, or the first of several.
func (h *head) lock() Lock {
	return Lock{Doc: h.Doc, Name: h.Lock, Path: h.Path, Owner: h.Owner, Token: h.Token}
}

func (h *head) listed() Listed {
	l := Listed{Lock: h.lock(), State: Open, Left: len(h.Left), Began: timeOf(h.Began), Purged: h.Purged, Leases: max(h.Leases, 1)}
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

// List lists, page by page, the journals that aren't settled and those that have left dead letters. after is -1 for the first page, and the
// result next for each further one. next is -1 after the last page. A page is made of size records, and may list fewer. A journal that
// changes meanwhile may come twice; none is missed. The list may be a second behind. Errors: ErrStore.
func (s *Store) List(ctx context.Context, after int64, size int) (some []Listed, next int64, err error) {
	return s.list(ctx, shownAll, after, size)
}

func (s *Store) list(ctx context.Context, which string, after int64, size int) (some []Listed, next int64, err error) {
	found, err := s.search(ctx, which, after, size)
	for _, h := range found.heads {
		if h.State != undone || len(h.Left) > 0 {
			some = append(some, h.listed())
		}
	}
	return some, found.next, err
}

// Of lists the journals of one lock as List does, the oldest lease first. Unlike List, it isn't behind with journals that aren't settled.
// Errors: ErrStore.
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
	slices.SortFunc(all, func(a, b Listed) int { return cmp.Compare(a.Token, b.Token) })
	return all, nil
}

// Entry is one write of a journal.
type Entry struct {
	doc.Ref
	Nth       int    // in the journal, from 1
	Rule      string // the rule that guarded the write
	Operation string // create, update or delete: what the write does to the document
	Noted     time.Time
	// State is what is known of the write: noted (it was sent, or is about to be), applied, not_applied, being_undone (the document is
	// about to be restored, or is restored already), undone, or left (a dead letter holds it).
	State string
	// Before and After are the document's images. Nil: there was no document, or the caller didn't ask for images.
	Before, After []byte
}

// Entries are writes of a journal.
type Entries struct {
	Entries []Entry
	Writes  int   // in the whole journal
	Bytes   int64 // of the whole journal, as undo.max_bytes counts them
}

// Entries lists the writes of a journal behind the first so many: most of them at most, and with the documents' images only if images is
// set. It knows the answers that this process has got. Another proxy's answers show once that proxy has noted its next write. Errors:
// ErrStore.
func (s *Store) Entries(ctx context.Context, token int64, behind, most int, images bool) (*Entries, error) {
	h, err := s.head(ctx, token)
	if err != nil || h == nil {
		return &Entries{}, err
	}
	inside := func(nth int) bool { return nth > behind && nth <= behind+most }
	var pages []*page
	nth := 0
	if _, err = s.eachPage(ctx, token, 1, func(p *page) {
		for n := range p.Notes {
			if nth++; !images || !inside(nth) { // a journal may hold more bytes of images than fit into memory
				p.Notes[n].Before, p.Notes[n].After = emptied(p.Notes[n].Before), emptied(p.Notes[n].After)
			}
		}
		pages = append(pages, p)
	}); err != nil {
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

// emptied is an image without its bytes: it still tells a document from none.
func emptied(img image) image {
	if img == nil {
		return nil
	}
	return image{}
}

// states returns a function that tells Entry.State of the write noted at a place.
func (h *head) states(pages []*page) func(Place) string {
	acks, failed := outcomes(pages)
	nth := map[tenantRef]int{}
	for i, d := range collect(pages) {
		nth[d.tenantRef] = i
	}
	return func(at Place) string {
		_, applied := acks[at]
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
		case applied:
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
