// Package memory keeps lock documents in memory: the store of tests, and of a single process that may lose its locks.
//
// It promises nothing beyond the life of the process.
package memory

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// Store is a lockrouter.Store. It is safe for concurrent use; make it with New.
type Store struct {
	mu   sync.Mutex
	docs map[string]*state.Doc
	open map[string]lockrouter.Gate
	now  func() time.Time
}

// New makes an empty Store with that clock; nil is time.Now.
func New(now func() time.Time) *Store {
	if now == nil {
		now = time.Now
	}
	return &Store{docs: map[string]*state.Doc{}, open: map[string]lockrouter.Gate{}, now: now}
}

// Do carries the calls out.
func (s *Store) Do(_ context.Context, changes []lockrouter.Change) []lockrouter.Changed {
	s.mu.Lock()
	defer s.mu.Unlock()
	done := make([]lockrouter.Changed, len(changes))
	for i, c := range changes {
		d := new(state.Doc)
		if old := s.docs[c.ID]; old != nil {
			d = old.Clone()
		}
		results, changed := d.Apply(c.Call, state.Clock{Now: s.now().UnixMilli()})
		if changed {
			s.docs[c.ID] = d
		}
		done[i] = lockrouter.Changed{Doc: d.Clone(), Results: results}
	}
	return done
}

// Read gives the documents as they are.
func (s *Store) Read(_ context.Context, ids []string) ([]*state.Doc, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	docs := make([]*state.Doc, len(ids))
	for i, id := range ids {
		if d := s.docs[id]; d != nil {
			docs[i] = d.Clone()
		}
	}
	return docs, nil
}

// Look gives lock documents and gates as they are.
func (s *Store) Look(ctx context.Context, ids, gates []string) ([]*state.Doc, []lockrouter.Gate, error) {
	docs, err := s.Read(ctx, ids)
	s.mu.Lock()
	defer s.mu.Unlock()
	found := make([]lockrouter.Gate, len(gates))
	for i, name := range gates {
		found[i] = s.open[name]
	}
	return docs, found, err
}

// Move gives a gate another state.
func (s *Store) Move(_ context.Context, name string, seen lockrouter.Gate, to lockrouter.GateState) (lockrouter.Gate, bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[name] != seen {
		return seen, false, nil
	}
	s.open[name] = lockrouter.Gate{State: to, SeqNo: seen.SeqNo + 1, Term: 1}
	return s.open[name], true, nil
}

// Leased gives documents that hold leases, or have changed since that time.
func (s *Store) Leased(_ context.Context, prefix string, since int64, most int) (docs []*state.Doc, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.docs {
		if strings.HasPrefix(d.Lock, prefix) && (len(d.Holds) > 0 || d.Seen >= since) && len(docs) < most {
			docs = append(docs, d.Clone())
		}
	}
	return docs, nil
}

// Find lists documents.
func (s *Store) Find(_ context.Context, q *lockrouter.Query) (*lockrouter.Page, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page := &lockrouter.Page{}
	for _, d := range s.docs {
		begins := func(owner string) bool { return strings.HasPrefix(owner, q.Owners) }
		if slices.ContainsFunc(d.Owners, begins) && (q.Owner == "" || slices.Contains(d.Owners, q.Owner)) &&
			strings.HasPrefix(d.Lock, q.Prefix) && (q.Before == 0 || d.Since < q.Before) && d.Lock > q.After {
			page.Docs = append(page.Docs, d.Clone())
		}
	}
	slices.SortFunc(page.Docs, func(a, b *state.Doc) int { return cmp.Compare(a.Lock, b.Lock) })
	if q.Size > 0 && len(page.Docs) >= q.Size {
		page.Docs = page.Docs[:q.Size]
		page.Next = page.Docs[q.Size-1].Lock
	}
	return page, nil
}

// Timed reports that the store's clock judges leases.
func (s *Store) Timed() bool { return true }
