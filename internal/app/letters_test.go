package app

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/admin"
	"optimist/internal/api"
	"optimist/internal/client"
	"optimist/internal/config"
	"optimist/internal/enginetest"
	"optimist/internal/undeliverable"
	"optimist/internal/wire"
)

const letterRules = `rules:
- name: shop
  match: {index: [shop]}
  merge: {paths: {/n: sum, /status: fail}}
  retry: {max_attempts: 3}
  on_exhausted: dead_letter
`

// operate asks for dead letters as the admin listener does.
func operate(t *testing.T, a *App, method, path, body, authorization string) (int, gjson.Result) {
	t.Helper()
	path, query, _ := strings.Cut(path, "?")
	asked := map[string]string{}
	if name, value, ok := strings.Cut(query, "="); ok {
		asked[name] = value
	}
	status, answer := a.operateLetters(t.Context(), &admin.LettersRequest{Method: method, Path: path, Body: []byte(body),
		Query: asked, Authorization: authorization})
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	return status, gjson.ParseBytes(text)
}

func TestADeadLetterIsListedShownReplayedAndThenGone(t *testing.T) {
	w := newWorld(t, letterRules, Identity{})
	login := []string{"Authorization", "Basic c2VjcmV0OnNlY3JldA==", "X-Shop-Token", "secret", "Cookie", "secret", "X-Tenant", "acme"}
	as := func(name string) []string { return append([]string{"Optimist-Session", name}, login...) }
	w.put("/shop/_doc/1", `{"status":"new","n":1}`)
	w.ask(w.proxied, "GET", "/shop/_doc/1", "", as("anna")...)
	w.ask(w.proxied, "GET", "/shop/_doc/1", "", as("bert")...)
	if a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"status":"paid","n":3}`, as("anna")...); a.Status != 200 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	a := w.ask(w.proxied, "PUT", "/shop/_doc/1?refresh=true", `{"status":"shipped","n":5}`, as("bert")...)
	id := a.Header.Get("Optimist-Dead-Letter")
	if a.Status != 202 || id == "" || gjson.Get(a.Body, "dead_letter.id").Str != id ||
		!strings.HasPrefix(a.Header.Get("Optimist-Outcome"), "dead-letter;attempts=1;base=session;reason=conflict") {
		t.Fatalf("%d %s %v", a.Status, a.Body, a.Header)
	}
	status, page := operate(t, w.app, "GET", "", "", "")
	if status != 200 || page.Get("letters.#").Int() != 1 || page.Get("letters.0.id").Str != id || page.Get("letters.0.request.body").Value() != nil {
		t.Errorf("list: %d %s", status, page)
	}
	status, one := operate(t, w.app, "GET", "/"+id, "", "")
	if status != 200 || one.Get("request.body").Str != `{"status":"shipped","n":5}` || one.Get("base.view").Str != `{"status":"new","n":1}` ||
		one.Get("request.target").Str != "/shop/_doc/1?refresh=true" || strings.Contains(one.Raw, "secret") ||
		!strings.Contains(one.Raw, "acme") || !strings.Contains(one.Get("detail").Str, "/status") {
		t.Errorf("show: %d %s", status, one)
	}

	// It can't be placed now, either: the letter stays.
	status, r := operate(t, w.app, "POST", "/"+id+"/_replay", "{}", "")
	if status != 200 || r.Get("result").Str != "refused" || r.Get("status").Int() != 409 {
		t.Errorf("replay: %d %s", status, r)
	}
	if _, page = operate(t, w.app, "GET", "", "", ""); page.Get("letters.0.replays").Int() != 1 || page.Get("letters.0.state").Str != "waiting" {
		t.Errorf("after a replay that was refused: %s", page)
	}

	// The operator looks at the document, and makes room.
	w.put("/shop/_doc/1", `{"status":"new","n":7}`)
	status, r = operate(t, w.app, "POST", "/"+id+"/_replay", "{}", "")
	if status != 200 || r.Get("result").Str != "replayed" || r.Get("status").Int() != 200 || !strings.HasPrefix(r.Get("outcome").Str, "merged") {
		t.Errorf("replay: %d %s", status, r)
	}
	if got := w.ask(w.direct, "GET", "/shop/_source/1", ""); got.Body != `{"status":"shipped","n":11}` {
		t.Errorf("the document is %s: the change is the client's own, from what it had seen", got.Body)
	}
	if status, r = operate(t, w.app, "GET", "/"+id, "", ""); status != 404 {
		t.Errorf("the letter is there after its replay: %d %s", status, r)
	}
	if _, r = operate(t, w.app, "POST", "/"+id+"/_replay", "", ""); r.Get("result").Str != "missing" {
		t.Errorf("replay again: %s", r)
	}
}

// busyEngine is an engine that rejects writes, those of letters too, while busy says so. It tells the Authorization of each write.
func busyEngine(t *testing.T) (url string, busy *atomic.Bool, writers func() []string) {
	busy = &atomic.Bool{}
	var mu sync.Mutex
	var seen []string
	url = enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPut || strings.Contains(r.URL.Path, "_mapping") {
			return false
		}
		if strings.HasPrefix(r.URL.Path, "/shop/") {
			mu.Lock()
			seen = append(seen, r.Header.Get("Authorization"))
			mu.Unlock()
		}
		if busy.Load() {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"error":{"type":"es_rejected_execution_exception","reason":"busy"},"status":429}`))
			return true
		}
		return false
	})
	return url, busy, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(seen)
	}
}

// letterWorld is an App with a folder for letters, on an engine of the test's own.
func letterWorld(t *testing.T, engine, folder, rules string) *world {
	t.Helper()
	c := configured(t, rules, engine)
	c.DeadLetters.Folder = folder
	a, err := New(Options{Config: c, Rules: compiled(t, c)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	a.Serve()
	return &world{t: t, direct: engine, app: a, proxied: a.URL()}
}

// TestWithoutARuleThatAsksForLettersNothingIsMadeForThem: a folder that can't be used ends nobody then. The reload that adds such a rule makes
// the folder.
func TestWithoutARuleThatAsksForLettersNothingIsMadeForThem(t *testing.T) {
	engine, busy, _ := busyEngine(t)
	plain := "rules:\n- {name: shop, match: {index: [shop]}, rejected: pass}\n"
	asking := strings.Replace(plain, "}\n", ", on_exhausted: dead_letter}\n", 1)
	home := t.TempDir()
	file := filepath.Join(home, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	unusable := filepath.Join(file, "letters")
	letterWorld(t, engine, unusable, plain)
	c := configured(t, asking, engine)
	c.DeadLetters.Folder = unusable
	if a, err := New(Options{Config: c, Rules: compiled(t, c)}); err == nil {
		a.Close()
		t.Error("a rule asks for letters, the folder can't be used, and it starts")
	}

	folder := filepath.Join(home, "letters")
	w := letterWorld(t, engine, folder, plain)
	if _, err := os.Stat(folder); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder is made without need: %v", err)
	}
	if status, page := operate(t, w.app, "GET", "", "", ""); status != 200 || page.Get("letters.#").Int() != 0 {
		t.Errorf("%d %s", status, page)
	}
	next := configured(t, asking, engine)
	w.app.Reload(next, compiled(t, next))
	if _, err := os.Stat(folder); err != nil {
		t.Error(err)
	}
	w.put("/shop/_doc/1", `{"n":1}`)
	busy.Store(true)
	a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":2}`)
	if _, page := operate(t, w.app, "GET", "", "", ""); a.Status != 202 || page.Get("in_folder").Int() != 1 {
		t.Errorf("%d %s, listed: %s", a.Status, a.Body, page)
	}
	w.app.Close()
	w = letterWorld(t, engine, folder, plain) // the rule is gone, and the letter isn't
	if _, page := operate(t, w.app, "GET", "", "", ""); page.Get("in_folder").Int() != 1 {
		t.Errorf("listed without a rule: %s", page)
	}
}

func TestALetterWaitsInTheFolderUntilTheStoreIsBackAlsoForTheNextProcess(t *testing.T) {
	engine, busy, writers := busyEngine(t)
	folder := t.TempDir()
	rules := strings.Replace(letterRules, "  on_exhausted", "  rejected: pass\n  on_exhausted", 1)
	w := letterWorld(t, engine, folder, rules)
	w.put("/shop/_doc/1", `{"status":"new","n":1}`)
	w.ask(w.proxied, "GET", "/shop/_doc/1", "", "Optimist-Session", "bert")
	busy.Store(true)
	a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"status":"new","n":2}`, "Optimist-Session", "bert")
	id := a.Header.Get("Optimist-Dead-Letter")
	if a.Status != 202 || id == "" || gjson.Get(a.Body, "dead_letter.reason").Str != "busy" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if _, page := operate(t, w.app, "GET", "", "", ""); page.Get("letters.0.id").Str != id || page.Get("in_folder").Int() != 1 {
		t.Errorf("listed: %s", page)
	}
	w.app.Close() // as kill -9 would: nothing is written then

	w = letterWorld(t, engine, folder, rules)
	if _, page := operate(t, w.app, "GET", "", "", ""); page.Get("letters.0.id").Str != id || page.Get("in_folder").Int() != 1 {
		t.Errorf("listed by the next process: %s", page)
	}
	busy.Store(false)
	enginetest.Wait(t, "the letter is in the store", func() bool {
		_, page := operate(t, w.app, "GET", "", "", "")
		return page.Get("in_folder").Int() == 0
	})
	_, page := operate(t, w.app, "GET", "", "", "")
	if page.Get("letters.#").Int() != 1 || page.Get("letters.0.id").Str != id || page.Get("letters.0.state").Str != "waiting" {
		t.Fatalf("listed: %s", page)
	}
	before := len(writers())
	_, r := operate(t, w.app, "POST", "/_replay", `{"rule":"shop","unchecked":true}`, "Basic b3BlcmF0b3I6eA==")
	if r.Get("counts.replayed").Int() != 1 || w.stored("/shop/_doc/1") != `{"status":"new","n":2}` {
		t.Errorf("replay: %s; the document is %s", r, w.stored("/shop/_doc/1"))
	}
	if by := writers()[before:]; len(by) != 1 || by[0] != "Basic b3BlcmF0b3I6eA==" {
		t.Errorf("the write went by %q, want the credentials of whoever asked", by)
	}
}

// TestWhoAsksForAllLettersIsToldThatTheStoreIsAway: it may have more of them.
func TestWhoAsksForAllLettersIsToldThatTheStoreIsAway(t *testing.T) {
	w := letterWorld(t, "http://127.0.0.1:1", t.TempDir(), letterRules)
	for _, do := range []string{"/_replay", "/_delete"} {
		if status, done := operate(t, w.app, "POST", do, `{"all":true}`, ""); status != 200 || done.Get("away").Str == "" {
			t.Errorf("%s: %d %s", do, status, done)
		}
	}
}

func TestAWriteThatNobodyKnowsTheBaseOfReplacesNothingUnlessSomebodySaysSo(t *testing.T) {
	engine, busy, _ := busyEngine(t)
	w := letterWorld(t, engine, t.TempDir(), strings.Replace(letterRules, "  on_exhausted", "  rejected: pass\n  on_exhausted", 1))
	w.put("/shop/_doc/1", `{"n":1}`)
	busy.Store(true)
	blind := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":2}`, "Optimist-Session", "bert")
	fresh := w.ask(w.proxied, "POST", "/shop/_doc", `{"n":2}`, "Optimist-Session", "bert")
	busy.Store(false)
	if fresh.Status == 202 {
		t.Errorf("the engine takes POST: %s", fresh.Body)
	}
	id := blind.Header.Get("Optimist-Dead-Letter")
	if blind.Status != 202 || id == "" {
		t.Fatalf("%d %s", blind.Status, blind.Body)
	}
	_, r := operate(t, w.app, "POST", "/"+id+"/_replay", "{}", "")
	if r.Get("result").Str != "skipped" || !strings.Contains(r.Get("reason").Str, "allow it with --unchecked") {
		t.Errorf("the engine has let nobody write this: %s", r)
	}
	_, r = operate(t, w.app, "POST", "/"+id+"/_replay", `{"unchecked":true}`, "")
	if r.Get("result").Str != "refused" || !strings.Contains(r.Get("reason").Str, "overwrite") || w.stored("/shop/_doc/1") != `{"n":1}` {
		t.Errorf("%s; the document is %s", r, w.stored("/shop/_doc/1"))
	}
	if _, r = operate(t, w.app, "POST", "/"+id+"/_replay", `{"unchecked":true,"overwrite":true}`, ""); r.Get("result").Str != "replayed" ||
		w.stored("/shop/_doc/1") != `{"n":2}` {
		t.Errorf("%s; the document is %s", r, w.stored("/shop/_doc/1"))
	}
}

// The engine's parser refuses a bulk as a whole before anybody looks whether the client may write to the indices in it. A letter of a sound
// item would be written by an operator, with the operator's rights.
func TestABulkThatTheEngineRefusesAsAWholeMakesNoLetters(t *testing.T) {
	const refusal = `{"error":{"root_cause":[],"type":"x_content_parse_exception","reason":"[UpdateRequest] unknown field [foo]"},"status":400}`
	engine := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/_bulk") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(refusal))
		return true
	})
	w := letterWorld(t, engine, t.TempDir(), letterRules)
	w.put("/shop/_doc/0", `{}`)
	for _, target := range []string{"/_bulk", "/shop/_bulk", "/_bulk?foo=1"} {
		a := w.ask(w.proxied, "POST", target, lines(`{"index":{"_index":"shop","_id":"1"}}`, `{"n":1}`,
			`{"update":{"_index":"shop","_id":"2"}}`, `{"doc":{},"foo":1}`), "Content-Type", "application/x-ndjson")
		if a.Status != http.StatusBadRequest || a.Body != refusal {
			t.Errorf("%s: %d %s [%s]", target, a.Status, a.Body, a.Outcome())
		}
	}
	if _, page := operate(t, w.app, "GET", "", "", ""); page.Get("letters.#").Int() != 0 {
		t.Errorf("kept: %s", page)
	}
}

// A letter is a request for one document. What only an item of a bulk can say would be lost in it, and its replay would write something else.
func TestAnItemThatNoRequestForOneDocumentCanSayMakesNoLetter(t *testing.T) {
	engine := enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/_bulk") {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"took":1,"errors":true,"items":[{"index":{"_index":"shop","_id":"1","status":403,` +
			`"error":{"type":"cluster_block_exception","reason":"index [shop] blocked"}}}]}`))
		return true
	})
	w := letterWorld(t, engine, t.TempDir(), letterRules)
	w.put("/shop/_doc/0", `{}`)
	for _, c := range []struct {
		query, action, document string
		kept                    bool
	}{
		{"", `{"index":{"_id":"1"}}`, `{"n":1}`, true},
		{"", `{"index":{"_id":"1","pipeline":"p","routing":"r","require_alias":true}}`, `{"n":1}`, true},
		{"?pipeline=p", `{"index":{"_id":"1"}}`, `{"n":1}`, true},
		{"", `{"index":{"_id":"1","list_executed_pipelines":true}}`, `{"n":1}`, true}, // the answer alone is another one
		{"", `{"update":{"_id":"1","_source":{"includes":"n"}}}`, `{"doc":{"n":1}}`, true},
		{"", `{"index":{"_id":"1","dynamic_templates":{"n":"count"}}}`, `{"n":1}`, false},
		{"", `{"index":{"_id":"1","require_data_stream":true}}`, `{"n":1}`, false},
		{"?require_data_stream=true", `{"index":{"_id":"1"}}`, `{"n":1}`, false},
		{"", `{"update":{"_id":"1","pipeline":"p"}}`, `{"doc":{"n":1},"doc_as_upsert":true}`, false},
		{"?pipeline=p", `{"update":{"_id":"1"}}`, `{"doc":{"n":1},"upsert":{}}`, false},
		{"?pipeline=_none", `{"update":{"_id":"1"}}`, `{"doc":{"n":1},"upsert":{}}`, false}, // instead of the index's own
	} {
		a := w.ask(w.proxied, "POST", "/shop/_bulk"+c.query, lines(c.action, c.document), "Content-Type", "application/x-ndjson")
		want := "403 cluster_block_exception"
		if c.kept {
			want = "202 dead_letter"
		}
		if got := told(a); !strings.HasSuffix(got, " "+want) {
			t.Errorf("%s %s: %s [%s], want %s", c.query, c.action, got, a.Outcome(), want)
		}
	}
}

func TestLettersAreDeletedByWhatIsMeant(t *testing.T) {
	engine, busy, _ := busyEngine(t)
	w := letterWorld(t, engine, t.TempDir(), strings.Replace(letterRules, "  on_exhausted", "  rejected: pass\n  on_exhausted", 1))
	w.put("/shop/_doc/0", `{}`)
	busy.Store(true)
	for _, id := range []string{"1", "2", "3"} {
		if a := w.ask(w.proxied, "PUT", "/shop/_doc/"+id, `{"n":2}`, "Optimist-Session", "bert"); a.Status != 202 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	busy.Store(false)
	for _, wrong := range []string{"", "{}", `{"size":1}`, `{"all":false}`, `{"documents":"2"}`, `{"state":"old"}`, `{"older_than":"soon"}`, `{"reason":"old"}`, `[]`} {
		if status, r := operate(t, w.app, "POST", "/_delete", wrong, ""); status != 400 {
			t.Errorf("%s: %d %s", wrong, status, r)
		}
	}
	if status, r := operate(t, w.app, "POST", "/_delete?documents=2", "", ""); status != 400 {
		t.Errorf("a parameter that isn't known: %d %s", status, r)
	}
	if _, r := operate(t, w.app, "POST", "/_delete", `{"document":"2"}`, ""); r.Get("counts.deleted").Int() != 1 {
		t.Errorf("delete: %s", r)
	}
	if _, r := operate(t, w.app, "POST", "/_delete", `{"all":true,"size":1}`, ""); r.Get("counts.deleted").Int() != 1 || r.Get("next").Str == "" {
		t.Errorf("delete: %s", r)
	}
	_, page := operate(t, w.app, "GET", "?document=3", "", "")
	if id := page.Get("letters.0.id").Str; page.Get("letters.#").Int() != 1 || id == "" {
		t.Errorf("left: %s", page)
	} else if status, r := operate(t, w.app, "DELETE", "/"+id, "", ""); status != 200 {
		t.Errorf("delete: %d %s", status, r)
	}
	if _, page := operate(t, w.app, "GET", "", "", ""); page.Get("letters.#").Int() != 0 {
		t.Errorf("left: %s", page)
	}
}

func TestItemsOfABulkBecomeDeadLetters(t *testing.T) {
	w := newWorld(t, letterRules, Identity{})
	w.put("/shop/_doc/1", `{"status":"new","n":1}`)
	w.ask(w.proxied, "GET", "/shop/_doc/1", "", "Optimist-Session", "bert")
	w.put("/shop/_doc/1", `{"status":"paid","n":1}`)
	a := w.ask(w.proxied, "POST", "/_bulk", `{"index":{"_index":"shop","_id":"1"}}
{"status":"shipped","n":2}
{"index":{"_index":"shop","_id":"2"}}
{"status":"new"}
`, "Optimist-Session", "bert", "Content-Type", "application/x-ndjson")
	items := gjson.Get(a.Body, "items").Array()
	if a.Status != 200 || len(items) != 2 || items[0].Get("index.status").Int() != 202 || items[0].Get("index.dead_letter.id").Str == "" ||
		items[1].Get("index.status").Int() != 201 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	if _, page := operate(t, w.app, "GET", "", "", ""); page.Get("letters.0.request.target").Str != "/shop/_doc/1" {
		t.Errorf("listed: %s", page)
	}
}

func TestALetterHasNoSecretsOfTheRequest(t *testing.T) {
	var op api.Op
	api.Parse([]byte("PUT"), []byte("/shop/_doc/1?api_key=secret&refresh=true&access_token=secret"), &op)
	u := &undeliverable.Letter{Op: &op}
	for _, f := range []string{"Authorization", "Cookie", "X-Api-Key", "X-Shop-Token", "X-Whatever", "es-security-runas-user", "X-Env"} {
		u.Fields = append(u.Fields, wire.Field{Name: []byte(f), Value: []byte("secret")})
	}
	u.Fields = append(u.Fields, wire.Field{Name: []byte("Content-Type"), Value: []byte("application/json")})
	if got := targetOf(u); got != "/shop/_doc/1?refresh=true" {
		t.Errorf("the target is %s", got)
	}
	box := letterbox{identity: client.Identity{Fields: fieldNames(&config.Identity{Fields: []string{"X-Env", "X-Shop-Token"}})}}
	if got := box.fields(u); len(got) != 2 || got[0][0] != "X-Env" || got[1][0] != "Content-Type" {
		t.Errorf("the fields are %v", got)
	}
}

// TestALetterThatIsNotKeptFloodsNoLog: on a full disk, that may be every write.
func TestALetterThatIsNotKeptFloodsNoLog(t *testing.T) {
	engine, busy, _ := busyEngine(t)
	busy.Store(true)
	c, log := configured(t, strings.Replace(letterRules, "max_attempts: 3", "max_attempts: 1", 1), engine), new(enginetest.Log)
	a, err := New(Options{Config: c, Rules: compiled(t, c), Log: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.Close)
	a.Serve()
	w := &world{t: t, direct: engine, app: a, proxied: a.URL()}
	for range 20 {
		if a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":1}`); a.Status != 429 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	if n := strings.Count(log.String(), "nor kept as a dead letter"); n != 1 {
		t.Errorf("%d lines:\n%s", n, log)
	}
}
