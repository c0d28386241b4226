package undo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/share"
	"optimist/internal/upstream"
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

// The kinds of records that have the id of a token.
const (
	kindHead   = "head"
	kindMember = "member"
)

// head is the record of a journal. Its token is that of its lease; of a journal of several leases, that of the first one. Each other token
// of such a journal has a record of its own, a member, which says only which journal that is.
type head struct {
	Kind  string `json:"kind"`
	State stage  `json:"state"`
	Token int64  `json:"token"`
	Doc   string `json:"doc"`  // that of the lock
	Lock  string `json:"lock"` // as users name it
	Path  string `json:"path,omitempty"`
	Owner string `json:"owner,omitempty"`
	Began int64  `json:"began,omitempty"` // when, in ms
	// Leases is of how many leases the journal is, if there are several. The lists of leases name them.
	Leases  int   `json:"leases,omitempty"`
	Journal int64 `json:"journal,omitempty"` // of a member: the token of its journal

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
	Done  bool `json:"f,omitempty"` // it is written, and has its dead letter if it needs one
	// Why says what the image leaves. Whoever finds the plan carried out makes the dead letter of it. Empty: nothing is left.
	Why string `json:"w,omitempty"`
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
	Acked  []acked `json:"acked,omitempty"`  // notes before, whose writes are applied
	Failed []Place `json:"failed,omitempty"` // and whose never will be
}

// Place is where a write is noted.
type Place struct {
	Page int `json:"p"`
	Nth  int `json:"n"`
}

// acked is the note of a write that is applied, and the revision that the write made; zero: not known.
type acked struct {
	Place
	Made    doc.Numbers `json:"g,omitzero"`
	Version int64       `json:"v,omitempty"`
}

// note is one write that is about to be sent.
type note struct {
	Index   string      `json:"x"`
	UUID    string      `json:"k,omitempty"` // of the index; empty: not known
	ID      string      `json:"i"`
	Routing string      `json:"r,omitempty"`
	Rule    string      `json:"u,omitempty"`
	Guard   doc.Numbers `json:"g"`
	Before  image       `json:"b"`
	After   image       `json:"a"`
	Tenant
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

// leaseList is a record of some of a journal's leases, if it has several. The lists are numbered from 1.
type leaseList struct {
	Kind   string  `json:"kind"` // leases
	Leases []lease `json:"leases"`
}

type lease struct {
	Doc   string `json:"doc"`
	Lock  string `json:"lock"`
	Token int64  `json:"token"`
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
func leasesID(token int64, n int) string {
	return "leases-" + strconv.FormatInt(token, 10) + "-" + strconv.Itoa(n)
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
	case a.Status == http.StatusRequestEntityTooLarge:
		return n, false, fmt.Errorf("%w: the engine takes no record of %d bytes", ErrFull, len(body))
	case a.Status != http.StatusOK && a.Status != http.StatusCreated:
		if a.Status == http.StatusNotFound {
			s.own.Forget()
		}
		return n, false, s.own.Failure(a)
	}
	return es.ParseItem(a.Body).Numbers, true, nil
}

// record is one of several that are written together.
type record struct {
	id  string
	is  any         // nil: the record is deleted
	in  doc.Numbers // of the revision in whose place it is written; the zero value: a new one
	put bool        // it was written, or deleted. After a lost answer it is false, too
}

// putAll is put for several records.
func (s *Store) putAll(ctx context.Context, records []*record) error {
	var body bytes.Buffer
	for _, r := range records {
		action, verb := map[string]any{"_id": r.id}, "create"
		if r.in.Known() {
			verb, action["if_seq_no"], action["if_primary_term"] = "index", r.in.SeqNo, r.in.PrimaryTerm
		}
		lines := []any{map[string]any{verb: action}, r.is}
		if r.is == nil {
			lines = []any{map[string]any{"delete": action}}
		}
		for _, line := range lines {
			text, err := json.Marshal(line)
			if err != nil {
				return err
			}
			body.Write(append(text, '\n'))
		}
	}
	yes := true
	a, err := s.own.Ask(ctx, esapi.BulkRequest{Index: s.index, Body: &body, RequireAlias: &yes}, false)
	switch {
	case es.IsLost(err):
		return nil
	case err != nil:
		return err
	case a.Status != http.StatusOK:
		return s.own.Failure(a)
	}
	nth := 0
	for item := range es.Elements(a.Body, "items") {
		did := gjson.GetBytes(item, "*")
		status := int(did.Get("status").Int())
		switch {
		case nth == len(records):
			return fmt.Errorf("%w: an answer has more items than the request", ErrStore)
		case status == http.StatusOK, status == http.StatusCreated:
			records[nth].put = true
		case status == http.StatusNotFound:
			s.own.Forget()
			fallthrough
		case status != http.StatusConflict:
			return s.own.Failure(es.Answer{Status: status, Body: []byte(did.Raw)})
		}
		nth++
	}
	return nil
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
		return n, false, unreadable(id, err)
	}
	return it.Numbers, true, nil
}

// unreadable is the error of a record that somebody has damaged. It names the record for the operator: nobody else can mend it.
func unreadable(id string, err error) error {
	return fmt.Errorf("%w: the record %s is damaged, and an operator has to mend it: %w", ErrStore, id, err)
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
	err := s.getAll(ctx, ids, func(nth int, it *es.Item) error {
		if ended = ended || it.Missing; ended {
			return nil
		}
		p := &page{}
		if err := json.Unmarshal(it.Source, p); err != nil {
			return unreadable(ids[nth], err)
		}
		out = append(out, p)
		return nil
	})
	return out, err
}

// getAll reads records in one request, in real time, and gives each of them to a function, in the order of the ids. Records that are too
// large for one answer are read in two halves.
func (s *Store) getAll(ctx context.Context, ids []string, each func(nth int, it *es.Item) error) error {
	return s.getAllFor(ctx, share.Client{}, ids, each)
}

// getAllFor is getAll for a client, whose places it takes.
func (s *Store) getAllFor(ctx context.Context, by share.Client, ids []string, each func(nth int, it *es.Item) error) error {
	if len(ids) == 0 {
		return nil
	}
	body, err := json.Marshal(map[string]any{"ids": ids})
	if err != nil {
		return err
	}
	a, err := s.own.AskFor(ctx, by, esapi.MgetRequest{Index: s.index, Body: bytes.NewReader(body)}, true)
	switch {
	case errors.Is(err, upstream.ErrTooLarge) && len(ids) > 1:
		half := len(ids) / 2
		if err := s.getAllFor(ctx, by, ids[:half], each); err != nil {
			return err
		}
		return s.getAllFor(ctx, by, ids[half:], func(nth int, it *es.Item) error { return each(half+nth, it) })
	case err != nil:
		return err
	case a.Status != http.StatusOK:
		return s.own.Failure(a)
	}
	nth := 0
	for element := range es.Elements(a.Body, "docs") {
		it := es.ParseItem(element)
		// Without the index there are no records, as for get.
		it.Missing = it.Missing || gjson.GetBytes(element, "error.type").Str == "index_not_found_exception"
		switch {
		case nth == len(ids):
			return fmt.Errorf("%w: the engine's answer has more documents than the request", ErrStore)
		case !it.Found && !it.Missing:
			return s.own.Failure(es.Answer{Status: a.Status, Body: element})
		}
		if err := each(nth, &it); err != nil {
			return err
		}
		nth++
	}
	if nth < len(ids) {
		return fmt.Errorf("%w: the engine's answer has %d documents of %d", ErrStore, nth, len(ids))
	}
	return nil
}
