package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"
	"github.com/tidwall/gjson"

	"optimist/internal/es"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// maxBulk is how many calls one bulk request carries: each brings the script along.
const maxBulk = 250

// Do carries the calls out: one by itself, several in bulk requests.
func (s *Store) Do(ctx context.Context, changes []lockrouter.Change) []lockrouter.Changed {
	done := make([]lockrouter.Changed, len(changes))
	method, err := s.prepare(ctx)
	if err != nil {
		return fail(done, lockrouter.NotDone(err))
	}
	if len(changes) == 1 {
		one, c := &done[0], changes[0]
		if method == byGuard {
			one.Doc, one.Results, one.Err = s.guarded(ctx, c.ID, c.Call)
		} else {
			one.Doc, one.Results, one.Err = s.scripted(ctx, c.ID, c.Call)
		}
		s.missed(done)
		return done
	}
	for from := 0; from < len(changes); from += maxBulk {
		to := min(from+maxBulk, len(changes))
		if method == byGuard {
			s.guardedMany(ctx, changes[from:to], done[from:to])
		} else {
			s.runMany(ctx, changes[from:to], done[from:to])
		}
	}
	s.missed(done)
	return done
}

// missed finds out from what calls came to that there is no index any more.
func (s *Store) missed(done []lockrouter.Changed) {
	if slices.ContainsFunc(done, func(d lockrouter.Changed) bool { return errors.Is(d.Err, errNoIndex) }) {
		s.gone()
	}
}

func fail(done []lockrouter.Changed, err error) []lockrouter.Changed {
	for i := range done {
		done[i].Err = err
	}
	return done
}

// runMany has the script do it in one bulk request. What others changed at the same time too often is done by itself.
func (s *Store) runMany(ctx context.Context, changes []lockrouter.Change, done []lockrouter.Changed) {
	var b bytes.Buffer
	for _, c := range changes {
		body, err := s.body(c.Call, true)
		if err != nil {
			fail(done, err)
			return
		}
		action(&b, "update", c.ID, fmt.Sprintf(`,"retry_on_conflict":%d`, retries))
		b.Write(append(body, '\n'))
	}
	items, err := s.bulk(ctx, b.Bytes(), len(changes))
	if err != nil {
		fail(done, err)
		return
	}
	for i, item := range items {
		d := &done[i]
		switch status := item.Get("status").Int(); status {
		case http.StatusOK, http.StatusCreated:
			d.Doc, d.Results, d.Err = outcome(item, changes[i].Call) //nolint:gosec // bulk: as many items as changes
		case http.StatusConflict:
			d.Doc, d.Results, d.Err = s.run(ctx, changes[i].ID, changes[i].Call) //nolint:gosec // bulk: as many items as changes
		default:
			d.Err = s.failure(es.Answer{Status: int(status), Body: []byte(item.Raw)})
		}
	}
}

// guardedMany reads what isn't known of the documents, and writes them in one bulk request. What somebody else changed meanwhile,
// or stays as it is, is decided by itself, on a fresh read.
func (s *Store) guardedMany(ctx context.Context, changes []lockrouter.Change, done []lockrouter.Changed) {
	if err := s.learn(ctx, changes); err != nil {
		fail(done, lockrouter.NotDone(err))
		return
	}
	var b bytes.Buffer
	sent := s.compose(&b, changes, done)
	if len(sent) > 0 {
		items, err := s.bulk(ctx, b.Bytes(), len(sent))
		if err != nil {
			fail(done, err)
			return
		}
		for n, i := range sent {
			s.settle(ctx, changes[i].ID, items[n], &done[i])
		}
	}
	for i, c := range changes {
		if done[i].Err == nil && done[i].Results == nil {
			done[i].Doc, done[i].Results, done[i].Err = s.guarded(ctx, c.ID, c.Call)
		}
	}
}

// compose carries the calls out here, on the documents that are known, and writes the actions of a bulk request for those that change
// something. sent are their places among the calls.
func (s *Store) compose(b *bytes.Buffer, changes []lockrouter.Change, done []lockrouter.Changed) (sent []int) {
	for i, c := range changes {
		d, num, unchanged, ok := s.known.guess(c.ID, s.monotonic())
		if !ok {
			continue
		}
		results, changed := d.Apply(c.Call, state.Clock{Now: time.Now().Add(s.o.Skew).UnixMilli(), Unchanged: unchanged})
		body, err := json.Marshal(d)
		if !changed || err != nil {
			continue
		}
		if num.term > 0 {
			action(b, "index", c.ID, fmt.Sprintf(`,"if_seq_no":%d,"if_primary_term":%d`, num.seqNo, num.term))
		} else {
			action(b, "create", c.ID, "")
		}
		b.Write(append(body, '\n'))
		sent = append(sent, i)
		done[i] = lockrouter.Changed{Doc: d, Results: results}
	}
	return sent
}

// settle takes note of what became of one action. After a conflict nothing is decided, and the document is read.
func (s *Store) settle(ctx context.Context, id string, item gjson.Result, done *lockrouter.Changed) {
	switch status := item.Get("status").Int(); status {
	case http.StatusOK, http.StatusCreated:
		s.known.note(id, done.Doc.Clone(), numbersOf(item), s.monotonic())
	case http.StatusConflict:
		*done = lockrouter.Changed{Err: s.fetch(ctx, id)}
	default:
		*done = lockrouter.Changed{Err: s.failure(es.Answer{Status: int(status), Body: []byte(item.Raw)})}
	}
}

// learn reads the documents that aren't known.
func (s *Store) learn(ctx context.Context, changes []lockrouter.Change) error {
	var ids []string
	for _, c := range changes {
		if _, _, _, ok := s.known.guess(c.ID, 0); !ok {
			ids = append(ids, c.ID)
		}
	}
	_, err := s.Read(ctx, ids)
	return err
}

// action appends the line that says what is done to which document.
func action(b *bytes.Buffer, op, id, more string) {
	name, _ := json.Marshal(id) // strings always can be
	fmt.Fprintf(b, `{"%s":{"_id":%s%s}}`+"\n", op, name, more)
}

// bulk sends n actions and gives their items, in their order.
func (s *Store) bulk(ctx context.Context, body []byte, n int) ([]gjson.Result, error) {
	a, err := s.send(ctx, esapi.BulkRequest{Index: s.index, Body: bytes.NewReader(body)})
	switch {
	case err != nil:
		return nil, err
	case a.Status != http.StatusOK:
		return nil, s.failure(a)
	}
	items := gjson.GetBytes(a.Body, "items").Array()
	if len(items) != n {
		return nil, fmt.Errorf("%w: a bulk of %d was answered with %d items", lockrouter.ErrStore, n, len(items))
	}
	for i, item := range items {
		item.ForEach(func(_, inner gjson.Result) bool {
			items[i] = inner
			return false
		})
	}
	return items, nil
}
