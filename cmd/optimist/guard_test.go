package main

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// TestWritesAreGuardedAndCounted: two clients that read the same revision both keep their change, and the metrics tell of it.
func TestWritesAreGuardedAndCounted(t *testing.T) {
	r := serveFor(t, enginetest.Serve(t), "sessions: {memory: 1MiB}\nrules: [{name: shop, merge: {paths: {/stock: sum}}}]")
	ask := func(session, method, path, body string) string {
		t.Helper()
		a := r.ask(t, method, path, body, "Optimist-Session", session)
		if a.Status >= 300 {
			t.Fatalf("%s %s %.80s: %d %s", method, path, body, a.Status, a.Body)
		}
		return a.Outcome() + " " + a.Body
	}
	do := func(session, method, body string) string {
		t.Helper()
		return ask(session, method, "/shop/_doc/1", body)
	}
	do("seed", "PUT", `{"stock":10,"a":0,"b":0}`)
	do("one", "GET", "")
	do("two", "GET", "")
	if got := do("one", "PUT", `{"stock":9,"a":1,"b":0}`); !strings.HasPrefix(got, "guarded;") {
		t.Errorf("the first write is %s", got)
	}
	if got := do("two", "PUT", `{"stock":8,"a":0,"b":1}`); !strings.HasPrefix(got, "merged;") {
		t.Errorf("the second write is %s", got)
	}
	if got := do("three", "GET", ""); !strings.Contains(got, `{"stock":7,"a":1,"b":1}`) {
		t.Errorf("the document is %s", got)
	}
	if got := do("two", "PUT", `{"stock":8,"a":2,"b":1}`); !strings.HasPrefix(got, "merged;") { // from memory: a is somebody else's by now
		t.Errorf("the third write is %s", got)
	}
	ask("", "PUT", "/parts", `{"mappings":{"_source":{"excludes":["x"]}}}`)
	ask("one", "PUT", "/parts/_doc/1", `{"a":1}`)
	large := `{"text":"` + strings.Repeat("x", 200<<10) + `"}`
	for i := range 12 {
		path := "/shop/_doc/large-" + strconv.Itoa(i)
		ask("one", "PUT", path, large)
		ask("one", "GET", path, "")
	}
	var metrics string
	for !strings.Contains(metrics, `optimist_write_duration_seconds_count{op="index"} 17`) { // counted after its answer
		_, metrics = r.get(t, "/metrics")
	}
	for _, want := range []string{`optimist_outcomes_total{outcome="guarded",reason=""} 1`, `optimist_outcomes_total{outcome="merged",reason=""} 2`,
		`optimist_merges_total{rule="shop"} 2`, `optimist_conflicts_total{rule="shop"} 1`, `optimist_retries_total{rule="shop"} 1`,
		`optimist_bases_total{kind="session"} 2`, `optimist_session_lookups_total{result="hit"} 3`, `optimist_session_lookups_total{result="miss"} 14`,
		`optimist_bases_total{kind="view"} 1`, `optimist_bases_total{kind="lost"} 14`, `optimist_lost_bases_total{reason="restart"} 14`,
		`optimist_fetches_total{rule="shop"} 1`, `optimist_unguardable_indices_total{reason="source"} 1`} {
		if !strings.Contains(metrics, want) {
			t.Errorf("the metrics lack %s", want)
		}
	}
	if strings.Contains(metrics, "optimist_session_evictions_total 0") {
		t.Error("2.4 MB were kept in 1 MiB")
	}
	if t.Failed() {
		t.Log(regexp.MustCompile(`(?m)^optimist_(out|mer|con|ret|bas|ses|los|fet|ung).*$`).FindAllString(metrics, -1))
	}
}
