package undo_test

import (
	"errors"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/undo"
)

// TestNothingIsWrittenUnderAJournalThatIsGone: somebody has deleted the index. What is written would never be undone. A proxy that has noted
// nothing in the journal doesn't know that there was one.
func TestNothingIsWrittenUnderAJournalThatIsGone(t *testing.T) {
	e, now := enginetest.New(), time.Unix(1e9, 0)
	s := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Now: func() time.Time { return now }})
	ctx := t.Context()
	lock := undo.Lock{Doc: "global:x", Name: "/_lock/global/x", Owner: "o", Token: 7}
	if err := s.Open(ctx, []undo.Lock{lock}); err != nil {
		t.Fatal(err)
	}
	j, err := s.Journal(ctx, []int64{7})
	if err != nil {
		t.Fatal(err)
	}
	w := &undo.Write{Ref: doc.Ref{Index: "docs", ID: "1"}, After: []byte(`{}`)}
	if _, err := j.Note(ctx, w); err != nil {
		t.Fatal(err)
	}
	if status, body := e.Ask(t, "DELETE", "/undo-1", ""); status != 200 {
		t.Fatal(body)
	}
	if _, err := j.Note(ctx, w); !errors.Is(err, undo.ErrStore) {
		t.Errorf("at once: %v; want ErrStore", err)
	}
	for _, when := range []string{"a while later", "with an index of a later lock"} {
		now = now.Add(2 * time.Minute)
		for range 2 {
			if _, err := s.Journal(ctx, []int64{7}); !errors.Is(err, undo.ErrEnded) {
				t.Errorf("%s: %v; want ErrEnded", when, err)
			}
		}
		if err := s.Open(ctx, []undo.Lock{{Doc: "global:y", Name: "/_lock/global/y", Owner: "o", Token: 8}}); err != nil {
			t.Fatal(err)
		}
	}
}
