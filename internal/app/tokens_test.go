package app

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"optimist/internal/bulk"
	"optimist/internal/enginetest"
)

// TestTokensStayAtOptimist has writes name tokens of locks in each of the ways, and holds what the engine gets.
func TestTokensStayAtOptimist(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	engine := enginetest.Between(t, enginetest.Serve(t), func(_ http.ResponseWriter, r *http.Request) bool {
		body := enginetest.Body(r)
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodGet {
			seen = append(seen, r.RequestURI+" "+string(body))
		}
		return false
	})
	w := newWorldOn(t, "rules: [{name: shop, match: {index: [shop]}}]", Identity{Infer: true}, engine)
	for _, c := range []struct{ method, target, body, field string }{
		{"PUT", "/shop/_doc/1?lock_token=7", `{"a":1}`, ""},
		{"PUT", "/shop/_doc/1?refresh=true&lock_token=7", `{"a":2}`, ""},
		{"PUT", "/other/_doc/1?lock_token=7,8", `{"a":2}`, ""},
		{"POST", "/shop/_doc?lock_token=7", `{"a":2}`, ""},
		{"POST", "/shop/_update/1?lock_token=7", `{"doc":{"a":3}}`, ""},
		{"PUT", "/shop/_doc/1", `{"a":4}`, "7, 8"},
		{"POST", "/_bulk?lock_token=7", lines(`{"index":{"_index":"shop","_id":"2"}}`, `{}`), ""},
		{"POST", "/shop/_bulk", lines(`{"index":{"_id":"3","lock_token":7}}`, `{}`, `{"delete":{"_id":"3","lock_token":"8,9"}}`), ""},
		{"DELETE", "/shop/_doc/1?lock_token=7", "", ""},
	} {
		fields := []string{}
		if c.field != "" {
			fields = []string{"Optimist-Lock-Token", c.field}
		}
		if a := w.ask(w.proxied, c.method, c.target, c.body, fields...); a.Status > 201 || strings.Contains(a.Body, `"errors":true`) {
			t.Errorf("%s %s: %d %s", c.method, c.target, a.Status, a.Body)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	if len(seen) == 0 || strings.Contains(strings.Join(seen, "\n"), "lock_token") {
		t.Errorf("the engine got:\n%s", strings.Join(seen, "\n"))
	}
}

// TestTokensOfBulksStayAtOptimist: the engines refuse a whole bulk for an action that names tokens, whatever optimist does with its items.
func TestTokensOfBulksStayAtOptimist(t *testing.T) {
	const rules = "rules: [{name: shop, match: {index: [shop]}}, {name: seen, mode: observe, match: {index: [seen]}}, " +
		"{name: left, bulk: pass, match: {index: [left]}}, {name: idle, mode: off, match: {index: [idle]}}]"
	item := func(action string) string { return lines(action, `{"lock_token":7}`) }
	shop, seen := item(`{"index":{"_index":"shop","_id":"1"}}`), item(`{"index":{"lock_token":7,"_index":"seen","_id":"1"}}`)
	large := lines(`{"index":{ "_index":"seen", "lock_token":"7, 8" , "_id":"2"}}`, `{"a":"`+strings.Repeat("a", 2<<20)+`"}`)
	var windows strings.Builder // more than is held at once
	for n := range 1200 {
		fmt.Fprintf(&windows, `{"index":{"_index":"seen","_id":"%d","lock_token":7}}`+"\n"+`{"a":"%s"}`+"\n", n, strings.Repeat("a", 1<<10))
	}
	for name, c := range map[string]struct{ rules, target, body string }{
		"beside a guarded item":  {rules, "/_bulk", shop + seen},
		"under a token, guarded": {rules, "/_bulk", item(`{"index":{"_index":"shop","_id":"1","lock_token":7}}`) + seen},
		"observed":               {rules, "/_bulk", seen},
		"observed, by its path":  {rules, "/seen/_bulk", item(`{"create":{"lock_token":"7"}}`)},
		"retried by the engine":  {rules, "/_bulk", shop + lines(`{"update":{"_index":"seen","_id":"1","lock_token":7}}`, `{"doc":{},"doc_as_upsert":true}`)},
		"as its rule says":       {rules, "/_bulk", item(`{"index":{"_index":"left","_id":"1","lock_token":7}}`)},
		"a rule is off":          {rules, "/_bulk", shop + item(`{"index":{"_index":"idle","_id":"1","lock_token":7}}`)},
		"no rule":                {rules, "/_bulk", item(`{"index":{"_index":"other","_id":"1","lock_token":7}}`)},
		"no rule, by its path":   {rules, "/other/_bulk", item(`{"index":{"lock_token":7}}`)},
		"no rules":               {"rules: []", "/_bulk", shop + seen},
		"all is observed":        {"mode: observe\n" + rules, "/_bulk", shop + seen},
		"all is off":             {"mode: off\n" + rules, "/_bulk", shop + seen},
		"escapes":                {rules, "/_bulk", shop + item(`{"index":{"_index":"seen","_id":"1","lock\u005ftoken":"\u0037"}}`)},
		"in windows":             {rules, "/_bulk", shop + windows.String()},
		"an item of its own":     {rules, "/_bulk", shop + large},
		"deleted":                {rules, "/_bulk", seen + lines(`{"delete":{"_index":"seen","_id":"1","lock_token":7}}`) + shop},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var actions []string
			engine := enginetest.Between(t, enginetest.Serve(t), func(_ http.ResponseWriter, r *http.Request) bool {
				body := enginetest.Body(r)
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(r.URL.Path, "_bulk") {
					for a := range bulk.Actions(body, bulk.Defaults{}) {
						actions = append(actions, string(a.Line.Of(body)))
					}
				}
				return false
			})
			w := newWorldOn(t, c.rules, Identity{Infer: true}, engine)
			a := w.ask(w.proxied, "POST", c.target, c.body)
			if a.Status != 200 || strings.Contains(a.Body, `"errors":true`) {
				t.Errorf("%d %.500s", a.Status, a.Body)
			}
			mu.Lock()
			defer mu.Unlock()
			if sent := strings.Join(actions, "\n"); sent == "" || strings.Contains(sent, "token") {
				t.Errorf("the engine got:\n%.500s", sent)
			}
		})
	}
}

func TestNonsenseInPlaceOfATokenIsRefused(t *testing.T) {
	w := newWorld(t, "rules: [{name: shop, match: {index: [shop]}}]", Identity{Infer: true})
	for _, token := range []string{"x", "0", "-3", "1.5", "7,", "9007199254740992"} {
		for name, a := range map[string]answer{
			"field":                       w.ask(w.proxied, "PUT", "/shop/_doc/1", `{}`, "Optimist-Lock-Token", token),
			"query":                       w.ask(w.proxied, "PUT", "/shop/_doc/1?lock_token="+token, `{}`),
			"delete":                      w.ask(w.proxied, "DELETE", "/shop/_doc/1?lock_token="+token, ""),
			"query of a request by query": w.ask(w.proxied, "POST", "/shop/_delete_by_query?lock_token="+token, `{"query":{"match_all":{}}}`),
		} {
			if a.Status != 400 || !strings.Contains(a.Body, `"type":"illegal_argument_exception"`) || !strings.Contains(a.Body, "9007199254740991") {
				t.Errorf("%s %s: %d %s", name, token, a.Status, a.Body)
			}
		}
		a := w.ask(w.proxied, "POST", "/shop/_bulk", lines(`{"index":{"_id":"1","lock_token":"`+token+`"}}`, `{}`, `{"index":{"_id":"2"}}`, `{}`))
		if got := told(a); got != "index 400 illegal_argument_exception, index 201 created" && got != "index 400 illegal_argument_exception, index 200 updated" {
			t.Errorf("an item with %s: %d %s", token, a.Status, a.Body)
		}
	}
	if got := w.stored("/shop/_doc/1"); !strings.Contains(got, "error") {
		t.Errorf("stored: %s", got)
	}
}
