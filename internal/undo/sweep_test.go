package undo_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/internal/upstream"
	"optimist/rewrite/merge"
)

// many begins the journals of so many locks.
func many(t *testing.T, s *undo.Store, locks int) {
	t.Helper()
	for i := range locks {
		l := undo.Lock{Doc: fmt.Sprint("global:", i), Name: fmt.Sprint("/_lock/global/", i), Owner: "o", Token: int64(i + 1)}
		if err := s.Open(t.Context(), []undo.Lock{l}); err != nil {
			t.Fatal(err)
		}
	}
}

// TestEachOfManyJournalsHasItsTurn: one whose holder is dead isn't hidden behind those of holders that live.
func TestEachOfManyJournalsHasItsTurn(t *testing.T) {
	e := enginetest.New()
	s := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x"})
	const locks = 250
	many(t, s, locks)
	e.Ask(t, "POST", "/undo/_refresh", "")
	var mu sync.Mutex
	looked := map[int64]int{}
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.SweepEvery(ctx, time.Millisecond, func(_ context.Context, lock string, token int64) error {
			if lock != fmt.Sprint("/_lock/global/", token-1) {
				t.Errorf("%s has the token %d", lock, token)
			}
			mu.Lock()
			defer mu.Unlock()
			looked[token]++
			return nil
		})
	}()
	enginetest.Wait(t, "each was looked at twice", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for i := range int64(locks) {
			if looked[i+1] < 2 {
				return false
			}
		}
		return true
	})
	stop()
	<-done
}

// TestAllOldJournalsAreCleanedAtOnce: as many as end in some minutes, else their documents would be kept longer and longer.
func TestAllOldJournalsAreCleanedAtOnce(t *testing.T) {
	e, now := enginetest.New(), time.Unix(1e9, 0)
	s := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Now: func() time.Time { return now }})
	const locks = 250
	many(t, s, locks+1)
	for i := range locks { // the last one is open
		if _, err := s.Commit(t.Context(), int64(i+1)); err != nil {
			t.Fatal(err)
		}
	}
	var cleaned []int
	for range 4 {
		e.Ask(t, "POST", "/undo/_refresh", "")
		n, err := s.Clean(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		cleaned, now = append(cleaned, n), now.Add(25*time.Hour)
	}
	if want := []int{0, locks, locks, 0}; !slices.Equal(cleaned, want) {
		t.Errorf("cleaned %v; want %v", cleaned, want)
	}
}

// TestAMemberThatTheEngineDoesntDeleteIsCleanedLater: only the list of the leases names the members, so it must outlive them.
func TestAMemberThatTheEngineDoesntDeleteIsCleanedLater(t *testing.T) {
	e, now := enginetest.New(), time.Unix(1e9, 0)
	s := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Now: func() time.Time { return now }})
	if err := s.Open(t.Context(), []undo.Lock{{Doc: "global:0", Name: "a", Token: 1}, {Doc: "global:1", Name: "b", Token: 2}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	clean := func() error {
		e.Ask(t, "POST", "/undo/_refresh", "")
		now = now.Add(25 * time.Hour)
		_, err := s.Clean(t.Context())
		return err
	}
	if err := clean(); err != nil { // the pages
		t.Fatal(err)
	}
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		const member = `{"delete":{"_id":"head-2"}}`
		if !bytes.Contains(r.Body, []byte(member)) {
			return nil, nil
		}
		rest := bytes.Replace(r.Body, []byte(member+"\n"), nil, 1)
		if len(rest) > 0 {
			e.Ask(t, "POST", "/undo/_bulk", string(rest))
		}
		return enginetest.Response(http.StatusOK, `{"errors":true,"items":[{"delete":{"status":429,"error":{"type":"es_rejected_execution_exception"}}}]}`), nil
	}
	if err := clean(); err == nil {
		t.Error("the member is there, and Clean has no error")
	}
	e.Before = nil
	if err := clean(); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"head-1", "head-2", "leases-1-1"} {
		if status, _ := e.Ask(t, "GET", "/undo/_doc/"+id, ""); status != http.StatusNotFound {
			t.Errorf("%s: %d", id, status)
		}
	}
}

// TestMoreRecordsThanOneRequestHoldsAreCleaned: pages, and leases of one journal.
func TestMoreRecordsThanOneRequestHoldsAreCleaned(t *testing.T) {
	e, now := enginetest.New(), time.Unix(1e9, 0)
	s := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Now: func() time.Time { return now }})
	const many = 1100
	var leases []undo.Lock
	for i := range many {
		leases = append(leases, undo.Lock{Doc: fmt.Sprint("global:", i), Name: fmt.Sprint("/_lock/global/", i), Token: int64(i + 1)})
	}
	if err := s.Open(t.Context(), leases); err != nil {
		t.Fatal(err)
	}
	for n := range many {
		e.Put(t, fmt.Sprintf("/undo/_doc/page-1-%d", n+1), `{"kind":"page"}`)
	}
	if _, err := s.Commit(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		e.Ask(t, "POST", "/undo/_refresh", "")
		now = now.Add(25 * time.Hour)
		if n, err := s.Clean(t.Context()); n != 1 || err != nil {
			t.Errorf("cleaned %d, %v", n, err)
		}
	}
	e.Ask(t, "POST", "/undo/_refresh", "")
	if _, left := e.Ask(t, "GET", "/undo/_search", ""); gjson.Get(left, "hits.hits.#").Int() != 0 {
		t.Errorf("left: %.300s", left)
	}
}

// TestAPageThatTheEngineDoesntDeleteIsCleanedLater: the bulk's answer is a 200, although the engine was too busy for its item. The head must
// not say that the pages are gone, else the page's documents would stay for ever.
func TestAPageThatTheEngineDoesntDeleteIsCleanedLater(t *testing.T) {
	e, now := enginetest.New(), time.Unix(1e9, 0)
	s := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Now: func() time.Time { return now }})
	many(t, s, 1)
	if _, err := s.Commit(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	e.Ask(t, "POST", "/undo/_refresh", "")
	now = now.Add(time.Hour)
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		if bytes.HasPrefix(r.Target, []byte("/undo/_bulk")) {
			return enginetest.Response(http.StatusOK, `{"errors":true,"items":[{"delete":{"status":429,"error":{"type":"es_rejected_execution_exception"}}}]}`), nil
		}
		return nil, nil
	}
	if n, err := s.Clean(t.Context()); n != 0 || err == nil {
		t.Errorf("cleaned %d, %v", n, err)
	}
	e.Before = nil
	if n, err := s.Clean(t.Context()); n != 1 || err != nil {
		t.Errorf("cleaned %d, %v", n, err)
	}
	if status, _ := e.Ask(t, "GET", "/undo/_doc/page-1-1", ""); status != http.StatusNotFound {
		t.Errorf("the page: %d", status)
	}
}

// TestNothingIsKeptOfALockWhoseJournalsAreSettled: an application that never uses the same lock twice would fill the index.
func TestNothingIsKeptOfALockWhoseJournalsAreSettled(t *testing.T) {
	l := newLister(t)
	registers := func() int64 {
		l.e.Ask(t, "POST", "/undo/_refresh", "")
		_, body := l.e.Ask(t, "POST", "/undo/_count", `{"query":{"term":{"kind":"lock"}}}`)
		return gjson.Get(body, "count").Int()
	}
	x, y := undo.Lock{Doc: "tree:x", Name: "/_lock/tree/x", Path: "x"}, undo.Lock{Doc: "global:y", Name: "/_lock/global/y"}
	for i, ends := range []func(token int64) error{
		func(token int64) error { _, err := l.Commit(t.Context(), token); return err },
		func(token int64) error { _, err := l.Rollback(t.Context(), token); return err },
	} {
		x.Token, y.Token = int64(10*i+1), int64(10*i+2)
		other := undo.Lock{Doc: x.Doc, Name: "/_lock/tree/z", Path: "z", Token: int64(10*i + 3)}
		for _, leases := range [][]undo.Lock{{x, y}, {other}} {
			if err := l.Open(t.Context(), leases); err != nil {
				t.Fatal(err)
			}
		}
		if n := registers(); n != 2 {
			t.Errorf("%d registers of two locks with journals", n)
		}
		if err := ends(x.Token); err != nil {
			t.Fatal(err)
		}
		if n := registers(); n != 1 {
			t.Errorf("%d registers of one lock with a journal", n)
		}
		if left, err := l.Registered(t.Context(), []undo.Lock{x, y}); err != nil || len(left) != 1 || left[0].Doc != x.Doc {
			t.Errorf("%+v are registered, %v", left, err)
		}
		if err := ends(other.Token); err != nil {
			t.Fatal(err)
		}
		if n := registers(); n != 0 {
			t.Errorf("%d registers of no lock", n)
		}
	}
}

// TestWhatHasEndedElsewhereIsForgotten: the holder writes through one proxy, and releases through another.
func TestWhatHasEndedElsewhereIsForgotten(t *testing.T) {
	e, now := enginetest.New(), time.Unix(1e9, 0)
	open := func() *undo.Store {
		return undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Now: func() time.Time { return now }})
	}
	writes, ends := open(), open()
	leases := []undo.Lock{{Doc: "doc:1", Name: "/docs/_lock/doc/1", Token: 1001}, {Doc: "doc:2", Name: "/docs/_lock/doc/2", Token: 1002}}
	if err := ends.Open(t.Context(), leases); err != nil {
		t.Fatal(err)
	}
	many(t, ends, 2)
	for _, token := range []int64{1, 2, 1002} {
		if j, err := writes.Journal(t.Context(), []int64{token}); j == nil || err != nil {
			t.Fatal(j, err)
		}
	}
	known := func(want int) {
		t.Helper()
		if n, err := writes.Known(t.Context()); n != want || err != nil {
			t.Errorf("%d are known, %v; want %d", n, err, want)
		}
	}
	known(4)
	for _, token := range []int64{1, 1001} {
		if _, err := ends.Commit(t.Context(), token); err != nil {
			t.Fatal(err)
		}
	}
	known(4) // they were seen open a moment ago
	now = now.Add(2 * time.Minute)
	known(1)
	if _, err := writes.Journal(t.Context(), []int64{1002}); !errors.Is(err, undo.ErrEnded) {
		t.Errorf("%v; want ErrEnded", err)
	}
	if j, err := writes.Journal(t.Context(), []int64{2}); j == nil || err != nil {
		t.Error(j, err)
	}
}

// TestWhoHasWrittenWhatIsUndoneIsTold in the process that knows it, whichever undoes it: at once, where it does so itself, and before the next
// holder of the lock writes through it.
func TestWhoHasWrittenWhatIsUndoneIsTold(t *testing.T) {
	e := enginetest.New()
	var told []string
	plain, err := merge.New(merge.Sent, nil)
	if err != nil {
		t.Fatal(err)
	}
	open := func(tell bool) *undo.Store {
		o := undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Merger: func(string) undo.Merger { return plain }, Grace: 1}
		if tell {
			o.Undone = func(by any, ref doc.Ref, n doc.Numbers) {
				told = append(told, fmt.Sprint(by, " ", ref.ID, " ", n.SeqNo))
			}
		}
		return undo.New(o)
	}
	here, elsewhere := open(true), open(false)
	for token, c := range map[int64]struct {
		end  func(token int64) error
		want []string
	}{
		1: {func(token int64) error { _, err := here.Rollback(t.Context(), token); return err }, []string{"me 1 9"}},
		2: {func(token int64) error { _, err := elsewhere.Rollback(t.Context(), token); return err }, []string{"me 2 9"}},
		3: {func(token int64) error { _, err := elsewhere.Commit(t.Context(), token); return err }, nil},
	} {
		lock := undo.Lock{Doc: fmt.Sprint("global:", token), Name: fmt.Sprint("/_lock/global/", token), Owner: "o", Token: token}
		if err := here.Open(t.Context(), []undo.Lock{lock}); err != nil {
			t.Fatal(err)
		}
		j, err := here.Journal(t.Context(), []int64{token})
		if err != nil {
			t.Fatal(err)
		}
		ref := doc.Ref{Index: "docs", ID: fmt.Sprint(token)}
		at, err := j.Note(t.Context(), &undo.Write{Ref: ref, After: []byte(`{}`)})
		if err != nil {
			t.Fatal(err)
		}
		e.Put(t, "/docs/_doc/"+ref.ID, `{}`)
		j.Applied(at, doc.Revision{})
		j.Wrote("me", ref, doc.Numbers{SeqNo: 7, PrimaryTerm: 1})
		j.Wrote("me", ref, doc.Numbers{SeqNo: 9, PrimaryTerm: 1})
		told = nil
		if err := c.end(token); err != nil {
			t.Fatal(err)
		}
		lock.Token += 10
		if err := elsewhere.Open(t.Context(), []undo.Lock{lock}); err != nil {
			t.Fatal(err)
		}
		if _, err := here.Journal(t.Context(), []int64{lock.Token}); err != nil || !slices.Equal(told, c.want) {
			t.Errorf("%d: told %q, %v; want %q", token, told, err, c.want)
		}
	}
}

// TestASweepStoresWhatOneProcessAloneKnows: the holder's last write was applied through this process, and another process undoes it. Meanwhile
// others have written the document.
func TestASweepStoresWhatOneProcessAloneKnows(t *testing.T) {
	var clock atomic.Int64
	s, e, left := newSums(t, func(*enginetest.Engine, string) {})
	here := undo.New(undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Now: func() time.Time { return time.Unix(clock.Load(), 0) }})
	j, at := noted(t, here, e)
	e.Put(t, "/docs/_doc/1", `{"n":9}`)
	j.Applied(at, doc.Revision{Numbers: doc.Numbers{SeqNo: 1, PrimaryTerm: 1}, Version: 2})
	e.Put(t, "/docs/_doc/1", `{"n":14}`)
	clock.Add(int64((6 * time.Second).Seconds()))
	ctx, stop := context.WithCancel(t.Context())
	swept := make(chan struct{})
	go func() {
		defer close(swept)
		here.SweepEvery(ctx, time.Millisecond, func(context.Context, string, int64) error { return nil })
	}()
	enginetest.Wait(t, "it is stored that the write was applied", func() bool {
		all, err := s.Entries(t.Context(), 7, 0, 10, false)
		return err == nil && len(all.Entries) == 1 && all.Entries[0].State == "applied"
	})
	stop()
	<-swept
	if n, err := s.Rollback(t.Context(), 7); err != nil || n != 0 || *left != 0 {
		t.Errorf("%d left, %d letters, %v; want none", n, *left, err)
	}
	if _, body := e.Ask(t, "GET", "/docs/_source/1", ""); body != `{"n":15}` {
		t.Errorf("the document is %s; want 15", body)
	}
}

// TestOldSightingsAreForgotten: a rollback of another proxy was seen, and is over. Nobody asks for it again, and so nothing else removes what
// was seen.
func TestOldSightingsAreForgotten(t *testing.T) {
	l := newLister(t)
	lock := undo.Lock{Doc: "global:x", Name: "/_lock/global/x", Token: 7}
	l.open(&lock, "1")
	l.end = "plan"
	if _, err := l.Rollback(t.Context(), 7); !errors.Is(err, errCrash) {
		t.Fatal(err)
	}
	var now atomic.Int64
	s := undo.New(undo.Options{Upstream: l.e, Index: "undo", Authorization: "Basic x", Takeover: time.Hour, Poll: time.Hour,
		Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	settling, leave := context.WithCancel(t.Context())
	settled := make(chan error, 1)
	go func() {
		settled <- s.Settle(settling, &undo.Lock{Doc: lock.Doc, Token: 8}, func(int64, string) (bool, error) { return true, nil })
	}()
	enginetest.Wait(t, "the rollback is seen", func() bool { return s.Seen() == 1 })
	leave()
	if err := <-settled; !errors.Is(err, undo.ErrBusy) && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	swept := make(chan struct{})
	var sweeps atomic.Int64
	go func() {
		defer close(swept)
		s.SweepEvery(ctx, time.Millisecond, func(context.Context, string, int64) error {
			sweeps.Add(1)
			return nil
		})
	}()
	l.e.Ask(t, "POST", "/undo/_refresh", "")
	enginetest.Wait(t, "it is cleaned up twice", func() bool { return sweeps.Load() > 130 })
	if s.Seen() != 1 {
		t.Error("what was seen a moment ago is forgotten")
	}
	now.Add(int64((11 * time.Minute).Seconds()))
	enginetest.Wait(t, "what was seen long ago is forgotten", func() bool { return s.Seen() == 0 })
	stop()
	<-swept
}
