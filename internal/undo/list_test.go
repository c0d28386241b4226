package undo_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/rewrite/merge"
)

// bulkBytes is how many bytes of documents the bulks of tests have at most.
const bulkBytes = 8 << 10

// lister is a store whose rollbacks end at a step, while end names one.
type lister struct {
	*undo.Store
	t   *testing.T
	e   *enginetest.Engine
	end string
}

func newLister(t *testing.T) *lister {
	t.Helper()
	plain, err := merge.New(merge.Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	l := &lister{t: t, e: enginetest.New()}
	l.Store = undo.New(undo.Options{Upstream: l.e, Index: "undo", Authorization: "Basic x", Grace: time.Millisecond, Takeover: time.Nanosecond,
		BulkBytes: bulkBytes, Poll: time.Millisecond, Merger: func(string) undo.Merger { return plain },
		Left: func(context.Context, *undo.Left) error { return nil },
		Fault: func(step string) error {
			if step == l.end {
				return errCrash
			}
			return nil
		}})
	return l
}

// begin begins the journal of a lease.
func (l *lister) begin(lock *undo.Lock) *undo.Journal {
	l.t.Helper()
	if err := l.Open(l.t.Context(), []undo.Lock{*lock}); err != nil {
		l.t.Fatal(err)
	}
	j, err := l.Journal(l.t.Context(), []int64{lock.Token})
	if err != nil {
		l.t.Fatal(err)
	}
	return j
}

// open begins the journal of a lease with writes to documents that are there.
func (l *lister) open(lock *undo.Lock, ids ...string) {
	l.t.Helper()
	j := l.begin(lock)
	for _, id := range ids {
		l.e.Put(l.t, "/docs/_doc/"+id, `{"n":1,"secret":"x"}`)
		w := &undo.Write{Ref: doc.Ref{Index: "docs", ID: id}, Guard: doc.Numbers{SeqNo: 0, PrimaryTerm: 1}, Before: []byte(`{"n":0,"secret":"x"}`),
			After: []byte(`{"n":1,"secret":"x"}`)}
		at, err := j.Note(l.t.Context(), w)
		if err != nil {
			l.t.Fatal(err)
		}
		j.Applied(at, doc.Revision{})
	}
}

// settle undoes what leases on the lock's document have left.
func (l *lister) settle(lock undo.Lock) error {
	lock.Token += 1000
	ctx, stop := context.WithTimeout(l.t.Context(), 5*time.Minute)
	defer stop()
	return l.Settle(ctx, &lock, func(int64, string) (bool, error) { return true, nil })
}

// listed is all that is listed, page by page: lock, state, and number of dead letters.
func (l *lister) listed(size int) []string {
	l.t.Helper()
	var all []string
	for after := int64(-1); ; {
		page, next, err := l.List(l.t.Context(), after, size)
		if err != nil {
			l.t.Fatal(err)
		}
		for _, j := range page {
			if time.Since(j.Began) > time.Minute {
				l.t.Errorf("%s was begun at %v", j.Name, j.Began)
			}
			all = append(all, fmt.Sprintf("%s %s %d", j.Name, j.State, j.Left))
		}
		if after = next; after < 0 {
			slices.Sort(all)
			return all
		}
	}
}

// states are those of the writes of a journal: position, document, operation and state.
func (l *lister) states(token int64, behind, most int) (all []string, writes int) {
	l.t.Helper()
	e, err := l.Entries(l.t.Context(), token, behind, most, false)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, one := range e.Entries {
		if one.Before != nil || one.After != nil {
			l.t.Errorf("documents that nobody asked for: %s %s", one.Before, one.After)
		}
		all = append(all, fmt.Sprintf("%d %s %s %s", one.Nth, one.ID, one.Operation, one.State))
	}
	return all, e.Writes
}

func (l *lister) want(what string, got, want []string) {
	l.t.Helper()
	if !slices.Equal(got, want) {
		l.t.Errorf("%s: %q; want %q", what, got, want)
	}
}

func TestWhatIsNotSettledIsListedPageByPage(t *testing.T) {
	l := newLister(t)
	l.want("without an index", l.listed(1), nil)
	var want []string
	for i := range 5 {
		lock := &undo.Lock{Doc: fmt.Sprint("global:", i), Name: fmt.Sprint("/_lock/global/", i), Owner: "o", Token: int64(i + 1)}
		l.open(lock, fmt.Sprint(i))
		want = append(want, lock.Name+" open 0")
	}
	for _, size := range []int{1, 2, 5, 100} {
		l.want(fmt.Sprint("pages of ", size), l.listed(size), want)
	}
	if _, err := l.Commit(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Rollback(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	l.want("one is committed, one is undone", l.listed(2), want[2:])
}

func TestAJournalIsShownAsFarAsItHasCome(t *testing.T) {
	l := newLister(t)
	lock := undo.Lock{Doc: "global:x", Name: "/_lock/global/x", Owner: "o", Token: 7}
	l.open(&lock, "a", "b", "c")
	got, writes := l.states(7, 0, 100)
	l.want("open", got, []string{"1 a update applied", "2 b update applied", "3 c update applied"})
	got, _ = l.states(7, 1, 1)
	if l.want("the second", got, []string{"2 b update applied"}); writes != 3 {
		t.Errorf("%d writes", writes)
	}
	e, err := l.Entries(t.Context(), 7, 2, 9, true)
	if err != nil || len(e.Entries) != 1 || !strings.Contains(string(e.Entries[0].Before), `"n":0`) || !strings.Contains(string(e.Entries[0].After), `"n":1`) {
		t.Errorf("%v %+v", err, e)
	}
	l.e.Put(t, "/docs/_doc/b", `{"n":7,"secret":"x"}`) // what another client has changed, too
	l.end = "undone"
	if err := l.settle(lock); err == nil {
		t.Fatal("it was to end before the last step")
	}
	l.want("being undone", l.listed(10), []string{"/_lock/global/x being_undone 1"})
	got, _ = l.states(7, 0, 100)
	l.want("being undone", got, []string{"1 a update being_undone", "2 b update left", "3 c update being_undone"})
	l.end = ""
	if err := l.settle(lock); err != nil {
		t.Fatal(err)
	}
	l.want("undone but for a dead letter", l.listed(10), []string{"/_lock/global/x left 1"})
	got, _ = l.states(7, 0, 100)
	l.want("undone but for a dead letter", got, []string{"1 a update undone", "2 b update left", "3 c update undone"})
	of, err := l.Of(t.Context(), &lock)
	if err != nil || len(of) != 1 || of[0].State != undo.Kept || of[0].Left != 1 {
		t.Errorf("%v %+v", err, of)
	}
}

func TestWritesThatNobodyKnowsOfAreNotTakenForApplied(t *testing.T) {
	l := newLister(t)
	lock := undo.Lock{Doc: "global:x", Name: "/_lock/global/x", Owner: "o", Token: 7}
	l.open(&lock)
	j, err := l.Journal(t.Context(), []int64{7})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range []*undo.Write{{Ref: doc.Ref{Index: "docs", ID: "new"}, After: []byte(`{}`)}, {Ref: doc.Ref{Index: "docs", ID: "refused"}, After: []byte(`{}`)},
		{Ref: doc.Ref{Index: "docs", ID: "gone"}, Before: []byte(`{}`), Guard: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}}} {
		at, err := j.Note(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if w.ID == "refused" {
			if err := j.Failed(t.Context(), at); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, _ := l.states(7, 0, 100)
	l.want("without answers", got, []string{"1 new create noted", "2 refused create not_applied", "3 gone delete noted"})
}

// TestTheTokensOfOneJournalCostNoReadEach: before a journal is known, others of its lock are looked at, which may have ended. Once is enough.
func TestTheTokensOfOneJournalCostNoReadEach(t *testing.T) {
	l := newLister(t)
	l.begin(&undo.Lock{Doc: "doc:0", Name: "/docs/_lock/doc/0", Token: 6})
	var leases []undo.Lock
	var tokens []int64
	for i := range 20 {
		leases = append(leases, undo.Lock{Doc: fmt.Sprint("doc:", i), Name: fmt.Sprint("/docs/_lock/doc/", i), Token: int64(10 + i)})
		tokens = append(tokens, leases[i].Token)
	}
	if err := l.Open(t.Context(), leases); err != nil {
		t.Fatal(err)
	}
	l.e.Requests()
	if j, err := l.Journal(t.Context(), tokens); err != nil || j == nil {
		t.Fatal(j, err)
	}
	if asked := l.e.Requests(); len(asked) == 0 || len(asked) > 3 {
		t.Errorf("%d requests for the tokens of one journal", len(asked))
	}
}
