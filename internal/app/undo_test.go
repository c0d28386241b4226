package app

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/budget"
	"optimist/internal/config"
	"optimist/internal/enginetest"
	"optimist/internal/upstream"
	"optimist/lockrouter"
)

// undoWorld is an App whose locks can have undo, in front of an engine in memory.
type undoWorld struct {
	t   *testing.T
	app *App
}

func newUndoWorld(t *testing.T, engine, more string) *undoWorld {
	t.Helper()
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("undo:secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(more, "undo:") {
		more += "undo: {auth: {basic_file: '" + secret + "'}, grace: 200ms}\n"
	}
	c, err := config.Parse("test.yaml", []byte("version: 1\nadmin: ''\nupstream: {health_interval: 0s}\n"+
		more), config.Overrides{Upstream: []string{engine}, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	return &undoWorld{t, running(t, c)}
}

// ask asks, and wants a status.
func (w *undoWorld) ask(status int, method, target, body string, fields ...string) gjson.Result {
	w.t.Helper()
	a := enginetest.Ask(w.t, method, w.app.URL()+target, body, fields...)
	if a.Status != status {
		w.t.Fatalf("%s %s: %d %s; want %d", method, target, a.Status, a.Body, status)
	}
	return gjson.Parse(a.Body)
}

// lock gets a lock with undo, whose token is the field of writes under it.
func (w *undoWorld) lock(path, owner, more string) (token string, field []string) {
	w.t.Helper()
	token = w.ask(201, "PUT", path+"?undo=true&owner="+owner+more, "").Get("token").String()
	return token, []string{"Optimist-Lock-Token", token}
}

// lapse ends a lease, without a release by its holder.
func (w *undoWorld) lapse(lock string) {
	w.t.Helper()
	a, err := w.app.locks.Serve(w.t.Context(), &lockrouter.Request{Method: "DELETE", Path: []byte(lock), Admin: true})
	if err != nil || a.Status != 200 {
		w.t.Fatal(a, err)
	}
}

func (w *undoWorld) wants(target, source string) {
	w.t.Helper()
	if got := enginetest.Ask(w.t, "GET", w.app.URL()+target+"/_source", "").Body; got != source {
		w.t.Errorf("%s is %s; want %s", target, got, source)
	}
}

func (w *undoWorld) wantsNone(target string) {
	w.t.Helper()
	if a := enginetest.Ask(w.t, "GET", w.app.URL()+target, ""); a.Status != 404 {
		w.t.Errorf("%s is %s; want nothing", target, a.Body)
	}
}

const eachKind = `{"index":{"_id":"put"}}
{"n":1,"by":"holder"}
{"create":{"_id":"new"}}
{"n":1}
{"update":{"_id":"part"}}
{"doc":{"n":1}}
{"delete":{"_id":"gone"}}
`

func TestWritesOfAHolderWhoseLeaseLapsedAreUndoneBeforeTheNextHasTheLock(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	for _, id := range []string{"put", "part", "gone", "twice"} {
		w.ask(201, "PUT", "/docs/_doc/"+id, `{ "n" : 0,  "big": 1234567890123456789 }`)
	}
	_, token := w.lock("/docs/_lock/tree/a", "dead", "")
	if r := w.ask(200, "POST", "/docs/_bulk", eachKind, append(token, "Content-Type", "application/x-ndjson")...); r.Get("errors").Bool() {
		t.Fatal(r)
	}
	w.ask(200, "PUT", "/docs/_doc/twice", `{"n":1}`, token...)
	w.ask(200, "POST", "/docs/_update/twice", `{"doc":{"n":2}}`, token...)
	w.ask(200, "GET", "/docs/_doc/new", "")
	w.lapse("/docs/_lock/tree/a")
	w.ask(201, "PUT", "/docs/_lock/tree/a?owner=next&wait=20s", "")
	for _, id := range []string{"put", "part", "gone", "twice"} {
		w.wants("/docs/_doc/"+id, `{ "n" : 0,  "big": 1234567890123456789 }`)
	}
	w.wantsNone("/docs/_doc/new")
	w.ask(410, "PUT", "/docs/_doc/put", `{"n":9}`, token...)
}

func TestWritesUnderAReleasedLockStay(t *testing.T) {
	for _, how := range []string{"DELETE ", "POST /_commit"} {
		t.Run(how, func(t *testing.T) {
			w := newUndoWorld(t, enginetest.Serve(t), "")
			w.ask(201, "PUT", "/docs/_doc/a", `{"n":0}`)
			token, field := w.lock("/_lock/global/x", "one", "")
			w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, field...)
			method, path, _ := strings.Cut(how, " ")
			for range 2 {
				w.ask(200, method, "/_lock/global/x"+path+"?owner=one&token="+token, "")
			}
			w.ask(410, "PUT", "/docs/_doc/a", `{"n":2}`, field...)
			for range 20 { // more than a lock itself remembers
				next := w.ask(201, "PUT", "/_lock/global/x?owner=two", "").Get("token").Raw
				w.ask(200, "DELETE", "/_lock/global/x?owner=two&token="+next, "")
			}
			w.ask(200, method, "/_lock/global/x"+path+"?owner=one&token="+token, "")
			w.wants("/docs/_doc/a", `{"n":1}`)
		})
	}
}

func TestAHolderMayHaveItsWritesUndone(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	w.ask(201, "PUT", "/docs/_doc/a", `{"n":0}`)
	token, field := w.lock("/docs/_lock/doc/a", "one", "")
	w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, field...)
	w.ask(200, "POST", "/docs/_lock/doc/a/_rollback?wait=5m&owner=one&token="+token, "")
	w.wants("/docs/_doc/a", `{"n":0}`)
	w.ask(201, "PUT", "/docs/_lock/doc/a?owner=two&wait=0s", "")
}

// TestAJournalOfAResourceIsEndedByItsList: a lock whose name is a list of strings is named in the body.
func TestAJournalOfAResourceIsEndedByItsList(t *testing.T) {
	for end, want := range map[string]string{"_commit": `{"n":1}`, "_rollback": `{"n":0}`} {
		t.Run(end, func(t *testing.T) {
			w := newUndoWorld(t, enginetest.Serve(t), "")
			w.ask(201, "PUT", "/docs/_doc/a", `{"n":0}`)
			const resource = `"owner":"one","resource":["docs","a/b",""]`
			token := w.ask(201, "PUT", "/_lock/global", `{`+resource+`,"undo":true}`).Get("token").Raw
			w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, "Optimist-Lock-Token", token)
			w.ask(409, "PUT", "/_lock/global", `{"owner":"two","resource":["docs","a/b",""],"wait":"0s"}`)
			for range 2 {
				w.ask(200, "POST", "/_lock/global/"+end+"?wait=5m", `{`+resource+`,"token":`+token+`}`)
			}
			w.wants("/docs/_doc/a", want)
			w.ask(201, "PUT", "/_lock/global", `{"owner":"two","resource":["docs","a/b",""],"wait":"0s"}`)
		})
	}
}

// TestARollbackMayBeRepeated: its client may not have got the first answer. Whatever has become of the lease, it learns what has become of
// the writes.
func TestARollbackMayBeRepeated(t *testing.T) {
	const lock = "/docs/_lock/doc/a"
	for name, c := range map[string]struct {
		end    func(w *undoWorld, by string)
		undone bool
	}{
		"rolled back": {func(w *undoWorld, by string) { w.ask(200, "POST", lock+"/_rollback"+by+"&wait=5m", "") }, true},
		"lapsed":      {func(w *undoWorld, _ string) { w.lapse(lock) }, true},
		"lapsed, and held anew": {func(w *undoWorld, _ string) {
			w.lapse(lock)
			w.ask(201, "PUT", lock+"?owner=two&wait=20s", "")
		}, true},
		"released": {func(w *undoWorld, by string) { w.ask(200, "DELETE", lock+by, "") }, false},
		"another owner asks": {func(w *undoWorld, by string) {
			w.ask(403, "POST", lock+"/_rollback"+strings.Replace(by, "one", "two", 1), "")
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, enginetest.Serve(t), "")
			w.ask(201, "PUT", "/docs/_doc/a", `{"n":0}`)
			token, field := w.lock(lock, "one", "")
			by := "?owner=one&token=" + token
			w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, field...)
			c.end(w, by)
			if !c.undone {
				r := w.ask(410, "POST", lock+"/_rollback"+by+"&wait=5m", "")
				if r.Get("error.undone").Raw != "false" {
					t.Error(r)
				}
				w.wants("/docs/_doc/a", `{"n":1}`)
				return
			}
			for range 2 {
				if r := w.ask(200, "POST", lock+"/_rollback"+by+"&wait=5m", ""); r.Raw != `{"left":0,"released":true,"undone":true}` {
					t.Error(r)
				}
			}
			w.wants("/docs/_doc/a", `{"n":0}`)
			for _, end := range [][2]string{{"DELETE", lock}, {"POST", lock + "/_commit"}} {
				if r := w.ask(410, end[0], end[1]+by, ""); r.Get("error.undone").Raw != "true" {
					t.Error(r)
				}
			}
		})
	}
}

func TestUndoKeepsWhatOthersHaveChangedSince(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	w.ask(201, "PUT", "/docs/_doc/a", `{"n":0,"theirs":0}`)
	w.ask(201, "PUT", "/docs/_doc/b", `{"n":0}`)
	token, field := w.lock("/_lock/global/x", "one", "")
	w.ask(200, "PUT", "/docs/_doc/a", `{"n":1,"theirs":0}`, field...)
	w.ask(200, "PUT", "/docs/_doc/b", `{"n":1}`, field...)
	w.ask(201, "PUT", "/docs/_doc/c", `{"n":1}`, field...)
	w.ask(200, "POST", "/docs/_update/a", `{"doc":{"theirs":7}}`)
	w.ask(200, "POST", "/docs/_update/b", `{"doc":{"n":8}}`)
	w.ask(200, "POST", "/docs/_update/c", `{"doc":{"n":9}}`)
	w.ask(201, "PUT", "/docs/_doc/z", `{"n":1}`, field...)
	if r := w.ask(200, "POST", "/_lock/global/x/_rollback?wait=5m&owner=one&token="+token, ""); r.Raw != `{"left":2,"released":true,"undone":true}` {
		t.Error(r)
	}
	w.wants("/docs/_doc/a", `{"n":0,"theirs":7}`)
	w.wants("/docs/_doc/b", `{"n":8}`)
	w.wants("/docs/_doc/c", `{"n":9}`)
	w.wantsNone("/docs/_doc/z")
	w.ask(200, "POST", "/optimist-dead-letters/_refresh", "")
	if left := w.ask(200, "GET", "/optimist-dead-letters/_search", "").Get("hits.hits.#").Int(); left != 2 {
		t.Errorf("%d dead letters; want those of b and c", left)
	}
}

func TestWhatCannotBeUndoneIsRefusedUnderUndo(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "rules: [{name: docs, match: {index: [docs]}}]\n")
	w.ask(201, "PUT", "/docs/_doc/a", `{"n":0}`)
	_, field := w.lock("/_lock/global/x", "one", "")
	for _, c := range [][3]string{
		{"POST", "/docs/_update/a", `{"script":"ctx._source.n++"}`},
		{"POST", "/docs/_doc", `{"n":1}`},
		{"POST", "/docs/_delete_by_query", `{"query":{"match_all":{}}}`},
		{"POST", "/docs/_update_by_query", `{}`},
		{"PUT", "/docs/_doc/a?version=7&version_type=external", `{}`},
		{"PUT", "/docs/_doc/a?pipeline=p", `{}`},
		{"PUT", "/other/_doc/a", `{}`},
	} {
		w.ask(400, c[0], c[1], c[2], field...)
	}
	r := w.ask(200, "POST", "/_bulk", `{"index":{"_index":"other","_id":"1"}}`+"\n{}\n"+`{"index":{"_index":"docs"}}`+"\n{}\n",
		append(field, "Content-Type", "application/x-ndjson")...)
	for _, it := range r.Get("items.#.index.status").Array() {
		if it.Int() != 400 {
			t.Errorf("the item is %d: %s", it.Int(), r)
		}
	}
	w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, field...)
}

// TestABulkUnderUndoThatNobodyCanReadIsRefused has no rule that guards anything.
func TestABulkUnderUndoThatNobodyCanReadIsRefused(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "rules: [{name: docs, match: {index: [docs]}, mode: observe}]\n")
	_, field := w.lock("/_lock/global/l", "o", "")
	for _, path := range []string{"/docs/_bulk", "/_bulk"} {
		for _, body := range []string{"x", "\n"} {
			if r := w.ask(400, "POST", path, body, append(field, "Content-Type", "application/x-ndjson")...); !strings.Contains(r.Raw, "this bulk can't be read") {
				t.Errorf("%s %q: %s", path, body, r)
			}
		}
	}
}

func TestUndoWithoutCredentialsSaysWhichLineToAdd(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "undo: {grace: 1s}\n")
	r := w.ask(400, "PUT", "/_lock/global/x?owner=o&undo=true", "")
	if !strings.Contains(r.Get("error.reason").Str, "undo.auth") {
		t.Error(r)
	}
}

func TestAJournalHasBounds(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("undo:secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newUndoWorld(t, enginetest.Serve(t), "undo: {auth: {basic_file: '"+secret+"'}, max_documents: 3, max_bytes: 1KiB}\n")
	token, field := w.lock("/_lock/global/x", "one", "")
	w.ask(413, "PUT", "/docs/_doc/large", fmt.Sprintf(`{"a":%q}`, strings.Repeat("x", 2000)), field...)
	for i := range 3 {
		w.ask(201, "PUT", fmt.Sprintf("/docs/_doc/%d", i), `{"n":0}`, field...)
	}
	w.ask(413, "PUT", "/docs/_doc/4", `{"n":0}`, field...)
	w.ask(200, "POST", "/_lock/global/x/_rollback?wait=5m&owner=one&token="+token, "")
	w.wantsNone("/docs/_doc/0")
}

func TestAnItemThatIsTooLargeToBeHeldIsRefusedUnderUndo(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "limits: {max_guarded_body: 4KiB}\n")
	w.ask(201, "PUT", "/docs/_doc/a", `{"n":0}`)
	_, field := w.lock("/_lock/global/x", "one", "")
	large := fmt.Sprintf(`{"index":{"_id":"a"}}`+"\n"+`{"a":%q}`+"\n", strings.Repeat("x", 64<<10))
	r := w.ask(200, "POST", "/docs/_bulk", `{"index":{"_id":"b"}}`+"\n"+`{"n":1}`+"\n"+large, append(field, "Content-Type", "application/x-ndjson")...)
	if got := r.Get("items.#.index.status").Raw; got != "[201,400]" {
		t.Errorf("%s: %s", got, r)
	}
	w.wants("/docs/_doc/a", `{"n":0}`)
}

// TestABulkInWindowsIsUndone: it is larger than what is held at once, and so it is written window by window.
func TestABulkInWindowsIsUndone(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "limits: {max_guarded_body: 4KiB}\n")
	const documents = 300
	var bulk strings.Builder
	for i := range documents / 2 {
		w.ask(201, "PUT", fmt.Sprintf("/docs/_doc/old-%d", i), `{"n":0}`)
		fmt.Fprintf(&bulk, `{"index":{"_id":"old-%d"}}`+"\n"+`{"n":1}`+"\n"+`{"create":{"_id":"new-%[1]d"}}`+"\n"+`{"n":1}`+"\n", i)
	}
	token, field := w.lock("/_lock/global/x", "one", "")
	r := w.ask(200, "POST", "/docs/_bulk", bulk.String(), append(field, "Content-Type", "application/x-ndjson")...)
	if r.Get("errors").Bool() || r.Get("items.#").Int() != documents {
		t.Fatal(r)
	}
	w.wants("/docs/_doc/old-149", `{"n":1}`)
	w.wants("/docs/_doc/new-149", `{"n":1}`)
	w.ask(200, "POST", "/_lock/global/x/_rollback?wait=5m&owner=one&token="+token, "")
	for i := range documents / 2 {
		w.wants(fmt.Sprintf("/docs/_doc/old-%d", i), `{"n":0}`)
		w.wantsNone(fmt.Sprintf("/docs/_doc/new-%d", i))
	}
}

func TestASweepUndoesWhereNobodyWaits(t *testing.T) {
	engine := enginetest.Serve(t)
	w := newUndoWorld(t, engine, "")
	w.ask(201, "PUT", "/docs/_doc/a", `{"n":0}`)
	_, field := w.lock("/_lock/global/x", "one", "")
	w.ask(200, "PUT", "/docs/_doc/a", `{"n":1}`, field...)
	w.lapse("/_lock/global/x")
	w.ask(200, "POST", "/optimist-undo/_refresh", "")
	enginetest.Wait(t, "the sweep undoes it", func() bool {
		return enginetest.Ask(t, "GET", w.app.URL()+"/docs/_doc/a/_source", "").Body == `{"n":0}`
	})
}

// TestAWriteThatAJournalHasRefusedMayBeRepeatedWithItsKey: nothing was sent, and so the key isn't used up.
func TestAWriteThatAJournalHasRefusedMayBeRepeatedWithItsKey(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("undo:secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newUndoWorld(t, enginetest.Serve(t), "undo: {auth: {basic_file: '"+secret+"'}, max_documents: 1}\n")
	key := func(field []string, name string) []string { return append(field, "Idempotency-Key", name) }
	token, field := w.lock("/_lock/global/x", "one", "")
	w.ask(201, "PUT", "/docs/_doc/a", `{"n":1}`, key(field, "a")...)
	w.ask(413, "PUT", "/docs/_doc/b", `{"n":1}`, key(field, "b")...)
	w.ask(200, "DELETE", "/_lock/global/x?owner=one&token="+token, "")
	w.ask(410, "PUT", "/docs/_doc/b", `{"n":1}`, key(field, "b")...)
	_, field = w.lock("/_lock/global/x", "one", "")
	w.ask(201, "PUT", "/docs/_doc/b", `{"n":1}`, key(field, "b")...)
	w.ask(201, "PUT", "/docs/_doc/a", `{"n":1}`, key(field, "a")...) // its answer, and not another write: the journal is full
}

// TestAWriteThatIsUndoneMayBeRepeatedWithItsKey: the key's answer is of a write that isn't there any more.
func TestAWriteThatIsUndoneMayBeRepeatedWithItsKey(t *testing.T) {
	const lock = "/docs/_lock/doc/a"
	for name, c := range map[string]struct {
		end  func(w *undoWorld, by string)
		want string // of n, which is 0 before
	}{
		"rolled back": {func(w *undoWorld, by string) { w.ask(200, "POST", lock+"/_rollback"+by+"&wait=5m", "") }, "1"},
		"lapsed":      {func(w *undoWorld, _ string) { w.lapse(lock) }, "1"},
		"released":    {func(w *undoWorld, by string) { w.ask(200, "DELETE", lock+by, "") }, "7"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUndoWorld(t, enginetest.Serve(t), "")
			w.ask(201, "PUT", "/docs/_doc/a", `{"n":0}`)
			write := func(field []string) {
				t.Helper()
				w.ask(200, "PATCH", "/docs/_doc/a", `[{"op":"increment","path":"/n","value":1}]`,
					append(field, "Idempotency-Key", "k", "Content-Type", "application/vnd.optimist-patch+json")...)
			}
			token, field := w.lock(lock, "one", "")
			write(field)
			write(field)
			w.wants("/docs/_doc/a", `{"n":1}`)
			c.end(w, "?owner=one&token="+token)
			token, field = w.lock(lock, "one", "&wait=20s")
			if c.want != "1" {
				w.ask(200, "PUT", "/docs/_doc/a", `{"n":7}`, field...)
			}
			write(field)
			write(field)
			w.wants("/docs/_doc/a", `{"n":`+c.want+`}`)
			w.ask(200, "DELETE", lock+"?owner=one&token="+token, "")
			write(nil)
			w.wants("/docs/_doc/a", `{"n":`+c.want+`}`)
		})
	}
}

// TestAWriteThatIsUndoneCanBeMadeAgainByItsClient, which may not have read the document since: its own last write is no base any more.
func TestAWriteThatIsUndoneCanBeMadeAgainByItsClient(t *testing.T) {
	for name, client := range map[string][]string{"anybody": nil, "a session": {"Optimist-Session", "s"}, "a user": {"Authorization", "Basic YTph"}} {
		for _, elsewhere := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", undone elsewhere: ", elsewhere), func(t *testing.T) {
				engine := enginetest.Serve(t)
				w := newUndoWorld(t, engine, "")
				other := w
				if elsewhere {
					other = newUndoWorld(t, engine, "")
				}
				w.ask(201, "PUT", "/docs/_doc/a", `{"n":0,"m":0}`)
				w.ask(200, "GET", "/docs/_doc/a", "", client...)
				token, field := w.lock("/docs/_lock/doc/a", "one", "")
				w.ask(200, "PUT", "/docs/_doc/a", `{"n":1,"m":0}`, append(field, client...)...)
				other.ask(200, "POST", "/docs/_lock/doc/a/_rollback?wait=5m&owner=one&token="+token, "")
				_, field = other.lock("/docs/_lock/doc/a", "one", "")
				w.ask(200, "PUT", "/docs/_doc/a", `{"n":1,"m":2}`, append(field, client...)...)
				w.wants("/docs/_doc/a", `{"n":1,"m":2}`)
			})
		}
	}
}

// TestWhatIsToldWhereTheJournalsAreDeleted is what docs/undo.md says of it.
func TestWhatIsToldWhereTheJournalsAreDeleted(t *testing.T) {
	w := newUndoWorld(t, enginetest.Serve(t), "")
	token, field := w.lock("/_lock/global/x", "one", "")
	_, unused := w.lock("/_lock/global/y", "one", "")
	w.ask(201, "PUT", "/docs/_doc/a", `{"n":1}`, field...)
	w.ask(200, "DELETE", "/optimist-undo-1", "")
	w.ask(503, "PUT", "/docs/_doc/b", `{"n":1}`, field...)
	w.ask(201, "PUT", "/docs/_doc/c", `{"n":1}`, unused...)
	w.ask(400, "POST", "/_lock/global/x/_rollback?wait=5m&owner=one&token="+token, "")
	w.ask(200, "DELETE", "/_lock/global/x?owner=one&token="+token, "")
	w.lapse("/_lock/global/y")
	w.wants("/docs/_doc/a", `{"n":1}`)
	w.wantsNone("/docs/_doc/b")
	token, field = w.lock("/_lock/global/y", "two", "&wait=20s")
	w.ask(200, "PUT", "/docs/_doc/a", `{"n":2}`, field...)
	w.ask(200, "POST", "/_lock/global/y/_rollback?wait=5m&owner=two&token="+token, "")
	w.wants("/docs/_doc/a", `{"n":1}`)
	w.wants("/docs/_doc/c", `{"n":1}`)
}

// TestWhatJournalsReadIsOnNobodysAccount: a request may have ended, and its account be another's, while its journal is still written.
func TestWhatJournalsReadIsOnNobodysAccount(t *testing.T) {
	e := enginetest.New()
	asked := false
	e.Before = func(ctx context.Context, _ *upstream.Request) (*upstream.Response, error) {
		if asked = true; budget.Of(ctx) != nil {
			t.Error("it is on the account of the request")
		}
		return nil, nil
	}
	ctx := budget.With(t.Context(), new(budget.Account))
	if _, err := (detached{e}).Do(ctx, &upstream.Request{Method: "GET", Target: []byte("/")}); err != nil || !asked {
		t.Error(err, asked)
	}
}
