package app

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/enginetest"
	"optimist/internal/rule"
)

const (
	opsType   = "application/json-patch+json"
	mergeType = "application/merge-patch+json"
	stepsType = "application/vnd.optimist-patch+json"
)

func TestAPatchThroughTheDoor(t *testing.T) {
	w := newWorld(t, "", Identity{Infer: true, Address: true})
	w.put(doc1, `{"n":1,"l":["a"],"gone":true}`)
	w.wants(w.ask(w.proxied, "PATCH", doc1, `[{"op":"add","path":"/l/-","value":"b"}]`, "Content-Type", opsType), 200, "guarded;attempts=1;base=none")
	w.wants(w.ask(w.proxied, "PATCH", doc1, `{"gone":null}`, "Content-Type", mergeType), 200, "guarded;attempts=1;base=none")
	a := w.ask(w.proxied, "POST", "/shop/_patch/1?_source=true", `[{"op":"increment","path":"/n","value":0.5}]`, "Content-Type", stepsType)
	w.wants(a, 200, "guarded;attempts=1;base=none")
	if got := gjson.Get(a.Body, "get._source").Raw; got != `{"n":1.5,"l":["a","b"]}` || got != w.stored(doc1) || a.Header.Get("ETag") != `"3-1"` {
		t.Errorf("answered %s %s, stored %s", a.Body, a.Header, w.stored(doc1))
	}
	a = w.ask(w.proxied, "PATCH", doc1, `{"n":2}`)
	w.wants(a, 415, "refused;attempts=0")
	if a.Header.Get("Accept-Patch") != opsType+", "+mergeType+", "+stepsType || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("%v", a.Header)
	}
	w.wants(w.ask(w.proxied, "PATCH", "/shop/_doc/none", `{"n":2}`, "Content-Type", mergeType), 404, "refused;attempts=0")
	w.wants(w.ask(w.proxied, "PATCH", "/shop/_doc/a%2Fb?upsert=true", `{"n":2}`, "Content-Type", mergeType), 201, "guarded;attempts=1")
	if got := w.stored("/shop/_doc/a%2Fb"); got != `{"n":2}` {
		t.Errorf("stored %s", got)
	}
}

func TestACompressedPatchIsRead(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"n":1}`)
	w.wants(w.ask(w.proxied, "PATCH", doc1, zipped(`{"n":2}`), "Content-Type", mergeType, "Content-Encoding", "gzip"), 200, "guarded")
	w.wants(w.ask(w.proxied, "PATCH", doc1, "x", "Content-Type", mergeType, "Content-Encoding", "br"), 415, "refused")
	if got := w.stored(doc1); got != `{"n":2}` {
		t.Errorf("stored %s", got)
	}
}

// PATCH is optimist's own: where it isn't to do anything, the engine's answer is that it doesn't know the method.
func TestWherePatchesAreNotServedTheEngineRefusesThem(t *testing.T) {
	for name, c := range map[string]struct {
		rules string
		mode  rule.Mode
	}{
		"off": {"", rule.Off}, "observe": {"", rule.Observe}, "a rule's mode": {"rules:\n- {name: r, match: {index: [shop]}, mode: observe}\n", rule.Guard},
		"no rule": {"rules:\n- {name: r, match: {index: [other]}}\n", rule.Guard}, "not its operation": {"rules:\n- {name: r, match: {index: [shop], ops: [index]}}\n", rule.Guard},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.rules, Identity{})
			w.app.rules.SetMode(c.mode)
			w.put(doc1, `{"n":1}`)
			for _, method := range []string{"PATCH " + doc1, "POST /shop/_patch/1"} {
				m, target, _ := strings.Cut(method, " ")
				direct := w.ask(w.direct, m, target, `{"n":2}`, "Content-Type", mergeType)
				a := w.ask(w.proxied, m, target, `{"n":2}`, "Content-Type", mergeType)
				if a.Status != direct.Status || a.Body != direct.Body || a.Status < 400 || a.Outcome() != "" {
					t.Errorf("%s: got %d %s, the engine says %d %s", method, a.Status, a.Body, direct.Status, direct.Body)
				}
			}
		})
	}
}

func TestAPatchThatIsTooLargeIsRefused(t *testing.T) {
	w := newWorld(t, "", Identity{})
	w.put(doc1, `{"n":1}`)
	a := w.ask(w.proxied, "PATCH", doc1, `{"text":"`+strings.Repeat("x", 1<<20)+`"}`, "Content-Type", mergeType)
	if a.Status != 413 || gjson.Get(a.Body, "error.type").Str != "request_too_large" {
		t.Errorf("got %d %s", a.Status, a.Body)
	}
}

const transformRules = "rules:\n- {name: shop, match: {index: [shop]}, transform: [{op: increment, path: /edits, value: 1}, " +
	"{op: add, path: /by, value: {from: header, name: X-Editor}}, {op: default, path: /user, value: {from: user}}]}\n"

func TestAllWritesOfARuleAreTransformedOrSayThatTheyWereNot(t *testing.T) {
	w := newWorld(t, transformRules, Identity{Infer: true, Address: true})
	w.put(doc1, `{"a":0}`)
	auto := w.ask(w.proxied, "POST", "/shop/_doc", `{"a":1}`, "X-Editor", "eva", "Authorization", "Basic YW5uYTpzZWNyZXQ=")
	w.wants(auto, 201, "passed;attempts=1;base=none")
	if got := w.stored("/shop/_doc/" + gjson.Get(auto.Body, "_id").Str); got != `{"a":1,"edits":1,"by":"eva","user":"anna"}` {
		t.Errorf("stored %s", got)
	}
	for _, c := range []struct {
		method, target, body, kind, by string
		transformed                    bool
	}{
		{"PUT", doc1, `{"a":1}`, "application/json", "eva", true},
		{"PATCH", doc1, `{"a":2}`, mergeType, "eva", true},
		{"POST", "/shop/_update/1", `{"doc":{"a":3}}`, "application/json", "eva", true},
		{"PUT", "/shop/_create/2", `{"a":1}`, "application/json", "eva", true},
		{"POST", "/shop/_update/1", `{"script":"x"}`, "application/json", "eva", false},
		{"POST", "/shop/_bulk", "{\"index\":{\"_id\":\"1\"}}\n{}\n", "application/x-ndjson", "eva", true},
		{"POST", "/shop/_bulk", "{\"update\":{\"_id\":\"1\"}}\n{\"script\":\"x\"}\n", "application/x-ndjson", "eva", false},
		{"POST", "/shop/_update_by_query", `{"query":{"term":{"a":99}}}`, "application/json", "eva", false},
		{"PUT", doc1, `{"text":"` + strings.Repeat("x", 1<<20) + `"}`, "application/json", "eva", false},
	} {
		a := w.ask(w.proxied, c.method, c.target, c.body, "Content-Type", c.kind, "X-Editor", c.by)
		if strings.Contains(a.Outcome(), ";untransformed") == c.transformed {
			t.Errorf("%s %s: %d %.200s [%s]", c.method, c.target, a.Status, a.Body, a.Outcome())
		}
		if by := gjson.Get(w.stored(doc1), "by").Str; c.transformed && by != c.by {
			t.Errorf("%s %s: stored %s", c.method, c.target, w.stored(doc1))
		}
	}
	a := w.ask(w.proxied, "DELETE", doc1, "", "Authorization", "Negotiate x")
	if strings.Contains(a.Outcome(), "untransformed") {
		t.Errorf("a delete has nothing to transform: %s", a.Outcome())
	}
}

func TestRequestsThatWereNotTransformedAreCounted(t *testing.T) {
	w := newWorld(t, transformRules, Identity{})
	w.ask(w.proxied, "POST", "/shop/_bulk", "{\"update\":{\"_id\":\"1\"}}\n{\"script\":\"x\"}\n", "Content-Type", "application/x-ndjson")
	if n := w.counted("optimist_untransformed_writes_total", "rule", "shop"); n != 1 {
		t.Errorf("%d are counted", n)
	}
}

// Many buyers, one last piece: nobody gets what isn't there.
func TestTheStockNeverGoesBelowZero(t *testing.T) {
	w := newWorld(t, "", Identity{Infer: true, Address: true})
	const buyers, stock = 32, 20
	w.put(doc1, fmt.Sprintf(`{"stock":%d}`, stock))
	var wg sync.WaitGroup
	var mu sync.Mutex
	sold := 0
	for range buyers {
		wg.Go(func() {
			for {
				seen := gjson.Get(w.ask(w.proxied, "GET", doc1, "").Body, "_source.stock").Int()
				if seen == 0 {
					return
				}
				a := w.ask(w.proxied, "PATCH", doc1, fmt.Sprintf(`[{"op":"test","path":"/stock","value":%d},{"op":"replace","path":"/stock","value":%d}]`, seen, seen-1),
					"Content-Type", opsType)
				switch a.Status {
				case 200:
					mu.Lock()
					sold++
					mu.Unlock()
				case 409:
				default:
					t.Errorf("got %d %s", a.Status, a.Body)
					return
				}
			}
		})
	}
	wg.Wait()
	if got := w.stored(doc1); sold != stock || got != `{"stock":0}` {
		t.Errorf("%d sold of %d, %s left", sold, stock, got)
	}
}

// TestAPatchThatNeedsTooMuchMemoryIsTooLarge, as one is whose body alone does.
func TestAPatchThatNeedsTooMuchMemoryIsTooLarge(t *testing.T) {
	engine := enginetest.Serve(t)
	c := configured(t, "", engine)
	c.Limits.Memory, c.Limits.MaxGuardedBody = 1<<20, 1<<20
	w := &world{t: t, direct: engine, app: running(t, c)}
	w.proxied = w.app.URL()
	list := `{"l":[` + strings.Repeat("0,", 64<<10) + `0]}`
	w.put(doc1, list)
	for name, patch := range map[string]string{
		"applied": `[{"op":"add","path":"/l/0","value":7}]`,
		"held":    `[{"op":"add","path":"/a","value":"` + strings.Repeat("x", 900<<10) + `"}]`,
	} {
		a := w.ask(w.proxied, "PATCH", doc1, patch, "Content-Type", opsType)
		if a.Status != 413 || gjson.Get(a.Body, "error.type").Str != "request_too_large" || !strings.Contains(a.Body, "limits.memory") {
			t.Errorf("%s: %d %.300s", name, a.Status, a.Body)
		}
	}
	w.holds(doc1, list)
}
