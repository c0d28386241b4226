package condition

import (
	"fmt"
	"reflect"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"github.com/tidwall/gjson"
)

// maxDepth bounds how deep two documents are compared: a comparison takes stack for each level.
const maxDepth = 1000

// A meter is how many bytes of its documents an evaluation may still look at, over and over: CEL's own costs know nothing of what
// is inside of what it compares.
type meter struct{ left int }

// spent is what stands in the place of a value when the meter is empty.
const spent = "looks at too much of its documents, too often"

func (m *meter) spend(n int) bool {
	m.left -= n
	return m.left >= 0
}

// longText is how many bytes of text a call may be given that costs no more than one with numbers.
const longText = 1 << 10

// A place is where in a document a value is.
type place struct {
	*meter
	depth int // containers around it
}

// valueOf returns the value of a JSON text. No text is null. Objects and arrays are looked into when somebody asks for what they
// have.
func (p place) valueOf(raw string) ref.Val {
	switch r := gjson.Parse(raw); r.Type {
	case gjson.True:
		return types.True
	case gjson.False:
		return types.False
	case gjson.Number:
		return numberOf(r.Raw)
	case gjson.String:
		return types.String(r.Str)
	case gjson.JSON:
		switch {
		case p.depth >= maxDepth:
			return types.NewErr("a document has more than %d levels", maxDepth)
		case !p.spend(len(r.Raw)): // which is what opening it takes
			return types.NewErr(spent)
		case r.IsArray():
			return &array{container: container{place: p, raw: r.Raw}}
		}
		return &object{container: container{place: p, raw: r.Raw}}
	}
	return types.NullValue
}

// A container is an object or an array of a document.
type container struct {
	place
	raw     string
	opened  bool
	members []member
}

// A member is what is in a container: of an array it has no key.
type member struct {
	key, raw string
	val      ref.Val // once somebody asked for it: what is below it is found but once
}

func (c *container) at(i int) ref.Val {
	m := &c.members[i]
	if m.val == nil {
		m.val = place{c.meter, c.depth + 1}.valueOf(m.raw)
	}
	return m.val
}

// equal is types.Equal for value i, but for values that are errors: those are equal to nothing, and not different from anything.
func (c *container) equal(i int, other ref.Val) ref.Val {
	v := c.at(i)
	switch {
	case !c.spend(len(c.members[i].raw)):
		return types.NewErr(spent)
	case types.IsError(v):
		return v
	case types.IsError(other):
		return other
	}
	return types.Equal(v, other)
}

// ConvertToNative is refused: the result of a condition is a bool.
func (c *container) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a part of a document has no %s", t)
}

// Value is the text.
func (c *container) Value() any { return c.raw }

// An object is a JSON object. Of duplicate keys the last counts.
type object struct {
	container
	byKey map[string]int // of a large one
}

// byKeyFrom is the number of members from which it is worth to index them.
const byKeyFrom = 32

func (o *object) open() []member {
	if !o.opened {
		o.opened = true
		// Room for the members at once: as many as there are colons, some of which may be of what is inside.
		o.members = make([]member, 0, min(strings.Count(o.raw[:min(len(o.raw), 1<<10)], ":"), byKeyFrom/2))
		gjson.Parse(o.raw).ForEach(func(key, value gjson.Result) bool {
			if i := o.find(key.Str); i >= 0 {
				o.members[i].raw = value.Raw
				return true
			}
			o.members = append(o.members, member{key: key.Str, raw: value.Raw})
			o.index()
			return true
		})
	}
	return o.members
}

// index takes note of the last member.
func (o *object) index() {
	switch n := len(o.members); {
	case n == byKeyFrom:
		o.byKey = make(map[string]int, 2*byKeyFrom)
		for i := range o.members {
			o.byKey[o.members[i].key] = i
		}
	case n > byKeyFrom:
		o.byKey[o.members[n-1].key] = n - 1
	}
}

func (o *object) find(key string) int {
	if o.byKey != nil {
		if i, ok := o.byKey[key]; ok {
			return i
		}
		return -1
	}
	for i := range o.members {
		if o.members[i].key == key {
			return i
		}
	}
	return -1
}

// Find returns the value of a key, if there is one.
func (o *object) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	if len(name) > longText && !o.spend(len(name)) {
		return types.NewErr(spent), false
	}
	o.open()
	i := o.find(string(name))
	if i < 0 {
		return nil, false
	}
	return o.at(i), true
}

// finder is a map of which one can ask whether it has a key.
type finder interface {
	Find(key ref.Val) (ref.Val, bool)
}

// getIn is Find, with an error for what isn't there; name says what that is.
func getIn(m finder, key ref.Val, name string) ref.Val {
	v, found := m.Find(key)
	if !found && v == nil {
		return types.NewErr("no such %s: %v", name, key)
	}
	return v
}

// containedIn reports whether a map has a key.
func containedIn(m finder, key ref.Val) ref.Val {
	v, found := m.Find(key)
	if !found && v != nil {
		return v
	}
	return types.Bool(found)
}

// converted is a container as another type: it knows its own only.
func converted(v ref.Val, own *types.Type, name string, t ref.Type) ref.Val {
	switch t {
	case own:
		return v
	case types.TypeType:
		return own
	}
	return types.NewErr("an %s can't become a %s", name, t.TypeName())
}

// Get is Find, with an error for what isn't there.
func (o *object) Get(key ref.Val) ref.Val {
	return getIn(o, key, "key")
}

// Contains reports whether there is a key.
func (o *object) Contains(key ref.Val) ref.Val {
	return containedIn(o, key)
}

// Size is the number of members.
func (o *object) Size() ref.Val { return types.Int(len(o.open())) }

// Iterator goes through the keys.
func (o *object) Iterator() traits.Iterator {
	return &iterator{n: len(o.open()), at: func(i int) ref.Val { return types.String(o.members[i].key) }}
}

// Equal compares all that is in both.
func (o *object) Equal(other ref.Val) ref.Val {
	if same, ok := other.(*object); ok && same.raw == o.raw {
		return types.True
	}
	m, ok := other.(traits.Mapper)
	if !ok {
		return types.False
	}
	if o.Size().Equal(m.Size()) != types.True {
		return types.False
	}
	for i := range o.members {
		v, found := m.Find(types.String(o.members[i].key))
		if !found {
			return types.False
		}
		if same := o.equal(i, v); same != types.True {
			return same
		}
	}
	return types.True
}

// ConvertToType knows its own only.
func (o *object) ConvertToType(t ref.Type) ref.Val {
	return converted(o, types.MapType, "object", t)
}

// Type is map.
func (o *object) Type() ref.Type { return types.MapType }

// An array is a JSON array.
type array struct{ container }

func (a *array) open() []member {
	if !a.opened {
		a.opened = true
		gjson.Parse(a.raw).ForEach(func(_, value gjson.Result) bool {
			a.members = append(a.members, member{raw: value.Raw})
			return true
		})
	}
	return a.members
}

// Get returns an element.
func (a *array) Get(index ref.Val) ref.Val {
	i, err := types.GetOrError(index)
	if err != nil {
		return types.WrapErr(err)
	}
	if i < 0 || i >= len(a.open()) {
		return types.NewErr("index out of bounds: %d", i)
	}
	return a.at(i)
}

// Contains reports whether an element is equal to v.
func (a *array) Contains(v ref.Val) ref.Val {
	var failed ref.Val = types.False
	for i := range a.open() {
		switch same := a.equal(i, v); {
		case same == types.True:
			return same
		case a.left < 0:
			return same
		case types.IsError(same):
			failed = same
		}
	}
	return failed
}

// Size is the number of elements.
func (a *array) Size() ref.Val { return types.Int(len(a.open())) }

// Iterator goes through the elements.
func (a *array) Iterator() traits.Iterator { return &iterator{n: len(a.open()), at: a.at} }

// Add is the list of a's elements, then other's.
func (a *array) Add(other ref.Val) ref.Val {
	if !a.spend(len(a.raw)) {
		return types.NewErr(spent)
	}
	all := make([]ref.Val, 0, len(a.open()))
	for i := range a.members {
		all = append(all, a.at(i))
	}
	list, ok := types.NewRefValList(types.DefaultTypeAdapter, all).(traits.Adder)
	if !ok {
		return types.MaybeNoSuchOverloadErr(other)
	}
	return list.Add(other)
}

// Equal compares element by element.
func (a *array) Equal(other ref.Val) ref.Val {
	if same, ok := other.(*array); ok && same.raw == a.raw {
		return types.True
	}
	l, ok := other.(traits.Lister)
	if !ok {
		return types.False
	}
	if a.Size().Equal(l.Size()) != types.True {
		return types.False
	}
	for i := range a.members {
		if same := a.equal(i, l.Get(types.Int(i))); same != types.True {
			return same
		}
	}
	return types.True
}

// ConvertToType knows its own only.
func (a *array) ConvertToType(t ref.Type) ref.Val {
	return converted(a, types.ListType, "array", t)
}

// Type is list.
func (a *array) Type() ref.Type { return types.ListType }
