package rewrite

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"optimist/rewrite/edit"
)

// a condition for tests.
type condition struct {
	holds   bool
	err     error
	current bool
	asked   *int
}

func (c condition) Holds(*Inputs) (bool, error) {
	if c.asked != nil {
		*c.asked++
	}
	return c.holds, c.err
}
func (c condition) ReadsCurrent() bool   { return c.current }
func (c condition) ReadsCandidate() bool { return false }

func literal(json string) Value { return Value{Literal: []byte(json)} }

func mustTransformer(t tb, l Limits, steps ...Step) *Transformer {
	t.Helper()
	tr, err := NewTransformer(steps, l)
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func TestConditionsDecideAboutTheirStepOnly(t *testing.T) {
	tr := mustTransformer(t, Limits{},
		Step{Action: OpAdd, Path: "/a", Value: literal("1"), When: condition{holds: false}},
		Step{Action: OpAdd, Path: "/b", Value: literal("2"), When: condition{holds: true, current: true}},
		Step{Action: OpAdd, Path: "/c", Value: literal("3"), When: condition{}})
	if got, err := tr.Apply([]byte(`{}`), &Inputs{}); err != nil || string(got) != `{"b":2}` {
		t.Errorf("%s, %v", got, err)
	}
	if !tr.ReadsCurrent() || tr.Repeatable() {
		t.Errorf("reads current: %v, repeatable: %v", tr.ReadsCurrent(), tr.Repeatable())
	}
}

func TestRefuseSaysItsMessageAndChangesNothing(t *testing.T) {
	tr := mustTransformer(t, Limits{},
		Step{Action: OpAdd, Path: "/a", Value: literal("1")},
		Step{Action: OpRefuse, Message: "not now", When: condition{holds: false}},
		Step{Action: OpRefuse, Message: "sold out", When: condition{holds: true}})
	_, err := tr.Apply([]byte(`{}`), &Inputs{})
	var e *TestError
	if !errors.As(err, &e) || e.Index != 2 || err.Error() != "operation 3: sold out" || edit.InRule(err).Error() != "transform[2]: sold out" {
		t.Errorf("%#v", err)
	}
	if !tr.Repeatable() {
		t.Error("a refuse counts as done twice")
	}
	for want, s := range map[string]Step{
		"message: is missing": {Action: OpRefuse},
		"message: is about the whole write, which has no path": {Action: OpRefuse, Message: "no", Path: "/a"},
		"message: is not for this operation":                   {Action: OpRemove, Message: "no", Path: "/a"},
		"value: is not for this operation":                     {Action: OpRefuse, Message: "no", Value: literal("1")},
	} {
		if _, err := NewTransformer([]Step{s}, Limits{}); err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
	if _, err := edit.ParseSteps([]byte(`[{"op":"refuse","message":"no"}]`), Limits{}); err == nil {
		t.Error("a body may refuse itself")
	}
}

func TestAConditionThatFailsIsNamed(t *testing.T) {
	cause := errors.New("current.n == 1: no such key: n")
	tr := mustTransformer(t, Limits{},
		Step{Action: OpAdd, Path: "/a", Value: literal("1")},
		Step{Action: OpIncrement, Path: "/b", Value: literal("2"), When: condition{err: cause}})
	_, err := tr.Apply([]byte(`{}`), &Inputs{})
	var e *StepError
	if !errors.As(err, &e) || e.Step != 1 || e.Field != "when" || e.Action != OpIncrement || !errors.Is(err, cause) {
		t.Errorf("%#v", err)
	}
	if want := `operation 2 (increment "/b"): when: current.n == 1: no such key: n`; err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// TestARefusalWhoseConditionFailsNamesNoPath: it has none.
func TestARefusalWhoseConditionFailsNamesNoPath(t *testing.T) {
	tr := mustTransformer(t, Limits{}, Step{Action: OpRefuse, Message: "sold out", When: condition{err: errors.New("no such key: n")}})
	_, err := tr.Apply([]byte(`{}`), &Inputs{})
	if want := `operation 1 (refuse): when: no such key: n`; err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

// What nothing is changed in is not copied.
func TestNothingDoneIsTheCandidateItself(t *testing.T) {
	doc := []byte(` {"a": 1} `)
	tr := mustTransformer(t, Limits{},
		Step{Action: OpDefault, Path: "/a", Value: literal("2")},
		Step{Action: OpTest, Path: "/a", Value: literal("1")},
		Step{Action: OpUnion, Path: "/l", Value: Value{Source: FromBase, Path: "/l"}},
		Step{Action: OpRemove, Path: "/b"},
		Step{Action: OpRemoveEmpty})
	got, err := tr.Apply(doc, &Inputs{})
	if err != nil || &got[0] != &doc[0] || len(got) != len(doc) {
		t.Errorf("%s, %v", got, err)
	}
}

func TestTheAbsentCandidateIsAnEmptyObject(t *testing.T) {
	for _, steps := range [][]Step{nil, {{Action: OpDefault, Path: "/a", Value: literal("1")}, {Action: OpRemove, Path: "/a"}}} {
		got, err := mustTransformer(t, Limits{}, steps...).Apply(nil, &Inputs{})
		if err != nil || string(got) != `{}` {
			t.Errorf("%s, %v", got, err)
		}
		got[0] = 'x' // it is the caller's
	}
}

func TestTransformsTakeObjectsOnly(t *testing.T) {
	tr := mustTransformer(t, Limits{}, Step{Action: OpAdd, Path: "/0", Value: literal("1")})
	for _, doc := range []string{`[]`, `1`, `"x"`, `null`} {
		if _, err := tr.Apply([]byte(doc), &Inputs{}); !errors.Is(err, ErrNotObject) {
			t.Errorf("%s: %v", doc, err)
		}
	}
	var syntax *SyntaxError
	if _, err := tr.Apply([]byte(`{"a":1}}`), &Inputs{}); !errors.As(err, &syntax) {
		t.Error(err)
	}
	if got, err := tr.Apply([]byte(`{}`), &Inputs{Incoming: []byte(`{`)}); err != nil || string(got) != `{"0":1}` {
		t.Errorf("a document that no step refers to is looked at: %s, %v", got, err)
	}
}

// What a step has must not change with the buffer that it was read from.
func TestATransformerOutlivesItsSteps(t *testing.T) {
	value := []byte(`{"x":[1]}`)
	tr := mustTransformer(t, Limits{}, Step{Action: OpAdd, Path: "/a", Value: Value{Literal: value}})
	clear(value)
	first, err := tr.Apply([]byte(`{}`), &Inputs{})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if _, err := tr.Apply([]byte(`{"something":"else"}`), &Inputs{}); err != nil {
			t.Fatal(err)
		}
	}
	if string(first) != `{"a":{"x":[1]}}` {
		t.Errorf("%s", first)
	}
}

// Literals are shared by all calls, and looked into, and edited, by each.
func TestConcurrentApplicationsDoNotShareAnything(t *testing.T) {
	big := "{" + series(0, 40, 1, func(i int) string { return fmt.Sprintf(`"k%d":[{"n":%d}]`, i, i) }) + "}"
	tr := mustTransformer(t, Limits{},
		Step{Action: OpAdd, Path: "/o", Value: literal(big)},
		Step{Action: OpIncrement, Path: "/o/k7/*/n", Value: Value{Source: FromIncoming, Path: "/n"}},
		Step{Action: OpMerge, Path: "/o", Value: literal(`{"k1":null,"x":{"y":null,"z":1}}`)},
		Step{Action: OpUnion, Path: "/l", Value: literal(`[{"a":1,"b":2},{"b":2.0,"a":1},[],[]]`)},
		Step{Action: OpAdd, Path: "/e/f/-", Value: Value{Source: FromID}},
		Step{Action: OpTest, Path: "/o/k2", Value: literal(`[{"n":2}]`)})
	want := strings.NewReplacer(`"k1":[{"n":1}],`, "", `{"n":7}`, `{"n":%d}`).Replace(big)
	want = `{"i":%d,"o":` + want[:len(want)-1] + `,"x":{"z":1}},"l":[{"a":1,"b":2},[]],"e":{"f":["%d"]}}`
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 200 {
				n := g*1000 + i
				in := &Inputs{Incoming: fmt.Appendf(nil, `{"n":%d}`, n), ID: fmt.Sprint(n)}
				got, err := tr.Apply(fmt.Appendf(nil, `{"i":%d}`, n), in)
				if w := fmt.Sprintf(want, n, n+7, n); err != nil || string(got) != w {
					t.Errorf("%v\n got %s\nwant %s", err, got, w)
					return
				}
			}
		})
	}
	wg.Wait()
}

func TestHeadersAreTextOrRefused(t *testing.T) {
	tr := mustTransformer(t, Limits{}, Step{Action: OpAdd, Path: "/a", Value: Value{Source: FromHeader, Name: "X-By"}})
	for header, want := range map[string]string{"plain": `{"a":"plain"}`, "": `{"a":""}`, "q\"\\\t\x01é": `{"a":"q\"\\\u0009\u0001é"}`, "\xff\xfe": ""} {
		got, err := tr.Apply([]byte(`{}`), &Inputs{Header: func(string) ([]byte, bool) { return []byte(header), true }})
		var e *StepError
		if string(got) != want || (want == "") != errors.As(err, &e) {
			t.Errorf("%q: %s, %v", header, got, err)
		}
	}
	if got, err := tr.Apply([]byte(`{}`), &Inputs{}); err != nil || string(got) != `{}` {
		t.Errorf("without headers: %s, %v", got, err)
	}
}

// TestAnIDThatIsStillToBeGivenIsNotThere: that of a document which the engine is to name.
func TestAnIDThatIsStillToBeGivenIsNotThere(t *testing.T) {
	id := Value{Source: FromID}
	tr := mustTransformer(t, Limits{}, Step{Action: OpAdd, Path: "/id", Value: id}, Step{Action: OpUnion, Path: "/ids", Value: id})
	if got, err := tr.Apply([]byte(`{"n":1}`), &Inputs{}); err != nil || string(got) != `{"n":1}` {
		t.Errorf("%s, %v", got, err)
	}
	test := mustTransformer(t, Limits{}, Step{Action: OpTest, Path: "/id", Value: id})
	var e *TestError
	if _, err := test.Apply([]byte(`{"id":""}`), &Inputs{}); !errors.As(err, &e) {
		t.Errorf("a test of it: %v", err)
	}
}

func TestErrorsShowAValueInPart(t *testing.T) {
	long := `"` + strings.Repeat("é", 500) + `"`
	tr := mustTransformer(t, Limits{}, Step{Action: OpTest, Path: "/a", Value: literal(long)})
	_, err := tr.Apply([]byte(`{"a":[`+long+`]}`), &Inputs{})
	var e *TestError
	if !errors.As(err, &e) || len(e.Wanted) > 210 || len(e.Found) > 210 || !strings.HasSuffix(e.Found, "é…") || !strings.HasPrefix(e.Found, `["é`) {
		t.Errorf("%#v", err)
	}
	p := Patch{{Op: "test", Path: "/a", Value: []byte(long)}}
	if _, err = p.Apply([]byte(`{"a":1}`), Limits{}); !errors.As(err, &e) || e.Found != "1" || len(e.Wanted) > 210 {
		t.Errorf("%#v", err)
	}
}

func TestStepsThatCanNotBeAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		step   Step
		field  string
		reason string
	}{
		"no action":             {Step{Path: "/a"}, "op", "is not an operation"},
		"unknown action":        {Step{Action: 200, Path: "/a"}, "op", "is not an operation"},
		"no pointer":            {Step{Action: OpRemove, Path: "a"}, "path", "is not a JSON Pointer"},
		"the document removed":  {Step{Action: OpRemove}, "path", "is the whole document"},
		"the document appended": {Step{Action: OpAppend, Value: literal("1")}, "path", "is the whole document"},
		"from no pointer":       {Step{Action: OpCopy, Path: "/a", From: "b"}, "from", "is not a JSON Pointer"},
		"from the document":     {Step{Action: OpMove, Path: "/a"}, "from", "is the whole document"},
		"from not wanted":       {Step{Action: OpAdd, Path: "/a", From: "/b", Value: literal("1")}, "from", "is not for this operation"},
		"no value":              {Step{Action: OpAdd, Path: "/a"}, "value", "is missing"},
		"value not wanted":      {Step{Action: OpNow, Path: "/a", Value: literal("1")}, "value", "is not for this operation"},
		"value is no JSON":      {Step{Action: OpAdd, Path: "/a", Value: literal("1 2")}, "value", "is not JSON"},
		"value is empty":        {Step{Action: OpAdd, Path: "/a", Value: Value{Literal: []byte{}}}, "value", "is not JSON"},
		"value too deep":        {Step{Action: OpAdd, Path: "/a", Value: literal(nested(101))}, "value", "too deep"},
		"two values":            {Step{Action: OpAdd, Path: "/a", Value: Value{Source: FromID, Literal: []byte("1")}}, "value", "is a literal and a reference"},
		"unknown source":        {Step{Action: OpAdd, Path: "/a", Value: Value{Source: 99}}, "value", "has no source"},
		"value path no pointer": {Step{Action: OpAdd, Path: "/a", Value: Value{Source: FromBase, Path: "x"}}, "value", "is not a JSON Pointer"},
		"max of an id":          {Step{Action: OpIncrement, Path: "/a", Value: Value{Source: FromID}}, "value", "must be a number, and from id is a string"},
		"increment by a time":   {Step{Action: OpIncrement, Path: "/a", Value: Value{Source: FromNow}}, "value", "must be a number, and from now is a string"},
	} {
		_, err := NewTransformer([]Step{{Action: OpRemove, Path: "/x"}, c.step}, Limits{})
		var e *StepError
		if !errors.As(err, &e) || e.Step != 1 || e.Field != c.field || !strings.Contains(e.Reason, c.reason) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewTransformer([]Step{{Action: OpIncrement, Path: "/a", Value: Value{Source: FromNow}, Format: "epoch_millis"}}, Limits{}); err != nil {
		t.Error(err)
	}
}

func TestNamesOfActionsAndSourcesAreReadAsTheyAreWritten(t *testing.T) {
	for a := OpAdd; a <= OpRemoveEmpty; a++ {
		if got, err := ParseAction(a.String()); err != nil || got != a {
			t.Errorf("%v: %v, %v", a, got, err)
		}
	}
	for s := FromLiteral; s <= FromNow; s++ {
		if got, err := ParseSource(s.String()); err != nil || got != s {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	for _, name := range []string{"", "none", "Add", "action(1)"} {
		if _, err := ParseAction(name); err == nil {
			t.Errorf("%q is an action", name)
		}
	}
	if Action(99).String() != "action(99)" || Source(99).String() != "source(99)" {
		t.Error(Action(99), Source(99))
	}
}

func TestTransformsAreBounded(t *testing.T) {
	small := Limits{Bytes: 1 << 20}
	elements := `{"l":[` + series(0, 1000, 1, func(i int) string { return "{}" }) + `]}`
	repeat := func(n int, s Step) (steps []Step) {
		for range n {
			steps = append(steps, s)
		}
		return steps
	}
	deep := Step{Action: OpCopy, From: "/a", Path: "/a/x"}
	for name, c := range map[string]struct {
		doc    string
		limits Limits
		steps  []Step
		want   error
	}{
		"copies double it":       {`{"l":["` + strings.Repeat("x", 1000) + `"]}`, small, repeat(60, Step{Action: OpCopy, From: "/l", Path: "/l/-"}), ErrTooLarge},
		"a star multiplies":      {elements, small, []Step{{Action: OpAdd, Path: "/l/*/x", Value: literal(`"` + strings.Repeat("x", 2000) + `"`)}}, ErrTooLarge},
		"stars of stars":         {elements, Limits{Values: 5000}, repeat(6, Step{Action: OpRemove, Path: "/l/*/x"}), ErrTooLarge},
		"a document in itself":   {`{"a":{"b":1}}`, Limits{}, repeat(200, deep), ErrTooDeep},
		"a literal too deep":     {`{"a":{"b":{}}}`, Limits{Depth: 20}, []Step{{Action: OpAdd, Path: "/a/b/c", Value: literal(nested(18))}}, ErrTooDeep},
		"made parents too deep":  {`{}`, Limits{Depth: 20}, []Step{{Action: OpAdd, Path: strings.Repeat("/a", 21), Value: literal("1")}}, ErrTooDeep},
		"merged too deep":        {`{"a":{"b":{}}}`, Limits{Depth: 20}, []Step{{Action: OpMerge, Path: "/a", Value: literal(`{"b":{"c":` + nested(18) + `}}`)}}, ErrTooDeep},
		"appended too deep":      {`{"a":{"b":[]}}`, Limits{Depth: 20}, []Step{{Action: OpAppend, Path: "/a/b", Value: literal(nested(18))}}, ErrTooDeep},
		"united too deep":        {`{"a":{"b":[]}}`, Limits{Depth: 20}, []Step{{Action: OpUnion, Path: "/a/b", Value: literal(`[` + nested(18) + `]`)}}, ErrTooDeep},
		"document too large":     {`{"a":"` + strings.Repeat("x", 1000) + `"}`, Limits{Bytes: 1000}, nil, ErrTooLarge},
		"incoming too deep":      {`{}`, Limits{Depth: 20}, []Step{{Action: OpAdd, Path: "/a", Value: Value{Source: FromIncoming}}}, ErrTooDeep},
		"names of what is added": {`{}`, Limits{Bytes: 1000}, []Step{{Action: OpAdd, Path: "/" + strings.Repeat("k", 1000), Value: literal("1")}}, ErrTooLarge},
	} {
		tr := mustTransformer(t, c.limits, c.steps...)
		if got, err := tr.Apply([]byte(c.doc), &Inputs{Incoming: []byte(nested(21))}); !errors.Is(err, c.want) {
			t.Errorf("%s: %.100s, %v", name, got, err)
		}
	}
	if _, err := NewTransformer(make([]Step, MaxSteps+1), Limits{}); err == nil {
		t.Error("any number of steps")
	}
	if _, err := ParseSteps([]byte("["+series(0, MaxSteps+1, 1, func(int) string { return `{"op":"remove","path":"/a"}` })+"]"), Limits{}); err == nil {
		t.Error("any number of operations")
	}
}

// Each of these takes milliseconds, or is refused.
func TestLargeTransformsCostWhatTheirSizeSays(t *testing.T) {
	n := largeSize()
	numbers := `{"l":[` + series(0, n, 1, func(i int) string { return fmt.Sprint(i) }) + `]}`
	members := `{"o":{` + series(0, n, 1, func(i int) string { return fmt.Sprintf(`"k%d":null`, i) }) + `}}`
	other := series(0, n, 1, func(i int) string { return fmt.Sprint(i * 2) })
	many := func(s Step) []Step {
		steps := make([]Step, MaxSteps)
		for i := range steps {
			steps[i] = s
		}
		return steps
	}
	for name, c := range map[string]struct {
		doc   string
		steps []Step
	}{
		"union":                    {numbers, []Step{{Action: OpUnion, Path: "/l", Value: literal("[" + other + "]")}}},
		"unions":                   {numbers, many(Step{Action: OpUnion, Path: "/l", Value: literal("[1,2,-1]")})},
		"unions of what is edited": {numbers, many(Step{Action: OpUnion, Path: "/l", Value: Value{Source: FromIncoming, Path: "/l"}})},
		"remove every element":     {numbers, []Step{{Action: OpRemove, Path: "/l/*"}}},
		"remove the first":         {numbers, many(Step{Action: OpRemove, Path: "/l/0"})},
		"remove every member":      {members, []Step{{Action: OpRemove, Path: "/o/*"}}},
		"remove every empty":       {members, many(Step{Action: OpRemoveEmpty})},
		"empty members by a star":  {members, []Step{{Action: OpRemoveEmpty, Path: "/o/*"}}},
		"increment every element":  {numbers, []Step{{Action: OpIncrement, Path: "/l/*", Value: literal("1")}}},
		"copies of what is edited": {numbers, append([]Step{{Action: OpRemove, Path: "/l/0"}}, many(Step{Action: OpCopy, From: "/l", Path: "/x/*"})[1:]...)},
		"the last of an array":     {`{}`, many(Step{Action: OpAdd, Path: "/x", Value: Value{Source: FromIncoming, Path: fmt.Sprintf("/l/%d", n-1)}})},
		"tests":                    {numbers, many(Step{Action: OpTest, Path: "/l", Value: Value{Source: FromIncoming, Path: "/l"}})},
		"default members":          {members, []Step{{Action: OpDefault, Path: "/o/*", Value: literal("{}")}, {Action: OpAdd, Path: "/o/*/x", Value: literal("1")}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := mustTransformer(t, Limits{}, c.steps...).Apply([]byte(c.doc), &Inputs{Incoming: []byte(numbers)})
			if err != nil && !errors.Is(err, ErrTooLarge) {
				t.Error(err)
			}
		})
	}
}

// TestABodyThatIsNoListIsAPatchThatIsNone: its sender knows of no transform, and may have left out the brackets.
func TestABodyThatIsNoListIsAPatchThatIsNone(t *testing.T) {
	const want = `patch: is not an array of operations, such as [{"op":"add","path":"/n","value":1}]`
	body := []byte(`{"op":"add","path":"/n","value":1}`)
	if _, err := ParseSteps(body, Limits{}); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if _, err := ParsePatch(body); err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}
