package rewrite

import (
	"bytes"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"optimist/internal/jsontext"
	"optimist/rewrite/tree"
)

func takesValue(a Action) bool {
	return !slices.Contains([]Action{OpRemove, OpMove, OpCopy, OpNow, OpRemoveEmpty}, a)
}

func takesFrom(a Action) bool { return a == OpMove || a == OpCopy }

func takesDocument(a Action) bool {
	return slices.Contains([]Action{OpAdd, OpReplace, OpCopy, OpMove, OpTest, OpMerge, OpRemoveEmpty}, a)
}

// genPath yields paths into what genObject makes, and beside it.
var genPath = rapid.Custom(func(t *rapid.T) string {
	var path strings.Builder
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 2, 3}).Draw(t, "tokens") {
		token := rapid.SampledFrom([]string{"a", "b", "c", "d", "e", "*", "*", "0", "1", "-", "a~1b", "m~0n", ""}).Draw(t, "token")
		path.WriteString("/" + token)
	}
	return path.String()
})

// genStep yields steps that NewTransformer takes, most of them.
var genStep = rapid.Custom(func(t *rapid.T) Step {
	s := Step{Action: Action(rapid.IntRange(int(OpAdd), int(OpRemoveEmpty)).Draw(t, "action")), Path: genPath.Draw(t, "path")}
	if takesDocument(s.Action) && rapid.IntRange(0, 9).Draw(t, "whole") == 0 {
		s.Path = ""
	}
	if takesFrom(s.Action) {
		s.From = strings.ReplaceAll(genPath.Draw(t, "from"), "*", "a")
	}
	if !takesValue(s.Action) {
		return s
	}
	switch {
	case rapid.IntRange(0, 3).Draw(t, "reference") == 0:
		s.Value = Value{Source: FromIncoming, Path: strings.ReplaceAll(genPath.Draw(t, "value path"), "*", "a")}
	case s.Action == OpIncrement:
		s.Value.Literal = []byte(genNumber.Draw(t, "by"))
	case s.Action == OpMax || s.Action == OpMin:
		s.Value.Literal = []byte(rapid.OneOf(genNumber, rapid.Just(`"x"`)).Draw(t, "limit"))
	default:
		s.Value.Literal = write(t, genValue(2).Draw(t, "value"))
	}
	return s
})

// genTransformer yields a transformer of up to four steps.
func genTransformer(t *rapid.T) (*Transformer, []Step) {
	steps := rapid.SliceOfN(genStep, 1, 4).Draw(t, "steps")
	tr, err := NewTransformer(steps, Limits{})
	if err != nil {
		t.Skip(err)
	}
	return tr, steps
}

func genDoc(t *rapid.T, depth int) []byte { return write(t, any(genObject(depth).Draw(t, "doc"))) }

// knownToApply reports whether an error is one that Transformer.Apply speaks of.
func knownToApply(err error) bool {
	var test *TestError
	var kind *TypeError
	var step *StepError
	return known(err) || errors.As(err, &test) || errors.As(err, &kind) || errors.As(err, &step)
}

func TestTransformsEndInAnObjectOrAnErrorThatIsNamed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc, incoming := genDoc(t, 3), genDoc(t, 2)
		tr, _ := genTransformer(t)
		before := bytes.Clone(doc)
		got, err := tr.Apply(doc, &Inputs{Incoming: incoming})
		switch {
		case !bytes.Equal(doc, before):
			t.Fatal("the candidate itself was changed")
		case err != nil && !knownToApply(err):
			t.Fatal(err)
		case err != nil:
			return
		}
		if _, ok := decode(t, got).(map[string]any); !ok {
			t.Fatalf("%s became %s", doc, got)
		}
	})
}

// membersOf returns the members of the document by their keys, as they stand there.
func membersOf(t tb, doc []byte) (order []string, raw map[string]string) {
	var tr tree.Tree
	if err := tr.Parse(doc, Limits{}); err != nil {
		t.Fatal(err)
	}
	raw = map[string]string{}
	for c := tr.Root().FirstOfAll(); c.Exists(); c = c.NextOfAll() {
		order, raw[c.Key()] = append(order, c.Key()), string(c.Member())
	}
	return order, raw
}

func TestWhatNoStepTouchesKeepsItsBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := genDoc(t, 3)
		tr, steps := genTransformer(t)
		got, err := tr.Apply(doc, &Inputs{Incoming: genDoc(t, 2)})
		if err != nil {
			t.Skip(err)
		}
		touched := map[string]bool{}
		for _, s := range steps {
			path, _ := jsontext.SplitPointer(s.Path)
			if len(path) == 0 || path[0] == "*" {
				t.Skip("all is touched")
			}
			touched[path[0]] = true
			if from, _ := jsontext.SplitPointer(s.From); s.Action == OpMove {
				touched[from[0]] = true
			}
		}
		before, was := membersOf(t, doc)
		after, is := membersOf(t, got)
		kept := func(order []string) (rest []string) {
			for _, key := range order {
				if !touched[key] {
					rest = append(rest, key)
				}
			}
			return rest
		}
		if fmt.Sprint(kept(before)) != fmt.Sprint(kept(after)) {
			t.Fatalf("%q became %q", before, after)
		}
		for _, key := range kept(before) {
			if was[key] != is[key] {
				t.Fatalf("%q: %s became %s", key, was[key], is[key])
			}
		}
	})
}

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}

func TestIncrementsAddUpExactly(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		number := rapid.StringMatching(`-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,12})?([eE][+-]?[0-9]{1,2})?`)
		start := number.Draw(t, "start")
		deltas := rapid.SliceOfN(number, 1, 6).Draw(t, "deltas")
		doc, sum := []byte(`{"n":`+start+`}`), rat(start)
		var steps []Step
		for _, d := range deltas {
			sum.Add(sum, rat(d))
			steps = append(steps, Step{Action: OpIncrement, Path: "/n", Value: literal(d)})
		}
		// All in one transform, and one by one.
		once, err := mustTransformer(t, Limits{}, steps...).Apply(doc, &Inputs{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range steps {
			if doc, err = mustTransformer(t, Limits{}, s).Apply(doc, &Inputs{}); err != nil {
				t.Fatal(err)
			}
		}
		got := strings.TrimSuffix(strings.TrimPrefix(string(doc), `{"n":`), "}")
		if string(once) != string(doc) || rat(got).Cmp(sum) != 0 {
			t.Fatalf("%s with %s is %s, and in one %s", start, deltas, doc, once)
		}
	})
}

func TestWhatIsRepeatableCountsOnce(t *testing.T) {
	checked := 0
	rapid.Check(t, func(t *rapid.T) {
		doc, in := genDoc(t, 3), &Inputs{Incoming: genDoc(t, 2)}
		tr, steps := genTransformer(t)
		if !tr.Repeatable() {
			t.Skip("counts twice")
		}
		once, err := tr.Apply(doc, in)
		if err != nil {
			t.Skip(err)
		}
		checked++
		twice, err := tr.Apply(once, in)
		if err != nil || !sameDoc(t, once, twice) {
			t.Fatalf("%s with %s became\n%s, and again\n%s (%v)", doc, showSteps(steps), once, twice, err)
		}
	})
	if checked < 10 {
		t.Errorf("only %d were repeatable", checked)
	}
}

func showSteps(steps []Step) string {
	var b strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&b, "%s %q from %q value %s %s %q; ", s.Action, s.Path, s.From, s.Value.Source, s.Value.Literal, s.Value.Path)
	}
	return b.String()
}

// What RFC 6902 takes, a transform does the same with: it only takes more.
func TestATransformIsAtLeastAJSONPatch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b, _ := genDocs(t)
		p, err := Diff(a, b)
		if err != nil {
			t.Fatal(err)
		}
		compareWithPatch(t, a, p)
	})
	agreed := 0
	for _, c := range readPatchCases(t) {
		if p, err := ParsePatch(c.patch()); err == nil && compareWithPatch(t, c.doc(), p) {
			agreed++
		}
	}
	if agreed < 50 {
		t.Errorf("only %d cases were compared", agreed)
	}
}

func compareWithPatch(t tb, doc []byte, p Patch) bool {
	var steps []Step
	for _, op := range p {
		if strings.Contains(op.Path+op.From+"/", "/*/") {
			return false // another thing to each
		}
		a, err := ParseAction(op.Op)
		if err != nil {
			t.Fatal(err)
		}
		steps = append(steps, Step{Action: a, Path: op.Path, From: op.From, Value: Value{Literal: op.Value}})
	}
	want, err := p.Apply(doc, Limits{})
	if err != nil || !isObject(want) || !isObject(doc) {
		return false
	}
	got, err := mustTransformer(t, Limits{}, steps...).Apply(doc, &Inputs{})
	if err != nil || string(got) != string(want) {
		t.Fatalf("%s with %s: %v\n got %s\nwant %s", doc, p.AppendJSON(nil), err, got, want)
	}
	return true
}

func isObject(doc []byte) bool {
	var tr tree.Tree
	return tr.ParseObject(doc, Limits{}) == nil
}

// A star is the steps for each element, one after the other.
func TestAStarIsEachElement(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := rapid.SliceOfN(genValue(2), 0, 5).Draw(t, "list")
		doc := write(t, any(object{{"l", list}}))
		s := genStep.Draw(t, "step")
		if s.Path == "" || takesFrom(s.Action) {
			t.Skip("not of an element")
		}
		rest := s.Path
		s.Path = "/l/*" + rest
		star, err := NewTransformer([]Step{s}, Limits{})
		if err != nil {
			t.Skip(err)
		}
		got, gotErr := star.Apply(doc, &Inputs{})
		var steps []Step
		for i := range list {
			s.Path = fmt.Sprintf("/l/%d%s", i, rest)
			steps = append(steps, s)
		}
		want, wantErr := mustTransformer(t, Limits{}, steps...).Apply(doc, &Inputs{})
		if (gotErr != nil) != (wantErr != nil) || string(got) != string(want) {
			t.Fatalf("%s with %s %s\n got %s, %v\nwant %s, %v", doc, s.Action, rest, got, gotErr, want, wantErr)
		}
	})
}

// modelOf does what simple steps at a key of the document say to a map.
func modelOf(o map[string]any, a Action, key string, val any) {
	switch a {
	case OpAdd:
		o[key] = val
	case OpRemove:
		delete(o, key)
	case OpDefault:
		if o[key] == nil {
			o[key] = val
		}
	case OpAppend:
		list, _ := o[key].([]any)
		o[key] = append(append([]any{}, list...), val)
	case OpUnion:
		list, _ := o[key].([]any)
		list = append([]any{}, list...)
		more, ok := val.([]any)
		if !ok {
			more = []any{val}
		}
	next:
		for _, v := range more {
			for _, h := range list {
				if alike(h, v) {
					continue next
				}
			}
			list = append(list, v)
		}
		o[key] = list
	case OpMerge:
		o[key] = mergePatchModel(o[key], val)
	case OpRemoveEmpty:
		if prune(o[key]) == nil {
			delete(o, key)
			return
		}
		o[key] = prune(o[key])
	}
}

// prune is v without what is empty in it, and nil if nothing is left.
func prune(v any) any {
	switch v := v.(type) {
	case string:
		if v == "string " {
			return nil
		}
	case []any:
		var kept []any
		for _, e := range v {
			if e = prune(e); e != nil {
				kept = append(kept, e)
			}
		}
		if kept == nil {
			return nil
		}
		return kept
	case map[string]any:
		kept := map[string]any{}
		for k, e := range v {
			if e = prune(e); e != nil {
				kept[k] = e
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	}
	return v
}

func TestStepsDoWhatTheModelSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		doc := genDoc(t, 3)
		model, _ := decode(t, doc).(map[string]any)
		var steps []Step
		for range rapid.IntRange(1, 5).Draw(t, "steps") {
			s := Step{Path: "/" + rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "key"),
				Action: rapid.SampledFrom([]Action{OpAdd, OpRemove, OpDefault, OpAppend, OpUnion, OpMerge, OpRemoveEmpty}).Draw(t, "action")}
			var val any
			if takesValue(s.Action) {
				s.Value.Literal = write(t, genValue(2).Draw(t, "value"))
				val = decode(t, s.Value.Literal)
			}
			steps = append(steps, s)
			modelOf(model, s.Action, s.Path[1:], val)
		}
		got, err := mustTransformer(t, Limits{}, steps...).Apply(doc, &Inputs{})
		var kind *TypeError
		if errors.As(err, &kind) && kind.Want == "array" {
			t.Skip(err)
		}
		if err != nil || !alike(decode(t, got), any(model)) {
			t.Fatalf("%s with %s\n got %s, %v\nwant %v", doc, showSteps(steps), got, err, model)
		}
	})
}
