package condition

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/functions"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"optimist/rewrite/tree"
)

// maxDigits bounds the digits of a number, written out without an exponent. It is what the engines' parser takes.
const maxDigits = 1000

// doubleDigits is how many significant decimal digits a float64 holds, whichever they are.
const doubleDigits = 15

// A wide is a number that is no int, no uint, and has more digits than a float64 holds. It equals only its like.
type wide struct{ *big.Rat }

// numberOf returns the value of a JSON number, or an error value.
func numberOf(raw string) ref.Val {
	if !strings.ContainsAny(raw, ".eE") {
		if i, err := strconv.ParseInt(raw, 10, 64); err == nil {
			return types.Int(i)
		}
		if u, err := strconv.ParseUint(raw, 10, 64); err == nil {
			return types.Uint(u)
		}
	}
	if !calculable(raw) {
		return newHuge(raw)
	}
	r, ok := new(big.Rat).SetString(raw)
	if !ok {
		return types.NewErr("a number is not one: %.20s", raw)
	}
	return numberFrom(r)
}

// calculable reports whether a number can be written out within maxDigits: an exponent is short, and a zip bomb.
func calculable(raw string) bool {
	digits, exponent, _ := strings.Cut(strings.ToLower(raw), "e")
	if exponent == "" {
		return len(digits) <= maxDigits
	}
	n, err := strconv.Atoi(exponent)
	return err == nil && n >= -maxDigits && n <= maxDigits && len(digits)+max(n, -n) <= maxDigits
}

// numberFrom returns the value that stands for r: decimals as doubles where those are exact, but whole numbers that a double
// may not be compared with exactly as ints.
func numberFrom(r *big.Rat) ref.Val {
	f, _ := r.Float64()
	const whole = 1 << 53
	if r.IsInt() && math.Abs(f) >= whole {
		switch n := r.Num(); {
		case n.IsInt64():
			return types.Int(n.Int64())
		case n.IsUint64():
			return types.Uint(n.Uint64())
		}
	}
	// Near the ends of the exponent a float64 has fewer digits.
	if f == 0 && r.Sign() == 0 || math.Abs(f) > 1e-290 && math.Abs(f) < 1e290 {
		if back, ok := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', doubleDigits-1, 64)); ok && back.Cmp(r) == 0 {
			return types.Double(f)
		}
	}
	digits, finite := r.FloatPrec()
	if !finite || digits > maxDigits || r.Num().BitLen() > maxDigits*4 {
		return tooManyDigits()
	}
	return wide{r}
}

func tooManyDigits() ref.Val { return types.NewErr("a number has more than %d digits", maxDigits) }

// rational is the value of a number.
func rational(v ref.Val) (*big.Rat, bool) {
	switch v := v.(type) {
	case types.Int:
		return new(big.Rat).SetInt64(int64(v)), true
	case types.Uint:
		return new(big.Rat).SetUint64(uint64(v)), true
	case types.Double:
		return new(big.Rat).SetString(strconv.FormatFloat(float64(v), 'g', -1, 64))
	case wide:
		return v.Rat, true
	}
	return nil, false
}

// both returns the values of two numbers that are not both ints, or both uints: those CEL calculates with exactly, and refuses
// what is too large.
func both(a, b ref.Val) (x, y *big.Rat, ok bool) {
	if a.Type() == b.Type() && a.Type() != types.DoubleType {
		return nil, nil, false
	}
	if x, ok = rational(a); ok {
		y, ok = rational(b)
	}
	return x, y, ok
}

// operations are what takes the place of CEL's own operators, which are exact for ints and uints only.
func operations() map[string]functions.BinaryOp {
	return map[string]functions.BinaryOp{
		operators.Add:           exactly((*big.Rat).Add, func(a traits.Adder, b ref.Val) ref.Val { return a.Add(b) }),
		operators.Subtract:      exactly((*big.Rat).Sub, func(a traits.Subtractor, b ref.Val) ref.Val { return a.Subtract(b) }),
		operators.Multiply:      exactly((*big.Rat).Mul, func(a traits.Multiplier, b ref.Val) ref.Val { return a.Multiply(b) }),
		operators.Divide:        operation(quotient, func(a traits.Divider, b ref.Val) ref.Val { return a.Divide(b) }),
		operators.Less:          ordered(-1),
		operators.LessEquals:    ordered(-1, 0),
		operators.Greater:       ordered(1),
		operators.GreaterEquals: ordered(1, 0),
	}
}

// operation calculates with exact numbers, and leaves everything else to what CEL does with values of the kind T.
func operation[T any](exact func(a, b ref.Val, x, y *big.Rat) ref.Val, own func(a T, b ref.Val) ref.Val) functions.BinaryOp {
	return func(a, b ref.Val) ref.Val {
		if isHuge(a, b) {
			return tooManyDigits()
		}
		if x, y, ok := both(a, b); ok {
			return exact(a, b, x, y)
		}
		if a, ok := a.(T); ok {
			return own(a, b)
		}
		return types.MaybeNoSuchOverloadErr(a)
	}
}

// exactly is operation for what gives a number.
func exactly[T any](op func(z, x, y *big.Rat) *big.Rat, own func(a T, b ref.Val) ref.Val) functions.BinaryOp {
	return operation(func(_, _ ref.Val, x, y *big.Rat) ref.Val { return numberFrom(op(new(big.Rat), x, y)) }, own)
}

func quotient(a, b ref.Val, x, y *big.Rat) ref.Val {
	switch {
	case y.Sign() == 0:
		return types.NewErr("division by zero")
	case a.Type() != types.DoubleType && b.Type() != types.DoubleType: // an int and a uint
		return numberFrom(new(big.Rat).SetInt(new(big.Int).Quo(x.Num(), y.Num())))
	}
	return numberFrom(new(big.Rat).Quo(x, y))
}

// ordered compares two values, numbers of all kinds among them: the result is true for those orders that hold.
func ordered(holds ...types.Int) functions.BinaryOp {
	order := operation(func(_, _ ref.Val, x, y *big.Rat) ref.Val { return types.Int(x.Cmp(y)) },
		func(a traits.Comparer, b ref.Val) ref.Val { return a.Compare(b) })
	return func(a, b ref.Val) ref.Val {
		switch i := order(a, b).(type) {
		case types.Int:
			return types.Bool(slices.Contains(holds, i))
		default:
			return i
		}
	}
}

// Equal reports whether both are the same number.
func (w wide) Equal(other ref.Val) ref.Val {
	o, ok := other.(wide)
	return types.Bool(ok && w.Cmp(o.Rat) == 0)
}

// Negate is -w.
func (w wide) Negate() ref.Val { return wide{new(big.Rat).Neg(w.Rat)} }

// ConvertToType knows string and double.
func (w wide) ConvertToType(t ref.Type) ref.Val {
	switch t {
	case types.DoubleType:
		return w
	case types.StringType:
		digits, _ := w.FloatPrec()
		return types.String(w.FloatString(digits))
	case types.TypeType:
		return types.DoubleType
	}
	return types.NewErr("a number with more than %d digits can't become a %s", doubleDigits, t.TypeName())
}

// ConvertToNative is refused: nobody asks for it, and there is no native number that is exact.
func (w wide) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("a number with more than %d digits has no %s", doubleDigits, t)
}

// Type is double: what it stands for.
func (w wide) Type() ref.Type { return types.DoubleType }

// Value is the number.
func (w wide) Value() any { return w.Rat }

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
