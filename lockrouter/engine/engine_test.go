package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"optimist/internal/enginetest"
	"optimist/internal/es"
	"optimist/internal/upstream"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// newNode is an engine, without scripts, that takes nothing but optimist's own requests.
func newNode() *enginetest.Engine {
	e := enginetest.New()
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		if !r.Own {
			return nil, errors.New("asked with a client's credentials")
		}
		return nil, nil
	}
	return e
}

// lose has answers of the engine lost.
func lose(e *enginetest.Engine, which func(method, target string) bool) {
	e.After = func(r *upstream.Request, _ *upstream.Response) error {
		if which(r.Method, string(r.Target)) {
			return enginetest.ErrLost
		}
		return nil
	}
}

func acquire(owner string) state.Op {
	return state.Op{Do: state.Acquire, Owner: owner, Rid: owner, Mode: state.Exclusive, Class: state.Foreground, TTL: 60_000}
}

func do(t *testing.T, s *Store, id string, ops ...state.Op) (*state.Doc, []state.Result, error) {
	t.Helper()
	c := &state.Call{Lock: "/_lock/global/" + id, Kind: state.Global, Proxy: "p", Ops: ops, Bound: 3, Grace: 100}
	d := s.Do(t.Context(), []lockrouter.Change{{ID: id, Call: c}})[0]
	return d.Doc, d.Results, d.Err
}

func TestAHandOverInOneProxyIsOneWrite(t *testing.T) {
	n := newNode()
	s := New(Options{Upstream: n, Index: "locks"})
	_, results, err := do(t, s, "a", acquire("a"))
	if err != nil || results[0].Verdict != state.Acquired {
		t.Fatal(results, err)
	}
	n.Requests()
	next := acquire("b")
	next.Wait, next.Left = true, 1000
	_, results, err = do(t, s, "a", state.Op{Do: state.Release, Owner: "a", Token: results[0].Token}, next)
	if requests := n.Requests(); err != nil || results[1].Verdict != state.Acquired || len(requests) != 1 {
		t.Errorf("%v %v %v", results, err, requests)
	}
	// What refuses somebody is read anew: the guess could be an old one.
	_, results, err = do(t, s, "a", acquire("c"))
	if requests := n.Requests(); err != nil || results[0].Verdict != state.Held || len(requests) != 1 || !strings.HasPrefix(requests[0], "GET ") {
		t.Errorf("%v %v %v", results, err, requests)
	}
}

func TestAGuessThatIsOldIsFoundOut(t *testing.T) {
	n := newNode()
	here, there := New(Options{Upstream: n, Index: "locks"}), New(Options{Upstream: n, Index: "locks"})
	_, first, _ := do(t, here, "a", acquire("a"))
	if _, results, err := do(t, there, "a", state.Op{Do: state.Release, Owner: "a", Token: first[0].Token}, acquire("b")); err != nil || results[1].Verdict != state.Acquired {
		t.Fatal(results, err)
	}
	// To this one the lock is still that of a.
	if _, results, err := do(t, here, "a", state.Op{Do: state.Renew, Owner: "a", Token: first[0].Token}); err != nil || results[0].Verdict != state.Expired {
		t.Error(results, err)
	}
	if _, results, err := do(t, here, "a", acquire("a")); err != nil || results[0].Verdict != state.Held {
		t.Error(results, err)
	}
}

func TestALostAnswerIsAnErrorAndTheRepeatFindsOut(t *testing.T) {
	n := newNode()
	s := New(Options{Upstream: n, Index: "locks"})
	if _, _, err := do(t, s, "other", acquire("a")); err != nil {
		t.Fatal(err)
	}
	lose(n, func(_, target string) bool { return strings.Contains(target, "_create/a") })
	if _, _, err := do(t, s, "a", acquire("a")); !errors.Is(err, lockrouter.ErrStore) {
		t.Fatal(err)
	}
	n.After = nil
	d, results, err := do(t, s, "a", acquire("a"))
	if err != nil || results[0].Verdict != state.Acquired || len(d.Holds) != 1 {
		t.Errorf("%v %v %+v", results, err, d)
	}
}

func TestManyDocumentsGoInFewRequests(t *testing.T) {
	n := newNode()
	s := New(Options{Upstream: n, Index: "locks"})
	var changes []lockrouter.Change
	for i := range 2 * maxBulk {
		changes = append(changes, lockrouter.Change{ID: fmt.Sprint("d", i), Call: &state.Call{Kind: state.Document, Ops: []state.Op{acquire("a")}}})
	}
	if _, results, err := do(t, s, "d7", acquire("other")); err != nil || results[0].Verdict != state.Acquired {
		t.Fatal(results, err)
	}
	n.Requests()
	for i, d := range s.Do(t.Context(), changes) {
		want := state.Acquired
		if i == 7 {
			want = state.Held
		}
		if d.Err != nil || d.Results[0].Verdict != want {
			t.Errorf("%d: %v %v", i, d.Results, d.Err)
		}
	}
	if requests := n.Requests(); len(requests) > 5 {
		t.Errorf("%d requests: %v", len(requests), requests)
	}
}

func TestAnIndexThatIsntForThisProgramIsRefused(t *testing.T) {
	meta := func(format int, clock string) string {
		b, _ := json.Marshal(map[string]any{"mappings": map[string]any{"_meta": map[string]any{"optimist": map[string]any{"format": format, "clock": clock}}}})
		return string(b)
	}
	for name, c := range map[string]struct {
		body    string
		scripts Scripts
		want    error
	}{
		"foreign":                    {`{}`, Auto, ErrFormat},
		"of a newer format":          {meta(format+1, clockObserved), Auto, ErrFormat},
		"by scripts, and there none": {meta(format, clockEngine), Auto, ErrFormat},
		"by scripts, switched off":   {meta(format, clockEngine), Never, ErrFormat},
		"without, demanded":          {meta(format, clockObserved), Always, ErrFormat},
		"by another clock":           {meta(format, "sundial"), Auto, ErrFormat},
		"without":                    {meta(format, clockObserved), Auto, nil},
		"not decided":                {meta(format, ""), Auto, nil},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNode()
			n.Put(t, "/locks", c.body)
			s := New(Options{Upstream: n, Index: "locks", Scripts: c.scripts})
			_, _, err := do(t, s, "a", acquire("a"))
			if !errors.Is(err, c.want) || err != nil && !errors.Is(err, lockrouter.ErrStore) {
				t.Errorf("%v", err)
			}
			if err == nil && s.Timed() {
				t.Error("leases are judged by a clock that nobody has")
			}
		})
	}
}

func TestListsAreInPages(t *testing.T) {
	n := newNode()
	s := New(Options{Upstream: n, Index: "locks"})
	for i := range 5 {
		if _, _, err := do(t, s, fmt.Sprint(i), acquire("a")); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	for q := (&lockrouter.Query{Owner: "a", Prefix: "/_lock/global/", Size: 2}); ; {
		page, err := s.Find(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range page.Docs {
			found = append(found, d.Lock)
		}
		if q.After = page.Next; page.Next == "" {
			break
		}
	}
	if len(found) != 5 {
		t.Error(found)
	}
}

// TestAnEngineMayTellErrorsAsTexts: with http.detailed_errors.enabled: false, it does.
func TestAnEngineMayTellErrorsAsTexts(t *testing.T) {
	n := newNode()
	s := New(Options{Upstream: n, Index: "locks"})
	n.Before = func(context.Context, *upstream.Request) (*upstream.Response, error) {
		return enginetest.Response(404, `{"error":"IndexNotFoundException[no such index [locks]]","status":404}`), nil
	}
	if items, err := s.mget(t.Context(), []string{"a", "b"}); err != nil || len(items) != 2 || items[0].Exists() {
		t.Errorf("reading: %v %v", items, err)
	}
	told := es.Answer{Status: 404, Body: []byte(`{"error":"IndexNotFoundException[no such index [locks]]","status":404}`)}
	if err := s.failure(told); !errors.Is(err, errNoIndex) {
		t.Errorf("writing: %v", err)
	}
}

// TestAPageIsNoListOfLocks: something in front of the engine answers 404 in its place. If that meant that there are no locks, a gate would
// open under a holder.
func TestAPageIsNoListOfLocks(t *testing.T) {
	n := newNode()
	s := New(Options{Upstream: n, Index: "locks"})
	if page, err := s.Find(t.Context(), &lockrouter.Query{Size: 2}); err != nil || len(page.Docs) > 0 {
		t.Fatalf("without an index: %+v %v", page, err)
	}
	if _, _, err := do(t, s, "a", acquire("a")); err != nil {
		t.Fatal(err)
	}
	for _, page := range []string{"<html>404 page not found</html>", "", `{"message":"no Route matched"}`} {
		n.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
			if strings.HasSuffix(string(r.Target), "/_refresh") {
				return enginetest.Response(404, page), nil
			}
			return nil, nil
		}
		_, found := s.Find(t.Context(), &lockrouter.Query{Size: 2})
		_, leased := s.Leased(t.Context(), "/", 0, 2)
		for what, err := range map[string]error{"find": found, "leased": leased} {
			if !errors.Is(err, lockrouter.ErrStore) {
				t.Errorf("%q: %s: %v", page, what, err)
			}
		}
	}
}
