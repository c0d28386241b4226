package undo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

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
	heads, next, err := s.find(ctx, shownUnsettled, s.swept)
	for _, h := range heads {
		if failed := again(ctx, h.Lock, h.Token); err == nil {
			err = failed
		}
	}
	s.swept = next
	return err
}

// atOnce is how many records are looked at with one search.
const atOnce = 100

// find reads whole records of journals, as search finds them. next is after for the next call; -1: there are no more. If a record is
// damaged, find returns an error, and the other records all the same.
func (s *Store) find(ctx context.Context, which string, after int64) (all []*head, next int64, err error) {
	found, err := s.search(ctx, "", which, after, atOnce)
	for i := range found {
		h := &head{}
		if damage := json.Unmarshal(found[i].Source, h); damage != nil {
			err = unreadable(found[i].ID(), damage)
			continue
		}
		h.numbers = found[i].Numbers
		all = append(all, h)
	}
	if len(found) < atOnce {
		return all, -1, err
	}
	return all, found[len(found)-1].SeqNo, err
}

// search finds the journals' records whose sequence number is above after: size of them at most, the oldest first. Without an index there
// are none. A search may be a second behind, so nothing is decided by it. more has further members of the search's body, each with a comma
// behind it.
func (s *Store) search(ctx context.Context, more, which string, after int64, size int) (found []es.Item, err error) {
	body := fmt.Sprintf(`{%s"size":%d,"seq_no_primary_term":true,"track_total_hits":false,"sort":[{"_seq_no":"asc"}],`+
		`"query":{"bool":{"filter":[{"term":{"kind":%q}},%s,{"range":{"_seq_no":{"gt":%d}}}]}}}`, more, size, kindHead, which, after)
	a, err := s.own.Ask(ctx, esapi.SearchRequest{Index: []string{s.index}, Body: strings.NewReader(body)}, true)
	switch {
	case err != nil:
		return nil, err
	case a.IsMissing():
		return nil, nil
	case a.Status != http.StatusOK:
		return nil, s.own.Failure(a)
	}
	for hit := range es.Elements(es.Member(a.Body, "hits"), "hits") {
		found = append(found, es.ParseItem(hit))
	}
	return found, nil
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
	for part := range slices.Chunk(some, pageEntries) {
		ids := make([]string, len(part))
		for i, token := range part {
			ids[i] = headID(token)
		}
		if err := s.getAll(ctx, ids, func(nth int, it *es.Item) error {
			var h head
			if !it.Missing && json.Unmarshal(it.Source, &h) == nil && (h.State == committed || h.State == undone) {
				s.forgetAndTell(part[nth], &h)
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
		heads, next, failed := s.find(ctx, old, after)
		err = cmp.Or(err, failed)
		for _, h := range heads {
			if failed := s.clean(ctx, h); failed != nil {
				return cleaned, errors.Join(err, failed)
			}
			cleaned++
		}
		after = next
		if next < 0 {
			return cleaned, err
		}
	}
}

func (s *Store) clean(ctx context.Context, h *head) error {
	if h.Purged {
		if err := s.cleanMembers(ctx, h); err != nil {
			return err
		}
		seq, term := int(h.numbers.SeqNo), int(h.numbers.PrimaryTerm)
		_, err := s.own.Ask(ctx, esapi.DeleteRequest{Index: s.index, DocumentID: headID(h.Token), IfSeqNo: &seq, IfPrimaryTerm: &term}, false)
		return err
	}
	if h.Pages > 0 {
		ids := make([]string, h.Pages)
		for n := range ids {
			ids[n] = pageID(h.Token, n+1)
		}
		if err := s.deleteAll(ctx, ids); err != nil {
			return err
		}
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
	for some := range slices.Chunk(all, perList) {
		ids, mine := make([]string, len(some)), []string{}
		for i, l := range some {
			ids[i] = headID(l.Token)
		}
		if err := s.getAll(ctx, ids, func(nth int, it *es.Item) error {
			m := &head{}
			if !it.Missing && json.Unmarshal(it.Source, m) == nil && m.Kind == kindMember && m.Journal == h.Token {
				mine = append(mine, ids[nth])
			}
			return nil
		}); err != nil {
			return err
		}
		if err := s.deleteAll(ctx, mine); err != nil {
			return err
		}
	}
	return s.deleteAll(ctx, h.lists())
}

// deleteAll deletes records. It returns an error if the engine has refused to delete one of them: that one is still there.
func (s *Store) deleteAll(ctx context.Context, ids []string) error {
	var b bytes.Buffer
	for _, id := range ids {
		fmt.Fprintf(&b, `{"delete":{"_id":%q}}`+"\n", id)
	}
	if len(ids) == 0 {
		return nil
	}
	a, err := s.own.Ask(ctx, esapi.BulkRequest{Index: s.index, Body: &b}, false)
	if err != nil || a.Status != http.StatusOK {
		return s.own.ErrorOf(a, err)
	}
	for item := range es.Elements(a.Body, "items") {
		did := gjson.GetBytes(item, "delete")
		if status := int(did.Get("status").Int()); status != http.StatusOK && status != http.StatusNotFound {
			return s.own.Failure(es.Answer{Status: status, Body: []byte(did.Raw)})
		}
	}
	return nil
}
