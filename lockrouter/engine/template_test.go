package engine

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"optimist/internal/embedded"
	"optimist/internal/upstream"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// strict is an engine that makes no index by itself.
type strict struct{ *node }

func (n strict) Do(ctx context.Context, r *upstream.Request) (*upstream.Response, error) {
	target := string(r.Target)
	if made := r.Method == "PUT" && target == "/locks"; !made && n.Handle(&embedded.Request{Method: "HEAD", Target: "/locks"}).Status == 404 {
		res := &upstream.Response{Payload: []byte(`{"error":{"type":"index_not_found_exception","reason":"no such index [locks]"},"status":404}`)}
		res.Status = 404
		return res, nil
	}
	return n.node.Do(ctx, r)
}

func TestAnIndexThatIsDeletedIsMadeAnewWhereTheEngineDoesNot(t *testing.T) {
	n := newNode()
	s := New(Options{Upstream: strict{n}, Index: "locks"})
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
	if _, said, err := do(t, s, "b", acquire("b")); err != nil || said[0].Verdict != state.Acquired {
		t.Fatal(said, err)
	}
	if _, err := s.Clean(t.Context(), 0); !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), "Stop all of them") {
		t.Error(err)
	}
}
