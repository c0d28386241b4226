package es

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/doc"
)

// Fetched is one of several documents that were read together. Err is one of Fetch's errors.
type Fetched struct {
	doc.Revision
	Routing string // that the document was written with
	Err     error
}

// FetchAll is Fetch for several documents in one request. The error is of the request as a whole.
func (c *Client) FetchAll(ctx context.Context, caller Caller, ds []Document) ([]Fetched, error) {
	body := []byte(`{"docs":[`)
	for i := range ds {
		d := &ds[i]
		if i > 0 {
			body = append(body, ',')
		}
		body = gjson.AppendJSONString(append(body, `{"_index":`...), d.asked())
		if d.Type != "" {
			body = gjson.AppendJSONString(append(body, `,"_type":`...), d.Type)
		}
		body = gjson.AppendJSONString(append(body, `,"_id":`...), d.ID)
		if d.Routing != "" {
			body = gjson.AppendJSONString(append(body, `,"routing":`...), d.Routing)
		}
		body = append(body, `,"_source":true}`...)
	}
	req := esapi.MgetRequest{Body: bytes.NewReader(append(body, "]}"...))}
	a, err := Ask(ctx, c.Upstream, req, Way{Caller: caller, Timeout: patience, Reads: true})
	switch {
	case err != nil:
		return nil, err
	case a.Status != http.StatusOK:
		return nil, a.failure()
	}
	all := make([]Fetched, 0, len(ds))
	for element := range Elements(a.Body, "docs") {
		if len(all) < len(ds) {
			all = append(all, c.fetched(&ds[len(all)], element))
		}
	}
	if len(all) < len(ds) {
		return nil, &StatusError{Status: a.Status, Body: a.Body}
	}
	return all, nil
}

// fetched is the document d in the answer to an _mget.
func (c *Client) fetched(d *Document, element []byte) (f Fetched) {
	it := ParseItem(element)
	switch cause := Member(element, "error"); {
	case cause != nil && gjson.GetBytes(cause, "type").Str == "index_not_found_exception":
		f.Err = fmt.Errorf("%w: %s", ErrNoIndex, strconv.Quote(string(it.Index)))
	case cause != nil:
		f.Err = &StatusError{Status: http.StatusInternalServerError, Body: append(append([]byte(`{"error":`), cause...), '}')}
	case it.IsElsewhere("", d.ID):
		f.Err = ErrAnothers
	case d.isElsewhere(&it):
		f.Err = ErrElsewhere
	case it.Missing:
		f.Err = doc.ErrMissing
	default:
		f.Routing = it.Routing()
		f.Revision, f.Err = c.found(&it)
	}
	return f
}
