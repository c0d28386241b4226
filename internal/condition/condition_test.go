package condition

import (
	"errors"
	"strings"
	"testing"
	"time"

	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

func inputs(incoming, current string) *edit.Inputs {
	in := &edit.Inputs{Index: "orders", ID: "7", Routing: "r", Op: "index", Method: "PUT", User: "ada",
		Header: func(name string) ([]byte, bool) {
			if strings.EqualFold(name, "X-Team") {
				return []byte("blue"), true
			}
			return nil, false
		},
		Now: time.Date(2024, 5, 1, 12, 0, 0, 0, time.UTC)}
	if incoming != "" {
		in.Incoming = []byte(incoming)
	}
	if current != "" {
		in.Current = []byte(current)
	}
	return in
}

// evaluate returns true, false, or what was wrong.
func evaluate(t testing.TB, expr string, in *edit.Inputs) string {
	t.Helper()
	p, err := Compile(expr)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	holds, err := p.Holds(in)
	var failed *EvalError
	switch {
	case errors.As(err, &failed) && failed.Expr == expr:
		return failed.Reason
	case err != nil:
		t.Fatalf("%s: %#v", expr, err)
	case holds:
		return "true"
	}
	return "false"
}

func TestWhatConditionsSay(t *testing.T) {
	const current = `{"status":"open","n":7,"tags":["a","b"],"lines":[{"qty":2},{"qty":0}],"o":{"x":null,"y":{"z":"é"}},"price":1.10,"at":"2024-05-01T10:00:00Z","b":true}`
	for _, c := range []struct{ expr, want string }{
		{`current.status == "open"`, "true"},
		{`current.status != incoming.status`, "true"},
		{`incoming.status in ["paid", "void"]`, "true"},
		{`"a" in current.tags && !("c" in current.tags)`, "true"},
		{`current.tags.size() == 2 && size(current.o) == 2`, "true"},
		{`current.lines.exists(l, l.qty == 0)`, "true"},
		{`current.lines.all(l, l.qty > 0)`, "false"},
		{`current.lines.map(l, l.qty) == [2, 0]`, "true"},
		{`current.lines.filter(l, l.qty > 0).size() == 1`, "true"},
		{`current.o.all(k, k in ["x", "y"])`, "true"},
		{`current.o.x == null && has(current.o.x)`, "true"},
		{`has(current.nothing)`, "false"},
		{`has(current.nothing.below)`, "no such key: nothing"},
		{`has(incoming.status) && !has(base.status)`, "true"},
		{`base == null`, "true"},
		{`current == null`, "false"},
		{`base.x == 1`, "no such key: x"},
		{`current.nothing == 1`, "no such key: nothing"},
		{`current.?nothing.orValue(0) == 0 && current.?n.orValue(0) == 7`, "true"},
		{`current[?"a.b"].orValue(3) == 3`, "true"},
		{`current.tags[1] == "b"`, "true"},
		{`current.tags[2] == "b"`, "index out of bounds: 2"},
		{`current["status"] == "open"`, "true"},
		{`current.o.y.z == "\u00e9"`, "true"},
		{`current.o == {"x": null, "y": {"z": "é"}}`, "true"},
		{`{"x": null, "y": {"z": "é"}} == current.o`, "true"},
		{`current.o == {"x": null, "y": {"z": "e"}}`, "false"},
		{`current.tags == ["a", "b"] && ["a", "b"] == current.tags && current.tags != ["b", "a"]`, "true"},
		{`current.tags + ["c"] == ["a", "b", "c"] && ["c"] + current.tags == ["c", "a", "b"]`, "true"},
		{`type(current.n) == int && type(current.price) == double && type(current.o) == map && type(current.tags) == list`, "true"},
		{`current.b`, "true"},
		{`current.n`, "is int, not true or false"},
		{`current.status.startsWith("op") && current.status.matches("^o.*n$")`, "true"},
		{`timestamp(current.at) < request.time - duration("1h")`, "true"},
		{`current.status < "p" && current.status >= "open"`, "true"},
		{`current.status > 3`, "no such overload"},
		{`request.op == "index" && request.method == "PUT" && request.index == "orders" && request.id == "7" && request.routing == "r" && request.user == "ada"`, "true"},
		{`request.headers["x-team"] == "blue" && "X-TEAM" in request.headers && !("x-other" in request.headers)`, "true"},
		{`request.headers["x-other"] == ""`, "no such key: x-other"},
		{`request.headers[?"x-other"].orValue("none") == "none"`, "true"},
		{`request.headers.size() == 1`, unlisted},
		{`request.headers.exists(h, h == "x-team")`, unlisted},
		{`current.nothing == 1 || true`, "true"},
		{`current.nothing == 1 && false`, "false"},
	} {
		t.Run(c.expr, func(t *testing.T) {
			if got := evaluate(t, c.expr, inputs(`{"status":"paid"}`, current)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestNumbersAreExact(t *testing.T) {
	for _, c := range []struct{ current, expr, want string }{
		{`{"n":9007199254740993}`, `current.n == 9007199254740993 && current.n != 9007199254740992`, "true"},
		{`{"n":9223372036854775807}`, `current.n > 9223372036854775806`, "true"},
		{`{"n":9223372036854775807}`, `current.n + 1 > 0`, "integer overflow"},
		{`{"n":18446744073709551615}`, `current.n == 18446744073709551615u && current.n > 9223372036854775807`, "true"},
		{`{"n":18446744073709551615}`, `current.n - 1 == 18446744073709551614u && current.n / 2 == 9223372036854775807`, "true"},
		{`{"n":18446744073709551616,"m":18446744073709551617}`, `current.n < current.m && current.n != current.m && current.m - current.n == 1.0`, "true"},
		{`{"n":0.1}`, `current.n + 0.2 == 0.3`, "true"},
		{`{"n":1.10}`, `current.n * 3.0 == 3.3 && current.n * 3 == 3.3 && current.n / 2 == 0.55 && 1 - current.n == -0.1 && -current.n == -1.1`, "true"},
		{`{"n":1.0,"m":10e-1}`, `current.n == 1 && current.n == current.m && current.n == 1.0`, "true"},
		{`{"n":1.0}`, `current.n / 2 == 0.5`, "true"},
		{`{"n":1}`, `current.n / 2 == 0 && current.n / 2.0 == 0.5`, "true"},
		{`{"n":1.0}`, `current.n / 3 < 1`, "a number has more than 1000 digits"},
		{`{"n":1.0}`, `current.n / 0 < 1`, "division by zero"},
		{`{"n":1}`, `current.n / 0 < 1`, "division by zero"},
		{`{"n":0.1234567890123456789,"m":0.1234567890123456788}`, `current.n > current.m && current.n != current.m && current.m < 1 && 1 > current.n && 0.1 < current.n`, "true"},
		{`{"n":0.1234567890123456789,"m":0.12345678901234567890}`, `current.n == current.m && [current.n] == [current.m] && current.n in [1, current.m]`, "true"},
		{`{"n":0.1234567890123456789}`, `string(current.n) == "0.1234567890123456789" && string(-current.n) == "-0.1234567890123456789"`, "true"},
		{`{"n":1e18}`, `current.n == 1000000000000000000 && current.n != 1000000000000000001`, "true"},
		{`{"n":9007199254740993.0}`, `current.n == 9007199254740993 && current.n > 9007199254740992`, "true"},
		{`{"n":1e30,"m":1000000000000000000000000000001}`, `current.n < current.m && current.n > 5`, "true"},
		{`{"n":1e-320,"m":2e-320}`, `current.n < current.m && current.n > 0`, "true"},
		{`{"n":1e400,"m":1e401}`, `current.n * 10 == current.m`, "true"},
		{`{"n":1e2000}`, `current.n > 0`, "a number has more than 1000 digits"},
		{`{"n":1e99999999999999999999}`, `current.n > 0`, "a number has more than 1000 digits"},
		{`{"n":1e2000}`, `has(current.n)`, "true"},
		{`{"n":-0}`, `current.n == 0`, "true"},
		{`{"n":-0.0}`, `current.n == 0 && current.n == 0.0`, "true"},
		{`{"n":0.1234567890123456789}`, `int(current.n) == 0`, "a number with more than 15 digits can't become a int"},
		{`{"n":1e2000}`, `1 < current.n`, "a number has more than 1000 digits"},
		{`{"n":1e2000}`, `1.5 + current.n > 2`, "a number has more than 1000 digits"},
		{`{"n":1e2000}`, `-current.n < 2`, "a number has more than 1000 digits"},
		{`{"a":{"n":1e2000},"b":{"n":1e2001}}`, `current.a == current.b || [current.a] == [current.b]`, "false"},
		{`{"a":[1e2000],"b":[0.10E+2001]}`, `current.a == current.b && current.a != 1`, "true"},
		{`{"a":1e99999999999999999999,"b":1e99999999999999999998}`, `current.a == current.a && current.a != current.b`, "true"},
	} {
		t.Run(c.expr, func(t *testing.T) {
			if got := evaluate(t, c.expr, inputs(`{}`, c.current)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestMistakesAreFoundWhereTheyAre(t *testing.T) {
	for _, c := range []struct {
		expr         string
		line, column int
		reason       string
	}{
		{`request.metod == "PUT"`, 1, 8, "undeclared reference to 'request.metod'"},
		{`current.a == `, 1, 14, "the expression ends before it is complete"},
		{`(current.a == 1`, 1, 16, "missing ')'"},
		{`current.a = 1`, 1, 11, "at: '= '; to compare write =="},
		{`&& true`, 1, 1, "extraneous input '&&'"},
		{`current.a == 1 and current.b`, 1, 16, "write && for and"},
		{`current.a == 1 or current.b`, 1, 16, "write || for or"},
		{`not current.a`, 1, 5, "write ! for not"},
		{`current.a == 1 & current.b`, 1, 16, "write && for and"},
		{`current.a is null`, 1, 11, "x == null"},
		{`current.a == "x`, 1, 14, "the quote isn't closed"},
		{`current.a == 'x`, 1, 14, "the quote isn't closed"},
		{`current.a == “x”`, 1, 14, `; quotes are " or '`},
		{`‘x’ == current.a`, 1, 1, `; quotes are " or '`},
		{`current.a ≤ 3`, 1, 11, "; write <="},
		{`current.a – 3 == 0`, 1, 11, "; the minus is -"},
		{"current.a\u00a0== 1", 1, 10, "; the character U+00A0 belongs in quotes"},
		{`current.a.length() > 3`, 1, 17, "; the length is size(x)"},
		{`current.a ?? 1`, 1, 12, "orValue"},
		{`current.a <> 1`, 1, 12, "write !="},
		{`document.a`, 1, 1, "there are incoming, current, base, candidate and request"},
		{`request.content_type == "x"`, 1, 1, "of a request there are method"},
		{`now() > current.at`, 1, 4, "the time is request.time"},
		{`has(current)`, 1, 5, "has(candidate.stock)"},
		{`true; false`, 1, 5, "at: ';'"},
		{"true &&\n  currents.a == 1", 2, 3, "undeclared reference to 'currents'"},
		{`request.op == 3`, 1, 12, "no matching overload"},
		{`current.?a == "x"`, 1, 12, "; what .? finds is compared as .orValue(other)"},
		{`request.user == null`, 1, 14, "; a text is never null"},
		{`1 + 1`, 1, 1, "must be true or false, and is a number"},
		{`"yes"`, 1, 1, "must be true or false, and is a string"},
		{`1`, 1, 1, "and is a number"},
		{`1.5`, 1, 1, "and is a number"},
		{`null`, 1, 1, "and is null"},
		{`[1]`, 1, 1, "and is a list"},
		{`request.headers`, 1, 1, "and is a map"},
		{`request.time`, 1, 1, "and is a timestamp"},
		{`current.?a`, 1, 1, "and may be nothing: say what then, with orValue"},
		{``, 1, 1, "the expression ends before it is complete"},
		{`current.n == 0.12345678901234567`, 1, 14, "more than 15 digits"},
		{`current.n == 0.10000000000000000001`, 1, 14, "more than 15 digits"},
		{`current.n == 1e18`, 1, 14, "without a decimal point or exponent"},
		{`double(current.n) == 1.0`, 1, 7, "undeclared reference to 'double'"},
		{`current.n == 99999999999999999999`, 1, 14, "invalid int literal"},
		{strings.Repeat("(", 300) + "true" + strings.Repeat(")", 300), 1, 1, "recursion"},
	} {
		t.Run(c.expr, func(t *testing.T) {
			_, err := Compile(c.expr)
			var e *CompileError
			if !errors.As(err, &e) || e.Line != c.line || e.Column != c.column || !strings.Contains(e.Reason, c.reason) ||
				strings.Contains(e.Reason, "expecting {") {
				t.Errorf("%v, want %d:%d %s", err, c.line, c.column, c.reason)
			}
		})
	}
}

func TestTheCandidateIsWhatTheStepsBeforeMadeOfTheDocument(t *testing.T) {
	when, err := Compile("candidate.stock < 0")
	if err != nil {
		t.Fatal(err)
	}
	if !when.ReadsCandidate() || when.ReadsCurrent() {
		t.Error("what it reads is told wrongly")
	}
	steps := []edit.Step{
		{Action: edit.OpIncrement, Path: "/stock", Value: edit.Value{Literal: []byte("-3")}},
		{Action: edit.OpTest, Path: "/stock", Value: edit.Value{Literal: []byte(`"sold out"`)}, When: when},
	}
	tr, err := edit.NewTransformer(steps, tree.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := tr.Apply([]byte(`{"stock":3}`), &edit.Inputs{}); err != nil || string(out) != `{"stock":0}` {
		t.Errorf("three of three: %s, %v", out, err)
	}
	var refused *edit.TestError
	if _, err := tr.Apply([]byte(`{"stock":2}`), &edit.Inputs{}); !errors.As(err, &refused) {
		t.Errorf("three of two: %v", err)
	}
	if _, told, err := tr.Explain([]byte(`{"stock":2}`), &edit.Inputs{}); !errors.As(err, &refused) || len(told) != 2 || !told[1].Held {
		t.Errorf("three of two, explained: %+v, %v", told, err)
	}
	again, err := edit.NewTransformer(steps[1:], tree.Limits{})
	if err != nil || again.Repeatable() {
		t.Errorf("a condition on what is there the first time isn't one on what is there the second time: %v", err)
	}
}
