package condition

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

func list(n int, element string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(element+",", n), ",") + "]"
}

// Each of these would take minutes, or all of the stack, if nothing bounded it.
func TestAnEvaluationEnds(t *testing.T) {
	wide := `{"l": ` + list(5000, `{"a":`+list(50, `{"b":1}`)+`}`) + `}`
	nested := func(n int) string { return strings.Repeat(`{"a": `, n) + "1" + strings.Repeat("}", n) }
	deep := `{"l": ` + strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000) + `}`
	shallower := `{"l": ` + strings.Repeat(`{"a":`, 900) + `"` + strings.Repeat("x", 1<<20) + `"` + strings.Repeat("}", 900) + `}`
	long := `{"l": ` + list(10_000, `"abc"`) + `,"t": "` + strings.Repeat("x", 1<<20) + `"}`
	for _, c := range []struct{ doc, expr, want string }{
		{wide, `current.l.all(x, current.l.all(y, x == y))`, "actual cost limit exceeded"},
		{wide, `current.l.all(x, current.l.all(y, x != {"a": y.a + [1]}))`, "actual cost limit exceeded"},
		{wide, `current.l.all(x, current.l.all(y, current.l.all(z, true)))`, "actual cost limit exceeded"},
		{wide, `current.l.all(x, (current.l + current.l).size() > 0)`, spent},
		{wide, `current.l.exists(x, {"a": 1} in current.l)`, spent},
		{wide, `current == incoming`, "true"},
		{deep, `current == incoming`, spent},
		{deep, `current.l == incoming.l`, spent},
		{deep, `has(current.l)`, "true"},
		{shallower, `current == incoming`, spent},
		{nested(1001), `current == incoming`, "a document has more than 1000 levels"},
		{nested(999), `current == incoming`, "true"},
		{shallower, `current.l.a.a.a.a.a.a.a != null`, "true"},
		{long, `current.l.exists(x, x == current.t)`, "false"},
		{long, `current.l.exists(x, x == current.t + x)`, "actual cost limit exceeded"},
		{long, `current.l.exists(x, current.t == incoming.t)`, "actual cost limit exceeded"},
		{long, `current.l.exists(x, current.t > incoming.t)`, "actual cost limit exceeded"},
		{long, `current.l.exists(x, current.t.size() == 3)`, "actual cost limit exceeded"},
		{long, `current.l.exists(x, timestamp(current.t) < request.time)`, "actual cost limit exceeded"},
		{long, `[1,2,3,4,5,6].all(i, [1,2,3,4,5,6].all(j, !(current.t in current)))`, spent},
		{long, `current.l.exists(x, current.t in {"a": x})`, "actual cost limit exceeded"},
		{long, `current.l.exists(x, !(current.t in [x, incoming.t]))`, "true"},
		{long, `current.l.exists(x, !(current.t in [x, incoming.t + ""]) || current.t in ["a", x])`, "true"},
		{long, `current.l.all(x, current.t in [x, current.t])`, "actual cost limit exceeded"},
		{long, `current.t in [incoming.t, current.t] && !(current.t in {incoming.t: 1})`, "true"},
		{long, `current.t != incoming.t && current.t.size() > 3 && current.t + "x" != incoming.t`, "true"},
	} {
		if got := evaluate(t, c.expr, inputs(strings.NewReplacer(": ", ":", "[]", "[0]", `xx"`, `xy"`).Replace(c.doc), c.doc)); !strings.Contains(got, c.want) {
			t.Errorf("%s: %s, want %s", c.expr, got, c.want)
		}
	}
	if got := evaluate(t, `timestamp(incoming.t) < request.time`, inputs(long, long)); !strings.HasPrefix(got, "invalid RFC 3339") || len(got) > 1000 {
		t.Errorf("%d bytes: %.100s", len(got), got)
	}
	if _, err := Compile(strings.Repeat("!", 200_000) + "true"); err == nil {
		t.Error("an expression of any length")
	}
}

func TestConcurrentEvaluationsDoNotShareAnything(t *testing.T) {
	p, err := Compile(`current.n == incoming.n && current.l.exists(x, x == int(request.id)) && !has(base.n)`)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				n := g*1000 + i
				in := inputs(fmt.Sprintf(`{"n":%d.0}`, n), fmt.Sprintf(`{"n":%d,"l":[1,%d]}`, n, n))
				in.ID = fmt.Sprint(n)
				if holds, err := p.Holds(in); err != nil || !holds {
					t.Error(holds, err)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestWhatAnExpressionReads(t *testing.T) {
	for expr, want := range map[string][2]bool{
		`incoming.a == 1 && request.op == "index"`: {},
		`current.a == 1`: {true, false},
		`has(base.a)`:    {false, false},
		`incoming.l.exists(x, x == current.a || base == null)`:  {true, false},
		`incoming.current == "base"`:                            {},
		`{"a": [candidate]} == {"a": [incoming]}`:               {false, true},
		`incoming.?x.orValue(current.?y.orValue(base.?z)) == 1`: {true, false},
	} {
		p, err := Compile(expr)
		if err != nil {
			t.Errorf("%s: %v", expr, err)
			continue
		}
		if got := [2]bool{p.ReadsCurrent(), p.ReadsCandidate()}; got != want || p.String() != expr {
			t.Errorf("%s: %v, want %v", expr, got, want)
		}
	}
}

// Of duplicate keys the last counts, as everywhere.
func TestDuplicateKeysAndManyKeys(t *testing.T) {
	many := "{"
	for i := range 100 {
		many += fmt.Sprintf(`"k%d":%d,`, i, i)
	}
	in := inputs(`{"a":1,"b":{"x":1},"a":2,"b":{"x":2}}`, many+`"k7":"seven"}`)
	for _, expr := range []string{
		`incoming.a == 2 && incoming.b.x == 2 && incoming.b == {"x": 2}`,
		`current.k7 == "seven" && current.k99 == 99 && current.k0 == 0 && !has(current.k100) && "k50" in current`,
		`incoming == {"a": 2, "b": {"x": 2}} && {"a": 2, "b": {"x": 2}} == incoming && incoming.size() == 2`,
		`incoming.map(k, k) == ["a", "b"] || incoming.map(k, k) == ["b", "a"]`,
	} {
		if got := evaluate(t, expr, in); got != "true" {
			t.Errorf("%s: %s", expr, got)
		}
	}
}

func FuzzWhen(f *testing.F) {
	for _, expr := range []string{`current.n == 1`, `has(incoming.a) && incoming.a.size() > 0`, `current.l.exists(x, x == incoming.x)`,
		`request.headers["x-team"] == "blue"`, `current.?n.orValue(0) + 0.1 <= 1.5`, `current == incoming`, `timestamp(current.at) < request.time`,
		`current.n / 3 == 1`, `string(current.n).matches("^1+$")`, "true ||\n curren", `-current.n > 1e30`, `current.l + [1] == incoming.l`} {
		f.Add(expr, `{"n":1,"l":[1,2.50],"a":"x","at":"2024-05-01T10:00:00Z"}`)
		f.Add(expr, `{"n":1e999999999,"l":{"x":null},"a":"\ud800","n":1}`)
	}
	f.Fuzz(func(t *testing.T, expr, doc string) {
		p, err := Compile(expr)
		if err != nil {
			e, ok := err.(*CompileError)
			if !ok || e.Line < 1 || e.Column < 1 || e.Reason == "" {
				t.Fatalf("%#v", err)
			}
			return
		}
		in := inputs(`{"a":"x","x":2.5,"l":[1,2.50,1]}`, doc)
		holds, err := p.Holds(in)
		if e, ok := err.(*EvalError); err != nil && (!ok || e.Expr != expr || e.Reason == "") {
			t.Fatalf("%#v", err)
		}
		if again, err2 := p.Holds(in); again != holds || (err2 == nil) != (err == nil) {
			t.Fatalf("%q is %v (%v), and then %v (%v)", expr, holds, err, again, err2)
		}
	})
}

func BenchmarkWhen(b *testing.B) {
	current := `{"status":"open","pad":"` + strings.Repeat("x", 10<<10) + `","lines":` + list(50, `{"qty":2,"sku":"A-1"}`) + `}`
	for _, expr := range []string{`request.op == "index"`, `current.status == "open"`, `current.status != incoming.status && has(incoming.status)`,
		`current.lines.all(l, l.qty > 0)`} {
		b.Run(expr, func(b *testing.B) {
			p, err := Compile(expr)
			if err != nil {
				b.Fatal(err)
			}
			in := inputs(`{"status":"paid"}`, current)
			b.ReportAllocs()
			for b.Loop() {
				if holds, err := p.Holds(in); err != nil || !holds {
					b.Fatal(holds, err)
				}
			}
		})
	}
}

// A list of constants is a set: all of a text would be summed up for each element of a list, which here takes minutes. That it is longer than
// all of them tells it apart.
func TestALongTextIsLookedForInConstantsByItsBeginning(t *testing.T) {
	text := strings.Repeat("x", 32<<20)
	doc := `{"l":` + list(10_000, `"abc"`) + `,"t":"` + text + `","u":"` + text[:2000] + `","n":1,"a":[1]}`
	for _, expr := range []string{
		`current.l.all(x, !(current.t in ["a", "b"]) && !(current.t in ["c"]))`,
		`!(current.t in ["` + text[:2000] + `"]) && current.u in ["` + text[:2000] + `"] && !(current.u in ["` + text[:1999] + `"])`,
		`current.n in [1, 2] && !(current.n in [2, 3]) && current.n in ["a", 1] && !(current.a in [1, 2]) && current.a in [[1], [2]]`,
		`!(current.t in []) && "a" in ["a"] && !("b" in ["a"]) && !(current.t in [["a"]])`,
	} {
		if got := evaluate(t, expr, inputs(doc, doc)); got != "true" {
			t.Errorf("%.100s: %.200s", expr, got)
		}
	}
}
