package rewrite

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"optimist/rewrite/edit"
)

func nested(depth int) string {
	return strings.Repeat(`{"a":`, depth-1) + "{}" + strings.Repeat("}", depth-1)
}

func TestDepthIsBounded(t *testing.T) {
	m := mustMerger(t, Sent)
	if _, err := m.Merge(nil, []byte(nested(DefaultDepth)), []byte(`{}`)); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"merge":       second(m.Merge(nil, []byte(nested(DefaultDepth+1)), []byte(`{}`))),
		"mixed":       second(m.Merge(nil, []byte(`{}`), []byte(`{"a":`+strings.Repeat(`[{"a":`, 60)+"1"+strings.Repeat("}]", 60)+"}"))),
		"unclosed":    second(m.Merge(nil, []byte(`{}`), []byte(strings.Repeat("[", 1<<20)))),
		"diff":        second(Diff(nil, []byte(nested(DefaultDepth+1)))),
		"patch":       second(ParsePatch([]byte(strings.Repeat("[", 1<<20)))),
		"apply":       second(Patch{}.Apply([]byte(nested(DefaultDepth+1)), Limits{})),
		"patch value": second(Patch{{Op: "add", Path: "/a", Value: []byte(nested(DefaultDepth))}}.Apply([]byte(`{}`), Limits{})),
		"repeatable":  second(Repeatable(nil, []byte(nested(DefaultDepth+1)), []byte(`{}`))),
	} {
		if !errors.Is(err, ErrTooDeep) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := m.Within(Limits{Depth: 1000}).Merge(nil, []byte(nested(1000)), []byte(`{}`)); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error { return err }

// Each copy takes the document into itself: a few dozen operations would fill any memory.
func TestCopiesCannotDoubleADocumentWithoutEnd(t *testing.T) {
	var p Patch
	for range 60 {
		p = append(p, Operation{Op: "copy", From: "/l", Path: "/l/-"})
	}
	doc := []byte(`{"l":["` + strings.Repeat("x", 1000) + `"]}`)
	if _, err := p.Apply(doc, Limits{Bytes: 1 << 20}); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	for i := range p {
		p[i].Path = fmt.Sprintf("/l%d", i)
		p[i].From = ""
	}
	if _, err := p.Apply(doc, Limits{Bytes: 1 << 20}); !errors.Is(err, ErrTooLarge) && !errors.Is(err, ErrTooDeep) {
		t.Error(err)
	}
}

// Two short operations wrap a document once: the depth of the result needs no deep value and no long path.
func TestMovesCannotNestADocumentWithoutEnd(t *testing.T) {
	var p Patch
	for i := range 20000 {
		a, b := fmt.Sprintf("/%d", i), fmt.Sprintf("/%d", i+1)
		p = append(p, Operation{Op: "add", Path: b, Value: []byte(`{}`)}, Operation{Op: "move", From: a, Path: b + "/x"})
	}
	if _, err := p.Apply([]byte(`{"0":{}}`), Limits{}); !errors.Is(err, ErrTooDeep) {
		t.Error(err)
	}
}

func TestSizesAreBounded(t *testing.T) {
	m := mustMerger(t, Sent).Within(Limits{Bytes: 100, Values: 20})
	long := []byte(`{"a":"` + strings.Repeat("x", 100) + `"}`)
	many := []byte(`{"a":[` + strings.Repeat("1,", 20) + `1]}`)
	half := strings.Repeat("x", 60)
	for name, err := range map[string]error{
		"bytes":  second(m.Merge(nil, long, []byte(`{}`))),
		"values": second(m.Merge(nil, []byte(`{}`), many)),
		"result": second(m.Merge(nil, []byte(`{"a":"`+half+`"}`), []byte(`{"b":"`+half+`"}`))),
		"diff":   second(edit.Diff([]byte(`{"`+half+`":{"a":1,"b":1}}`), []byte(`{"`+half+`":{"a":2,"b":2}}`), Limits{Bytes: 100})),
		"apply":  second(Patch{{Op: "add", Path: "/b", Value: []byte(`"` + half + `"`)}}.Apply([]byte(`{"a":"`+half+`"}`), Limits{Bytes: 100})),
	} {
		if !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNamesOfPathsAreBounded(t *testing.T) {
	key := strings.Repeat("k", 8192) // paths are cut at 4096 bytes
	var base, sent, current strings.Builder
	for i := range 3 * MaxPaths {
		fmt.Fprintf(&base, `,"m%d":0`, i)
		fmt.Fprintf(&sent, `,"m%d":1`, i)
		fmt.Fprintf(&current, `,"m%d":2`, i)
	}
	doc := func(v int, b *strings.Builder) []byte {
		return fmt.Appendf(nil, `{"o":{"%s":%d}%s}`, key, v, b)
	}
	res, err := mustMerger(t, Sent).Merge(doc(0, &base), doc(1, &sent), doc(2, &current))
	if err != nil || len(res.Overwritten) != MaxPaths || res.OverwrittenMore != 2*MaxPaths+1 || res.Overwritten[0] != "/o" {
		t.Errorf("%v: %d paths, %d more, the first is %.20s", err, len(res.Overwritten), res.OverwrittenMore, res.Overwritten[0])
	}
	_, err = mustMerger(t, Fail).Merge(doc(0, &base), doc(1, &sent), doc(2, &current))
	var e *ConflictError
	if !errors.As(err, &e) || len(e.Paths) != MaxPaths || e.More != 2*MaxPaths+1 || !strings.Contains(e.Error(), "and 201 more") {
		t.Errorf("%v", err)
	}
}

// largeSize is a size at which a cost of its square is felt, or, in the long run, not to be borne.
func largeSize() int {
	if os.Getenv("E2E_LONG") != "" {
		return 100_000
	}
	return 10_000
}

// Each of these takes milliseconds. With a cost of the square of the size it would take minutes in the long run, which has
// a time limit.
func TestLargeDocumentsCostWhatTheirSizeSays(t *testing.T) {
	n := largeSize()
	m := mustMerger(t, Sent, PathRule{Path: "/u", Strategy: Union}, PathRule{Path: "/k", Strategy: ByKey, Key: "id"})
	member := func(i int) string { return fmt.Sprintf(`"key%d":%d`, i, i%3) }
	number := func(i int) string { return fmt.Sprint(i) }
	keyed := func(i int) string { return fmt.Sprintf(`{"id":%d}`, i) }
	same := func(int) string { return `"d":1` }
	for name, docs := range map[string][2]string{
		"keys in another order": {"{" + series(0, n, 1, member) + "}", "{" + series(n-1, n, -1, member) + "}"},
		"rotated array":         {`{"a":[` + series(0, n, 1, number) + `]}`, `{"a":[` + series(n/2, n, 1, number) + `]}`},
		"reversed array":        {`{"a":[` + series(0, n, 1, number) + `]}`, `{"a":[` + series(n-1, n, -1, number) + `]}`},
		"prepended array":       {`{"a":[` + series(1, n, 1, number) + `]}`, `{"a":[` + series(0, n, 1, number) + `]}`},
		"union":                 {`{"u":[` + series(0, n, 1, number) + `]}`, `{"u":[` + series(n-1, n, -1, number) + `]}`},
		"by key":                {`{"k":[` + series(0, n, 1, keyed) + `]}`, `{"k":[` + series(n-1, n, -1, keyed) + `]}`},
		"duplicate keys":        {"{" + series(0, n, 1, same) + "}", "{}"},
		"many arrays":           {`{"a":[` + series(0, n/50, 1, shortArray(1)) + `]}`, `{"a":[` + series(0, n/50, 1, shortArray(-1)) + `]}`},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := []byte(docs[0]), []byte(docs[1])
			for _, d := range [][3][]byte{{a, b, a}, {a, b, b}, {a, a, b}, {nil, a, b}, {b, []byte(`{}`), a}} {
				if _, err := m.Merge(d[0], d[1], d[2]); err != nil {
					t.Fatal(err)
				}
			}
			p, err := Diff(a, b)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Apply(a, Limits{}); err != nil && !errors.Is(err, ErrTooLarge) {
				t.Fatal(err)
			}
		})
	}
}

// shortArray yields arrays just small enough to be compared, each with elements of its own.
func shortArray(step int) func(int) string {
	return func(i int) string {
		first := i * 100
		if step < 0 {
			first += 99
		}
		return "[" + series(first, 100, step, func(i int) string { return fmt.Sprint(i) }) + "]"
	}
}

func series(from, n, step int, item func(int) string) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(item(from + i*step))
	}
	return b.String()
}

func TestLargePatchesCostWhatTheirSizeSays(t *testing.T) {
	n := largeSize()
	add := func(path, value string) Operation { return Operation{Op: "add", Path: path, Value: []byte(value)} }
	remove := func(path string) Operation { return Operation{Op: "remove", Path: path} }
	test := func(path, value string) Operation { return Operation{Op: "test", Path: path, Value: []byte(value)} }
	elements := []byte(`{"a":[` + series(0, n, 1, func(i int) string { return "1" }) + `]}`)
	dups := []byte("{" + series(0, n, 1, func(i int) string { return fmt.Sprintf(`"k%d":1`, i%(n/2)) }) + "}")
	for name, c := range map[string]struct {
		doc []byte
		ops func(i int) []Operation
	}{
		"members added":       {[]byte(`{}`), func(i int) []Operation { return []Operation{add(fmt.Sprintf("/k%d", i), "1")} }},
		"members come and go": {[]byte(`{}`), func(i int) []Operation { return []Operation{add("/a", "1"), remove("/a")} }},
		"duplicates removed": {dups, func(i int) []Operation {
			return []Operation{remove(fmt.Sprintf("/k%d", i%(n/2))), add(fmt.Sprintf("/k%d", i%(n/2)), "1")}
		}},
		"elements put in front": {elements, func(i int) []Operation { return []Operation{add("/a/0", "1")} }},
		"a changed document is tested": {elements, func(i int) []Operation {
			return []Operation{{Op: "replace", Path: "/a/5", Value: []byte("2")}, test("/a/5", "2"), {Op: "copy", From: "/a/5", Path: "/b"}}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var p Patch
			for i := range n {
				p = append(p, c.ops(i)...)
			}
			if _, err := p.Apply(c.doc, Limits{}); err != nil && !errors.Is(err, ErrTooLarge) {
				t.Error(err)
			}
		})
	}
}

// What is new was compared with all that was new before it, where the array was empty: a PATCH of 600 KB took minutes.
func TestALargeUnionWithNothingCostsWhatItsSizeSays(t *testing.T) {
	list := "[" + series(0, largeSize(), 1, func(i int) string { return fmt.Sprint(i) }) + "]"
	tr, err := NewTransformer([]Step{{Action: OpUnion, Path: "/a", Value: Value{Literal: []byte(list)}}}, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	for _, doc := range []string{`{}`, `{"a":[]}`, `{"a":[-1]}`} {
		if _, err := tr.Apply([]byte(doc), &Inputs{}); err != nil && !errors.Is(err, ErrTooLarge) {
			t.Error(err)
		}
	}
}

// An array that is copied and changed, and copied again, was there a thousand times in the end: of 100 KB, and 900 small steps, came
// gigabytes.
func TestWhatIsCopiedAndChangedAgainAndAgainIsBounded(t *testing.T) {
	const elements, rounds = 20_000, 300
	doc := []byte(`{"a":[` + series(0, elements, 1, func(i int) string { return fmt.Sprint(i) }) + `]}`)
	var list []Step
	var patch Patch
	for range rounds {
		list = append(list, Step{Action: OpCopy, From: "/a", Path: "/b"},
			Step{Action: OpAppend, Path: "/b", Value: literal("1")}, Step{Action: OpCopy, From: "/b", Path: "/a"})
		patch = append(patch, Operation{Op: "copy", From: "/a", Path: "/b"}, Operation{Op: "add", Path: "/b/-", Value: []byte("1")},
			Operation{Op: "copy", From: "/b", Path: "/a"})
	}
	for _, n := range []int{3, 3 * rounds} {
		tr, err := NewTransformer(list[:n], Limits{})
		if err != nil {
			t.Fatal(err)
		}
		_, inSteps := tr.Apply(doc, &Inputs{})
		_, inPatch := patch[:n].Apply(doc, Limits{})
		for _, err := range []error{inSteps, inPatch} {
			if errors.Is(err, ErrTooLarge) != (n > 3) {
				t.Errorf("%d operations: %v", n, err)
			}
		}
	}
}

// small is a room of so many bytes.
type small struct{ left int64 }

var errFull = errors.New("full")

func (s *small) Take(n int64) error {
	if n > s.left {
		return errFull
	}
	s.left -= n
	return nil
}

// A patch is read in memory of the room: its text, its values and the tokens of its paths.
func TestPatchesAreReadInMemoryOfTheRoom(t *testing.T) {
	steps := func(body string, room int64) error {
		l := Limits{Room: &small{room}}
		list, err := edit.ParseSteps([]byte(body), l)
		if err == nil {
			_, err = edit.NewTransformer(list, l)
		}
		return err
	}
	operations := func(body string, room int64) error {
		return second(edit.ParsePatch([]byte(body), Limits{Room: &small{room}}))
	}
	text, values := strings.Repeat("x", 1<<16), strings.Repeat("0,", 1<<15) // more values than there is memory for from calls before
	for name, c := range map[string]struct {
		read func(string, int64) error
		body string
		room int64
	}{
		"a step's text":               {steps, `[{"op":"add","path":"/a","value":"` + text + `"}]`, 1 << 16},
		"a step's own copy of it":     {steps, `[{"op":"add","path":"/a","value":"` + text + `"}]`, 5 << 15},
		"a step's values":             {steps, `[{"op":"add","path":"/a","value":[` + values + `0]}]`, 1 << 18},
		"what is no step":             {steps, `[` + values + `0]`, 1 << 18},
		"the tokens of a step's path": {steps, `[{"op":"remove","path":"` + strings.Repeat("/", 1000) + `"}]`, 1 << 14},
		"the tokens of its value's": {steps, `[{"op":"add","path":"/a","value":{"from":"base","path":"` + strings.Repeat("/", 1000) + `"}}]`,
			1 << 14},
		"an operation's text":   {operations, `[{"op":"add","path":"/a","value":"` + text + `"}]`, 1 << 16},
		"an operation's values": {operations, `[{"op":"add","path":"/a","value":[` + values + `0]}]`, 1 << 18},
	} {
		if err := c.read(c.body, c.room); !errors.Is(err, errFull) {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.read(c.body, 1<<30); err != nil && name != "what is no step" {
			t.Errorf("%s, with room: %v", name, err)
		}
	}
}

// What is wrong with a patch is said in few words, however long the client's are.
func TestErrorsOfPatchesAreShort(t *testing.T) {
	const most = 20 << 10 // four bytes for each of a path, and a little more
	long := strings.Repeat("\xff", 1<<20)
	for _, body := range []string{
		`[{"op":"` + long + `","path":"/a"}]`, `[{"op":"add","path":"` + long + `","value":1}]`, `[{"op":"add","path":"/` + long + `"}]`,
		`[{"op":"copy","path":"/a","from":"` + long + `"}]`, `[{"op":"remove","path":"/a","` + long + `":""}]`,
		`[{"op":"increment","path":"/a","value":{"from":"header","name":"` + long + `"},"format":"epoch_millis"}]`,
		`[{"op":"add","path":"/a","value":{"from":"` + long + `","path":""}}]`,
	} {
		errs := []error{second(edit.ParsePatch([]byte(body), Limits{}))}
		list, err := edit.ParseSteps([]byte(body), Limits{})
		if err == nil {
			_, err = edit.NewTransformer(list, Limits{})
		}
		for _, err := range append(errs, err) {
			if err != nil && len(err.Error()) > most {
				t.Errorf("%d bytes: %.200s", len(err.Error()), err)
			}
		}
	}
	for _, p := range []Patch{{{Op: "test", Path: "/" + long, Value: []byte("1")}}, {{Op: "remove", Path: "/" + long}}, {{Op: "copy", From: "/" + long, Path: "/a"}}} {
		if err := second(p.Apply([]byte(`{"a":1}`), Limits{})); err == nil || len(err.Error()) > most {
			t.Errorf("%d bytes: %.200s", len(err.Error()), err)
		}
	}
}

// The document is small, and so is the result.
func TestTooMuchWorkIsNotSaidOfTheDocument(t *testing.T) {
	p := Patch{}
	for range 20_000 {
		p = append(p, Operation{Op: "move", From: "/l/0", Path: "/l/-"})
	}
	_, err := p.Apply([]byte(`{"l":[`+strings.Repeat("1,", 30_000)+`1]}`), Limits{})
	if !errors.Is(err, ErrTooLarge) || !strings.Contains(err.Error(), "too much work") || strings.Contains(err.Error(), "document is too large") {
		t.Error(err)
	}
}
