package deadletter

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"optimist/internal/enginetest"
	"optimist/internal/es"
	"optimist/internal/upstream"
)

// opened is a store, and what opens it again as another process would.
type opened struct {
	Store
	again func(t *testing.T) Store
	// lenient: a new letter that is there already isn't an error, and changes nothing.
	lenient bool
}

// stores are all stores that a unit test can have. Those on real servers are held to the same suite in e2e/letters.
func stores(t *testing.T) map[string]func(t *testing.T) opened {
	return map[string]func(t *testing.T) opened{
		"folder": func(t *testing.T) opened {
			dir := t.TempDir()
			open := func(t *testing.T) *Folder {
				f := NewFolder(dir, 1<<20)
				damaged, err := f.Open()
				if err != nil || len(damaged) > 0 {
					t.Fatal(err, damaged)
				}
				t.Cleanup(func() { _ = f.Close() })
				return f
			}
			f := open(t)
			return opened{Store: f, again: func(t *testing.T) Store {
				_ = f.Close()
				return open(t)
			}}
		},
		"engine": func(t *testing.T) opened {
			e := enginetest.New()
			open := func(*testing.T) Store { return NewIndex(IndexOptions{Upstream: e, Name: "letters"}) }
			return opened{Store: open(t), again: open}
		},
		"kafka": func(t *testing.T) opened {
			c, err := kfake.NewCluster(kfake.NumBrokers(1))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(c.Close)
			open := func(t *testing.T) Store {
				topic, err := OpenTopic(TopicOptions{Brokers: c.ListenAddrs(), Name: "letters", Timeout: 20 * time.Second})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(topic.Close)
				return topic
			}
			return opened{Store: open(t), again: open, lenient: true}
		},
	}
}

func newLetter(n int) *Letter {
	at := time.UnixMilli(1_700_000_000_000 + int64(n)).UTC()
	return &Letter{Format: format, ID: newID(at), At: at, Rule: "shop", Reason: "conflict", Index: "shop", Document: fmt.Sprint(n), Attempts: 3, Checked: true,
		Request: Request{Method: "PUT", Target: fmt.Sprintf("/shop/_doc/%d", n), Fields: [][2]string{{"Content-Type", "application/json"}},
			Body: Bytes("{\"text\": \"<ü\u2028>\",\r\n\"n\": 1.50e0}")},
		Base: &Base{Kind: "read", SeqNo: 3, PrimaryTerm: 1, View: Bytes(`{"n":1}`)}, State: Waiting}
}

// contract is what every store does.
var contract = map[string]func(t *testing.T, s opened){
	"a letter comes back byte for byte": func(t *testing.T, s opened) {
		want := newLetter(1)
		want.Base.Stored = Bytes("\xff\x00 no text")
		at := put(t, s, want, Revision{})
		got, is, err := s.Get(t.Context(), want.ID)
		if err != nil || is != at || string(got.Request.Body) != string(want.Request.Body) || string(got.Base.Stored) != string(want.Base.Stored) ||
			string(got.Base.View) != string(want.Base.View) || !got.At.Equal(want.At) || got.Request.Target != want.Request.Target {
			t.Errorf("got %+v at %v, %v; want %+v at %v", got, is, err, want, at)
		}
	},
	"there is none": func(t *testing.T, s opened) {
		if _, _, err := s.Get(t.Context(), newID(time.Now())); !errors.Is(err, ErrNoLetter) {
			t.Errorf("get: %v", err)
		}
		if err := s.Delete(t.Context(), newID(time.Now()), Revision{n: 1, term: 1}); !errors.Is(err, ErrNoLetter) && !errors.Is(err, ErrTaken) {
			t.Errorf("delete: %v", err)
		}
		if all := list(t, s, &Query{}); len(all) > 0 {
			t.Errorf("listed: %v", all)
		}
	},
	"a new letter takes nobody's place": func(t *testing.T, s opened) {
		one := newLetter(1)
		put(t, s, one, Revision{})
		other := *one
		other.Rule = "other"
		if _, err := s.Put(t.Context(), &other, Revision{}); !errors.Is(err, ErrTaken) && (!s.lenient || err != nil) {
			t.Errorf("the second one: %v", err)
		}
		if got, _, err := s.Get(t.Context(), one.ID); err != nil || got.Rule != "shop" {
			t.Errorf("got %+v, %v", got, err)
		}
	},
	"a letter that is gone doesn't come back by its first record": func(t *testing.T, s opened) {
		if !s.lenient {
			t.Skip("only where a second new one is no error")
		}
		one := newLetter(1)
		at := put(t, s, one, Revision{})
		if err := s.Delete(t.Context(), one.ID, at); err != nil {
			t.Fatal(err)
		}
		put(t, s, one, Revision{})
		if _, _, err := s.Get(t.Context(), one.ID); !errors.Is(err, ErrNoLetter) {
			t.Errorf("it is back: %v", err)
		}
	},
	"an old revision changes and deletes nothing": func(t *testing.T, s opened) {
		l := newLetter(1)
		first := put(t, s, l, Revision{})
		l.State = Replaying
		second := put(t, s, l, first)
		if _, err := s.Put(t.Context(), newLetterAs(l, Doubtful), first); !errors.Is(err, ErrTaken) {
			t.Errorf("put: %v", err)
		}
		if err := s.Delete(t.Context(), l.ID, first); !errors.Is(err, ErrTaken) {
			t.Errorf("delete: %v", err)
		}
		if got, at, err := s.Get(t.Context(), l.ID); err != nil || got.State != Replaying || at != second {
			t.Errorf("got %+v at %v, %v", got, at, err)
		}
		if err := s.Delete(t.Context(), l.ID, second); err != nil {
			t.Errorf("delete at the last revision: %v", err)
		}
		if err := s.Delete(t.Context(), l.ID, second); !errors.Is(err, ErrNoLetter) {
			t.Errorf("delete again: %v", err)
		}
		if _, err := s.Put(t.Context(), l, second); !errors.Is(err, ErrNoLetter) {
			t.Errorf("put of one that is gone: %v", err)
		}
	},
	"of those who change a letter at once one does": func(t *testing.T, s opened) {
		l := newLetter(1)
		at := put(t, s, l, Revision{})
		var wg sync.WaitGroup
		errs := make([]error, 8)
		for i := range errs {
			wg.Go(func() { _, errs[i] = s.Put(t.Context(), newLetterAs(l, Replaying), at) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case !errors.Is(err, ErrTaken):
				t.Errorf("one: %v", err)
			}
		}
		if won != 1 {
			t.Errorf("%d have changed it, want 1", won)
		}
	},
	"lists are in order, by pages, and by what is asked": func(t *testing.T, s opened) {
		var ids []string
		for n := range 5 {
			l := newLetter(n)
			if n == 3 {
				l.Rule, l.Reason, l.Index, l.State = "other", "busy", "orders", Doubtful
			}
			put(t, s, l, Revision{})
			ids = append(ids, l.ID)
		}
		for _, one := range []struct {
			q    Query
			want []string
		}{
			{Query{}, ids},
			{Query{Size: 2}, ids[:2]},
			{Query{Size: 2, After: ids[1]}, ids[2:4]},
			{Query{Rule: "other"}, ids[3:4]},
			{Query{Index: "orders"}, ids[3:4]},
			{Query{Reason: "busy"}, ids[3:4]},
			{Query{State: Doubtful}, ids[3:4]},
			{Query{Document: "4"}, ids[4:]},
			{Query{Before: time.UnixMilli(1_700_000_000_002)}, ids[:2]},
			{Query{Since: time.UnixMilli(1_700_000_000_002)}, ids[2:]},
		} {
			var got []string
			for _, l := range list(t, s, &one.q) {
				got = append(got, l.ID)
				if l.Request.Body != nil || l.Base == nil || l.Base.View != nil {
					t.Errorf("%+v: a list has bodies: %+v", one.q, l)
				}
			}
			if !slices.Equal(got, one.want) {
				t.Errorf("%+v: %v, want %v", one.q, got, one.want)
			}
		}
	},
	"what is stored, changed and deleted outlives the process": func(t *testing.T, s opened) {
		stays, goes, changes := newLetter(1), newLetter(2), newLetter(3)
		put(t, s, stays, Revision{})
		at := put(t, s, changes, Revision{})
		put(t, s, newLetterAs(changes, Doubtful), at)
		if err := s.Delete(t.Context(), goes.ID, put(t, s, goes, Revision{})); err != nil {
			t.Fatal(err)
		}
		next := s.again(t)
		all, err := next.List(t.Context(), &Query{})
		if err != nil || len(all) != 2 || all[0].ID != stays.ID || all[1].State != Doubtful {
			t.Errorf("after the start: %v, %v", all, err)
		}
		l, at, err := next.Get(t.Context(), changes.ID)
		if err != nil || string(l.Request.Body) != string(changes.Request.Body) {
			t.Fatal(l, err)
		}
		if err := next.Delete(t.Context(), l.ID, at); err != nil {
			t.Error(err)
		}
	},
}

func TestEveryStoreKeepsTheContract(t *testing.T) {
	for name, open := range stores(t) {
		for rule, holds := range contract {
			t.Run(name+"/"+rule, func(t *testing.T) {
				t.Parallel()
				holds(t, open(t))
			})
		}
	}
}

// TestAPageIsNoMissingLetter: something in front of the engine answers 404 in its place. Nobody may say that there is no letter, that there
// are none, or that one is deleted.
func TestAPageIsNoMissingLetter(t *testing.T) {
	e := enginetest.New()
	s := NewIndex(IndexOptions{Upstream: e, Name: "letters"})
	l := newLetter(1)
	at := put(t, s, l, Revision{})
	var sent []string
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		sent = append(sent, r.Method)
		return enginetest.Response(404, `<html>404 page not found</html>`), nil
	}
	_, err := NewIndex(IndexOptions{Upstream: e, Name: "letters"}).Put(t.Context(), newLetter(2), Revision{})
	if !errors.Is(err, ErrStore) || len(sent) != 1 { // else it may make an index beside the one that is there
		t.Errorf("put, by a process that hasn't seen the index: %v, %v", sent, err)
	}
	_, _, got := s.Get(t.Context(), l.ID)
	_, listed := s.List(t.Context(), &Query{})
	for what, err := range map[string]error{"get": got, "list": listed, "delete": s.Delete(t.Context(), l.ID, at)} {
		if !errors.Is(err, ErrStore) || errors.Is(err, ErrNoLetter) {
			t.Errorf("%s: %v", what, err)
		}
	}
	e.Before = nil
	if all := list(t, s, &Query{}); len(all) != 1 {
		t.Errorf("listed: %v", all)
	}
}

func put(t *testing.T, s Store, l *Letter, in Revision) Revision {
	t.Helper()
	at, err := s.Put(t.Context(), l, in)
	if err != nil || at == (Revision{}) {
		t.Fatalf("put: %v, %v", at, err)
	}
	return at
}

func list(t *testing.T, s Store, q *Query) []*Letter {
	t.Helper()
	all, err := s.List(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func newLetterAs(l *Letter, s State) *Letter {
	other := *l
	other.State = s
	return &other
}

func TestAnIndexThatSomebodyDeletesIsMadeAnewWithItsMapping(t *testing.T) {
	e := enginetest.New()
	x := NewIndex(IndexOptions{Upstream: e, Name: "letters"})
	put(t, x, newLetter(1), Revision{})
	if status, body := e.Ask(t, "DELETE", "/letters-1", ""); status != 200 {
		t.Fatal(body)
	}
	put(t, x, newLetter(2), Revision{})
	if _, body := e.Ask(t, "GET", "/letters/_mapping", ""); !strings.Contains(body, `"format":1`) {
		t.Errorf("the mapping is %s", body)
	}
}

func TestAnIndexOfANewerFormatIsRefused(t *testing.T) {
	e := enginetest.New()
	e.Put(t, "/letters-1", `{"aliases":{"letters":{}},"mappings":{"_meta":{"optimist":{"format":2}}}}`)
	x := NewIndex(IndexOptions{Upstream: e, Name: "letters"})
	if _, err := x.Put(t.Context(), newLetter(1), Revision{}); !errors.Is(err, ErrStore) || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("got %v", err)
	}
}

func TestWhatAnEngineSaysOfALetterIsTold(t *testing.T) {
	for _, one := range []struct {
		status int
		kind   string // of the error
		err    error
		want   error
		names  bool // that credentials are refused
	}{
		{status: 429, want: ErrAway}, {status: 503, want: ErrUnsure}, {status: 403, want: ErrStore, names: true}, {status: 400, want: ErrStore},
		{status: 403, kind: es.BlockType, want: ErrStore}, // by an operator
		{err: &upstream.Error{Class: upstream.NotSent, Err: errors.New("refused")}, want: ErrAway},
		{err: enginetest.ErrLost, want: ErrUnsure},
	} {
		e := enginetest.New()
		e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
			if !strings.Contains(string(r.Target), "/_doc/") || r.Method == http.MethodGet {
				return nil, nil
			}
			if one.err != nil {
				return nil, one.err
			}
			return enginetest.Response(one.status, `{"error":{"type":"`+one.kind+`","reason":"y"}}`), nil
		}
		x := NewIndex(IndexOptions{Upstream: e, Name: "letters"})
		_, err := x.Put(t.Context(), newLetter(1), Revision{})
		if !errors.Is(err, one.want) {
			t.Errorf("%d %v: got %v, want %v", one.status, one.err, err, one.want)
		}
		if err != nil && strings.Contains(err.Error(), "upstream.auth") != one.names {
			t.Errorf("%d: only a refusal of the credentials names them: %v", one.status, err)
		}
	}
}
