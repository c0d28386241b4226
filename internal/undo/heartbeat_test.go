package undo_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/internal/upstream"
	"optimist/rewrite/merge"
)

// TestARollbackShowsThatItGoesOn: each document is in an index of its own, and too large to be written together with others. Each answer
// takes a second. No other proxy takes over, although the whole takes longer than Takeover.
func TestARollbackShowsThatItGoesOn(t *testing.T) {
	const takeover = 10 * time.Second
	plain, err := merge.New(merge.Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	var clock atomic.Int64
	now := func() time.Time { return time.Unix(clock.Load(), 0) }
	e, last := enginetest.New(), time.Time{}
	s := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Takeover: takeover, BulkBytes: 1, Now: now,
		Merger: func(string) undo.Merger { return plain },
		Left:   func(context.Context, *undo.Left) error { return nil },
		Fault: func(step string) error {
			if gone := now().Sub(last); !last.IsZero() && gone > takeover/2 {
				t.Errorf("nothing was written for %v before %q", gone, step)
			}
			last = now()
			return nil
		}})
	j := begun(t, s)
	for i := range 25 {
		w := &undo.Write{Ref: doc.Ref{Index: fmt.Sprint("docs-", i), ID: "1"}, Guard: doc.Numbers{PrimaryTerm: 1},
			Before: []byte(`{"n":1}`), After: []byte(`{"n":2}`)}
		e.Put(t, "/"+w.Index+"/_doc/1", string(w.Before))
		at, err := j.Note(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		e.Put(t, "/"+w.Index+"/_doc/1", string(w.After))
		j.Applied(at, doc.Revision{Numbers: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}, Version: 2})
	}
	last = time.Time{}
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		if strings.HasPrefix(string(r.Target), "/docs-") {
			clock.Add(1)
		}
		return nil, nil
	}
	if n, err := s.Rollback(t.Context(), 7); err != nil || n != 0 {
		t.Errorf("%d left, %v; want none", n, err)
	}
	if passed := time.Duration(clock.Load()) * time.Second; passed < 2*takeover {
		t.Errorf("it took %v, so that this proves nothing", passed)
	}
}
