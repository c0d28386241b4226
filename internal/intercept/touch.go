package intercept

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/netip"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
)

// touchedAtOnce is how many documents are read with one request to be touched. So many ids must have fewer than mostFound documents.
const (
	touchedAtOnce = 100
	mostFound     = 1000
)

// touch is one request to touch documents, on behalf of a client.
type touch struct {
	i       *Interceptor
	asker   catalog.Asker
	engine  *es.Client
	checked []string // the indices whose documents can be touched
	// searched is the name by which documents are searched for. Empty: the index and the id say where a document is.
	searched string
}

// Touch writes documents as they are, on behalf of a client: each gets a new sequence number, and not
// one other byte. So a write conflicts whose guard was known before. A document that isn't there can't be touched, and one that somebody
// else writes meanwhile needn't be: its number is new already. An id stands for all documents that have it, by whatever routing, and in
// whatever index the name stands for. Errors are for the client; some documents may have been touched then.
func (i *Interceptor) Touch(ctx context.Context, caller es.Caller, index string, ids []string) error {
	c := i.Identity.Of(caller.Fields, caller.Params, netip.AddrPort{}, nil)
	t := &touch{i: i, asker: catalog.Asker{Realm: c.Realm, Credentials: c.Session.Credentials(), Caller: caller},
		engine: &es.Client{Upstream: i.Upstream}}
	ix, err := i.catalog.Resolve(ctx, t.asker, index, 0)
	if err != nil {
		return failure(err)
	}
	if err := t.check(ctx, index, &ix); err != nil {
		return err
	}
	if err := t.prepare(ctx, index, &ix); err != nil {
		if errors.Is(err, es.ErrNoIndex) {
			return nil // there are no documents
		}
		return err
	}
	for part := range slices.Chunk(ids, touchedAtOnce) {
		docs, err := t.find(ctx, index, part)
		if err != nil {
			return err
		}
		for some := range slices.Chunk(docs, touchedAtOnce) {
			if err := t.write(ctx, some); err != nil {
				return err
			}
		}
	}
	return nil
}

// prepare finds out whether an id says where a document is. Elsewhere it prepares the search. An error may be es.ErrNoIndex.
func (t *touch) prepare(ctx context.Context, index string, ix *catalog.Index) error {
	switch {
	case ix.Exists() && ix.OneShard && !ix.MustRoute && !ix.Shared && (ix.Name == index || ix.DataStream == "" && ix.Routing == ""):
		return nil
	case !ix.Narrow:
		t.searched = index
	case ix.Wide == "":
		return untouchable("[" + index + "]: a search by this alias doesn't find all documents of its indices; say an index's name")
	default:
		t.searched = ix.Wide
	}
	err := t.engine.Refresh(ctx, t.asker.Caller, t.searched)
	switch {
	case err == nil, errors.Is(err, es.ErrNoIndex):
		return err
	case errors.Is(err, es.ErrForbidden):
		return untouchable("[" + index + "]: a search has to find which documents have these ids, and these credentials may not refresh " +
			"the index for it")
	}
	return unasked(err)
}

// check makes sure that the documents of an index can be written as they are read.
func (t *touch) check(ctx context.Context, index string, ix *catalog.Index) error {
	whole, err := t.i.catalog.SeesWhole(ctx, t.asker, index, cmp.Or(ix.Routing, "any"))
	switch {
	case err != nil:
		return failure(err)
	case !whole || ix.Partial || ix.Pipeline || ix.Unknown != "":
		return untouchable("[" + index + "]: its documents can't be touched: an ingest pipeline would run over them, or these " +
			"credentials, or the index, don't show all of them")
	}
	t.checked = append(t.checked, index)
	return nil
}

// find is the documents of an index that have these ids.
func (t *touch) find(ctx context.Context, index string, ids []string) ([]doc.Ref, error) {
	if t.searched == "" {
		docs := make([]doc.Ref, len(ids))
		for k, id := range ids {
			docs[k] = doc.Ref{Index: index, ID: id}
		}
		return docs, nil
	}
	query, err := json.Marshal(map[string]any{"ids": map[string]any{"values": ids}})
	if err != nil {
		return nil, err
	}
	docs, err := t.engine.Find(ctx, t.asker.Caller, t.searched, query, mostFound)
	switch {
	case errors.Is(err, es.ErrNoIndex):
		return nil, nil
	case err != nil:
		return nil, unasked(err)
	case len(docs) >= mostFound:
		return nil, untouchable("[" + index + "]: too many documents have the same ids, with different routings")
	}
	for i := range docs {
		name := docs[i].Index
		if slices.Contains(t.checked, name) {
			continue
		}
		ix, err := t.i.catalog.Resolve(ctx, t.asker, name, 0)
		if err != nil {
			return nil, failure(err)
		}
		if err := t.check(ctx, name, &ix); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// write writes documents as they are.
func (t *touch) write(ctx context.Context, docs []doc.Ref) error {
	ds := make([]es.Document, len(docs))
	for k, ref := range docs {
		ds[k].Ref = ref
	}
	found, err := t.i.Documents.FetchAll(ctx, t.asker.Caller, ds)
	if err != nil {
		return unasked(err)
	}
	for k := range found {
		switch err := found[k].Err; {
		case errors.Is(err, doc.ErrMissing), errors.Is(err, es.ErrNoIndex):
			continue
		case err != nil:
			return unasked(err)
		}
		n := found[k].Revision
		req := esapi.IndexRequest{Index: es.Segment(docs[k].Index), DocumentID: es.Segment(docs[k].ID), Routing: found[k].Routing,
			IfSeqNo: new(int(n.SeqNo)), IfPrimaryTerm: new(int(n.PrimaryTerm)), Pipeline: "_none", Body: bytes.NewReader(n.Source)}
		a, err := es.Ask(ctx, t.i.Upstream, req, es.Way{Caller: t.asker.Caller})
		switch {
		case err != nil:
			return unasked(err)
		case a.Status >= http.StatusMultipleChoices && a.Status != http.StatusConflict:
			return unasked(&es.StatusError{Status: a.Status, Body: a.Body, Challenge: a.Challenge})
		}
	}
	return nil
}

func untouchable(reason string) error { return illegal(reason + "; nothing was locked") }
