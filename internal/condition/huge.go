package condition

import (
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"

	"optimist/rewrite/tree"
)

// isHuge reports whether one of two values is more than can be calculated with.
func isHuge(a, b ref.Val) bool {
	_, left := a.(*huge)
	_, right := b.(*huge)
	return left || right
}

// A huge is a number with more digits than are calculated with. It can be compared for equality, and nothing else.
type huge struct {
	opaque
	raw string
}

// newHuge reads a JSON number.
func newHuge(raw string) ref.Val {
	h := &huge{raw: raw}
	if h.is("0") {
		return types.Double(0)
	}
	return h
}

// is reports whether a JSON number is the same. Exponents that are absurd must be written alike.
func (h *huge) is(raw string) bool {
	order, ok := tree.CompareNumbers([]byte(h.raw), []byte(raw))
	return ok && order == 0 || raw == h.raw
}

// Equal reports whether both are the same number.
func (h *huge) Equal(other ref.Val) ref.Val {
	o, ok := other.(*huge)
	return types.Bool(ok && h.is(o.raw))
}

// Type is double: what it stands for.
func (h *huge) Type() ref.Type { return types.DoubleType }

// ConvertToType is refused.
func (h *huge) ConvertToType(ref.Type) ref.Val { return tooManyDigits() }

// Negate is refused.
func (h *huge) Negate() ref.Val { return tooManyDigits() }
