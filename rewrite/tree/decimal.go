package tree

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// MaxDigits bounds the digits of a number that is calculated with, written out without an exponent. It is what the
// engines' parser takes; a number beyond it is compared, but not added.
const MaxDigits = 1000

// A Decimal is an exact decimal number with the decimal places that it was written with: coefficient × 10^-scale. It is a value; the
// zero Decimal is 0.
type Decimal struct {
	small int64
	large *big.Int // the coefficient, where it is not nil; never changed once set
	scale int
}

// Decimal returns the value of a number; ok is false for what is none, or has more digits than may be calculated with.
func (v Value) Decimal() (d Decimal, ok bool) {
	if v.Kind() != Number {
		return Decimal{}, false
	}
	n := readNumber(v.Raw())
	if n.wild != nil || n.scale > MaxDigits || n.len() > MaxDigits || n.exp > MaxDigits || n.len()+int(max(n.exp, 0)) > MaxDigits {
		return Decimal{}, false
	}
	d.scale = int(max(n.scale, 0))
	zeros := d.scale + int(n.exp)
	switch {
	case n.isZero():
	case n.len()+zeros <= smallDigits:
		d.small = n.small() * pow10[zeros]
	default:
		text := append(append(make([]byte, 0, n.len()), n.whole...), n.frac...)
		d.large, _ = new(big.Int).SetString(string(text), 10)
		d.large.Mul(d.large, bigPow10(zeros))
	}
	if n.neg {
		d = d.Neg()
	}
	return d, true
}

var pow10 = [smallDigits + 1]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18}

func bigPow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// Add returns a + b, with as many decimal places as the one that has the most: 1.10 + 0.05 is 1.15, and integers stay integers.
func (a Decimal) Add(b Decimal) Decimal {
	if a.scale < b.scale {
		a, b = b, a
	}
	if a.large == nil && b.large == nil {
		if c, ok := shift(b.small, a.scale-b.scale); ok {
			if sum := a.small + c; (sum > a.small) == (c > 0) && sum != math.MinInt64 {
				return Decimal{small: sum, scale: a.scale}
			}
		}
	}
	sum := new(big.Int).Mul(b.coefficient(), bigPow10(a.scale-b.scale))
	return Decimal{large: sum.Add(sum, a.coefficient()), scale: a.scale}
}

// shift returns v × 10^n, and whether an int64 holds it.
func shift(v int64, n int) (int64, bool) {
	if v == 0 || n == 0 {
		return v, true
	}
	if n > smallDigits {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(max(v, -v)), uint64(pow10[n]))
	return v * pow10[n], hi == 0 && lo <= math.MaxInt64
}

func (a Decimal) coefficient() *big.Int {
	if a.large != nil {
		return a.large
	}
	return big.NewInt(a.small)
}

// Neg returns -a.
func (a Decimal) Neg() Decimal {
	if a.large != nil {
		a.large = new(big.Int).Neg(a.large)
	}
	a.small = -a.small
	return a
}

func (a Decimal) sign() int {
	if a.large != nil {
		return a.large.Sign()
	}
	return cmp.Compare(a.small, 0)
}

// Abs returns |a|.
func (a Decimal) Abs() Decimal {
	if a.sign() < 0 {
		return a.Neg()
	}
	return a
}

// Compare is negative if a is less than b, 0 if they are equal, else positive.
func (a Decimal) Compare(b Decimal) int { return a.Add(b.Neg()).sign() }

// Append appends a in plain digits, with all its decimal places. Zero has no sign. ok is false if that takes more than MaxDigits.
func (a Decimal) Append(dst []byte) (out []byte, ok bool) {
	if a.sign() < 0 {
		dst = append(dst, '-')
	}
	var buf [smallDigits + 2]byte
	text := strconv.AppendInt(buf[:0], max(a.small, -a.small), 10)
	if a.large != nil {
		text = a.Abs().large.Append(nil, 10)
	}
	whole := max(len(text)-a.scale, 0)
	if whole == 0 {
		dst = append(dst, '0')
	}
	dst = append(dst, text[:whole]...)
	if a.scale > 0 {
		dst = append(dst, '.')
		for range a.scale - len(text) {
			dst = append(dst, '0')
		}
		dst = append(dst, text[whole:]...)
	}
	return dst, max(len(text), a.scale) <= MaxDigits
}
