package undo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"optimist/internal/doc"
	"optimist/internal/es"
)

// format is the number of the records' format. A program that is too old for an index refuses it.
const format = 1

// generation is the ending of the index's own name. What is configured is an alias of it, and every write asks for the alias: an index
// that somebody deletes isn't made anew by the engine, without our mapping.
const generation = "-1"

// settings are the index's. Only what is searched is mapped; the rest is there as it was stored.
const settings = `{"settings":{"index":{"number_of_shards":1,"auto_expand_replicas":"0-1","hidden":true}},` +
	`"aliases":{"%s":{"is_hidden":true}},` +
	`"mappings":{"dynamic":false,"_meta":{"optimist":{"format":%d}},"properties":{"kind":{"type":"keyword"},"state":{"type":"keyword"},` +
	`"until":{"type":"long"}}}}`

// stage is how far a journal has come.
type stage string

// The stages. The one write that makes committed or rolling of open decides.
const (
	isOpen    stage = "open"      // writes are noted
	committed stage = "committed" // they stay
	rolling   stage = "rolling"   // they are being undone
	undone    stage = "undone"    // they are
)

// head is the record of a journal: one for each token.
type head struct {
	Kind  string `json:"kind"`
	State stage  `json:"state"`
	Token int64  `json:"token"`
	Doc   string `json:"doc"`  // that of the lock
	Lock  string `json:"lock"` // as users name it
	Path  string `json:"path,omitempty"`
	Owner string `json:"owner,omitempty"`
	Began int64  `json:"began,omitempty"` // when, in ms

	Claim string    `json:"claim,omitempty"` // who undoes
	Beat  int       `json:"beat,omitempty"`  // counts up while it does
	Batch int       `json:"batch,omitempty"` // what it is at
	Plan  []planned `json:"plan,omitempty"`  // and what it is about to write
	Left  []int     `json:"left,omitempty"`  // which of the journal's documents have a dead letter

	Pages  int   `json:"pages,omitempty"`  // how many there are, of one that has ended
	Until  int64 `json:"until,omitempty"`  // when what is left of it may go, in ms
	Purged bool  `json:"purged,omitempty"` // the pages are gone

	numbers doc.Numbers
}

// planned is what the rollback is about to make of a document.
type planned struct {
	Doc   int         `json:"d"` // which of the journal's
	Guard doc.Numbers `json:"g"`
	Hash  string      `json:"h"` // of the image; empty: no document
	// Again says that an earlier plan may have been carried out before this one.
	Again bool `json:"u,omitempty"`
	Done  bool `json:"f,omitempty"` // it is written
}

// page is a record of writes that are noted together. The pages of a journal are numbered from 1 without a gap; the last is an end, after
// which nothing can be noted.
type page struct {
	Kind   string  `json:"kind"`         // page or end
	ID     string  `json:"rid"`          // of this write of it
	At     int64   `json:"at,omitempty"` // when it was noted, in ms
	Writes int     `json:"writes"`
	Bytes  int64   `json:"bytes"` // of all pages so far
	Notes  []note  `json:"notes,omitempty"`
	Acked  []Place `json:"acked,omitempty"`  // notes before, whose writes are applied
	Failed []Place `json:"failed,omitempty"` // and whose never will be
}

// Place is where a write is noted.
type Place struct {
	Page int `json:"p"`
	Nth  int `json:"n"`
}

// note is one write that is about to be sent.
type note struct {
	Index   string      `json:"x"`
	ID      string      `json:"i"`
	Routing string      `json:"r,omitempty"`
	Rule    string      `json:"u,omitempty"`
	Guard   doc.Numbers `json:"g"`
	Before  image       `json:"b"`
	After   image       `json:"a"`
}

// image is a document; nil is none.
type image = es.Bytes

// hash tells images apart. That of no document is empty.
func hash(b image) string {
	if b == nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// register is the record of a lock's document: which journals were begun under its leases, and aren't settled.
type register struct {
	Kind string  `json:"kind"`
	Doc  string  `json:"doc"`
	Open []begun `json:"open"`

	numbers doc.Numbers
}

type begun struct {
	Token int64  `json:"token"`
	Path  string `json:"path,omitempty"`
}

func headID(token int64) string { return "head-" + strconv.FormatInt(token, 10) }
func pageID(token int64, n int) string {
	return "page-" + strconv.FormatInt(token, 10) + "-" + strconv.Itoa(n)
}
func registerID(lock string) string {
	sum := sha256.Sum256([]byte(lock))
	return "lock-" + hex.EncodeToString(sum[:])
}

// put writes a record in the place of a revision, or, of the zero value, a new one. ok is false where something else is there. After a
// lost answer it is false, too: the record has to be read.
func (s *Store) put(ctx context.Context, id string, record any, in doc.Numbers) (n doc.Numbers, ok bool, err error) {
	body, err := json.Marshal(record)
	if err != nil {
		return n, false, err
	}
	yes := true
	req := esapi.IndexRequest{Index: s.index, DocumentID: id, OpType: "create", Body: bytes.NewReader(body), RequireAlias: &yes}
	if in.Known() {
		seq, term := int(in.SeqNo), int(in.PrimaryTerm)
		req.OpType, req.IfSeqNo, req.IfPrimaryTerm = "", &seq, &term
	}
	a, err := s.own.Ask(ctx, req, false)
	switch {
	case es.IsLost(err):
		return n, false, nil
	case err != nil:
		return n, false, err
	case a.Status == http.StatusConflict:
		return n, false, nil
	case a.Status != http.StatusOK && a.Status != http.StatusCreated:
		if a.Status == http.StatusNotFound {
			s.own.Forget()
		}
		return n, false, s.own.Failure(a)
	}
	return es.ParseItem(a.Body).Numbers, true, nil
}

// get reads a record, in real time. found is false where there is none.
func (s *Store) get(ctx context.Context, id string, record any) (n doc.Numbers, found bool, err error) {
	a, err := s.own.Ask(ctx, esapi.GetRequest{Index: s.index, DocumentID: id}, true)
	switch {
	case err != nil:
		return n, false, err
	case a.Status == http.StatusNotFound:
		return n, false, nil
	case a.Status != http.StatusOK:
		return n, false, s.own.Failure(a)
	}
	it := es.ParseItem(a.Body)
	if err := json.Unmarshal(it.Source, record); err != nil {
		return n, false, fmt.Errorf("%w: the record %s can't be read: %w", ErrStore, id, err)
	}
	return it.Numbers, true, nil
}

// head reads a journal's record; nil if there is none.
func (s *Store) head(ctx context.Context, token int64) (*head, error) {
	h := &head{}
	n, found, err := s.get(ctx, headID(token), h)
	if err != nil || !found {
		return nil, err
	}
	h.numbers = n
	return h, nil
}

// putHead writes a journal's record in the place of the one that was read. The error is errLost where somebody else has changed it.
func (s *Store) putHead(ctx context.Context, h *head) error {
	n, ok, err := s.put(ctx, headID(h.Token), h, h.numbers)
	if err == nil && !ok {
		now, failed := s.head(ctx, h.Token) // the answer may have been lost
		if failed != nil {
			return failed
		}
		if now == nil || !now.same(h) {
			return errLost
		}
		n = now.numbers
	}
	if err == nil {
		h.numbers = n
	}
	return err
}

// same reports whether a record is the one that was to be written. Whoever undoes counts up.
func (h *head) same(o *head) bool {
	return h.State == o.State && h.Claim == o.Claim && h.Beat == o.Beat && h.Batch == o.Batch && h.Purged == o.Purged && o.Claim != ""
}

// pages reads pages from the nth on, as far as there are any, most of them at most.
func (s *Store) pages(ctx context.Context, token int64, from, most int) ([]*page, error) {
	ids := make([]string, most)
	for i := range ids {
		ids[i] = pageID(token, from+i)
	}
	var out []*page
	ended := false
	err := s.getAll(ctx, ids, func(it *es.Item) error {
		if ended = ended || it.Missing; ended {
			return nil
		}
		p := &page{}
		if err := json.Unmarshal(it.Source, p); err != nil {
			return fmt.Errorf("%w: a page can't be read: %w", ErrStore, err)
		}
		out = append(out, p)
		return nil
	})
	return out, err
}

// getAll reads records in one request, in real time.
func (s *Store) getAll(ctx context.Context, ids []string, each func(*es.Item) error) error {
	body, err := json.Marshal(map[string]any{"ids": ids})
	if err != nil {
		return err
	}
	a, err := s.own.Ask(ctx, esapi.MgetRequest{Index: s.index, Body: bytes.NewReader(body)}, true)
	switch {
	case err != nil:
		return err
	case a.Status != http.StatusOK:
		return s.own.Failure(a)
	}
	for element := range es.Elements(a.Body, "docs") {
		it := es.ParseItem(element)
		if !it.Found && !it.Missing {
			return fmt.Errorf("%w: %.300s", ErrStore, element)
		}
		if err := each(&it); err != nil {
			return err
		}
	}
	return nil
}
