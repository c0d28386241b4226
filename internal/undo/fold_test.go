package undo_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/rewrite/merge"
)

// newSums is a Store that adds up the numbers n of documents, in an engine, and the number of its dead letters. It calls fault before each
// step. Its clock goes on by a millisecond at each look, and by more than the grace while a rollback writes.
func newSums(t *testing.T, fault func(e *enginetest.Engine, step string)) (s *undo.Store, e *enginetest.Engine, left *int) {
	t.Helper()
	sums, err := merge.New(merge.Sent, []merge.PathRule{{Path: "/n", Strategy: merge.Sum}})
	if err != nil {
		t.Fatal(err)
	}
	e, left = enginetest.New(), new(int)
	var ticks atomic.Int64
	return undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Grace: 10 * time.Millisecond,
		Now:    func() time.Time { return time.UnixMilli(ticks.Add(1)) },
		Merger: func(string) undo.Merger { return sums },
		Left:   func(context.Context, *undo.Left) error { *left++; return nil },
		Fault: func(step string) error {
			if fault(e, step); step == "write" {
				ticks.Add(20)
			}
			return nil
		}}), e, left
}

// begun begins a journal of token 7.
func begun(t *testing.T, s *undo.Store) *undo.Journal {
	t.Helper()
	if err := s.Open(t.Context(), []undo.Lock{{Doc: "global:x", Name: "/_lock/global/x", Token: 7}}); err != nil {
		t.Fatal(err)
	}
	j, err := s.Journal(t.Context(), []int64{7})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// noted begins a journal of token 7, and notes that document 1 of docs became 9 from 10.
func noted(t *testing.T, s *undo.Store, e *enginetest.Engine) (*undo.Journal, undo.Place) {
	t.Helper()
	j := begun(t, s)
	e.Put(t, "/docs/_doc/1", `{"n":10}`)
	at, err := j.Note(t.Context(), &undo.Write{Ref: doc.Ref{Index: "docs", ID: "1"}, Guard: doc.Numbers{SeqNo: 0, PrimaryTerm: 1},
		Before: []byte(`{"n":10}`), After: []byte(`{"n":9}`)})
	if err != nil {
		t.Fatal(err)
	}
	return j, at
}

// TestASumOfUnknownOutcomeIsLeft: nobody knows whether the holder's -1 was applied, and others have written the document since. It is as it
// was: perhaps one of them has added 1.
func TestASumOfUnknownOutcomeIsLeft(t *testing.T) {
	s, e, left := newSums(t, func(*enginetest.Engine, string) {})
	noted(t, s, e)
	e.Put(t, "/docs/_doc/1", `{"n":10}`)
	if n, err := s.Rollback(t.Context(), 7); err != nil || n != 1 || *left != 1 {
		t.Errorf("%d left, %d letters, %v; want one", n, *left, err)
	}
}

// TestAnothersWriteIsntTheRollbacks: while the rollback is about to make 10 of 9, another client adds 1. The document then looks as the
// rollback would have left it, but the engine has refused the rollback's write.
func TestAnothersWriteIsntTheRollbacks(t *testing.T) {
	once := false
	s, e, left := newSums(t, func(e *enginetest.Engine, step string) {
		if step == "write" && !once {
			once = true
			e.Put(t, "/docs/_doc/1", `{"n":10}`)
		}
	})
	j, at := noted(t, s, e)
	e.Put(t, "/docs/_doc/1", `{"n":9}`)
	j.Applied(at, doc.Revision{Numbers: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}, Version: 2})
	if n, err := s.Rollback(t.Context(), 7); err != nil || n != 0 || *left != 0 {
		t.Errorf("%d left, %d letters, %v; want none", n, *left, err)
	}
	if _, body := e.Ask(t, "GET", "/docs/_source/1", ""); body != `{"n":11}` {
		t.Errorf("the document is %s; want 11", body)
	}
}

// TestWhatIsUndoneInPartIsLeft: of the holder's two writes, one was noted as made in another index. What it changed stays, and that is said.
// A document that the holder had made in an index before is no loss.
func TestWhatIsUndoneInPartIsLeft(t *testing.T) {
	for _, c := range []struct {
		name           string
		first          string // the document before the first write; empty: none
		before         string // and before the second
		formerIs, left int    // which write is that of a former index; how many are left
		restored       string // what the document becomes
	}{
		{name: "the first", first: `{"s":"a"}`, before: `{"s":"b"}`, formerIs: 0, left: 1, restored: `{"s":"b"}`},
		{name: "the second", first: `{"s":"a"}`, before: `{"s":"b"}`, formerIs: 1, left: 1, restored: `{"s":"a","t":1}`},
		{name: "the first, before the same document", first: `{"s":"a"}`, before: `{"s":"a"}`, formerIs: 0, restored: `{"s":"a"}`},
		{name: "one that made it, and so did the second", formerIs: 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, e, left := newSums(t, func(*enginetest.Engine, string) {})
			j := begun(t, s)
			image := func(text string) []byte {
				if text == "" {
					return nil
				}
				return []byte(text)
			}
			seq := int64(0)
			if c.before != "" {
				e.Put(t, "/docs/_doc/1", c.before)
				seq = 1
			}
			e.Put(t, "/docs/_doc/1", `{"s":"b","t":1}`)
			writes := []undo.Write{{Before: image(c.first), After: []byte(`{"s":"b"}`)}, {Before: image(c.before), After: []byte(`{"s":"b","t":1}`)}}
			_, settings := e.Ask(t, "GET", "/docs/_settings", "")
			for i := range writes {
				w := &writes[i]
				w.Ref, w.UUID = doc.Ref{Index: "docs", ID: "1"}, gjson.Get(settings, "docs.settings.index.uuid").Str
				if w.UUID == "" {
					t.Fatal(settings)
				}
				if i == c.formerIs {
					w.UUID = "former"
				}
				made := doc.Numbers{SeqNo: seq + int64(i) - 1, PrimaryTerm: 1}
				if w.Before != nil {
					w.Guard = doc.Numbers{SeqNo: made.SeqNo - 1, PrimaryTerm: 1}
				}
				at, err := j.Note(t.Context(), w)
				if err != nil {
					t.Fatal(err)
				}
				j.Applied(at, doc.Revision{Numbers: made, Version: made.SeqNo + 1})
			}
			if n, err := s.Rollback(t.Context(), 7); err != nil || n != c.left || *left != c.left {
				t.Errorf("%d left, %d letters, %v; want %d", n, *left, err, c.left)
			}
			if _, body := e.Ask(t, "GET", "/docs/_doc/1", ""); gjson.Get(body, "_source").Raw != c.restored {
				t.Errorf("the document is %s; want %s", body, c.restored)
			}
		})
	}
}

// TestADocumentOfANewIndexIsntTheHolders: a create of the holder may still be on its way when its index is deleted. While the rollback waits
// for it, others make the index anew, and the same document in it.
func TestADocumentOfANewIndexIsntTheHolders(t *testing.T) {
	looked := false
	s, e, _ := newSums(t, func(e *enginetest.Engine, step string) {
		if step == "await" {
			looked = true
			e.Put(t, "/docs/_doc/1", `{"n":1}`)
		}
	})
	j := begun(t, s)
	if _, err := j.Note(t.Context(), &undo.Write{Ref: doc.Ref{Index: "docs", ID: "1"}, UUID: "former", After: []byte(`{"n":1}`)}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Rollback(t.Context(), 7); err != nil || n != 0 || !looked {
		t.Errorf("%d left, %v; want none", n, err)
	}
	if status, _ := e.Ask(t, "GET", "/docs/_doc/1", ""); status != 200 {
		t.Error("another client's document is deleted")
	}
}

// TestALateCreateIsFoundThoughTheRollbackIsSlow: the holder's create of one document arrives while the rollback restores another one. That
// takes longer than the grace.
func TestALateCreateIsFoundThoughTheRollbackIsSlow(t *testing.T) {
	s, e, _ := newSums(t, func(e *enginetest.Engine, step string) {
		if step == "write" {
			e.Put(t, "/docs/_doc/2", `{"n":1}`)
		}
	})
	j, at := noted(t, s, e)
	e.Put(t, "/docs/_doc/1", `{"n":9}`)
	j.Applied(at, doc.Revision{Numbers: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}, Version: 2})
	if _, err := j.Note(t.Context(), &undo.Write{Ref: doc.Ref{Index: "docs", ID: "2"}, After: []byte(`{"n":1}`)}); err != nil {
		t.Fatal(err)
	}
	if n, err := s.Rollback(t.Context(), 7); err != nil || n != 0 {
		t.Errorf("%d left, %v; want none", n, err)
	}
	if status, _ := e.Ask(t, "GET", "/docs/_doc/2", ""); status != 404 {
		t.Errorf("the document is there: %d", status)
	}
}
