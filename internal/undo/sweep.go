package undo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"optimist/internal/es"
	"optimist/internal/obs"
	"optimist/internal/timer"
)

// sweepsPerClean says that one sweep in so many also removes old records.
const sweepsPerClean = 60

// SweepEvery sweeps once in that time until ctx ends. A sweep calls again for unsettled journals: again finds out whether the lease has
// ended, and recovers the journal if so. A sweep also stores what this process alone knows of idle journals, and now and then removes the
// records of journals that have ended long ago. Every proxy sweeps.
func (s *Store) SweepEvery(ctx context.Context, every time.Duration, again func(ctx context.Context, lock string, token int64) error) {
	n, failing := 0, false
	timer.Every(ctx, every, func(ctx context.Context) {
		err := s.sweep(ctx, again)
		if n++; n%sweepsPerClean == 0 { // also after an error: a damaged record may stay for days
			_, failed := s.Clean(ctx)
			err = errors.Join(err, failed)
			s.forgetSeen()
		}
		err = errors.Join(err, s.forgetEnded(ctx, s.isIdle), s.flush(ctx, s.isIdle)) // in this order: what has ended takes no page
		if err != nil && ctx.Err() == nil && !failing {
			s.o.Log.Warn("journals of locks couldn't be looked through", obs.KeyError, err.Error())
		}
		failing = err != nil
	})
}

// sweep calls again for some unsettled journals. The next sweep goes on behind them, so that each journal has its turn.
func (s *Store) sweep(ctx context.Context, again func(ctx context.Context, lock string, token int64) error) error {
	found, err := s.search(ctx, shownUnsettled, s.swept, atOnce)
	err = cmp.Or(err, found.damage)
	for _, h := range found.heads {
		err = cmp.Or(err, again(ctx, h.Lock, h.Token))
	}
	s.swept = found.next
	return err
}

// atOnce is how many records are looked at with one search.
const atOnce = 100

// matches are records of journals that a search has found.
type matches struct {
	heads  []*head
	next   int64 // the sequence number behind which the next search goes on; -1: there are no more
	damage error // of one that is damaged; the others are there all the same
}

// search finds the journals' records whose sequence number is above after, without their plans: size of them at most, the oldest first.
// Without an index there are none. A search may be a second behind, so nothing is decided by it.
func (s *Store) search(ctx context.Context, which string, after int64, size int) (m matches, err error) {
	m.next = -1
	body := fmt.Sprintf(`{"_source":{"excludes":["plan"]},"size":%d,"seq_no_primary_term":true,"track_total_hits":false,`+
		`"sort":[{"_seq_no":"asc"}],"query":{"bool":{"filter":[{"term":{"kind":%q}},%s,{"range":{"_seq_no":{"gt":%d}}}]}}}`,
		size, kindHead, which, after)
	a, err := s.own.Ask(ctx, esapi.SearchRequest{Index: []string{s.index}, Body: strings.NewReader(body)}, true)
	switch {
	case err != nil, a.IsMissing():
		return m, err
	case a.Status != http.StatusOK:
		return m, s.own.Failure(a)
	}
	n := 0
	for hit := range es.Elements(es.Member(a.Body, "hits"), "hits") {
		it := es.ParseItem(hit)
		if n++; n == size {
			m.next = it.SeqNo
		}
		if h, err := headIn(&it); err == nil {
			m.heads = append(m.heads, h)
		} else {
			m.damage = err
		}
	}
	return m, nil
}

// isIdle reports whether nothing was noted in a journal for a while.
func (s *Store) isIdle(j *Journal) bool { return !j.fresh(idle) }

// idle is the time without a write after which sweeps look at a journal.
const idle = 5 * time.Second

// forgetEnded forgets journals that another process has ended. It looks only at those that which picks.
func (s *Store) forgetEnded(ctx context.Context, which func(*Journal) bool) error {
	var some []int64
	for j := range s.distinct() {
		if which(j) {
			some = append(some, j.token)
		}
	}
	return s.eachReadable(ctx, some, func(token int64, h *head) {
		if h.State == committed || h.State == undone {
			s.forgetAndTell(token, h)
		}
	})
}

// eachReadable reads the records of tokens, and passes over those that are damaged, or aren't there.
func (s *Store) eachReadable(ctx context.Context, tokens []int64, take func(token int64, h *head)) error {
	for some := range slices.Chunk(tokens, pageEntries) {
		if err := s.getAll(ctx, each(some, headID), func(nth int, it *es.Item) error {
			if h, _ := headIn(it); h != nil {
				take(some[nth], h)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// forgetSeen forgets sightings of other proxies' rollbacks that are old.
func (s *Store) forgetSeen() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, seen := range s.seen {
		if s.o.Now().Sub(seen.since) > s.o.KeepPages {
			delete(s.seen, token)
		}
	}
}

// Clean removes the records of journals that have ended long ago: first the pages, and at a later call the head. It returns the number of
// journals. A damaged head doesn't keep it from the others.
func (s *Store) Clean(ctx context.Context) (cleaned int, err error) {
	old := fmt.Sprintf(`{"terms":{"state":[%q,%q]}},{"range":{"until":{"gt":0,"lte":%d}}}`, committed, undone, s.o.Now().UnixMilli())
	for after := int64(-1); ; {
		found, failed := s.search(ctx, old, after, atOnce)
		err = cmp.Or(err, failed, found.damage)
		for _, h := range found.heads {
			if failed := s.clean(ctx, h); failed != nil {
				return cleaned, errors.Join(err, failed)
			}
			cleaned++
		}
		if after = found.next; after < 0 {
			return cleaned, err
		}
	}
}

func (s *Store) clean(ctx context.Context, h *head) error {
	if h.Purged {
		if err := s.cleanMembers(ctx, h); err != nil {
			return err
		}
		return s.putAll(ctx, []*record{{id: headID(h.Token), in: h.numbers}})
	}
	if err := s.deleteAll(ctx, pageIDs(h.Token, 1, h.Pages)); err != nil {
		return err
	}
	h.Purged, h.Claim, h.Until = true, s.self, s.o.Now().Add(s.o.KeepHeads).UnixMilli()
	if err := s.putHead(ctx, h); err != nil && !errors.Is(err, errLost) {
		return err
	}
	return nil
}

// cleanMembers removes what a journal of several leases has besides its head and its pages.
func (s *Store) cleanMembers(ctx context.Context, h *head) error {
	if h.Leases < 2 {
		return nil
	}
	all, err := s.leases(ctx, h)
	if err != nil {
		return err
	}
	var members []string
	if err := s.eachReadable(ctx, each(all, func(l Lock) int64 { return l.Token }), func(token int64, m *head) {
		if m.Kind == kindMember && m.Journal == h.Token {
			members = append(members, headID(token))
		}
	}); err != nil {
		return err
	}
	if err := s.deleteAll(ctx, members); err != nil {
		return err // the lists still name the members
	}
	return s.deleteAll(ctx, h.lists())
}

// deleteAll deletes records. It returns an error if the engine has refused to delete one of them: that one is still there.
func (s *Store) deleteAll(ctx context.Context, ids []string) error {
	for some := range slices.Chunk(each(ids, func(id string) *record { return &record{id: id} }), pageEntries) {
		if err := s.putAll(ctx, some); err != nil {
			return err
		}
		if slices.ContainsFunc(some, func(r *record) bool { return !r.put }) {
			return fmt.Errorf("%w: the engine doesn't say whether it has deleted records", ErrStore)
		}
	}
	return nil
}
