package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"optimist/internal/doc"
	"optimist/retry"
)

// Written is an acknowledged write.
type Written struct {
	Version     int64  `json:"_version"`
	SeqNo       int64  `json:"_seq_no"`
	PrimaryTerm int64  `json:"_primary_term"`
	Result      string // created, updated or noop
	// Outcome is what optimist says of the write: "guarded;attempts=1;base=explicit", for example. Empty: it went to a bare engine.
	Outcome string `json:"-"`
}

// Change makes of a document what shall stand in its place; source is nil where there is no document.
type Change func(source json.RawMessage) (json.RawMessage, error)

// Update reads a document, calls fn with its bytes, and replaces the document by fn's result. fn gets nil if there is no document; then
// its result is written as a new one. If fn returns nil, or an error, nothing is written; the error is Update's.
//
// The revision that was read guards the write. If another client has changed the document meanwhile, Update merges nothing: it reads the
// document again and calls fn again, until the write goes through, for half a minute at most. So fn has to change nothing but the
// document.
//
// Within DoInLock the write carries the lock's token. Errors are those of the context and of fn; an *Error for an answer that refuses; an
// error with ErrUnknownOutcome in its chain, if the write may have been applied.
func (c *Client) Update(ctx context.Context, index, id string, fn Change) (w Written, err error) {
	u := &update{c: c, index: url.PathEscape(index), id: url.PathEscape(id), header: http.Header{}}
	if token, ok := Token(ctx); ok {
		u.header.Set("Optimist-Lock-Token", strconv.FormatInt(token, 10))
	}
	err = retry.Do(ctx, patience, func(ctx context.Context, _ int) error {
		seen, err := u.read(ctx)
		if err != nil {
			return err
		}
		source, err := fn(seen.Source)
		if err != nil || source == nil {
			return err
		}
		w, err = u.write(ctx, seen, source)
		return err
	})
	return w, err
}

// patience is for many that update one document at the same time.
var patience = retry.Policy{MaxAttempts: 10000, MaxElapsed: 30 * time.Second, BaseInterval: 2 * time.Millisecond,
	MaxInterval: 200 * time.Millisecond}

// update is one document's.
type update struct {
	c         *Client
	index, id string      // as they stand in a path
	header    http.Header // of its writes
}

// seen is a document as it was read. Without a Source there is none.
type seen struct {
	Found       *bool
	SeqNo       *int64          `json:"_seq_no"`
	PrimaryTerm *int64          `json:"_primary_term"`
	Source      json.RawMessage `json:"_source"`
}

func (u *update) read(ctx context.Context) (s seen, err error) {
	a, err := u.c.ask(ctx, http.MethodGet, "/"+u.index+"/_doc/"+u.id, nil, nil)
	if err != nil {
		return s, err
	}
	known := json.Unmarshal(a.body, &s) == nil
	refused := a.failure()
	switch {
	case a.status == http.StatusNotFound && (refused.Type == "index_not_found_exception" || known && s.Found != nil && !*s.Found):
		return seen{}, nil
	case a.status != http.StatusOK, !known, s.Source == nil, s.SeqNo == nil, s.PrimaryTerm == nil:
		return s, refused
	}
	return s, nil
}

// write writes the document in place of what was seen. A conflict is doc.ErrConflict, with the answer in its chain.
func (u *update) write(ctx context.Context, s seen, source json.RawMessage) (w Written, err error) {
	target := "/" + u.index + "/_create/" + u.id
	if s.Source != nil {
		target = fmt.Sprintf("/%s/_doc/%s?if_seq_no=%d&if_primary_term=%d", u.index, u.id, *s.SeqNo, *s.PrimaryTerm)
	}
	a, err := u.c.ask(ctx, http.MethodPut, target, source, u.header)
	switch {
	case err != nil && !maySent(err):
		return w, err
	case err != nil:
		return w, fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	case a.status == http.StatusOK, a.status == http.StatusCreated:
		w.Outcome = a.header.Get("Optimist-Outcome")
		return w, json.Unmarshal(a.body, &w)
	}
	refused := a.failure()
	switch {
	case a.status == http.StatusConflict && refused.Type != staleToken:
		return w, fmt.Errorf("%w: %w", doc.ErrConflict, refused)
	case a.status >= 500 && !notSent[refused.Type]:
		return w, fmt.Errorf("%w: %w", ErrUnknownOutcome, refused)
	}
	return w, refused
}

// staleToken is the type of the answer to a write under a lease that has ended: it would be refused again.
const staleToken = "stale_token"

// notSent are the types of optimist's answers from 500 on that say that nothing of the write was sent.
var notSent = map[string]bool{"overloaded": true, "upstream_unreachable": true, "no_upstream_available": true, "upstream_busy": true,
	"upstream_timeout": true, "too_many_connections": true}
