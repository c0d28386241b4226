package rules_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestInbot is the behaviour of an optimistic update with a function, as Inbot described theirs: get, apply the function to a copy, write
// only if something changed, on a conflict get and apply again. The function is a PATCH, or a rule.
func TestInbot(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index := e.index(t)
		for id, c := range []struct {
			name string
			test func(t *testing.T, e target, path string)
		}{
			{"changed", changed},
			{"unchanged is not written", unchangedIsNotWritten},
			{"missing is the engine's own error", missingIsTheEnginesOwnError},
			{"conflicting is applied again", conflictingIsAppliedAgain},
			{"an unchanged program's change is applied again", anUnchangedProgramsChangeIsAppliedAgain},
			{"conflicting is judged by what is there then", conflictingIsJudgedByWhatIsThereThen},
			{"always conflicting gives up", alwaysConflictingGivesUp},
			{"empty values are removed before writing", emptyValuesAreRemovedBeforeWriting},
			{"32 times 200 increments", incrementsAllCount},
			{"increments through two proxies", incrementsAllCountThroughTwoProxies},
		} {
			t.Run(c.name, func(t *testing.T) { c.test(t, e, fmt.Sprintf("/%s/_doc/%d", index, id)) })
		}
	})
}

func changed(t *testing.T, e target, path string) {
	p := optimistFor(t, e, "")
	e.send(t, http.StatusCreated, http.MethodPut, path, `{"name":"Ann","visits":1}`)
	a := p.patch(t, http.StatusOK, operations, path+"?_source=true",
		`[{"op":"increment","path":"/visits","value":1},{"op":"add","path":"/seen","value":true}]`)
	got, want := e.stored(t, path), `{"name":"Ann","visits":2,"seen":true}`
	if got.source != want || got.version != 2 {
		t.Errorf("stored %+v, want %s", got, want)
	}
	if a.get("result").Str != "updated" || a.get("get._source").Raw != want || a.told(want) != got {
		t.Errorf("answered %s", a.body)
	}
}

func unchangedIsNotWritten(t *testing.T, e target, path string) {
	var writes atomic.Int64
	p := optimistFor(t, between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if isWrite(r, path) {
			writes.Add(1)
		}
		pass.ServeHTTP(w, r)
	}), "")
	e.send(t, http.StatusCreated, http.MethodPut, path, `{"tags":["a"],"n":1.0}`)
	before := e.stored(t, path)
	for media, body := range map[string]string{
		jsonPatch:  `[{"op":"test","path":"/n","value":1},{"op":"replace","path":"/tags/0","value":"a"}]`,
		mergePatch: `{"n":1,"tags":["a"],"gone":null}`,
		operations: `[{"op":"union","path":"/tags","value":"a"},{"op":"max","path":"/n","value":0}]`,
	} {
		a := p.patch(t, http.StatusOK, media, path, body)
		if a.get("result").Str != "noop" || a.told(before.source) != before {
			t.Errorf("%s: %s", media, a.body)
		}
	}
	if after := e.stored(t, path); after != before || writes.Load() != 0 {
		t.Errorf("%d writes, and there is %+v where %+v was", writes.Load(), after, before)
	}
}

func missingIsTheEnginesOwnError(t *testing.T, e target, path string) {
	p := optimistFor(t, e, "")
	own := e.send(t, http.StatusNotFound, http.MethodPost, strings.Replace(path, "/_doc/", "/_update/", 1), `{"doc":{"n":1}}`)
	for media, body := range map[string]string{
		jsonPatch: `[{"op":"add","path":"/n","value":1}]`, mergePatch: `{"n":1}`, operations: `[{"op":"increment","path":"/n","value":1}]`,
	} {
		a := p.patch(t, http.StatusNotFound, media, path, body)
		refused(t, a, http.StatusNotFound, "document_missing_exception", "document missing")
		if a.body != own.body {
			t.Errorf("%s\n%s, and an _update is answered\n%s", media, a.body, own.body)
		}
	}
	e.send(t, http.StatusNotFound, http.MethodGet, path, "")
	if a := p.patch(t, http.StatusCreated, operations, path+"?upsert=true", `[{"op":"increment","path":"/n","value":1}]`); a.get("result").Str != "created" {
		t.Errorf("upsert: %s", a.body)
	}
	if got := e.stored(t, path).source; got != `{"n":1}` {
		t.Errorf("upsert: %s", got)
	}
}

// meddled puts somebody between who writes the document after each of the first n reads of it, before the reader is answered: whatever
// the reader does with the answer, it is too late.
func meddled(t *testing.T, e target, path string, n int64) (out target, reads, writes *atomic.Int64) {
	t.Helper()
	reads, writes = new(atomic.Int64), new(atomic.Int64)
	return between(t, e, func(w http.ResponseWriter, r *http.Request, pass http.Handler) {
		if isWrite(r, path) {
			writes.Add(1)
		}
		if !isRead(r, path) {
			pass.ServeHTTP(w, r)
			return
		}
		rec := httptest.NewRecorder()
		pass.ServeHTTP(rec, r)
		if k := reads.Add(1); k <= n {
			e.send(t, http.StatusOK, http.MethodPost, strings.Replace(path, "/_doc/", "/_update/", 1), fmt.Sprintf(`{"doc":{"other":%d}}`, k))
		}
		for name, values := range rec.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()) // optimist may have left
	}), reads, writes
}

func conflictingIsAppliedAgain(t *testing.T, e target, path string) {
	for media, c := range map[string]struct{ body, want string }{
		jsonPatch:  {`[{"op":"test","path":"/n","value":1},{"op":"add","path":"/l/-","value":"x"}]`, `{"n":1,"l":["x"],"other":2}`},
		mergePatch: {`{"n":2}`, `{"n":2,"l":[],"other":2}`},
		operations: {`[{"op":"increment","path":"/n","value":1}]`, `{"n":2,"l":[],"other":2}`},
	} {
		path := path + "-" + media[len("application/"):]
		m, reads, writes := meddled(t, e, path, 2)
		e.send(t, http.StatusCreated, http.MethodPut, path, `{"n":1,"l":[],"other":0}`)
		a := optimistFor(t, m, "").patch(t, http.StatusOK, media, path, c.body)
		if got := e.stored(t, path).source; got != c.want {
			t.Errorf("%s: stored %s, want %s", media, got, c.want)
		}
		if !strings.HasPrefix(a.outcome(), "merged;attempts=3") || reads.Load() != 3 || writes.Load() != 3 {
			t.Errorf("%s: %s, after %d reads and %d writes", media, a.outcome(), reads.Load(), writes.Load())
		}
	}
}

// The function may be the program itself, which reads the document and writes it back whole, and knows nothing of conflicts: what it changed
// is applied to what others have written meanwhile.
func anUnchangedProgramsChangeIsAppliedAgain(t *testing.T, e target, path string) {
	m, _, writes := meddled(t, e, path, 3)
	p := optimistFor(t, m, "").own(t)
	e.send(t, http.StatusCreated, http.MethodPut, path, `{"name":"Ann","visits":1,"other":0}`)
	p.send(t, http.StatusOK, http.MethodGet, path, "") // with the answer another client has already written
	a := p.send(t, http.StatusOK, http.MethodPut, path, `{"name":"Ann","visits":2,"other":0}`)
	if got, want := e.stored(t, path).source, `{"name":"Ann","visits":2,"other":3}`; got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
	if !strings.HasPrefix(a.outcome(), "merged;attempts=4") || writes.Load() != 4 {
		t.Errorf("%s, after %d writes", a.outcome(), writes.Load())
	}
}

// A test is repeated as all of the function is: what was true of the document that was read first may not be true of the next.
func conflictingIsJudgedByWhatIsThereThen(t *testing.T, e target, path string) {
	m, _, _ := meddled(t, e, path, 1)
	e.send(t, http.StatusCreated, http.MethodPut, path, `{"n":1,"other":0}`)
	a := optimistFor(t, m, "").patch(t, http.StatusConflict, jsonPatch, path,
		`[{"op":"test","path":"/other","value":0},{"op":"replace","path":"/n","value":2}]`)
	refused(t, a, http.StatusConflict, "version_conflict_engine_exception", `test of "/other" failed`)
	if got := e.stored(t, path); got.source != `{"n":1,"other":1}` || got.version != 2 {
		t.Errorf("stored %+v, and only the other one should have written", got)
	}
}

func alwaysConflictingGivesUp(t *testing.T, e target, path string) {
	const attempts = 4
	m, reads, writes := meddled(t, e, path, 1000)
	e.send(t, http.StatusCreated, http.MethodPut, path, `{"n":1,"other":0}`)
	p := optimistFor(t, m, fmt.Sprintf("rules: [{name: inbot, retry: {max_attempts: %d, backoff: {base_interval: 1ms, max_interval: 2ms}}}]", attempts))
	a := p.patch(t, http.StatusConflict, operations, path, `[{"op":"increment","path":"/n","value":1}]`)
	refused(t, a, http.StatusConflict, "version_conflict_engine_exception", "version conflict")
	if !strings.Contains(a.outcome(), fmt.Sprintf("attempts=%d;", attempts)) || writes.Load() != attempts {
		t.Errorf("%s, after %d writes", a.outcome(), writes.Load())
	}
	if got, want := e.stored(t, path).source, fmt.Sprintf(`{"n":1,"other":%d}`, reads.Load()); got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
}

func emptyValuesAreRemovedBeforeWriting(t *testing.T, e target, path string) {
	p := optimistFor(t, e, "rules: [{name: inbot, transform: [{op: remove_empty}]}]")
	stored := func(what, path, want string) {
		t.Helper()
		if got := e.stored(t, path).source; got != want {
			t.Errorf("%s: stored %s, want %s", what, got, want)
		}
	}
	p.send(t, http.StatusCreated, http.MethodPut, path, `{"name":"Ann","mail":"","tags":[null,{"x":[]}],"n":0}`)
	stored("a write", path, `{"name":"Ann","n":0}`)
	p.send(t, http.StatusCreated, http.MethodPut, strings.Replace(path, "/_doc/", "/_create/", 1)+"-created", `{"name":"Bob","mail":null}`)
	stored("a create", path+"-created", `{"name":"Bob"}`)
	p.patch(t, http.StatusOK, mergePatch, path, `{"n":1,"name":"","tags":["a",""]}`)
	stored("a merge patch", path, `{"n":1,"tags":["a"]}`)
	before := e.stored(t, path)
	a := p.patch(t, http.StatusOK, jsonPatch, path, `[{"op":"add","path":"/mail","value":{"work":""}}]`)
	if after := e.stored(t, path); a.get("result").Str != "noop" || after != before {
		t.Errorf("nothing is left to be written, and there is %+v where %+v was: %s", after, before, a.body)
	}
}

// incrementsAllCount is the hot counter: everybody writes the same document all the time.
func incrementsAllCount(t *testing.T, e target, path string) {
	increment(t, e, path, 200, optimistFor(t, e, ""))
}

// incrementsAllCountThroughTwoProxies has proxies that know nothing of each other: what one writes is the other's conflict.
func incrementsAllCountThroughTwoProxies(t *testing.T, e target, path string) {
	rounds := 20
	if long() {
		rounds = 200
	}
	increment(t, e, path, rounds, optimistFor(t, e, patient), optimistFor(t, e, patient))
}

// increment has 32 clients increment a number, each so many times, and fails the test unless all of them were told that it is, and it is.
func increment(t *testing.T, e target, path string, rounds int, proxies ...target) {
	t.Helper()
	const clients = 32
	e.send(t, http.StatusCreated, http.MethodPut, path, `{"n":0}`)
	var wg sync.WaitGroup
	for i := range clients {
		c := proxies[i%len(proxies)].own(t)
		wg.Go(func() {
			for range rounds {
				a := c.try(t, http.MethodPatch, path, `[{"op":"increment","path":"/n","value":1}]`, "Content-Type", operations)
				if a.status != http.StatusOK || a.get("result").Str != "updated" {
					t.Errorf("%d [%s] %s", a.status, a.outcome(), a.body)
					return
				}
			}
		})
	}
	wg.Wait()
	got := e.stored(t, path)
	if want := fmt.Sprintf(`{"n":%d}`, clients*rounds); got.source != want {
		t.Errorf("stored %s, want %s", got.source, want)
	}
	t.Logf("%d increments in %d writes", clients*rounds, got.version-1)
}
