package condition

import "testing"

func TestAFieldThatMayBeMissingIsAskedFor(t *testing.T) {
	for expr, want := range map[string]string{
		`candidate.stock < 0`:                                  "candidate.stock",
		`has(candidate.stock) && candidate.stock < 0`:          "",
		`!has(candidate.stock) || candidate.stock < 0`:         "",
		`"stock" in candidate && candidate.stock < 0`:          "",
		`candidate.?stock.orValue(0) < 0`:                      "",
		`candidate[?"stock"].orValue(0) < 0`:                   "",
		`candidate["stock"] < 0`:                               "candidate.stock",
		`has(current.stock) && candidate.stock < 0`:            "candidate.stock",
		`current != null && current.status == "done"`:          "current.status",
		`has(current.a) && incoming.lines.all(l, l.qty > 0)`:   "incoming.lines",
		`has(current.a.b) && current.a.b == 1`:                 "current.a",
		`has(current.a) && has(current.a.b)`:                   "",
		`request.op == "index" && request.headers["X"] == ""`:  "request.headers.x",
		`"x" in request.headers && request.headers["X"] == ""`: "",
		`request.headers[?"X"].orValue("") == ""`:              "",
		`current == null`:                                      "",
	} {
		p, err := Compile(expr)
		if err != nil {
			t.Fatalf("%s: %v", expr, err)
		}
		if got := p.Unasked(); got != want {
			t.Errorf("%s: got %q, want %q", expr, got, want)
		}
	}
}
