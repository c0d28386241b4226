package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"optimist/internal/embedded"
	"optimist/internal/enginetest"
	"optimist/internal/upstream"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// strictly has an engine make no index by itself.
func strictly(e *enginetest.Engine) *enginetest.Engine {
	e.Before = func(_ context.Context, r *upstream.Request) (*upstream.Response, error) {
		made := r.Method == "PUT" && string(r.Target) == "/locks"
		if !made && e.Handle(&embedded.Request{Method: "HEAD", Target: "/locks"}).Status == 404 {
			return enginetest.Response(404, `{"error":{"type":"index_not_found_exception","reason":"no such index [locks]"},"status":404}`), nil
		}
		return nil, nil
	}
	return e
}

func TestAnIndexThatIsDeletedIsMadeAnewWhereTheEngineDoesNot(t *testing.T) {
	n := newNode()
	s := New(Options{Upstream: strictly(n), Index: "locks"})
	_, first, err := do(t, s, "a", acquire("a"))
	if err != nil {
		t.Fatal(err)
	}
	n.Handle(&embedded.Request{Method: "DELETE", Target: "/locks"})
	if _, _, err := do(t, s, "a", acquire("b")); !errors.Is(err, lockrouter.ErrStore) {
		t.Error(err)
	}
	for began := time.Now().UnixMilli(); time.Now().UnixMilli() == began; { // tokens begin with the clock's ms
	}
	_, next, err := do(t, s, "a", acquire("b"))
	if err != nil || next[0].Verdict != state.Acquired || next[0].Token <= first[0].Token {
		t.Errorf("%v after %v, %v", next, first, err)
	}
	if _, err := New(Options{Upstream: n, Index: "locks"}).prepare(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnIndexThatAnEngineMadeByItselfIsFoundOut(t *testing.T) {
	n := newNode() // it has no templates
	s := New(Options{Upstream: n, Index: "locks"})
	if _, _, err := do(t, s, "a", acquire("a")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Read(t.Context(), []string{"b"}); err != nil { // it is known not to be there, and made without another look
		t.Fatal(err)
	}
	n.Handle(&embedded.Request{Method: "DELETE", Target: "/locks"})
	if _, results, err := do(t, s, "b", acquire("b")); err != nil || results[0].Verdict != state.Acquired {
		t.Fatal(results, err)
	}
	if _, err := s.Clean(t.Context(), 0); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "Stop all of them") {
		t.Error(err)
	}
}
