package undo

import (
	"bytes"
	"context"
	"encoding/json"
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

// sweeps is how many sweeps go before one that cleans.
const sweeps = 60

// SweepEvery recovers unsettled journals, once in that time, until ctx ends, and removes the rest of old ones. Every proxy does so: again
// has to find out itself whether a journal's lease has ended.
func (s *Store) SweepEvery(ctx context.Context, every time.Duration, again func(ctx context.Context, lock string, token int64) error) {
	n, failing := 0, false
	timer.Every(ctx, every, func(ctx context.Context) {
		err := s.sweep(ctx, again)
		if n++; err == nil && n%sweeps == 0 {
			_, err = s.Clean(ctx)
		}
		if err != nil && ctx.Err() == nil && !failing {
			s.o.Log.Warn("journals of locks couldn't be looked through", obs.KeyError, err.Error())
		}
		failing = err != nil
	})
}

func (s *Store) sweep(ctx context.Context, again func(ctx context.Context, lock string, token int64) error) error {
	all, err := s.Pending(ctx)
	for _, p := range all {
		if failed := again(ctx, p.Name, p.Token); err == nil {
			err = failed
		}
	}
	return err
}

// Pending is a journal that isn't settled.
type Pending struct {
	Lock
	State string // open, or rolling
}

// atOnce is how many records are looked at with one search.
const atOnce = 100

// Pending lists journals that aren't settled, at most 100. It may be a second behind, and so decides nothing.
func (s *Store) Pending(ctx context.Context) ([]Pending, error) {
	heads, err := s.find(ctx, `{"terms":{"state":["open","rolling"]}}`)
	var all []Pending
	for _, h := range heads {
		all = append(all, Pending{Lock{Doc: h.Doc, Name: h.Lock, Path: h.Path, Owner: h.Owner, Token: h.Token}, string(h.State)})
	}
	return all, err
}

// find searches journals' records. There are none where there is no index.
func (s *Store) find(ctx context.Context, query string) ([]*head, error) {
	body := fmt.Sprintf(`{"size":%d,"seq_no_primary_term":true,"track_total_hits":false,"query":%s}`, atOnce, query)
	a, err := s.own.Ask(ctx, esapi.SearchRequest{Index: []string{s.index}, Body: strings.NewReader(body)}, true)
	switch {
	case err != nil:
		return nil, err
	case a.Status == http.StatusNotFound:
		return nil, nil
	case a.Status != http.StatusOK:
		return nil, s.own.Failure(a)
	}
	var all []*head
	for hit := range es.Elements(es.Member(a.Body, "hits"), "hits") {
		it := es.ParseItem(hit)
		h := &head{}
		if json.Unmarshal(it.Source, h) == nil && h.Kind == kindHead {
			h.numbers = it.Numbers
			all = append(all, h)
		}
	}
	return all, nil
}

// Clean removes what is left of journals that have ended long ago: first what was noted, and later that there was a journal. It says of how
// many.
func (s *Store) Clean(ctx context.Context) (cleaned int, err error) {
	heads, err := s.find(ctx, fmt.Sprintf(`{"range":{"until":{"gt":0,"lte":%d}}}`, s.o.Now().UnixMilli()))
	for _, h := range heads {
		if h.State != committed && h.State != undone {
			continue
		}
		if err := s.clean(ctx, h); err != nil {
			return cleaned, err
		}
		cleaned++
	}
	return cleaned, err
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
	if err := s.putHead(ctx, h); err != nil && err != errLost { //nolint:errorlint // ours, never wrapped
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

func (s *Store) deleteAll(ctx context.Context, ids []string) error {
	var b bytes.Buffer
	for _, id := range ids {
		fmt.Fprintf(&b, `{"delete":{"_id":%q}}`+"\n", id)
	}
	if len(ids) == 0 {
		return nil
	}
	if a, err := s.own.Ask(ctx, esapi.BulkRequest{Index: s.index, Body: &b}, false); err != nil || a.Status != http.StatusOK {
		return s.own.ErrorOf(a, err)
	}
	return nil
}
