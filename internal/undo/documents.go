package undo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/upstream"
)

// The documents that a rollback reads and writes.

// target is a document of the batch that isn't restored yet.
type target struct {
	*document
	nth    int // the document's place among the journal's documents
	cur    doc.Revision
	plan   *planned // the last plan; nil: there is none yet
	unsure bool     // the planned write may have been applied
	img    image    // what the document is to become, by the plan
}

// indices returns the UUIDs of the documents' indices, by tenant and name. An empty one isn't known. Call it after the documents were read:
// then an index that still has its UUID is the one that they were read from.
func (u *undoing) indices(ctx context.Context, all []*target) (map[tenantRef]string, error) {
	uuids := map[tenantRef]string{}
	for _, t := range all {
		at := t.index()
		if _, known := uuids[at]; known {
			continue
		}
		if err := u.beat(ctx, "indices"); err != nil {
			return nil, err
		}
		ix, err := u.s.docs.ResolveIndex(ctx, u.s.caller(t.tenantOf()), t.Index)
		if err != nil && !errors.Is(err, es.ErrNoIndex) && !errors.Is(err, es.ErrForbidden) {
			return nil, u.s.failed(t.Index, err)
		}
		uuids[at] = ix.UUID
	}
	return uuids, nil
}

// index names the index that the document is in.
func (d *document) index() tenantRef { return tenantRef{doc.Ref{Index: d.Index}, d.tenant} }

// fetch reads documents as they are now.
func (u *undoing) fetch(ctx context.Context, all []*target) ([]es.Fetched, error) {
	if len(all) == 0 {
		return nil, nil
	}
	if n := inOneTenant(all); n < len(all) {
		return u.fetchApart(ctx, all, n)
	}
	docs := make([]es.Document, len(all))
	for i, t := range all {
		docs[i].Ref = t.Ref
	}
	found, err := u.s.docs.FetchAll(ctx, u.s.caller(all[0].tenantOf()), docs)
	switch {
	case err == nil:
		return found, nil
	case errors.Is(err, upstream.TooLarge) && len(all) > 1:
		return u.fetchApart(ctx, all, len(all)/2)
	}
	return nil, u.s.failed(all[0].Index, err)
}

// failed is the error of a request about an index whose documents are undone. A client may see this error, so it hasn't the engine's
// reason.
func (s *Store) failed(index string, err error) error {
	if answer, ok := errors.AsType[*es.StatusError](err); ok {
		return s.own.FailureAt(index, es.Answer{Status: answer.Status, Body: answer.Body})
	}
	return fmt.Errorf("%w: %w", ErrStore, err)
}

// fetchApart is fetch for documents that can't come in one answer: the first n, then the others.
func (u *undoing) fetchApart(ctx context.Context, all []*target, n int) ([]es.Fetched, error) {
	found, err := u.fetch(ctx, all[:n])
	if err != nil {
		return nil, err
	}
	if err := u.beat(ctx, "fetch"); err != nil {
		return nil, err
	}
	rest, err := u.fetch(ctx, all[n:])
	return append(found, rest...), err
}

// result is the engine's answer to one write. Status 0: the answer is lost.
type result struct {
	status int
	body   []byte
}

// writeAll writes documents, as many as possible in each bulk. After an error no result counts: the next attempt reads the documents again,
// and finds which of them were written.
func (u *undoing) writeAll(ctx context.Context, all []*target) ([]result, error) {
	results := make([]result, len(all))
	for from := 0; from < len(all); {
		if err := u.beat(ctx, "bulk"); err != nil {
			return nil, err
		}
		n := u.s.inOneBulk(all[from:])
		if err := u.s.writeSome(ctx, all[from:from+n], results[from:from+n]); err != nil {
			return nil, err
		}
		from += n
	}
	return results, nil
}

// inOneBulk is how many of the first documents go in one bulk: at least one.
func (s *Store) inOneBulk(all []*target) (n int) {
	all = all[:inOneTenant(all)]
	size := len(all[0].img)
	for n = 1; n < len(all) && !s.goesAlone(all[n-1]) && !s.goesAlone(all[n]); n++ {
		if size += len(all[n].img); size > s.o.BulkBytes {
			break
		}
	}
	return n
}

// goesAlone reports whether a document is no item of a bulk: it is too large, or a line break in it would make two lines of it.
func (s *Store) goesAlone(t *target) bool {
	return len(t.img) > s.o.BulkBytes || bytes.ContainsAny(t.img, "\r\n")
}

// writeSome writes documents in one request. If a gateway before the engine finds it too large, writeSome sends two halves.
func (s *Store) writeSome(ctx context.Context, some []*target, results []result) (err error) {
	if s.goesAlone(some[0]) {
		results[0], err = s.writeOne(ctx, some[0])
		return err
	}
	var body bytes.Buffer
	for _, t := range some {
		action := map[string]any{"_index": t.Index, "_id": t.ID}
		if t.img != nil {
			action["pipeline"] = "_none"
		}
		if t.Routing != "" {
			action["routing"] = t.Routing
		}
		if err := appendItem(&body, action, t.cur.Numbers, t.img); err != nil {
			return err
		}
	}
	a, err := s.ask(ctx, some[0].tenantOf(), esapi.BulkRequest{Body: &body})
	switch {
	case es.IsLost(err):
		return nil
	case err != nil:
		return err
	case a.Status == http.StatusRequestEntityTooLarge && len(some) > 1:
		half := len(some) / 2
		if err := s.writeSome(ctx, some[:half], results[:half]); err != nil {
			return err
		}
		return s.writeSome(ctx, some[half:], results[half:])
	case a.Status == http.StatusRequestEntityTooLarge:
		results[0] = result{a.Status, a.Body}
		return nil
	case a.Status != http.StatusOK:
		return s.own.Failure(a)
	}
	k := 0
	for item := range es.Elements(a.Body, "items") {
		if k < len(some) {
			gjson.ParseBytes(item).ForEach(func(_, did gjson.Result) bool {
				results[k] = result{int(did.Get("status").Int()), []byte(did.Raw)}
				return false
			})
			k++
		}
	}
	return nil
}

func (s *Store) writeOne(ctx context.Context, t *target) (result, error) {
	req := esapi.IndexRequest{Index: es.Segment(t.Index), DocumentID: es.Segment(t.ID), Routing: t.Routing, Pipeline: "_none",
		OpType: "create", Body: bytes.NewReader(t.img)}
	if t.cur.Known() {
		req.OpType, req.IfSeqNo, req.IfPrimaryTerm = "", new(int(t.cur.SeqNo)), new(int(t.cur.PrimaryTerm))
	}
	a, err := s.ask(ctx, t.tenantOf(), req)
	switch {
	case es.IsLost(err):
		return result{}, nil
	case err != nil:
		return result{}, err
	}
	return result{a.Status, a.Body}, nil
}
