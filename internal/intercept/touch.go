package intercept

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/proxy"
)

// touchedAtOnce is how many documents are read with one request to be touched.
const touchedAtOnce = 100

// Touch writes documents as they are, on behalf of a client: each gets a new sequence number, and not
// one other byte. So a write conflicts whose guard was known before. A document that isn't there can't be touched, and one that somebody
// else writes meanwhile needn't be: its number is new already. Errors are for the client; some documents may have been touched then.
func (i *Interceptor) Touch(ctx context.Context, caller es.Caller, index string, ids []string) error {
	c := i.Identity.Of(caller.Fields, caller.Params, netip.AddrPort{}, nil)
	asker := catalog.Asker{Realm: c.Realm, Credentials: c.Session.Credentials(), Caller: caller}
	ix, err := i.catalog.Resolve(ctx, asker, index, 0)
	if err != nil {
		return failure(err)
	}
	if !ix.Exists() && ix.Unknown == "" {
		return nil // there are no documents
	}
	whole, err := i.catalog.SeesWhole(ctx, asker, index, "")
	switch {
	case err != nil:
		return failure(err)
	case !whole || ix.Partial || ix.Pipeline || ix.Unknown != "":
		return untouchable("[" + index + "]: its documents can't be touched: an ingest pipeline would run over them, or these " +
			"credentials, or the index, don't show all of them")
	}
	for part := range slices.Chunk(ids, touchedAtOnce) {
		if err := i.touch(ctx, caller, index, part); err != nil {
			return err
		}
	}
	return nil
}

func (i *Interceptor) touch(ctx context.Context, caller es.Caller, index string, ids []string) error {
	ds := make([]es.Document, len(ids))
	for k, id := range ids {
		ds[k].Ref = doc.Ref{Index: index, ID: id}
	}
	found, err := i.Documents.FetchAll(ctx, caller, ds)
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
		seqNo, term := int(n.SeqNo), int(n.PrimaryTerm)
		a, err := es.Ask(ctx, i.Upstream, esapi.IndexRequest{Index: es.Segment(index), DocumentID: es.Segment(ids[k]), IfSeqNo: &seqNo,
			IfPrimaryTerm: &term, Pipeline: "_none", Body: bytes.NewReader(n.Source)}, es.Way{Caller: caller})
		switch {
		case err != nil:
			return unasked(err)
		case a.Status >= http.StatusMultipleChoices && a.Status != http.StatusConflict:
			return unasked(&es.StatusError{Status: a.Status, Body: a.Body})
		}
	}
	return nil
}

func untouchable(reason string) error {
	return &proxy.Failure{Status: http.StatusBadRequest, Type: "illegal_argument_exception", Reason: reason + "; nothing was locked"}
}
