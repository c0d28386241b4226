package rules_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// idle transforms in name only: optimist performs each _update with doc itself.
const idle = `rules:
- {name: idle, match: {index: ["rules-*"]}, transform: [{op: remove, path: /never}]}
`

const updated = `{"a":1,"b":{"x":[{"k":1,"l":2},{"l":3},{}],"y":2.50,"z":null},"c":"z","n":9007199254740993}`

// TestAnUpdateThatIsTransformedIsTheEnginesOwn sends the same to the engine and to optimist, each to a document of its own, and compares
// the answers.
func TestAnUpdateThatIsTransformedIsTheEnginesOwn(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index, p := e.index(t), optimistFor(t, e, idle)
		bodies := []string{
			`{"doc":{"a":2}}`, `{"doc":{"a":1}}`, `{"doc":{"a":1.0}}`, `{"doc":{"b":{"y":2.5}}}`, `{"doc":{"b":{"x":[{"l":2,"k":1},{"l":3},{}]}}}`,
			`{"doc":{"b":null}}`, `{"doc":{"b":{"z":{"deep":[1]}}}}`, `{"doc":{"a":{"was":"a number"}}}`, `{"doc":{}}`, `{"doc":{"a":1},"detect_noop":false}`,
			`{"doc":{"a":3},"_source":true}`, `{"doc":{"a":3},"doc_as_upsert":true}`, `{"doc":{"a":3},"upsert":{"u":[]}}`,
		}
		queries := []string{
			"", "?_source=true", "?_source=false", "?_source=a,c", "?_source=b.x.k", "?_source=b*", "?_source_includes=b.*", "?_source_excludes=b.x,c",
			"?_source=nothing", "?refresh=true", "?routing=r&_source=true", "?retry_on_conflict=2", "?wait_for_active_shards=1&timeout=10s",
		}
		if e.name != "embedded" { // which filters here as in a read, where the engines differ from themselves
			queries = append(queries, "?_source_includes=b&_source_excludes=b.x.l", "?_source_excludes=*.l")
		}
		n := 0
		for i, body := range bodies {
			for k, query := range queries {
				if i > 1 && k > 1 {
					continue // each with the first two of the other
				}
				for _, absent := range []bool{false, true} {
					n++
					compareUpdates(t, e, p, "/"+index, fmt.Sprint(n), query, body, absent)
				}
			}
		}
	})
}

func compareUpdates(t *testing.T, e, p target, index, n, query, body string, absent bool) {
	t.Helper()
	var answers [2]answer
	for i, to := range [2]target{e, p} {
		id := fmt.Sprintf("%s-%d", n, i)
		if !absent {
			routing := ""
			if strings.Contains(query, "routing=r") {
				routing = "?routing=r"
			}
			e.send(t, http.StatusCreated, http.MethodPut, index+"/_doc/"+id+routing, updated, "Content-Type", "application/json")
		}
		answers[i] = to.try(t, http.MethodPost, index+"/_update/"+id+query, body, "Content-Type", "application/json")
		answers[i].body = strings.ReplaceAll(answers[i].body, id, n)
	}
	direct, proxied := answers[0], answers[1]
	if direct.status != proxied.status || shape(direct.body) != shape(proxied.body) || strings.Contains(proxied.outcome(), "untransformed") {
		t.Errorf("%s %s (absent: %v)\ndirect  %d %s\nproxied %d %s [%s]", query, body, absent, direct.status, direct.body, proxied.status, proxied.body, proxied.outcome())
	}
}

// shape is an answer without its numbers of revisions, and with decimals in one form: the engine writes documents anew, optimist doesn't.
func shape(body string) string {
	var b strings.Builder
	var add func(v gjson.Result)
	add = func(v gjson.Result) {
		if !v.IsObject() && !v.IsArray() {
			b.WriteString(strings.Replace(v.Raw, "2.50", "2.5", 1))
			return
		}
		b.WriteString("(")
		v.ForEach(func(k, v gjson.Result) bool {
			b.WriteString(k.Raw + ":")
			if k.Str != "_seq_no" && k.Str != "_version" {
				add(v)
			}
			b.WriteString(" ")
			return true
		})
		b.WriteString(")")
	}
	add(gjson.Parse(body))
	return b.String()
}

// TestAPatchIsAnsweredAsAnUpdateIs compares what isn't the document: what an _update says in the same place.
func TestAPatchIsAnsweredAsAnUpdateIs(t *testing.T) {
	eachTarget(t, func(t *testing.T, e target) {
		index, p := e.index(t), optimistFor(t, e, "")
		e.send(t, http.StatusCreated, http.MethodPut, "/"+index+"/_doc/there", updated, "Content-Type", "application/json")
		for _, c := range []struct{ id, query, update, patch string }{
			{"there", "", `{"doc":{}}`, `{}`},
			{"there", "?_source=a", `{"doc":{"a":1}}`, `{"a":1}`},
			{"absent", "", `{"doc":{"a":1}}`, `{"a":1}`},
			{"absent", "?routing=x", `{"doc":{"a":1}}`, `{"a":1}`},
			{"absent", "?if_seq_no=0&if_primary_term=1", `{"doc":{"a":1}}`, `{"a":1}`},
			{"there", "?if_seq_no=77&if_primary_term=1", `{"doc":{"a":1}}`, `{"a":1}`},
			{"there", "?if_seq_no=77&if_primary_term=1&retry_on_conflict=2", `{"doc":{"a":1}}`, `{"a":1}`},
			{"there", "?version=3", `{"doc":{"a":1}}`, `{"a":1}`},
			{"there", "?retry_on_conflict=x", `{"doc":{"a":1}}`, `{"a":1}`},
			{"there", "?require_alias=true", `{"doc":{"a":2}}`, `{"a":2}`},
			{"there", "?nonsense=true", `{"doc":{"a":2}}`, `{"a":2}`},
			{"there", "?refresh=maybe", `{"doc":{"a":2}}`, `{"a":2}`},
		} {
			direct := e.try(t, http.MethodPost, "/"+index+"/_update/"+c.id+c.query, c.update, "Content-Type", "application/json")
			patched := p.try(t, http.MethodPatch, "/"+index+"/_doc/"+c.id+c.query, c.patch, "Content-Type", mergePatch)
			// What names the request's path, or the shard that only the engine knows, is left out.
			if direct.status != patched.status || direct.get("error.type").Raw != patched.get("error.type").Raw || direct.get("result").Raw != patched.get("result").Raw ||
				!strings.Contains(c.query, "nonsense") && direct.get("error.reason").Raw != patched.get("error.reason").Raw || shape(direct.get("get").Raw) != shape(patched.get("get").Raw) {
				t.Errorf("%s %s\n_update %d %s\nPATCH   %d %s [%s]", c.id, c.query, direct.status, direct.body, patched.status, patched.body, patched.outcome())
			}
		}
	})
}
