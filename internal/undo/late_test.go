package undo_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/rewrite/merge"
)

// TestWhatOneProcessAloneKnowsChangesNoPlaces: the holder's last write was refused, and only this process knows. It undoes the other two,
// of which another client holds up the second, and ends. The process that goes on has that document undone, too.
func TestWhatOneProcessAloneKnowsChangesNoPlaces(t *testing.T) {
	plain, err := merge.New(merge.Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	e := enginetest.New()
	proxy := func(fault func(step string) error) *undo.Store {
		return undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Grace: time.Millisecond, Takeover: time.Nanosecond,
			Merger: func(string) undo.Merger { return plain },
			Left:   func(_ context.Context, l *undo.Left) error { t.Errorf("left: %s: %s", l.ID, l.Why); return nil },
			Fault:  fault})
	}
	writes, refuses := 0, false
	first := proxy(func(step string) error {
		switch {
		case step == "page" && refuses:
			return errCrash
		case step != "write":
			return nil
		}
		if writes++; writes == 2 {
			return errCrash
		}
		e.Put(t, "/docs/_doc/1", `{"s":"held","o":1}`)
		return nil
	})
	j := begun(t, first)
	var last undo.Place
	for n := range 3 {
		target := fmt.Sprint("/docs/_doc/", n)
		e.Put(t, target, `{"s":"was","o":0}`)
		made := doc.Revision{Numbers: doc.Numbers{SeqNo: int64(2*n + 1), PrimaryTerm: 1}, Version: 2}
		last, err = j.Note(t.Context(), &undo.Write{Ref: doc.Ref{Index: "docs", ID: fmt.Sprint(n)},
			Guard: doc.Numbers{SeqNo: int64(2 * n), PrimaryTerm: 1}, Before: []byte(`{"s":"was","o":0}`), After: []byte(`{"s":"held","o":0}`)})
		if err != nil {
			t.Fatal(err)
		}
		if n < 2 {
			e.Put(t, target, `{"s":"held","o":0}`)
			j.Applied(last, made)
		}
	}
	refuses = true
	if err := j.Failed(t.Context(), last); err == nil {
		t.Fatal("it is stored")
	}
	if _, err := first.Rollback(t.Context(), 7); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	second := proxy(nil)
	if _, err := second.Rollback(t.Context(), 7); err != nil { // it has to see that the first one stands still
		_, err = second.Rollback(t.Context(), 7)
		if err != nil {
			t.Fatal(err)
		}
	}
	for n, want := range []string{`{"s":"was","o":0}`, `{"s":"was","o":1}`, `{"s":"was","o":0}`} {
		if _, got := e.Ask(t, "GET", fmt.Sprint("/docs/_source/", n), ""); got != want {
			t.Errorf("document %d is %s; want %s", n, got, want)
		}
	}
}

// TestWhatIsBeingStoredIsKnown: the page that says that the holder's last write was applied is under way while the same process puts the end
// in its place.
func TestWhatIsBeingStoredIsKnown(t *testing.T) {
	sums, err := merge.New(merge.Sent, []merge.PathRule{{Path: "/n", Strategy: merge.Sum}})
	if err != nil {
		t.Fatal(err)
	}
	e := enginetest.New()
	reached, gate, blocks := make(chan struct{}), make(chan struct{}), atomic.Bool{}
	s := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Grace: time.Millisecond,
		Merger: func(string) undo.Merger { return sums },
		Left:   func(_ context.Context, l *undo.Left) error { t.Errorf("left: %s: %s", l.ID, l.Why); return nil },
		Fault: func(step string) error {
			if step == "page" && blocks.Swap(false) {
				close(reached)
				<-gate
			}
			return nil
		}})
	j := begun(t, s)
	e.Put(t, "/docs/_doc/1", `{"n":5}`)
	at, err := j.Note(t.Context(), &undo.Write{Ref: doc.Ref{Index: "docs", ID: "1"}, Guard: doc.Numbers{SeqNo: 0, PrimaryTerm: 1},
		Before: []byte(`{"n":5}`), After: []byte(`{"n":6}`)})
	if err != nil {
		t.Fatal(err)
	}
	e.Put(t, "/docs/_doc/1", `{"n":6}`)
	j.Applied(at, doc.Revision{Numbers: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}, Version: 2})
	e.Put(t, "/docs/_doc/1", `{"n":16}`) // another client's
	blocks.Store(true)
	flushed := make(chan error, 1)
	go func() { flushed <- s.Flush(t.Context()) }()
	<-reached
	_, err = s.Rollback(t.Context(), 7)
	close(gate)
	if err != nil {
		t.Fatal(err)
	}
	if err := <-flushed; err != nil {
		t.Error(err)
	}
	if _, got := e.Ask(t, "GET", "/docs/_source/1", ""); got != `{"n":15}` {
		t.Errorf("document %s", got)
	}
}
