package write

import (
	"fmt"
	"slices"
	"strings"

	"pgregory.net/rapid"
)

// The generators make few names and few values, so that changes meet in the same places. n is always a number, o an object and l
// a list that only steps touch, where they are there; the others are what they happen to be.

var (
	genScalar = rapid.SampledFrom([]any{int64(0), int64(1), int64(2), int64(-3), "", "x", "y", true, nil})
	genNumber = rapid.SampledFrom([]any{int64(1), int64(2), int64(-1), int64(5)})
	genPlace  = rapid.SampledFrom([]string{"/n", "/n", "/a", "/b", "/o/x", "/o/y", "/d", "/p/q", "/a/z"})
)

func genDoc(t *rapid.T) object {
	o := object{"n": genNumber.Draw(t, "n")}
	for _, name := range []string{"a", "b"} {
		if rapid.Bool().Draw(t, "has "+name) {
			o[name] = genScalar.Draw(t, name)
		}
	}
	if rapid.Bool().Draw(t, "has o") {
		o["o"] = object{"x": genScalar.Draw(t, "x")}
	}
	return o
}

// ruleModel is a rule with its model.
type ruleModel struct {
	merge     strategies
	steps     []stepModel
	recreates bool // what was deleted
	fetches   bool // the base of what has none
}

func genRule(t *rapid.T) *ruleModel {
	r := &ruleModel{merge: strategies{rapid.SampledFrom([]string{"sent", "sent", "current", "fail"}).Draw(t, "default"), map[string]string{}}}
	r.recreates, r.fetches = rapid.Bool().Draw(t, "recreates"), rapid.Bool().Draw(t, "fetches")
	for _, path := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"/n", "/a", "/b", "/o/x", "/d"}), 0, 3, rapid.ID[string]).Draw(t, "paths") {
		r.merge.paths[path] = rapid.SampledFrom([]string{"sent", "current", "fail", "sum", "sum", "max", "min"}).Draw(t, path)
	}
	for range rapid.IntRange(0, 3).Draw(t, "steps") {
		s := genStep(t, true)
		if rapid.IntRange(0, 2).Draw(t, "when") == 0 {
			s.When = rapid.SampledFrom([]string{"current == null", "current != null && current.?n.orValue(0) > 2", "incoming != null && has(incoming.a)",
				"base != null && candidate.?n.orValue(0) < base.?n.orValue(0)", "request.op == 'patch'"}).Draw(t, "condition")
		}
		r.steps = append(r.steps, s)
	}
	return r
}

// readsCurrent reports whether a step looks at the stored document.
func (r *ruleModel) readsCurrent() bool {
	return slices.ContainsFunc(r.steps, func(s stepModel) bool {
		from, _ := s.Value.(object)
		return from["from"] == "current" || strings.Contains(s.When, "current")
	})
}

// yaml is the rule as its users write it.
func (r *ruleModel) yaml() string {
	var b strings.Builder
	b.WriteString("rules:\n- name: shop\n  match: {index: [shop]}\n")
	b.WriteString("  retry: {max_attempts: 1000, max_elapsed: 1h, backoff: {base_interval: 1ms, max_interval: 2ms}}\n")
	fmt.Fprintf(&b, "  merge: {default: %s, paths: %s}\n", r.merge.fallback, encodeModel(r.merge.paths))
	if r.recreates {
		b.WriteString("  on_missing: recreate\n")
	}
	if r.fetches {
		b.WriteString("  base: {unknown: fetch}\n")
	}
	if len(r.steps) > 0 {
		b.WriteString("  transform:\n")
	}
	for i := range r.steps {
		fmt.Fprintf(&b, "  - %s\n", r.steps[i].json())
	}
	return b.String()
}

// json is the step as rules and bodies have it: a value that is null is there, too.
func (s *stepModel) json() string {
	o := object{"op": s.Op, "path": s.Path}
	switch s.Op {
	case "copy":
		o["from"] = s.From
	case "remove", "remove_empty":
	default:
		o["value"] = s.Value
	}
	if s.When != "" {
		o["when"] = s.When
	}
	return encodeModel(o)
}

func jsonOf(steps []stepModel) string {
	list := make([]string, len(steps))
	for i := range steps {
		list[i] = steps[i].json()
	}
	return "[" + strings.Join(list, ",") + "]"
}

// genStep makes an operation of rules. references says that its value may be one.
func genStep(t *rapid.T, references bool) stepModel {
	s := stepModel{Op: rapid.SampledFrom([]string{"add", "default", "replace", "remove", "test", "copy", "increment", "increment", "max", "min",
		"append", "union", "merge", "remove_empty"}).Draw(t, "op")}
	switch s.Op {
	case "merge":
		s.Value = genMergePatch(t)
		return s
	case "remove_empty":
		return s
	case "append", "union":
		s.Path, s.Value = "/l", rapid.SampledFrom([]any{"x", "y", int64(1)}).Draw(t, "element")
		return s
	case "copy":
		s.Path, s.From = rapid.SampledFrom([]string{"/d", "/o/y", "/p/q"}).Draw(t, "to"), rapid.SampledFrom([]string{"/a", "/b", "/n", "/o/x"}).Draw(t, "from")
		return s
	}
	s.Path = genPlace.Draw(t, "path")
	switch {
	case s.Op == "remove":
	case references && rapid.IntRange(0, 3).Draw(t, "reference") == 0:
		s.Value = object{"from": rapid.SampledFrom([]any{"incoming", "current", "current", "base"}).Draw(t, "source"), "path": "/n"}
	case s.Path == "/n", s.Op == "increment", s.Op == "max", s.Op == "min":
		s.Value = genNumber.Draw(t, "value")
	default:
		s.Value = genScalar.Draw(t, "value")
	}
	return s
}

func genMergePatch(t *rapid.T) object {
	p := object{}
	for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"n", "a", "b", "o", "d"}), 1, 3, rapid.ID[string]).Draw(t, "members") {
		switch name {
		case "n":
			p[name] = genNumber.Draw(t, name)
		case "o":
			p[name] = object{"x": genScalar.Draw(t, "x"), "y": genScalar.Draw(t, "y")}
		default:
			p[name] = genScalar.Draw(t, name)
		}
	}
	return p
}

func genJSONPatch(t *rapid.T) []stepModel {
	var ops []stepModel
	for range rapid.IntRange(1, 3).Draw(t, "operations") {
		op := stepModel{Op: rapid.SampledFrom([]string{"add", "add", "replace", "remove", "test"}).Draw(t, "op"), Path: genPlace.Draw(t, "path")}
		if op.Value = genScalar.Draw(t, "value"); op.Path == "/n" {
			op.Value = genNumber.Draw(t, "value")
		}
		ops = append(ops, op)
	}
	return ops
}

// genEdit makes a function that changes a document as an application does, in memory; name is of a member that it adds, or "".
func genEdit(t *rapid.T, name string) func(o object) {
	var edits []func(o object)
	for range rapid.IntRange(0, 3).Draw(t, "edits") {
		switch rapid.IntRange(0, 4).Draw(t, "edit") {
		case 0, 1:
			by := genNumber.Draw(t, "by").(int64)
			edits = append(edits, func(o object) { o["n"] = number(o) + by })
		case 2:
			at, v := rapid.SampledFrom([]string{"a", "b", "d"}).Draw(t, "member"), genScalar.Draw(t, "value")
			edits = append(edits, func(o object) { o[at] = v })
		case 3:
			at := rapid.SampledFrom([]string{"a", "b", "d", "o"}).Draw(t, "member")
			edits = append(edits, func(o object) { delete(o, at) })
		default:
			v := genScalar.Draw(t, "x")
			edits = append(edits, func(o object) {
				if in, ok := o["o"].(object); ok {
					in["x"] = v
				} else {
					o["o"] = object{"x": v}
				}
			})
		}
	}
	if name != "" {
		edits = append(edits, func(o object) { o[name] = true })
	}
	return func(o object) {
		for _, edit := range edits {
			edit(o)
		}
	}
}
