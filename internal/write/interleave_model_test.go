package write

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// The model says what a change makes of a document, as simply as it can be said: on decoded values, without bytes, attempts,
// revisions or sessions. It knows objects, scalars, and lists that are only appended to.

// object is a JSON object; other values are int64, string, bool, nil and []any.
type object = map[string]any

// absent is what isn't there: a member, or the document.
type absent struct{}

func decodeModel(body string) any {
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return fmt.Sprintf("%v: %s", err, body) // equal to nothing that the model makes
	}
	return whole(v)
}

// whole makes int64s of numbers.
func whole(v any) any {
	switch v := v.(type) {
	case object:
		for k := range v {
			v[k] = whole(v[k])
		}
	case []any:
		for i := range v {
			v[i] = whole(v[i])
		}
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			return v
		}
		return n
	}
	return v
}

func encodeModel(v any) string {
	if v == any(absent{}) {
		return "nothing"
	}
	var b bytes.Buffer
	if err := json.NewEncoder(&b).Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSpace(b.String())
}

// deep is a copy that shares nothing.
func deep(v any) any {
	switch v := v.(type) {
	case object:
		out := object{}
		for k := range v {
			out[k] = deep(v[k])
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = deep(v[i])
		}
		return out
	}
	return v
}

func alike(a, b any) bool { return reflect.DeepEqual(a, b) }

// member is what an object has under a name; nothing has members but an object.
func member(v any, name string) any {
	if o, ok := v.(object); ok {
		if m, ok := o[name]; ok {
			return m
		}
	}
	return absent{}
}

// lookup is what is at a path, of names only.
func lookup(v any, path string) any {
	for _, name := range tokensOf(path) {
		v = member(v, name)
	}
	return v
}

func tokensOf(path string) []string { return strings.Split(path, "/")[1:] }

// strategies are those of a rule's merge.
type strategies struct {
	fallback string
	paths    map[string]string
}

// merge is the change from b to s, made in c. clash is set where it can't be.
func (m *strategies) merge(path string, b, s, c any, clash *bool) any {
	if alike(b, s) {
		return c
	}
	so, sIs := s.(object)
	co, cIs := c.(object)
	if _, bIs := b.(object); sIs && cIs && (bIs || (b == nil || b == absent{}) && (path == "" || len(so)+len(co) > 0)) {
		out := object{}
		for name := range membersOf(b, so, co) {
			if v := m.merge(path+"/"+name, member(b, name), member(so, name), member(co, name), clash); v != any(absent{}) {
				out[name] = v
			}
		}
		return out
	}
	switch {
	case alike(b, c):
		return s
	case alike(s, c):
	case dropped(b, s):
		return c
	case dropped(b, c):
		return s
	}
	if list, ok := emptied(b, s, c); ok {
		return list
	}
	by := m.fallback
	if p, ok := m.paths[path]; ok {
		by = p
	}
	if v, ok := calculate(by, b, s, c); ok {
		return v
	}
	switch {
	case alike(s, c) && by != "fail", by == "current":
		return c
	case by == "sent":
		return s
	}
	*clash = true
	return c
}

// emptied is for a list that one side has emptied and left out, while the other side has added to it. Nothing here does more to lists, and
// all their entries are equal. What was added stays.
func emptied(b, s, c any) (any, bool) {
	base, ok := b.([]any)
	other, present := c.([]any)
	if c == nil || c == any(absent{}) {
		other, present = s.([]any)
	} else if s != nil && s != any(absent{}) {
		return nil, false
	}
	if !ok || !present {
		return nil, false
	}
	return other[min(len(base), len(other)):], true
}

// dropped reports whether an empty value was left out, or says nothing in another way: see rewrite/merge.
func dropped(from, to any) bool {
	zero := from == any(int64(0)) || from == any("") || from == any(false)
	return silent(to) && (silent(from) || to == any(absent{}) && zero)
}

// silent reports whether v is nothing, null, or a container of such.
func silent(v any) bool {
	switch v := v.(type) {
	case nil, absent:
		return true
	case []any:
		return len(v) == 0
	case object:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(m any) bool { return !silent(m) })
	}
	return false
}

func membersOf(objects ...any) map[string]bool {
	out := map[string]bool{}
	for _, o := range objects {
		if o, ok := o.(object); ok {
			for name := range o {
				out[name] = true
			}
		}
	}
	return out
}

// calculate is sum, max and min, of what they can be told of.
func calculate(by string, b, s, c any) (any, bool) {
	switch by {
	case "sum":
		x, xIs := s.(int64)
		y, yIs := c.(int64)
		z, zIs := b.(int64)
		if !xIs || !yIs || !zIs && b != nil && b != any(absent{}) {
			return nil, false
		}
		return y + x - z, true
	case "max", "min":
		order, ok := compareModel(s, c)
		if !ok {
			return nil, false
		}
		if by == "max" && order > 0 || by == "min" && order < 0 {
			return s, true
		}
		return c, true
	}
	return nil, false
}

// compareModel compares two numbers, or two strings.
func compareModel(a, b any) (int, bool) {
	switch a := a.(type) {
	case int64:
		if b, ok := b.(int64); ok {
			return int(max(min(a-b, 1), -1)), true
		}
	case string:
		if b, ok := b.(string); ok {
			return strings.Compare(a, b), true
		}
	}
	return 0, false
}
