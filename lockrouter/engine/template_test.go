package engine

import (
	"context"
	"errors"
	"log/slog"
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

func TestWhatAnEngineLacksIsToldInOnePlainLineEach(t *testing.T) {
	for name, c := range map[string]struct {
		inMemory bool
		want     []string
	}{
		"a real engine": {false, []string{
			`level=WARN msg="the engine runs no scripts: locks use guarded writes instead" index=locks reason="400 failed to execute script: script_lang not supported [painless]"`,
			`level=WARN msg="there is no index template for the locks: before you delete their index, stop all proxies" index=locks reason="400 index templates are not supported by the embedded in-memory engine"`,
		}},
		"the engine in memory": {true, nil},
	} {
		var log strings.Builder
		s := New(Options{Upstream: newNode(), Index: "locks", InMemory: c.inMemory, Log: slog.New(slog.NewTextHandler(&log, nil))})
		if _, _, err := do(t, s, "a", acquire("a")); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(log.String(), "level=WARN"); n != len(c.want) {
			t.Errorf("%s: %d warnings:\n%s", name, n, &log)
		}
		for _, line := range c.want {
			if !strings.Contains(log.String(), line) {
				t.Errorf("%s: %s isn't in\n%s", name, line, &log)
			}
		}
	}
}
