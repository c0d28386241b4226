package app_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"optimist/e2e/engine"
)

// between puts a server between optimist and an engine: handle gets each request, and may answer by itself, or have pass answer.
func between(t *testing.T, e target, handle func(w http.ResponseWriter, r *http.Request, pass http.Handler)) target {
	t.Helper()
	return target{e.name, engine.Between(t, e.url, handle)}
}

// copyTo gives a recorded answer to a client.
func copyTo(w http.ResponseWriter, rec *httptest.ResponseRecorder) {
	for name, values := range rec.Header() {
		w.Header()[name] = values
	}
	w.WriteHeader(rec.Code)
	_, _ = w.Write(rec.Body.Bytes()) // the client may have left
}

// together holds the first n reads of each document until all n are there: those who read together know nothing of each other's
// changes.
func together(t *testing.T, e target, n int) target {
	t.Helper()
	var mu sync.Mutex
	type meeting struct {
		came int
		all  chan struct{}
	}
	meetings := make(map[string]*meeting)
	return between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method != http.MethodGet || !strings.Contains(r.URL.Path, "/_doc/") {
			pass.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		pass.ServeHTTP(rec, r)
		mu.Lock()
		m := meetings[r.URL.Path]
		if m == nil {
			m = &meeting{all: make(chan struct{})}
			meetings[r.URL.Path] = m
		}
		if m.came++; m.came == n {
			close(m.all)
		}
		mu.Unlock()
		select {
		case <-m.all:
		case <-r.Context().Done():
		}
		copyTo(w, rec)
	})
}

// slow holds the answers to some writes of each document for a while, after the engine has written them: to every n-th of the
// first 3n.
func slow(t *testing.T, e target, n int, hold time.Duration) target {
	t.Helper()
	var mu sync.Mutex
	writes := make(map[string]int)
	return between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method != http.MethodPut {
			pass.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		writes[r.URL.Path]++
		k := writes[r.URL.Path]
		mu.Unlock()
		if k%n != 0 || k > 3*n {
			pass.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		pass.ServeHTTP(rec, r)
		select {
		case <-time.After(hold):
		case <-r.Context().Done():
		}
		copyTo(w, rec)
	})
}

// forgetful breaks the connection of every n-th write off instead of answering, after the engine has written it.
func forgetful(t *testing.T, e target, n int) target {
	t.Helper()
	var mu sync.Mutex
	writes := 0
	return between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if r.Method != http.MethodPut {
			pass.ServeHTTP(w, r)
			return
		}
		mu.Lock()
		writes++
		lost := writes%n == 0
		mu.Unlock()
		if !lost {
			pass.ServeHTTP(w, r)
			return
		}
		pass.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	})
}
