package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// shared holds the engines that this test process uses. The testing package offers no other place for what outlives one test
// without a TestMain in every package; the engines end with the process, because their standard input does.
var shared [ES9 + 1]struct {
	sync.Mutex
	engine *Engine
	err    error
}

// Shared returns the engine of that kind that all tests use together: the one that the kind's environment variable names, else
// one that the first caller of this process starts. Tests keep apart by the names of their indices: see Index.
func Shared(t testing.TB, k Kind) *Engine {
	t.Helper()
	s := &shared[k]
	s.Lock()
	defer s.Unlock()
	if s.engine == nil && s.err == nil {
		s.engine, s.err = open(k)
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.engine
}

func open(k Kind) (*Engine, error) {
	// Not the test's context: the engine outlives it.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	if url := os.Getenv(k.Env()); url != "" {
		return Attach(ctx, k, url)
	}
	return Start(ctx, k, Options{})
}

// Each runs the test once on each of the kinds, as a subtest with the engine's name.
func Each(t *testing.T, kinds []Kind, test func(t *testing.T, e *Engine)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.String(), func(t *testing.T) { test(t, Shared(t, k)) })
	}
}

// EachAtOnce is Each for a test that mostly waits, for a lease to end for example: it waits on several engines at once.
func EachAtOnce(t *testing.T, kinds []Kind, test func(t *testing.T, e *Engine)) {
	t.Helper()
	for _, k := range kinds {
		t.Run(k.String(), func(t *testing.T) {
			t.Parallel()
			test(t, Shared(t, k))
		})
	}
}

// Long skips the test unless long ones were asked for with E2E_LONG=1.
func Long(t testing.TB) {
	t.Helper()
	if os.Getenv("E2E_LONG") != "1" {
		t.Skip("takes long: runs with E2E_LONG=1")
	}
}

// Index returns the name of an index that no other test uses, and deletes it when the test ends. It is not created here: the
// first write does that, or the test.
func (e *Engine) Index(t testing.TB) string {
	t.Helper()
	unique := make([]byte, 4)
	_, _ = rand.Read(unique) // never fails, says its documentation
	name := "t-" + indexName(t.Name()) + "-" + hex.EncodeToString(unique)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		a, err := e.Do(ctx, http.MethodDelete, "/"+name+"?ignore_unavailable=true", "")
		if err != nil {
			return // the engine ended before the test did: nothing to clean up
		}
		if a.Status != http.StatusOK && a.Status != http.StatusNotFound {
			t.Errorf("deleting index %s: %d %s", name, a.Status, a.Body)
		}
		_, _ = e.Do(ctx, http.MethodDelete, "/_index_template/"+name, "") // optimist makes one for its locks
	})
	return name
}

// indexName makes a test's name one that an index may have.
func indexName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '-'
	}, s)
	return s[:min(len(s), 60)]
}
