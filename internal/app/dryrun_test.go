package app

import (
	"io"
	"net"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/intercept"
	"optimist/internal/rule"
)

const dryRules = "rules:\n- {name: shop, match: {index: [shop]}, merge: {paths: {/n: sum}}}\n" +
	"- {name: seen, match: {index: [seen]}, mode: observe}\n- {name: out, match: {index: [out]}, mode: off}\n"

func TestADryRunComesBackAsAnAccount(t *testing.T) {
	w := newWorld(t, dryRules, Identity{})
	w.put("/shop/_doc/1", `{"n":10}`)
	w.ask(w.proxied, "GET", "/shop/_doc/1", "", "Optimist-Session", "a")
	w.put("/shop/_doc/1", `{"n":7}`)
	before := w.ask(w.direct, "GET", "/shop/_doc/1", "").Body
	a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":9}`, "Optimist-Session", "a", "Optimist-Dry-Run", "true")
	if a.Status != 200 || a.Header.Get("Optimist-Dry-Run") != "true" || a.Outcome() != "" ||
		gjson.Get(a.Body, "document").Raw != `{"n":6}` || gjson.Get(a.Body, "rule.name").String() != "shop" {
		t.Fatalf("%d %s %v", a.Status, a.Body, a.Header)
	}
	if after := w.ask(w.direct, "GET", "/shop/_doc/1", "").Body; after != before {
		t.Fatalf("it was %s and is %s", before, after)
	}
	w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":9}`, "Optimist-Session", "a"), 200, "merged;attempts=2;base=session")
	if got := w.stored("/shop/_doc/1"); got != `{"n":6}` {
		t.Errorf("stored %s", got)
	}
}

// TestWhoeverAsksForADryRunWritesNothing: whatever the request, the mode or the rule is.
func TestWhoeverAsksForADryRunWritesNothing(t *testing.T) {
	w := newWorld(t, dryRules, Identity{})
	for _, c := range []struct {
		mode                      rule.Mode
		method, target, body, say string
		status                    int
		want                      string // in the answer
	}{
		{rule.Guard, "PUT", "/shop/_doc/1", `{}`, "true", 200, `"document":{}`},
		{rule.Guard, "PUT", "/shop/_doc/1", `{}`, "TRUE", 200, `"document":{}`},
		{rule.Guard, "PUT", "/shop/_doc/1", `{}`, "yes", 400, intercept.TypeBadDryRun},
		{rule.Guard, "PUT", "/shop/_doc/1", `{}`, "", 400, intercept.TypeBadDryRun},
		{rule.Guard, "PUT", "/nobody/_doc/1", `{}`, "true", 200, "no rule takes it"},
		{rule.Guard, "PUT", "/out/_doc/1", `{}`, "true", 200, "the rule's mode is off"},
		{rule.Guard, "PUT", "/seen/_doc/1", `{}`, "true", 200, "the mode is observe"},
		{rule.Observe, "PUT", "/shop/_doc/1", `{}`, "true", 200, `"mode":"observe"`},
		{rule.Off, "PUT", "/shop/_doc/1", `{}`, "true", 409, "the mode is off"},
		{rule.Off, "PUT", "/shop/_doc/1", `{}`, "yes", 400, intercept.TypeBadDryRun},
		{rule.Guard, "POST", "/shop/_doc", `{"n":1}`, "true", 200, `"document":{"n":1}`},
		{rule.Guard, "POST", "/nobody/_doc", `{"n":1}`, "true", 200, "no rule takes it"},
		{rule.Off, "POST", "/shop/_doc", `{"n":1}`, "true", 409, intercept.TypeNoDryRun},
		{rule.Guard, "POST", "/_bulk", "{\"index\":{\"_index\":\"shop\"}}\n{}\n", "true", 400, intercept.TypeNoDryRun},
		{rule.Off, "POST", "/_bulk", "{\"index\":{\"_index\":\"shop\"}}\n{}\n", "true", 400, intercept.TypeNoDryRun},
		{rule.Guard, "POST", "/shop/_update_by_query", `{}`, "true", 400, intercept.TypeNoDryRun},
		{rule.Guard, "POST", "/shop/_delete_by_query", `{"query":{"match_all":{}}}`, "true", 400, intercept.TypeNoDryRun},
		{rule.Guard, "PUT", "/shop", `{}`, "true", 400, intercept.TypeNoDryRun},
		{rule.Guard, "DELETE", "/shop", "", "true", 400, intercept.TypeNoDryRun},
		{rule.Guard, "POST", "/_reindex", `{}`, "true", 400, intercept.TypeNoDryRun},
		{rule.Off, "POST", "/_aliases", `{}`, "true", 400, intercept.TypeNoDryRun},
	} {
		w.app.rules.SetMode(c.mode)
		a := w.ask(w.proxied, c.method, c.target, c.body, "Optimist-Dry-Run", c.say)
		if a.Status != c.status || !strings.Contains(a.Body, c.want) {
			t.Errorf("%s %s with %q in mode %s: %d %s", c.method, c.target, c.say, c.mode, a.Status, a.Body)
		}
		if all := w.ask(w.direct, "GET", "/_cat/indices", "").Body; strings.TrimSpace(all) != "" && all != "[]" {
			t.Fatalf("%s %s: it made an index: %s", c.method, c.target, all)
		}
	}
}

func TestTwoFieldsThatDifferAreNoWrite(t *testing.T) {
	w := newWorld(t, dryRules, Identity{})
	for _, values := range [][2]string{{"true", "false"}, {"false", "true"}, {"false", "x"}} {
		raw := "PUT /shop/_doc/1 HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Type: application/json\r\n" +
			"optimist-dry-run: " + values[0] + "\r\nOPTIMIST-DRY-RUN: " + values[1] + "\r\nContent-Length: 2\r\n\r\n{}"
		if answer := w.raw(raw); !strings.HasPrefix(answer, "HTTP/1.1 400") || w.stored("/shop/_doc/1") == "{}" {
			t.Errorf("%q: %s", values, answer)
		}
	}
}

func TestReadsAndWritesWithoutTheWishAreAsEver(t *testing.T) {
	w := newWorld(t, dryRules, Identity{})
	w.wants(w.ask(w.proxied, "PUT", "/shop/_doc/1", `{"n":1}`, "Optimist-Dry-Run", "false"), 201, "passed")
	if a := w.ask(w.proxied, "GET", "/shop/_doc/1", "", "Optimist-Dry-Run", "true"); a.Status != 200 || a.Header.Get("ETag") == "" {
		t.Errorf("%d %s %v", a.Status, a.Body, a.Header)
	}
	if a := w.ask(w.proxied, "POST", "/shop/_search", `{}`, "Optimist-Dry-Run", "true"); a.Status != 200 {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	// What the field means can be found out without a write.
	if a := w.ask(w.proxied, "GET", "/", "", "Optimist-Dry-Run", "?"); a.Status != 400 || !strings.Contains(a.Body, intercept.TypeBadDryRun) {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// TestADryRunOfWhatCannotBeGuardedSaysWhy: neither does it send it.
func TestADryRunOfWhatCannotBeGuardedSaysWhy(t *testing.T) {
	w := newWorld(t, dryRules, Identity{})
	for _, c := range []struct{ body, field, value, reason string }{
		{`{}`, "Authorization", "AWS4-HMAC-SHA256 x", "signed"},
		{`{}`, "Authorization", "Negotiate x", "connection_auth"},
		{`{"x":"` + strings.Repeat("x", 2<<20) + `"}`, "X-Y", "z", "too_large"},
	} {
		a := w.ask(w.proxied, "PUT", "/shop/_doc/1", c.body, c.field, c.value, "Optimist-Dry-Run", "true")
		if a.Status != 200 || gjson.Get(a.Body, "outcome.reason").String() != c.reason || gjson.Get(a.Body, "outcome.kind").String() != "passed" {
			t.Errorf("%s: %d %s", c.reason, a.Status, a.Body)
		}
		if got := w.ask(w.direct, "GET", "/shop/_doc/1", ""); got.Status != 404 {
			t.Fatalf("%s: it was written", c.reason)
		}
	}
}

func TestADryRunTellsARefusal(t *testing.T) {
	w := newWorld(t, "rules:\n- {name: shop, match: {index: [shop]}, base: {unknown: reject}}\n", Identity{})
	a := w.ask(w.proxied, "PUT", "/shop/_doc/1", `{}`, "Optimist-Dry-Run", "true")
	if a.Status != 200 || gjson.Get(a.Body, "outcome.status").Int() != 428 || gjson.Get(a.Body, "outcome.error.type").String() != "precondition_required" {
		t.Errorf("%d %s", a.Status, a.Body)
	}
}

// raw sends bytes to the door and returns all that comes back.
func (w *world) raw(request string) string {
	w.t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.proxied, "http://"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, request); err != nil {
		w.t.Fatal(err)
	}
	answer, err := io.ReadAll(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return string(answer)
}
