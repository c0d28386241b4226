package app_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"
	"testing"

	"optimist/internal/demo/app"
	"optimist/internal/embedded"
)

// engine serves an embedded engine and returns its address.
func engine(t *testing.T) string {
	t.Helper()
	e := embedded.New(embedded.Options{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- e.Serve(ln) }()
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// together returns the address of a server in front of upstream that answers reads only when n of them have been read: those who
// read together then overwrite each other.
func together(t *testing.T, upstream string, n int) string {
	t.Helper()
	target, err := url.Parse(upstream)
	if err != nil {
		t.Fatal(err)
	}
	var reads sync.WaitGroup
	reads.Add(n)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ModifyResponse = func(r *http.Response) error {
		if r.Request.Method == http.MethodGet {
			reads.Done()
			reads.Wait()
		}
		return nil
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(s.Close)
	return s.URL
}

func run(t *testing.T, a *app.Application) app.Result {
	t.Helper()
	r, err := a.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Log(&r)
	return r
}

func TestWritersThatReadTogetherLoseAllChangesButOne(t *testing.T) {
	for _, shape := range app.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			store := engine(t)
			a := &app.Application{URLs: []string{together(t, store, 4)}, Store: store, Path: "/t/_doc/1", Shape: shape, Workers: 4, Rounds: 1}
			r := run(t, a)
			if r.Acknowledged != 4 || r.Found != 1 || r.Lost != 3 || r.Invented != 0 || r.Refused != 0 || r.Errors != 0 || r.Damaged != nil {
				t.Error(&r)
			}
		})
	}
}

func TestOneWriterAloneLosesNothing(t *testing.T) {
	for _, shape := range app.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			a := &app.Application{URLs: []string{engine(t)}, Path: "/t/_doc/1", Shape: shape, Workers: 1, Rounds: 50, Steps: 3, Looks: 20, Idle: 20, Memory: 3}
			r := run(t, a)
			if r.Rounds != 50 || r.Idle == 0 || r.Acknowledged != r.Found || r.Found <= 50-r.Idle || r.Lost+r.Invented+r.Refused+r.Errors != 0 || r.Damaged != nil {
				t.Error(&r)
			}
		})
	}
}

func TestGuardedWritersLoseNothingWithoutHelp(t *testing.T) {
	for _, shape := range app.Shapes() {
		t.Run(shape.String(), func(t *testing.T) {
			store := engine(t)
			a := &app.Application{URLs: []string{store}, Path: "/t/_doc/1", Shape: shape, Workers: 4, Rounds: 20, Guard: app.ByNumbers, Sessions: app.Pooled}
			r := run(t, a)
			if r.Acknowledged != 80 || r.Found != 80 || r.Lost+r.Invented+r.Refused+r.Errors != 0 || r.Damaged != nil {
				t.Error(&r)
			}
		})
	}
}

func TestWorkersOfTwoApplicationsAreCountedTogether(t *testing.T) {
	store := engine(t)
	make := func(first int) *app.Application {
		return &app.Application{URLs: []string{store}, Path: "/t/_doc/1", Shape: app.List, Workers: 2, First: first, Rounds: 10, Guard: app.ByNumbers}
	}
	one, two := make(0), make(2)
	if err := one.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, err := one.Count(t.Context(), one.Work(t.Context()), two.Work(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if r.Acknowledged != 40 || r.Found != 40 || r.Lost+r.Invented != 0 {
		t.Error(&r)
	}
}

func TestRefusalsAndBrokenAnswersAreCounted(t *testing.T) {
	store := engine(t)
	target, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	puts := 0 // one worker: one request at a time
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPut {
			proxy.ServeHTTP(w, r)
			return
		}
		switch puts++; puts {
		case 1:
			http.Error(w, "no", http.StatusConflict)
		case 2:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // written, and no answer
		case 3:
			proxy.ServeHTTP(httptest.NewRecorder(), r)
			http.Error(w, "nobody knows", http.StatusGatewayTimeout)
		default:
			proxy.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	a := &app.Application{URLs: []string{s.URL}, Store: store, Path: "/t/_doc/1", Shape: app.Counter, Workers: 1, Rounds: 5}
	r := run(t, a)
	if r.Acknowledged != 2 || r.Unknown != 2 || r.Found != 4 || r.Lost != 0 || r.Invented != 0 || r.Refused != 2 || r.Errors != 1 {
		t.Error(&r)
	}
	if r.Statuses[409] != 1 || r.Statuses[504] != 1 || r.FirstError == nil {
		t.Error(r.Statuses, r.FirstError)
	}
}
