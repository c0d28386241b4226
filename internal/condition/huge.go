package condition

import (
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
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
	neg      bool
	digits   string // without zeros at either end
	exponent string // of ten, for the digits as a whole number; as it was written where that is absurd
}

// newHuge reads a JSON number.
func newHuge(raw string) ref.Val {
	digits, exponent, _ := strings.Cut(strings.ToLower(raw), "e")
	h := &huge{}
	digits, h.neg = strings.CutPrefix(digits, "-")
	whole, frac, _ := strings.Cut(digits, ".")
	all := strings.TrimLeft(whole+frac, "0")
	h.digits = strings.TrimRight(all, "0")
	if h.digits == "" {
		return types.Double(0)
	}
	h.exponent = exponent
	if n, err := strconv.ParseInt(exponent, 10, 60); err == nil || exponent == "" {
		h.exponent = strconv.FormatInt(n-int64(len(frac))+int64(len(all)-len(h.digits)), 10)
	}
	return h
}

// Equal reports whether both are the same number.
func (h *huge) Equal(other ref.Val) ref.Val {
	o, ok := other.(*huge)
	return types.Bool(ok && o.neg == h.neg && o.digits == h.digits && o.exponent == h.exponent)
}

// Type is double: what it stands for.
func (h *huge) Type() ref.Type { return types.DoubleType }

// ConvertToType is refused.
func (h *huge) ConvertToType(ref.Type) ref.Val { return tooManyDigits() }

// Negate is refused.
func (h *huge) Negate() ref.Val { return tooManyDigits() }
