package undo_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/internal/upstream"
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

// TestADamagedHeadKeepsNoOldJournal: sweeps fail as long as it is there. Journals that ended long ago are removed all the same.
func TestADamagedHeadKeepsNoOldJournal(t *testing.T) {
	s, e, _ := newSums(t, func(*enginetest.Engine, string) {})
	noted(t, s, e)
	e.Put(t, "/undo/_doc/head-5", `{"kind":"head","state":"committed","token":"five","until":1}`)
	e.Put(t, "/undo/_doc/head-6", `{"kind":"head","state":"open","token":"six"}`)
	e.Put(t, "/undo/_doc/head-7", `{"kind":"head","state":"committed","token":7,"pages":1,"until":1}`)
	ctx, stop := context.WithTimeout(t.Context(), 30*time.Second)
	go s.SweepEvery(ctx, time.Millisecond, func(context.Context, string, int64) error { return nil })
	defer stop()
	enginetest.Wait(t, "the page is removed", func() bool {
		status, _ := e.Ask(t, "GET", "/undo/_doc/page-7-1", "")
		return status == http.StatusNotFound
	})
}

// TestAJournalWhoseRollbackHasBegunIsGivenUpByItsHead: the plan knows documents by their places, so no page can be given up. What is left
// of the journal is removed in the end.
func TestAJournalWhoseRollbackHasBegunIsGivenUpByItsHead(t *testing.T) {
	s, e, _ := newSums(t, func(*enginetest.Engine, string) {})
	noted(t, s, e)
	e.Put(t, "/docs/_doc/1", `{"n":9}`)
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		if strings.HasPrefix(string(r.Target), "/_bulk") {
			return enginetest.Response(http.StatusTooManyRequests, `{}`), nil
		}
		return nil, nil
	}
	if _, err := s.Rollback(t.Context(), 7); err == nil {
		t.Fatal("the engine is busy, and the rollback has ended")
	}
	e.Before = nil
	if _, head := e.Ask(t, "GET", "/undo/_source/head-7", ""); !gjson.Get(head, "batch").Exists() {
		t.Fatalf("the head doesn't show that the rollback has begun: %s", head)
	}
	e.Put(t, "/undo/_doc/page-7-1", `{"kind":"page","notes":"what?"}`)
	e.Ask(t, "POST", "/undo/_update/head-7", `{"doc":{"state":"committed","pages":2,"until":1}}`)
	next := &undo.Lock{Doc: "global:x", Name: "/_lock/global/x", Token: 8}
	if err := s.Settle(t.Context(), next, func(int64, string) (bool, error) { return true, nil }); err != nil {
		t.Errorf("the lock isn't free: %v", err)
	}
	e.Ask(t, "POST", "/undo/_refresh", "")
	if n, err := s.Clean(t.Context()); n != 1 || err != nil {
		t.Errorf("cleaned %d, %v", n, err)
	}
	for _, id := range []string{"page-7-1", "page-7-2"} {
		if status, _ := e.Ask(t, "GET", "/undo/_doc/"+id, ""); status != http.StatusNotFound {
			t.Errorf("%s is still there", id)
		}
	}
}

// TestAPageIsGivenUpWhileNothingIsPlanned: the rollback couldn't begin because of that page. The head says already that it has to be done.
func TestAPageIsGivenUpWhileNothingIsPlanned(t *testing.T) {
	s, e, _ := newSums(t, func(*enginetest.Engine, string) {})
	j, _ := noted(t, s, e)
	e.Put(t, "/docs/_doc/2", `{"n":10}`)
	if _, err := j.Note(t.Context(), &undo.Write{Ref: doc.Ref{Index: "docs", ID: "2"}, Guard: doc.Numbers{SeqNo: 1, PrimaryTerm: 1},
		Before: []byte(`{"n":10}`), After: []byte(`{"n":9}`)}); err != nil {
		t.Fatal(err)
	}
	e.Put(t, "/docs/_doc/1", `{"n":9}`)
	e.Put(t, "/docs/_doc/2", `{"n":9}`)
	e.Put(t, "/undo/_doc/page-7-2", `{"kind":"page","notes":"what?"}`)
	if _, err := s.Rollback(t.Context(), 7); err == nil {
		t.Fatal("the rollback has ended")
	}
	if _, head := e.Ask(t, "GET", "/undo/_source/head-7", ""); gjson.Get(head, "state").Str != "rolling" || gjson.Get(head, "batch").Exists() {
		t.Fatalf("the head: %s", head)
	}
	e.Put(t, "/undo/_doc/page-7-2", `{"kind":"page"}`)
	if n, err := s.Rollback(t.Context(), 7); err != nil || n != 0 {
		t.Errorf("%d left, %v", n, err)
	}
	for id, want := range map[string]string{"1": `{"n":10}`, "2": `{"n":9}`} {
		if _, body := e.Ask(t, "GET", "/docs/_source/"+id, ""); body != want {
			t.Errorf("document %s is %s; want %s", id, body, want)
		}
	}
}
