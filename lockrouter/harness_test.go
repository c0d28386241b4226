package lockrouter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/memory"
	"optimist/lockrouter/state"
)

// shelf is a store whose calls can be counted, held up, and made to fail before or after they were carried out.
type shelf struct {
	lockrouter.Store
	took time.Duration // that a call takes

	mu           sync.Mutex
	calls, looks int
	fail         func(c *state.Call) (before, after error)
}

func (s *shelf) Do(ctx context.Context, changes []lockrouter.Change) []lockrouter.Changed {
	failed := func(err error) []lockrouter.Changed {
		done := make([]lockrouter.Changed, len(changes))
		for i := range done {
			done[i].Err = err
		}
		return done
	}
	s.mu.Lock()
	s.calls++
	fail := s.fail
	s.mu.Unlock()
	if s.took > 0 {
		select {
		case <-time.After(s.took):
		case <-ctx.Done():
			return failed(fmt.Errorf("%w: %w", lockrouter.ErrStore, ctx.Err()))
		}
	}
	var before, after error
	if fail != nil {
		s.mu.Lock() // calls of a lane and of what gives back leases come at the same time
		before, after = fail(changes[0].Call)
		s.mu.Unlock()
	}
	if before != nil {
		return failed(before)
	}
	done := s.Store.Do(ctx, changes)
	if after != nil {
		return failed(after)
	}
	return done
}

func (s *shelf) Read(ctx context.Context, ids []string) ([]*state.Doc, error) {
	s.mu.Lock()
	s.looks++
	s.mu.Unlock()
	return s.Store.Read(ctx, ids)
}

func (s *shelf) failing(f func(c *state.Call) (before, after error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fail = f
}

func (s *shelf) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// bubble runs a test in which time passes only when everybody waits.
func bubble(t *testing.T, test func(t *testing.T, s *shelf)) {
	synctest.Test(t, func(t *testing.T) { test(t, &shelf{Store: memory.New(nil), took: time.Millisecond}) })
}

// pass lets the time of a bubble pass.
func pass(d time.Duration) { time.Sleep(d) }

func router(t *testing.T, s lockrouter.Store, o lockrouter.Options) *lockrouter.Router {
	o.Store = s
	if o.Foreground == 0 {
		o.Foreground, o.Background = 2*time.Second, 2*time.Second
	}
	r := lockrouter.New(o)
	t.Cleanup(r.Close)
	return r
}

// said is an answer, read.
type reply struct {
	status int
	typ    string
	reason string
	lock   string
	owner  string
	token  int64
	in     int64
	waited int64
	retry  string
	allow  string
	body   string
}

func request(ctx context.Context, r *lockrouter.Router, method, target, body string) (reply, error) {
	path, query := target, ""
	for i := range target {
		if target[i] == '?' {
			path, query = target[:i], target[i+1:]
			break
		}
	}
	a, err := r.Serve(ctx, &lockrouter.Request{Method: method, Path: []byte(path), Query: []byte(query), Body: []byte(body)})
	if err != nil {
		return reply{}, err
	}
	var b struct {
		Lock, Owner string
		Token       int64
		In          int64 `json:"expires_in_ms"`
		Waited      int64 `json:"waited_ms"`
		Error       struct{ Type, Reason string }
	}
	if err := json.Unmarshal(a.Body, &b); err != nil {
		return reply{}, fmt.Errorf("%w: %s", err, a.Body)
	}
	s := reply{status: a.Status, typ: b.Error.Type, reason: b.Error.Reason, lock: b.Lock, owner: b.Owner, token: b.Token, in: b.In,
		waited: b.Waited, body: string(a.Body)}
	for _, f := range a.Fields {
		switch string(f.Name) {
		case "Retry-After":
			s.retry = string(f.Value)
		case "Allow":
			s.allow = string(f.Value)
		}
	}
	return s, nil
}

// ask makes a request that has to be answered with the status, and the type if it is an error.
func ask(t *testing.T, r *lockrouter.Router, status int, typ, method, target, body string) reply {
	t.Helper()
	s, err := request(t.Context(), r, method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	if s.status != status || s.typ != typ {
		t.Fatalf("%s %s %s: %d %s, want %d %s: %s", method, target, body, s.status, s.typ, status, typ, s.body)
	}
	return s
}

const global = "/_lock/global/a"

func take(t *testing.T, r *lockrouter.Router, owner string) reply {
	t.Helper()
	return ask(t, r, 201, "", "PUT", global, `{"owner":"`+owner+`"}`)
}

func give(t *testing.T, r *lockrouter.Router, owner string, token int64) {
	t.Helper()
	ask(t, r, 200, "", "DELETE", fmt.Sprintf("%s?owner=%s&token=%d", global, owner, token), "")
}
