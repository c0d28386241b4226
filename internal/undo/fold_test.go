package undo_test

import (
	"context"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/rewrite/merge"
)

// TestASumOfUnknownOutcomeIsLeft: nobody knows whether the holder's -1 was applied, and others have written the document since. It is as it
// was: perhaps one of them has added 1.
func TestASumOfUnknownOutcomeIsLeft(t *testing.T) {
	sums, err := merge.New(merge.Sent, []merge.PathRule{{Path: "/n", Strategy: merge.Sum}})
	if err != nil {
		t.Fatal(err)
	}
	e, left := enginetest.New(), 0
	s := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Grace: time.Millisecond,
		Merger: func(string) undo.Merger { return sums },
		Left:   func(context.Context, *undo.Left) error { left++; return nil }})
	if err := s.Open(t.Context(), []undo.Lock{{Doc: "global:x", Name: "/_lock/global/x", Token: 7}}); err != nil {
		t.Fatal(err)
	}
	j, err := s.Journal(t.Context(), []int64{7})
	if err != nil {
		t.Fatal(err)
	}
	e.Put(t, "/docs/_doc/1", `{"n":10}`)
	if _, err := j.Note(t.Context(), &undo.Write{Ref: doc.Ref{Index: "docs", ID: "1"}, Guard: doc.Numbers{SeqNo: 0, PrimaryTerm: 1},
		Before: []byte(`{"n":10}`), After: []byte(`{"n":9}`)}); err != nil {
		t.Fatal(err)
	}
	e.Put(t, "/docs/_doc/1", `{"n":10}`)
	if n, err := s.Rollback(t.Context(), 7); err != nil || n != 1 || left != 1 {
		t.Errorf("%d left, %d letters, %v; want one", n, left, err)
	}
}
