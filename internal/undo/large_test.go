package undo_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/internal/upstream"
)

// TestLargeDocumentsAreUndone: in several bulks, because an engine, or what stands before it, takes a request up to some size; and an
// answer is taken up to some size, too.
func TestLargeDocumentsAreUndone(t *testing.T) {
	for name, c := range map[string]struct {
		largestBulk, largestAnswer int
		sizes                      []int // of the documents
	}{
		"more than goes into one bulk":              {bulkBytes + 1000, 1 << 20, slices.Repeat([]int{900}, 12)},
		"one of them doesn't go into a bulk":        {bulkBytes + 1000, 1 << 20, []int{10, 10, 2 * bulkBytes, 10}},
		"more than what is before the engine takes": {1000, 1 << 20, slices.Repeat([]int{300}, 10)},
		"pages that don't go into one answer":       {bulkBytes + 1000, 2000, slices.Repeat([]int{300}, 7)},
		"documents that don't go into one answer":   {bulkBytes + 1000, 2000, append(slices.Repeat([]int{1}, 20), slices.Repeat([]int{300}, 4)...)},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLister(t)
			lock := undo.Lock{Doc: "global:x", Name: "/_lock/global/x", Owner: "o", Token: 7}
			l.large(&lock, c.sizes)
			refused := 0
			l.e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
				if string(r.Target) == "/_bulk" && len(r.Body) > c.largestBulk { // of documents
					refused++
					return enginetest.Response(413, `{"error":"too large","status":413}`), nil
				}
				return nil, nil
			}
			l.e.After = func(_ *upstream.Request, res *upstream.Response) error {
				if len(res.Payload) > c.largestAnswer {
					return &upstream.Error{Class: upstream.TooLarge, Sent: true, Err: errors.New("more than it may be")}
				}
				return nil
			}
			if err := l.settle(lock); err != nil {
				t.Fatal(err)
			}
			if refused > 0 && c.largestBulk > bulkBytes {
				t.Errorf("%d bulks are larger than they have to be", refused)
			}
			for i := range c.sizes {
				_, body := l.e.Ask(t, "GET", fmt.Sprint("/docs/_doc/", i), "")
				if n := gjson.Get(body, "_source.n").Int(); n != 0 {
					t.Errorf("document %d has %d", i, n)
				}
			}
		})
	}
}

// large writes documents of some sizes under a lock.
func (l *lister) large(lock *undo.Lock, sizes []int) {
	l.t.Helper()
	j := l.begin(lock)
	for i, size := range sizes {
		text := func(n int) string { return fmt.Sprintf(`{"n":%d,"text":%q}`, n, strings.Repeat("x", size)) }
		target := fmt.Sprint("/docs/_doc/", i)
		l.e.Put(l.t, target, text(0))
		_, body := l.e.Ask(l.t, "GET", target, "")
		w := &undo.Write{Ref: doc.Ref{Index: "docs", ID: fmt.Sprint(i)}, Before: []byte(text(0)), After: []byte(text(1)),
			Guard: doc.Numbers{SeqNo: gjson.Get(body, "_seq_no").Int(), PrimaryTerm: gjson.Get(body, "_primary_term").Int()}}
		at, err := j.Note(l.t.Context(), w)
		if err != nil {
			l.t.Fatal(err)
		}
		l.e.Put(l.t, target, text(1))
		j.Applied(at, doc.Revision{})
	}
}

// TestAWriteOfWhichTheEngineTakesNoRecordIsRefused: it is no failure that passes, and so isn't one of the store.
func TestAWriteOfWhichTheEngineTakesNoRecordIsRefused(t *testing.T) {
	l := newLister(t)
	lock := undo.Lock{Doc: "global:x", Name: "/_lock/global/x", Owner: "o", Token: 7}
	l.large(&lock, []int{10})
	l.e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		if len(r.Body) > 2000 {
			return enginetest.Response(413, `{"error":"too large","status":413}`), nil
		}
		return nil, nil
	}
	j, err := l.Journal(t.Context(), []int64{lock.Token})
	if err != nil {
		t.Fatal(err)
	}
	w := &undo.Write{Ref: doc.Ref{Index: "docs", ID: "new"}, After: []byte(`"` + strings.Repeat("x", 2000) + `"`)}
	if _, err := j.Note(t.Context(), w); !errors.Is(err, undo.ErrFull) {
		t.Errorf("%v; want ErrFull", err)
	}
	w.After = []byte(`{}`)
	if _, err := j.Note(t.Context(), w); err != nil {
		t.Errorf("a small one: %v", err)
	}
}
