package undo_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/internal/upstream"
)

// TestAWriteWhoseClientLeftIsntUndone: its client left while it was noted, so that it was never sent. Another client makes the same document.
func TestAWriteWhoseClientLeftIsntUndone(t *testing.T) {
	l := newLister(t)
	lock := undo.Lock{Doc: "global:x", Name: "/_lock/global/x", Owner: "o", Token: 7}
	l.open(&lock)
	j, err := l.Journal(t.Context(), []int64{7})
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan struct{})
	l.e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		if strings.Contains(string(r.Body), "page-7-1") {
			leave()
			<-left
		}
		return nil, nil
	}
	_, err = j.Note(ctx, &undo.Write{Ref: doc.Ref{Index: "docs", ID: "1"}, After: []byte(`{"n":1}`)})
	close(left)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	enginetest.Wait(t, "it is known not to be sent", func() bool {
		e, err := l.Entries(t.Context(), 7, 0, 10, false)
		return err == nil && len(e.Entries) == 1 && e.Entries[0].State == "not_applied"
	})
	l.e.Put(t, "/docs/_doc/1", `{"n":1}`)
	if err := l.settle(lock); err != nil {
		t.Fatal(err)
	}
	if status, _ := l.e.Ask(t, "GET", "/docs/_doc/1", ""); status != 200 {
		t.Error("another client's document is deleted")
	}
}

// TestAProcessThatEndsStoresWhatItAloneKnows: of a write that is known to be applied, a rollback elsewhere needs to infer nothing.
func TestAProcessThatEndsStoresWhatItAloneKnows(t *testing.T) {
	l := newLister(t)
	lock := undo.Lock{Doc: "global:x", Name: "/_lock/global/x", Owner: "o", Token: 7}
	j := l.begin(&lock)
	l.begin(&undo.Lock{Doc: "global:y", Name: "/_lock/global/y", Owner: "o", Token: 8})
	var at [2]undo.Place
	for i := range at {
		var err error
		if at[i], err = j.Note(t.Context(), &undo.Write{Ref: doc.Ref{Index: "docs", ID: strconv.Itoa(i)}, After: []byte(`{"n":1}`)}); err != nil {
			t.Fatal(err)
		}
	}
	j.Applied(at[0], doc.Revision{})
	l.e.Before = func(context.Context, *upstream.Request) (*upstream.Response, error) {
		return enginetest.Response(503, `{}`), nil
	}
	if err := j.Failed(t.Context(), at[1]); !errors.Is(err, undo.ErrStore) {
		t.Error(err)
	}
	if err := l.Flush(t.Context()); !errors.Is(err, undo.ErrStore) {
		t.Error(err)
	}
	l.e.Before = nil
	if err := l.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	e, err := l.Entries(t.Context(), 7, 0, 10, false)
	if err != nil || e.Entries[0].State != "applied" || e.Entries[1].State != "not_applied" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, body := l.e.Ask(t, "GET", "/undo/_doc/page-8-1", ""); !strings.Contains(body, `"found":false`) {
		t.Error("there is a page without anything to say: " + body)
	}
}

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

// TestAPageInThePlaceOfAJournalIsNoEnd: something in front of the engine answers 404 in its place. There may be a journal all the same. If
// optimist took that for none, a rollback would be a success that undoes nothing, and a lock would go to the next holder.
func TestAPageInThePlaceOfAJournalIsNoEnd(t *testing.T) {
	for name, page := range map[string]string{
		"a page": `<html>404 page not found</html>`, "nothing": "", "a gateway's JSON": `{"message":"no Route matched"}`,
	} {
		l := newLister(t)
		lock := undo.Lock{Doc: "global:x", Name: "/_lock/global/x", Owner: "o", Token: 7}
		l.open(&lock, "1")
		l.e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
			if r.Method == "GET" || strings.Contains(string(r.Target), "_mget") || strings.Contains(string(r.Target), "_search") {
				return enginetest.Response(404, page), nil
			}
			return nil, nil
		}
		_, rolled := l.Rollback(t.Context(), 7)
		_, committed := l.Commit(t.Context(), 7)
		_, _, listed := l.List(t.Context(), -1, 10)
		for what, err := range map[string]error{"rollback": rolled, "commit": committed, "settle": l.settle(lock), "list": listed} {
			if !errors.Is(err, undo.ErrStore) {
				t.Errorf("%s: %s: %v", name, what, err)
			}
		}
		l.e.Before = nil
		if err := l.settle(lock); err != nil {
			t.Fatal(err)
		}
		states, _ := l.states(7, 0, 10)
		l.want(name, states, []string{"1 1 update undone"})
	}
}

// TestASuccessWithoutAResultIsNoRecord: something between optimist and the engine has made the answer up.
func TestASuccessWithoutAResultIsNoRecord(t *testing.T) {
	e := enginetest.New()
	s := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x"})
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		if strings.Contains(string(r.Body), "head-7") && strings.Contains(string(r.Target), "_bulk") {
			return enginetest.Response(200, `{"errors":false,"items":[{"create":{"_id":"head-7","status":201}}]}`), nil
		}
		return nil, nil
	}
	if err := s.Open(t.Context(), []undo.Lock{{Doc: "global:x", Name: "/_lock/global/x", Token: 7}}); !errors.Is(err, undo.ErrStore) {
		t.Errorf("%v: the engine has no head", err)
	}
}
