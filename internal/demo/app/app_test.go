package app_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"optimist/internal/demo/app"
	"optimist/internal/enginetest"
)

// together returns the address of a server in front of an engine that answers reads only when n of them have been read: those who
// read together then overwrite each other.
func together(t *testing.T, engine string, n int) string {
	t.Helper()
	var reads sync.WaitGroup
	reads.Add(n)
	forward := enginetest.Forward(t, engine)
	return enginetest.Between(t, engine, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet {
			return false
		}
		read := httptest.NewRecorder()
		forward.ServeHTTP(read, r)
		reads.Done()
		reads.Wait()
		w.WriteHeader(read.Code)
		_, _ = read.Body.WriteTo(w)
		return true
	})
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
	for _, shape := range append(app.Shapes(), app.Documents()...) {
		t.Run(shape.String(), func(t *testing.T) {
			store := enginetest.Serve(t)
			a := &app.Application{URLs: []string{together(t, store, 4)}, Store: store, Path: "/t/_doc/1", Shape: shape, Workers: 4, Rounds: 1}
			r := run(t, a)
			if r.Acknowledged != 4 || r.Found != 1 || r.Lost != 3 || r.Invented != 0 || r.Refused != 0 || r.Errors != 0 || r.Damaged != nil {
				t.Error(&r)
			}
		})
	}
}

func TestOneWriterAloneLosesNothing(t *testing.T) {
	for _, shape := range append(app.Shapes(), app.Documents()...) {
		t.Run(shape.String(), func(t *testing.T) {
			a := &app.Application{URLs: []string{enginetest.Serve(t)}, Path: "/t/_doc/1", Shape: shape, Workers: 1, Rounds: 50, Steps: 3, Looks: 20, Idle: 20, Memory: 3}
			r := run(t, a)
			if r.Rounds != 50 || r.Idle == 0 || r.Acknowledged != r.Found || r.Found <= 50-r.Idle || r.Lost+r.Invented+r.Refused+r.Errors != 0 || r.Damaged != nil {
				t.Error(&r)
			}
		})
	}
}

func TestGuardedWritersLoseNothingWithoutHelp(t *testing.T) {
	for _, shape := range append(app.Shapes(), app.Documents()...) {
		t.Run(shape.String(), func(t *testing.T) {
			store := enginetest.Serve(t)
			a := &app.Application{URLs: []string{store}, Path: "/t/_doc/1", Shape: shape, Workers: 4, Rounds: 20, Guard: app.ByNumbers, Sessions: app.Pooled}
			r := run(t, a)
			if r.Rounds != 80 || r.Found != r.Acknowledged || r.Found < 40 || r.Lost+r.Invented+r.Refused+r.Errors != 0 || r.Damaged != nil {
				t.Error(&r)
			}
		})
	}
}

func TestWorkersOfTwoApplicationsAreCountedTogether(t *testing.T) {
	store := enginetest.Serve(t)
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
	store := enginetest.Serve(t)
	forward := enginetest.Forward(t, store)
	puts := 0 // one worker: one request at a time
	between := enginetest.Between(t, store, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut {
			return false
		}
		switch puts++; puts {
		case 1:
			http.Error(w, "no", http.StatusConflict)
			return true
		case 2:
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler) // written, and no answer
		case 3:
			forward.ServeHTTP(httptest.NewRecorder(), r)
			http.Error(w, "nobody knows", http.StatusGatewayTimeout)
			return true
		}
		return false
	})
	a := &app.Application{URLs: []string{between}, Store: store, Path: "/t/_doc/1", Shape: app.Counter, Workers: 1, Rounds: 5}
	r := run(t, a)
	if r.Acknowledged != 2 || r.Unknown != 2 || r.Found != 4 || r.Lost != 0 || r.Invented != 0 || r.Refused != 2 || r.Errors != 1 {
		t.Error(&r)
	}
	if r.Statuses[409] != 1 || r.Statuses[504] != 1 || r.FirstError == nil {
		t.Error(r.Statuses, r.FirstError)
	}
}
