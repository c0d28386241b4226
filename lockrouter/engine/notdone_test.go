package engine

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"optimist/internal/enginetest"
	"optimist/internal/upstream"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// TestWhatWasNotDoneIsKnown: nobody has to take it back. Whatever may have been carried out isn't known to be undone.
func TestWhatWasNotDoneIsKnown(t *testing.T) {
	answer := func(status int) func() (*upstream.Response, error) {
		return func() (*upstream.Response, error) { return enginetest.Response(status, `{"error":{"type":"x"}}`), nil }
	}
	fails := func(err error) func() (*upstream.Response, error) {
		return func() (*upstream.Response, error) { return nil, err }
	}
	for _, try := range []struct {
		name      string
		fails     func() (*upstream.Response, error)
		uncertain bool // where it is the answer to a write
	}{
		{"unauthorized", answer(401), false}, {"forbidden", answer(403), false}, {"too much to do", answer(429), false},
		{"timeout", answer(408), true}, {"unavailable", answer(503), true}, {"gateway timeout", answer(504), true},
		{"not sent", fails(&upstream.Error{Class: upstream.NotSent, Err: errors.New("refused")}), false},
		{"ended before it was sent", fails(&upstream.Error{Class: upstream.Cancelled, Err: context.Canceled}), false},
		{"lost", fails(enginetest.ErrLost), true},
	} {
		for _, fresh := range []bool{true, false} { // a fresh store asks first what its index is
			for _, n := range []int{1, 3} {
				for _, writes := range []bool{true, false} {
					t.Run(fmt.Sprint(try.name, ", fresh ", fresh, ", calls ", n, ", at a write ", writes), func(t *testing.T) {
						node := newNode()
						s := New(Options{Upstream: node, Index: "locks", Scripts: Never})
						if _, _, err := do(t, New(Options{Upstream: node, Index: "locks", Scripts: Never}), "other", acquire("a")); err != nil {
							t.Fatal(err)
						}
						if !fresh {
							if _, _, err := do(t, s, "other", acquire("a")); err != nil {
								t.Fatal(err)
							}
						}
						node.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
							if writes == (r.Method == "GET" || r.Repeatable) {
								return nil, nil
							}
							return try.fails()
						}
						changes := make([]lockrouter.Change, n)
						for i := range changes {
							id := fmt.Sprint(i)
							changes[i] = lockrouter.Change{ID: id, Call: &state.Call{Lock: "/_lock/global/" + id, Kind: state.Global, Proxy: "p",
								Ops: []state.Op{acquire("a")}, Bound: 3, Grace: 100}}
						}
						for _, d := range s.Do(t.Context(), changes) {
							known := errors.Is(d.Err, lockrouter.ErrNotDone)
							if !errors.Is(d.Err, lockrouter.ErrStore) || known == (writes && try.uncertain) {
								t.Errorf("%v; known not to be done: %v", d.Err, known)
							}
						}
					})
				}
			}
		}
	}
}

// TestClientsDoNotSeeWhatTheEngineSaysToOptimist: the engine's reason names the user that optimist is, and the privileges that it lacks.
func TestClientsDoNotSeeWhatTheEngineSaysToOptimist(t *testing.T) {
	const failed = `"error":{"type":"security_exception","reason":"no permissions for [User [name=proxy7]]"}`
	for _, c := range []struct {
		name    string
		scripts Scripts
		at      string // part of the request's target
		status  int
		body    string
	}{
		{"a request", Never, "", 403, `{` + failed + `}`},
		{"a script", Always, "_update", 400, `{` + failed + `}`},
		{"a document among several", Never, "_mget", 200, `{"docs":[{"_id":"a","found":false},{"_id":"b",` + failed + `}]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			node, log := newNode(), new(bytes.Buffer)
			node.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
				if strings.Contains(string(r.Target), c.at) {
					return enginetest.Response(c.status, c.body), nil
				}
				return nil, nil
			}
			s := New(Options{Upstream: node, Index: "locks", Scripts: c.scripts, Log: slog.New(slog.NewTextHandler(log, nil))})
			_, _, err := do(t, s, "lock", acquire("a"))
			if c.at == "_mget" {
				_, err = s.Read(t.Context(), []string{"a", "b"})
			}
			want := fmt.Sprintf("the engine answered %d security_exception", c.status)
			if !errors.Is(err, lockrouter.ErrStore) || strings.Contains(err.Error(), "proxy7") || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("the client gets: %v", err)
			}
			if n := strings.Count(log.String(), "proxy7"); n != 1 || strings.Contains(log.String(), "found") {
				t.Errorf("the log has: %s", log)
			}
		})
	}
}
