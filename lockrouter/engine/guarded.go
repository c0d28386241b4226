package engine

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// numbers are those of a revision, to guard a write with.
type numbers struct{ seqNo, term int64 }

func numbersOf(item gjson.Result) numbers {
	return numbers{item.Get("_seq_no").Int(), item.Get("_primary_term").Int()}
}

// revision is a lock document as this process last saw it.
type revision struct {
	doc     *state.Doc // nil: it isn't there
	numbers numbers
	watch   state.Watch
}

// revisions are what is known of lock documents: the guess that a write may be made from, under its guard, and since when their
// leases have been seen unchanged. What is forgotten is seen for the first time again, and its lease is waited out once more.
type revisions struct{ remembered[*revision] }

// The bounds of what is known at once.
const (
	knownDocs   = 100_000
	knownLeases = 500_000
)

func newRevisions() *revisions {
	r := new(revisions)
	r.init(knownDocs, knownLeases)
	return r
}

func (r *revision) document() *state.Doc { return r.doc }

// note takes note of a document that was read or written just now. One that is older than what is known does no harm: a write that
// is made from it is refused, and leases are taken to have been seen for a shorter time.
func (r *revisions) note(id string, d *state.Doc, n numbers, now int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rev, ok := r.docs.Peek(id)
	if !ok {
		rev = &revision{}
	}
	r.docs.Remove(id)
	rev.doc, rev.numbers = d, n
	rev.watch.See(d, now)
	r.put(id, rev)
}

// guess is the document as it was last seen, to be changed; ok is false if it never was.
func (r *revisions) guess(id string, now int64) (d *state.Doc, n numbers, unchanged func(state.Mark) int64, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rev, ok := r.docs.Get(id)
	if !ok {
		return nil, numbers{}, nil, false
	}
	d = new(state.Doc)
	if rev.doc != nil {
		d = rev.doc.Clone()
	}
	return d, rev.numbers, rev.watch.Unchanged(now), true
}

// guarded carries the call out here, and writes the result under the guard of the revision that it was made from.
func (s *Store) guarded(ctx context.Context, id string, c *state.Call) (d *state.Doc, results []state.Result, err error) {
	err = contend(ctx, func(ctx context.Context, n int) error {
		var err error
		d, results, err = s.attempt(ctx, id, c, n > 1)
		return err
	})
	return d, results, err
}

// attempt makes one attempt at it: on what is known of the document, or, with fresh, on what it reads now. That nothing is to be
// written is decided on a fresh read only. The error is doc.ErrConflict if others have changed the document.
func (s *Store) attempt(ctx context.Context, id string, c *state.Call, fresh bool) (*state.Doc, []state.Result, error) {
	d, num, unchanged, ok := s.known.guess(id, s.monotonic())
	if !ok || fresh {
		if err := s.fetch(ctx, id); err != nil {
			return nil, nil, err
		}
		d, num, unchanged, _ = s.known.guess(id, s.monotonic())
	}
	results, changed := d.Apply(c, state.Clock{Now: time.Now().Add(s.o.Skew).UnixMilli(), Unchanged: unchanged})
	switch {
	case !changed && ok && !fresh:
		return s.attempt(ctx, id, c, true)
	case !changed:
		return d, results, nil
	}
	written, err := s.write(ctx, id, d, num)
	if err == nil && !written {
		err = doc.ErrConflict
	}
	if err != nil {
		return nil, nil, err
	}
	return d, results, nil
}

// fetch reads the document.
func (s *Store) fetch(ctx context.Context, id string) error {
	a, err := s.read(ctx, esapi.GetRequest{Index: s.index, DocumentID: es.Segment(id)})
	if err != nil {
		return err
	}
	item := gjson.ParseBytes(a.Body)
	switch {
	case a.Status == http.StatusNotFound && item.Get("found").Exists():
		s.known.note(id, nil, numbers{}, s.monotonic())
		return nil
	case a.Status != http.StatusOK:
		return lockrouter.NotDone(s.failure(a))
	}
	d, err := state.Parse([]byte(item.Get("_source").Raw))
	if err != nil {
		return lockrouter.NotDone(fmt.Errorf("%w: %w", lockrouter.ErrStore, err))
	}
	s.known.note(id, d, numbersOf(item), s.monotonic())
	return nil
}

// write writes the document if it is still the revision that it was made from.
func (s *Store) write(ctx context.Context, id string, d *state.Doc, n numbers) (bool, error) {
	n, written, err := s.put(ctx, id, d, n)
	if written {
		s.known.note(id, d.Clone(), n, s.monotonic())
	}
	return written, err
}

// put sends the document under the guard of the revision that it was made from, and gives the numbers of the new one.
func (s *Store) put(ctx context.Context, id string, d *state.Doc, n numbers) (numbers, bool, error) {
	body := jsonBody(d)
	var req esapi.Request = esapi.CreateRequest{Index: s.index, DocumentID: es.Segment(id), Body: body}
	if n.term > 0 {
		seqNo, term := int(n.seqNo), int(n.term)
		req = esapi.IndexRequest{Index: s.index, DocumentID: es.Segment(id), IfSeqNo: &seqNo, IfPrimaryTerm: &term, Body: body}
	}
	a, err := s.send(ctx, req)
	switch {
	case err != nil:
		return n, false, err
	case a.Status == http.StatusConflict:
		return n, false, nil
	case a.Status != http.StatusOK && a.Status != http.StatusCreated:
		return n, false, s.failure(a)
	}
	return numbersOf(gjson.ParseBytes(a.Body)), true, nil
}
