package write

import (
	"strings"
	"testing"
)

// 92 bytes of gzip made a document of 54 MB: each copy doubles it.
func TestAPatchAddsNoMoreToADocumentThanAGuardedBodyMayHave(t *testing.T) {
	doubled := strings.Repeat(`,{"op":"copy","from":"/l","path":"/l/-"}`, 12)[1:]
	text := `"` + strings.Repeat("x", 3000) + `"`
	const step = "{op: append, path: /log, value: {from: incoming, path: /t}}"
	const rules = "rules:\n- {name: r, match: {index: [shop]}, transform: [" + step + ", " + step + "]}\n"
	for name, c := range map[string]struct{ rules, method, target, kind, body string }{
		"operations":         {"", "PATCH", target1, "ops", "[" + doubled + "]"},
		"steps":              {"", "PATCH", target1, "steps", "[" + doubled + "]"},
		"a merge patch":      {"", "PATCH", target1, "merge", `{"t":` + text + `,"u":` + text + `}`},
		"a part":             {rules, "POST", "/shop/_update/1", "", `{"doc":{"t":` + text + `,"u":` + text + `}}`},
		"a rule's transform": {rules, "PATCH", target1, "merge", `{"t":` + text + `}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, c.rules)
			w.put("1", `{"l":["abc"]}`)
			for _, bound := range []struct {
				bytes  int64
				status int
			}{{5 << 10, 400}, {1 << 20, 200}} {
				w.start(Options{MaxBody: bound.bytes})
				var r result
				if c.kind == "" {
					r = w.client("c").send(c.method, c.target, c.body)
				} else {
					r = w.client("c").patch(c.target, c.kind, c.body)
				}
				if r.status != bound.status || r.status == 400 && !strings.Contains(r.body, "too large") {
					t.Errorf("with %d bytes: %d %.300s", bound.bytes, r.status, r.body)
				}
				if changed := w.stored("1") != `{"l":["abc"]}`; changed != (bound.status == 200) {
					t.Errorf("with %d bytes: stored %.100s", bound.bytes, w.stored("1"))
				}
			}
		})
	}
}
