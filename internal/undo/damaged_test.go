package undo_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// TestADamagedPageIsNamedAndCanBeGivenUp: somebody has changed the page so that nobody can read what it notes. The operator writes an empty
// one in its place.
func TestADamagedPageIsNamedAndCanBeGivenUp(t *testing.T) {
	s, e, _ := newSums(t, func(*enginetest.Engine, string) {})
	noted(t, s, e)
	e.Put(t, "/undo/_doc/page-7-1", `{"kind":"page","notes":"what?"}`)
	if _, err := s.Rollback(t.Context(), 7); err == nil || !strings.Contains(err.Error(), "record page-7-1 is damaged") {
		t.Fatalf("the error doesn't name the page: %v", err)
	}
	e.Put(t, "/undo/_doc/page-7-1", `{"kind":"page"}`)
	if n, err := s.Rollback(t.Context(), 7); err != nil || n != 0 {
		t.Errorf("%d left, %v", n, err)
	}
}

// TestADamagedHeadCanBeGivenUpAndStopsNoOtherJournal: sweeps find the journal behind the damaged one.
func TestADamagedHeadCanBeGivenUpAndStopsNoOtherJournal(t *testing.T) {
	s, e, _ := newSums(t, func(*enginetest.Engine, string) {})
	noted(t, s, e)
	e.Put(t, "/undo/_doc/head-6", `{"kind":"head","state":"open","token":"six"}`)
	e.Put(t, "/undo/_doc/head-8", `{"kind":"head","state":"open","token":8}`)
	var swept []int64
	err := s.Sweep(t.Context(), func(_ context.Context, _ string, token int64) error {
		swept = append(swept, token)
		return nil
	})
	if !slices.Equal(swept, []int64{7, 8}) || err == nil || !strings.Contains(err.Error(), "record head-6 is damaged") {
		t.Errorf("swept %v, %v", swept, err)
	}
	e.Put(t, "/undo/_doc/head-6", `{"kind":"head","token":6,"state":"committed"}`)
	if err := s.Sweep(t.Context(), func(context.Context, string, int64) error { return nil }); err != nil {
		t.Error(err)
	}
}
