package write

import "slices"

// refusal is the status of the answer to a change that can't be made; 0 is none.
type refusal int

// inputsModel are what steps refer to.
type inputsModel struct {
	op                      string
	incoming, current, base any // absent{} where there is none
}

// stepModel is one operation of a rule's transform, or of a PATCH.
type stepModel struct {
	Op, Path, From string
	Value          any // an object with from is a reference
	When           string
}

// conditions are what `when` can be here, and what that means.
var conditions = map[string]func(in *inputsModel, doc object) bool{
	"current == null": func(in *inputsModel, _ object) bool { return in.current == absent{} },
	"current != null && current.?n.orValue(0) > 2": func(in *inputsModel, _ object) bool { return number(in.current) > 2 },
	"incoming != null && has(incoming.a)":          func(in *inputsModel, _ object) bool { return member(in.incoming, "a") != any(absent{}) },
	"base != null && candidate.?n.orValue(0) < base.?n.orValue(0)": func(in *inputsModel, doc object) bool {
		return in.base != absent{} && number(doc) < number(in.base)
	},
	"request.op == 'patch'": func(in *inputsModel, _ object) bool { return in.op == "patch" },
}

func number(doc any) int64 {
	n, _ := member(doc, "n").(int64)
	return n
}

// transformModel carries the steps out on a document, which it changes.
func transformModel(steps []stepModel, doc object, in *inputsModel) (object, refusal) {
	for i := range steps {
		s := &steps[i]
		if s.When != "" && !conditions[s.When](in, doc) {
			continue
		}
		var failed refusal
		if doc, failed = s.do(doc, in); failed != 0 {
			return nil, failed
		}
	}
	return doc, 0
}

func (s *stepModel) do(doc object, in *inputsModel) (object, refusal) {
	v := s.Value
	if ref, ok := v.(object); ok && ref["from"] != nil {
		path, _ := ref["path"].(string)
		switch ref["from"] {
		case "incoming":
			v = lookup(in.incoming, path)
		case "current":
			v = lookup(in.current, path)
		default:
			v = lookup(in.base, path)
		}
	}
	if s.Op == "copy" {
		v = lookup(doc, s.From)
	}
	if v == any(absent{}) && s.Op != "test" {
		return doc, 0
	}
	v = deep(v)
	switch s.Op {
	case "merge":
		return mergePatchModel(doc, v).(object), 0
	case "remove_empty":
		pruned, _ := prune(doc)
		return pruned.(object), 0
	}
	return doc, s.at(doc, v)
}

// at does what the step does with the value at its path.
func (s *stepModel) at(doc object, v any) refusal {
	tokens := tokensOf(s.Path)
	o, last := doc, tokens[len(tokens)-1]
	for _, name := range tokens[:len(tokens)-1] {
		m, ok := o[name]
		next, is := m.(object)
		switch {
		case is:
		case s.Op == "remove":
			return 0
		case s.Op == "test":
			return 409
		case s.Op == "replace", ok && m != nil:
			return 400
		default:
			next = object{}
			o[name] = next
		}
		o = next
	}
	old, found := o[last]
	switch s.Op {
	case "test":
		if !found || !alike(old, v) {
			return 409
		}
		return 0
	case "remove":
		delete(o, last)
		return 0
	case "replace":
		if !found {
			return 400
		}
	case "default":
		if old != nil {
			return 0
		}
	}
	return s.put(o, last, old, v)
}

// put sets a member; old is what is there, nil where there is nothing or null.
func (s *stepModel) put(o object, name string, old, v any) refusal {
	switch s.Op {
	case "increment":
		by, ok := v.(int64)
		n, is := old.(int64)
		if !ok || old != nil && !is {
			return 400
		}
		v = n + by
	case "max", "min":
		if _, ok := compareModel(v, v); !ok {
			return 400
		}
		if old == nil {
			break
		}
		order, ok := compareModel(v, old)
		if !ok {
			return 400
		}
		if s.Op == "max" && order <= 0 || s.Op == "min" && order >= 0 {
			v = old
		}
	case "append", "union":
		list, is := old.([]any)
		if old != nil && !is {
			return 400
		}
		if s.Op == "append" {
			v = append(list, v)
			break
		}
		if !slices.ContainsFunc(list, func(e any) bool { return alike(e, v) }) {
			list = append(list, v)
		}
		v = list
	}
	o[name] = v
	return 0
}

// mergePatchModel is RFC 7396, as its pseudo code has it.
func mergePatchModel(doc, patch any) any {
	p, ok := patch.(object)
	if !ok {
		return patch
	}
	o, ok := doc.(object)
	if !ok {
		o = object{}
	}
	for name, v := range p {
		if v == nil {
			delete(o, name)
		} else {
			o[name] = mergePatchModel(o[name], v)
		}
	}
	return o
}

// prune takes away what is empty, and reports whether nothing is left.
func prune(v any) (out any, empty bool) {
	switch v := v.(type) {
	case nil:
		return v, true
	case string:
		return v, v == ""
	case object:
		for name, m := range v {
			if m, empty = prune(m); empty {
				delete(v, name)
			} else {
				v[name] = m
			}
		}
		return v, len(v) == 0
	case []any:
		kept := []any{}
		for _, e := range v {
			if e, empty = prune(e); !empty {
				kept = append(kept, e)
			}
		}
		return kept, len(kept) == 0
	}
	return v, false
}

// jsonPatchModel is RFC 6902, of paths with names only, on a document that it changes.
func jsonPatchModel(ops []stepModel, doc object) (object, refusal) {
	for i := range ops {
		op := &ops[i]
		tokens := tokensOf(op.Path)
		o, last := any(doc), tokens[len(tokens)-1]
		for _, name := range tokens[:len(tokens)-1] {
			o = member(o, name)
		}
		parent, ok := o.(object)
		old, found := parent[last]
		switch {
		case op.Op == "test" && (!found || !alike(old, op.Value)):
			return nil, 409
		case !ok, op.Op != "add" && !found:
			return nil, 400
		case op.Op == "remove":
			delete(parent, last)
		case op.Op != "test":
			parent[last] = deep(op.Value)
		}
	}
	return doc, 0
}
