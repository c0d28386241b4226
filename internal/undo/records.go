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
	"slices"
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

// generation is the ending of the index's own name. The configured name is an alias of the index, and every write requires the alias. If
// somebody deletes the index, the engine then refuses a write: it doesn't make the index anew without our mapping.
const generation = "-1"

// settings are the index's. Only what is searched is mapped; the rest is there as it was stored.
const settings = `{"settings":{"index":{"number_of_shards":1,"auto_expand_replicas":"0-1","hidden":true}},` +
	`"aliases":{"%s":{"is_hidden":true}},` +
	`"mappings":{"dynamic":false,"_meta":{"optimist":{"format":%d}},"properties":{"kind":{"type":"keyword"},"state":{"type":"keyword"},` +
	`"until":{"type":"long"}}}}`

// stage is how far a journal has come.
type stage string

// The stages. The write that replaces open by committed or by rolling decides: the engine accepts only one.
const (
	isOpen    stage = "open"      // writes are noted
	committed stage = "committed" // the writes stay
	rolling   stage = "rolling"   // a proxy undoes the writes
	undone    stage = "undone"    // the writes are undone
)

// The kinds of records. A head and a member have the id of a token.
const (
	kindHead     = "head"
	kindMember   = "member"
	kindPage     = "page"
	kindEnd      = "end"
	kindLeases   = "leases"
	kindRegister = "lock"
)

// head is the record of a journal. Its token is the token of the journal's lease. If the journal has several leases, it is the token of the
// first one. Each other token then has a record of its own, a member. It says only to which journal the token belongs.
type head struct {
	Kind  string `json:"kind"`
	State stage  `json:"state"`
	Token int64  `json:"token"`
	Doc   string `json:"doc"`  // the id of the lock's document
	Lock  string `json:"lock"` // the lock as users name it
	Path  string `json:"path,omitempty"`
	Owner string `json:"owner,omitempty"`
	Began int64  `json:"began,omitempty"` // when the journal was begun, in ms
	// Leases is the number of the journal's leases, if there are several. The lists of leases name them.
	Leases  int   `json:"leases,omitempty"`
	Journal int64 `json:"journal,omitempty"` // of a member: the token of its journal

	Claim string    `json:"claim,omitempty"` // the process that undoes
	Beat  int       `json:"beat,omitempty"`  // that process counts it up, to show that it makes progress
	Batch int       `json:"batch,omitempty"` // the number of the batch that it is undoing, from 1
	Plan  []planned `json:"plan,omitempty"`  // what it is about to write in that batch
	Left  []int     `json:"left,omitempty"`  // the places of those of the journal's documents that have a dead letter

	Pages  int   `json:"pages,omitempty"`  // of a journal that has ended: the number of its pages, the end included
	Until  int64 `json:"until,omitempty"`  // when Clean may remove the pages or, once they are gone, this record, in ms
	Purged bool  `json:"purged,omitempty"` // the pages are gone

	numbers doc.Numbers
}

// planned is a write by which a rollback is about to restore a document.
type planned struct {
	Doc   int         `json:"d"` // the document's place among the journal's documents
	Guard doc.Numbers `json:"g"`
	Hash  string      `json:"h"` // of the image that is to be written; empty: the document is to be deleted
	// Again says that the write of an earlier plan may have been applied before this one.
	Again bool `json:"u,omitempty"`
	Done  bool `json:"f,omitempty"` // the document is written, and has its dead letter if it needs one
	// Why says what the write can't undo: that becomes a dead letter. Empty: nothing. A proxy that takes the rollback over, and finds the
	// write applied, needs it for the dead letter.
	Why string `json:"w,omitempty"`
}

// page is a record of writes that are noted together. The pages of a journal are numbered from 1 without a gap; the last is an end, after
// which nothing can be noted.
type page struct {
	Kind   string  `json:"kind"`         // kindPage or kindEnd
	ID     string  `json:"rid"`          // tells this process's page from another's of the same number
	At     int64   `json:"at,omitempty"` // when the writes were noted, in ms
	Writes int     `json:"writes"`       // on all pages up to this one
	Bytes  int64   `json:"bytes"`        // of all pages up to this one
	Notes  []note  `json:"notes,omitempty"`
	Acked  []acked `json:"acked,omitempty"`  // notes of earlier pages whose writes were applied
	Failed []Place `json:"failed,omitempty"` // notes of earlier pages whose writes weren't applied, and never will be
}

// Place is where a write is noted.
type Place struct {
	Page int `json:"p"`
	Nth  int `json:"n"`
}

// acked is the place of a write that was applied, and the revision that the write made. A zero revision isn't known.
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

// hash tells images apart. The hash of no document is empty.
func hash(b image) string {
	if b == nil {
		return ""
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

// leaseList is a record of some leases of a journal that has several. The lists of a journal are numbered from 1.
type leaseList struct {
	Kind   string `json:"kind"`
	Leases []Lock `json:"leases"`
}

// register is the record of a lock's document. It names the journals that were begun under leases of that document's locks and aren't
// settled yet.
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

// pageIDs are the ids of some pages of a journal, from the nth on.
func pageIDs(token int64, nth, some int) []string {
	ids := make([]string, some)
	for i := range ids {
		ids[i] = pageID(token, nth+i)
	}
	return ids
}

func leasesID(token int64, n int) string {
	return "leases-" + strconv.FormatInt(token, 10) + "-" + strconv.Itoa(n)
}

func registerID(lock string) string {
	sum := sha256.Sum256([]byte(lock))
	return "lock-" + hex.EncodeToString(sum[:])
}

// record is one that is written.
type record struct {
	id  string
	is  any         // nil: the record is to be deleted
	in  doc.Numbers // the revision in whose place it is written; zero: it is a new record. Once put is true, the one that was written
	put bool        // the engine has written, or deleted it. After a lost answer it is false, too
}

// put writes a record: in the place of the revision in, or as a new one if in is zero. ok is false if the engine has another revision. It
// is also false if the answer is lost: then the caller has to read the record.
func (s *Store) put(ctx context.Context, id string, is any, in doc.Numbers) (n doc.Numbers, ok bool, err error) {
	r := &record{id: id, is: is, in: in}
	err = s.putAll(ctx, []*record{r})
	return r.in, r.put, err
}

// putAll is put for several records.
func (s *Store) putAll(ctx context.Context, records []*record) error {
	var all bytes.Buffer
	for _, r := range records {
		var body []byte
		var err error
		if r.is != nil {
			body, err = json.Marshal(r.is)
		}
		if err == nil {
			err = appendItem(&all, map[string]any{"_id": r.id}, r.in, body)
		}
		if err != nil {
			return err
		}
	}
	size := all.Len()
	a, err := s.own.Ask(ctx, esapi.BulkRequest{Index: s.index, Body: &all, RequireAlias: new(true)}, false)
	switch {
	case es.IsLost(err):
		return nil
	case err != nil:
		return err
	case a.Status == http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: the engine takes no record of %d bytes", ErrFull, size)
	case a.Status != http.StatusOK:
		return s.own.Failure(a)
	}
	nth := 0
	for item := range es.Elements(a.Body, "items") {
		if nth == len(records) {
			return fmt.Errorf("%w: an answer has more items than the request", ErrStore)
		}
		if err := s.wasPut(records[nth], gjson.GetBytes(item, "*")); err != nil {
			return err
		}
		nth++
	}
	return nil
}

// wasPut notes what the engine did with a record. It is no error if the engine has another revision of the record. Nor is a success without
// a result, which isn't the engine's acknowledgement: it counts as a lost answer.
func (s *Store) wasPut(r *record, did gjson.Result) error {
	it := es.ParseItem([]byte(did.Raw))
	switch status := it.Status; {
	case status == http.StatusOK, status == http.StatusCreated:
		if r.put = len(it.Result) > 0; r.put {
			r.in = it.Numbers
		}
	case status == http.StatusNotFound && r.is == nil:
		r.put = true
	case status == http.StatusNotFound:
		s.own.Forget()
		fallthrough
	case status != http.StatusConflict:
		return s.own.Failure(es.Answer{Status: status, Body: []byte(did.Raw)})
	}
	return nil
}

// appendItem appends a write as an item of a bulk: in the place of the revision in, or of a new document if in is zero. A nil body is a
// delete.
func appendItem(b *bytes.Buffer, action map[string]any, in doc.Numbers, body []byte) error {
	verb := "create"
	if in.Known() {
		verb, action["if_seq_no"], action["if_primary_term"] = "index", in.SeqNo, in.PrimaryTerm
	}
	if body == nil {
		verb = "delete"
	}
	line, err := json.Marshal(map[string]any{verb: action})
	if err != nil {
		return err
	}
	b.Write(append(line, '\n'))
	if body != nil {
		b.Write(body)
		b.WriteByte('\n')
	}
	return nil
}

// untilNone calls try for parts of a list, and again for what try returns of a part, until nothing is left.
func untilNone[T any](all []T, try func(some []T) (again []T, err error)) (err error) {
	for some := range slices.Chunk(all, pageEntries) {
		for n := 0; len(some) > 0; n++ {
			if n == tries {
				return ErrStore
			}
			if some, err = try(some); err != nil {
				return err
			}
		}
	}
	return nil
}

// each is f of each element.
func each[T, U any](all []T, f func(T) U) []U {
	of := make([]U, len(all))
	for i := range all {
		of[i] = f(all[i])
	}
	return of
}

// unreadable is the error of a record that somebody has damaged. It names the record for the operator, because only an operator can mend
// it.
func unreadable(id string, err error) error {
	return fmt.Errorf("%w: the record %s is damaged, and an operator has to mend it: %w", ErrStore, id, err)
}

// head reads a journal's record; nil if there is none.
func (s *Store) head(ctx context.Context, token int64) (h *head, err error) {
	err = s.getAll(ctx, []string{headID(token)}, func(_ int, it *es.Item) (err error) {
		h, err = headIn(it)
		return err
	})
	return h, err
}

// headIn is the head in an answer; nil if it is missing there, or damaged.
func headIn(it *es.Item) (*head, error) {
	h := &head{numbers: it.Numbers}
	if it.Missing {
		return nil, nil
	}
	if err := json.Unmarshal(it.Source, h); err != nil {
		return nil, unreadable(it.ID(), err)
	}
	return h, nil
}

// putHead writes a journal's record in the place of the one that was read. The error is errLost if another process has changed the record.
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

// same reports whether the stored record h is o, which this process has tried to write. A record without a claim may be any process's.
func (h *head) same(o *head) bool {
	return h.State == o.State && h.Claim == o.Claim && h.Beat == o.Beat && h.Batch == o.Batch && h.Purged == o.Purged && o.Claim != ""
}

// pagesAtOnce is the number of pages that one request reads.
const pagesAtOnce = 20

// eachPage reads the pages of a journal from the nth on, and gives each to take, in their order. ended says that the journal's end follows
// them: no further page can come.
func (s *Store) eachPage(ctx context.Context, token int64, from int, take func(*page)) (ended bool, err error) {
	for {
		some, err := s.pages(ctx, token, from, pagesAtOnce)
		if err != nil || len(some) == 0 {
			return false, err
		}
		for _, p := range some {
			if p.Kind == kindEnd {
				return true, nil
			}
			take(p)
		}
		from += len(some)
	}
}

// pages reads the pages of a journal from the nth on. There may be none. It reads most of them at most.
func (s *Store) pages(ctx context.Context, token int64, from, most int) ([]*page, error) {
	ids := pageIDs(token, from, most)
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

// getAllFor is getAll on behalf of a client: the request takes the client's places at the engine.
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
	case errors.Is(err, upstream.TooLarge) && len(ids) > 1:
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
