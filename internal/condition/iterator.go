package condition

import (
	"errors"
	"reflect"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// An iterator goes through n values.
type iterator struct {
	opaque
	next, n int
	at      func(i int) ref.Val
}

// HasNext reports whether there is a further value.
func (it *iterator) HasNext() ref.Val { return types.Bool(it.next < it.n) }

// Next returns the next value.
func (it *iterator) Next() ref.Val {
	it.next++
	return it.at(it.next - 1)
}

// opaque is what CEL wants of all values, for those that no expression gets hold of.
type opaque struct{}

// ConvertToNative is refused.
func (opaque) ConvertToNative(reflect.Type) (any, error) {
	return nil, errors.New("has no native form")
}

// ConvertToType is refused.
func (opaque) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("can't become a %s", t.TypeName())
}

// Equal is never true.
func (opaque) Equal(ref.Val) ref.Val { return types.False }

// Type is that of an iterator.
func (opaque) Type() ref.Type { return types.IteratorType }

// Value is nothing.
func (opaque) Value() any { return nil }

// headers is the map of a request's headers, of which it is not known how many there are: they are in the bytes of the request,
// where one is looked for when it is asked for.
type headers struct {
	opaque
	get func(name string) ([]byte, bool)
}

// Find returns the value of a header.
func (h *headers) Find(key ref.Val) (ref.Val, bool) {
	name, ok := key.(types.String)
	if !ok {
		return types.MaybeNoSuchOverloadErr(key), false
	}
	if h.get == nil {
		return nil, false
	}
	v, found := h.get(string(name))
	if !found {
		return nil, false
	}
	return types.String(v), true
}

// Get is Find, with an error for what isn't there.
func (h *headers) Get(key ref.Val) ref.Val {
	return getIn(h, key, "header")
}

// Contains reports whether a header is there.
func (h *headers) Contains(key ref.Val) ref.Val {
	return containedIn(h, key)
}

const unlisted = "the headers of a request can't be counted or listed: ask for one by its name"

// Size is refused.
func (h *headers) Size() ref.Val { return types.NewErr(unlisted) }

// Iterator yields an error.
func (h *headers) Iterator() traits.Iterator {
	return &iterator{n: 1, at: func(int) ref.Val { return types.NewErr(unlisted) }}
}

// Type is map.
func (h *headers) Type() ref.Type { return types.MapType }
