package undo

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"optimist/internal/es"
	"optimist/internal/obs"
	"optimist/internal/share"
)

// One journal may be of several leases that were acquired together. Then the writes under all of these leases stay or are undone together.

// openMembers writes what a journal of several leases has besides its head: the lists of the leases, and a record for each token.
func (s *Store) openMembers(ctx context.Context, h *head, leases []Lock) error {
	var lists, members []*record
	for some := range slices.Chunk(leases, perList) {
		list := &leaseList{Kind: kindLeases, Leases: each(some, Lock.lease)}
		lists = append(lists, &record{id: leasesID(h.Token, len(lists)+1), is: list})
	}
	known := map[int64]bool{h.Token: true} // by chance, two of the leases may have the same token
	for i := range leases {
		if t := leases[i].Token; !known[t] {
			known[t] = true
			members = append(members, &record{id: headID(t), is: &head{Kind: kindMember, Token: t, Journal: h.Token, Leases: h.Leases}})
		}
	}
	if err := s.make(ctx, lists, func(there []byte, r *record) bool {
		var l leaseList
		list, ok := r.is.(*leaseList)
		return ok && json.Unmarshal(there, &l) == nil && slices.Equal(l.Leases, list.Leases)
	}); err != nil {
		return err
	}
	return s.make(ctx, members, func(there []byte, _ *record) bool {
		var m head
		return json.Unmarshal(there, &m) == nil && m.Kind == kindMember && m.Journal == h.Token && m.Leases == h.Leases
	})
}

// make makes new records. If there is a record already, isSame says whether it is the same one. If not, the error is ErrTaken.
func (s *Store) make(ctx context.Context, records []*record, isSame func(there []byte, r *record) bool) error {
	return untilNone(records, func(some []*record) ([]*record, error) {
		if err := s.fault("members"); err != nil {
			return nil, err
		}
		if err := s.putAll(ctx, some); err != nil {
			return nil, err
		}
		return s.missing(ctx, some, isSame)
	})
}

// missing are those of some records that weren't written, and aren't there.
func (s *Store) missing(ctx context.Context, records []*record, isSame func(there []byte, r *record) bool) (missing []*record, err error) {
	records = slices.DeleteFunc(slices.Clone(records), func(r *record) bool { return r.put })
	err = s.getAll(ctx, each(records, func(r *record) string { return r.id }), func(nth int, it *es.Item) error {
		switch {
		case it.Missing:
			missing = append(missing, records[nth])
		case !isSame(it.Source, records[nth]):
			return ErrTaken
		}
		return nil
	})
	return missing, err
}

// headOf reads the record of the journal that was begun under the lease of a token; h is nil if there is none. of is the journal's token.
// If the token belongs to a journal of several leases, m is the token's own record, a member.
func (s *Store) headOf(ctx context.Context, token int64) (h *head, of int64, m *head, err error) {
	h, err = s.head(ctx, token)
	if err != nil || h == nil || h.Kind != kindMember {
		return h, token, nil, err
	}
	m = h
	h, err = s.head(ctx, m.Journal)
	return h, m.Journal, m, err
}

// leases are those of a journal.
func (s *Store) leases(ctx context.Context, h *head) ([]Lock, error) {
	if h.Leases < 2 {
		return []Lock{h.lock().lease()}, nil
	}
	var all []Lock
	lists := h.lists()
	err := s.getAll(ctx, lists, func(nth int, it *es.Item) error {
		var l leaseList
		if it.Missing { // the journal was never begun
			return nil
		}
		if err := json.Unmarshal(it.Source, &l); err != nil {
			return unreadable(lists[nth], err)
		}
		all = append(all, l.Leases...)
		return nil
	})
	return all, err
}

// perList is the most leases that one list has.
const perList = 500

// lists are the ids of a journal's lists of leases.
func (h *head) lists() []string {
	ids := make([]string, (h.Leases+perList-1)/perList)
	for i := range ids {
		ids[i] = leasesID(h.Token, i+1)
	}
	return ids
}

// isOf reports whether a journal is that of a lease. By chance, two locks' tokens may be the same.
func (s *Store) isOf(ctx context.Context, h *head, l *Lock) (bool, error) {
	switch {
	case h.Kind == kindMember: // the record of a token that belongs to another journal: it is no journal
		return false, nil
	case h.Leases < 2:
		return h.Doc == l.Doc && h.Path == l.Path && h.Token == l.Token, nil
	}
	all, err := s.leases(ctx, h)
	return slices.ContainsFunc(all, func(o Lock) bool { return o.Doc == l.Doc && o.Token == l.Token }), err
}

// unregisterAll takes a settled journal off the registers of all its locks. If that fails, the proxy of a lock's next holder does it.
func (s *Store) unregisterAll(ctx context.Context, h *head) {
	all, err := s.leases(ctx, h)
	if err == nil {
		err = s.unregister(ctx, all)
	}
	if err != nil {
		s.o.Log.Warn("a journal stays on the register of its lock", "lock", h.Lock, obs.KeyError, err.Error())
	}
}

// Begun is a journal that was begun under some leases.
type Begun struct {
	Token int64 // for Commit and Rollback
	// Committed says that the writes stay. Ended says that they are undone, or about to be. With neither, the journal is open.
	Committed, Ended bool
	Of               int      // the number of leases under which the journal was begun
	Asked            []string // of the leases among them that Begun was asked for: the ids of the locks' documents
	Missing          []string // of the other leases: the locks as users name them
}

// Begun finds the journals that were begun under leases. Errors: ErrStore.
func (s *Store) Begun(ctx context.Context, leases []Lock) ([]Begun, error) {
	heads, err := s.headsOf(ctx, each(leases, func(l Lock) int64 { return l.Token }))
	if err != nil {
		return nil, err
	}
	listed := map[Lock]bool{}
	for _, l := range leases {
		listed[l.lease()] = true
	}
	var all []Begun
	for _, h := range heads {
		of, err := s.leases(ctx, h)
		if err != nil {
			return nil, err
		}
		b := Begun{Token: h.Token, Committed: h.State == committed, Ended: h.State == rolling || h.State == undone, Of: len(of)}
		for _, l := range of {
			if listed[l] {
				b.Asked = append(b.Asked, l.Doc)
			} else {
				b.Missing = append(b.Missing, l.Name)
			}
		}
		if len(b.Asked) > 0 { // else the tokens are the same by chance
			all = append(all, b)
		}
	}
	return all, nil
}

// Undone reports whether the writes under any of these tokens are undone, or about to be. A write that is still on its way to the engine
// then fails. Errors: ErrStore.
func (s *Store) Undone(ctx context.Context, tokens []int64) (bool, error) {
	heads, err := s.headsOf(ctx, tokens)
	return slices.ContainsFunc(heads, func(h *head) bool { return h.State == rolling || h.State == undone }), err
}

// headsOf reads the journals of tokens, each once.
func (s *Store) headsOf(ctx context.Context, tokens []int64) (all []*head, err error) {
	heads, err := s.headsFor(ctx, share.Client{}, tokens)
	if err != nil {
		return nil, err
	}
	for _, token := range slices.Sorted(maps.Keys(heads)) {
		if h := heads[token]; h.Kind != kindMember {
			all = append(all, h)
		}
	}
	return all, nil
}

// headsFor reads the records of tokens, and the records of the journals to which these tokens belong as members. It reads each record once,
// and with one request as many as a write may have tokens. The requests take the client's places.
func (s *Store) headsFor(ctx context.Context, by share.Client, tokens []int64) (heads map[int64]*head, err error) {
	heads = map[int64]*head{}
	listed, next := map[int64]bool{}, []int64{}
	ask := func(token int64) {
		if token > 0 && !listed[token] {
			listed[token] = true
			next = append(next, token)
		}
	}
	for _, token := range tokens {
		ask(token)
	}
	for len(next) > 0 {
		some := next[:min(len(next), 2*pageEntries)]
		next = next[len(some):]
		if err := s.getAllFor(ctx, by, each(some, headID), func(nth int, it *es.Item) error {
			h, err := headIn(it)
			if h == nil {
				return err
			}
			heads[some[nth]] = h
			if h.Kind == kindMember {
				ask(h.Journal)
			}
			return nil
		}); err != nil {
			return nil, err
		}
	}
	return heads, nil
}
