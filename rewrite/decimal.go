package rewrite

import (
	"math/big"
	"math/bits"
	"strconv"
)

// maxDigits bounds the digits of a number that is calculated with, written out without an exponent. It is what the
// engines' parser takes; a number beyond it is compared, but not added.
const maxDigits = 1000

// A decimal is an exact decimal number: coefficient × 10^-scale. It is a value; the zero decimal is 0.
type decimal struct {
	small int64
	large *big.Int // the coefficient, where it is not nil; never changed once set
	scale int
}

// decimalOf returns the value of n; ok is false where n has more digits than may be calculated with.
func decimalOf(n *number) (d decimal, ok bool) {
	if n.wild != nil || n.exp > maxDigits || n.exp < -maxDigits || n.len() > maxDigits || n.scale > maxDigits {
		return decimal{}, false
	}
	zeros := int(max(n.exp, 0))
	if n.len()+zeros > maxDigits {
		return decimal{}, false
	}
	d.scale = int(max(-n.exp, 0))
	if n.len()+zeros <= smallDigits {
		d.small = n.small() * pow10[zeros]
		if n.neg {
			d.small = -d.small
		}
		return d, true
	}
	text := make([]byte, 0, n.len())
	text = append(append(text, n.whole...), n.frac...)
	d.large, _ = new(big.Int).SetString(string(text), 10)
	d.large.Mul(d.large, bigPow10(zeros))
	if n.neg {
		d.large.Neg(d.large)
	}
	return d, true
}

var pow10 = [smallDigits + 1]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18}

func bigPow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// add returns a + b.
func (a decimal) add(b decimal) decimal {
	if a.scale < b.scale {
		a, b = b, a
	}
	if a.large == nil && b.large == nil {
		if c, ok := shift(b.small, a.scale-b.scale); ok {
			if sum := a.small + c; (sum > a.small) == (c > 0) {
				return decimal{small: sum, scale: a.scale}
			}
		}
	}
	sum := new(big.Int).Mul(b.big(), bigPow10(a.scale-b.scale))
	return decimal{large: sum.Add(sum, a.big()), scale: a.scale}
}

// shift returns v × 10^n, and whether an int64 holds it.
func shift(v int64, n int) (int64, bool) {
	if v == 0 || n == 0 {
		return v, true
	}
	if n > smallDigits {
		return 0, false
	}
	abs := uint64(v)
	if v < 0 {
		abs = -abs
	}
	hi, lo := bits.Mul64(abs, uint64(pow10[n]))
	if hi != 0 || lo > 1<<63-1 {
		return 0, false
	}
	return v * pow10[n], true
}

func (a decimal) big() *big.Int {
	if a.large != nil {
		return a.large
	}
	return big.NewInt(a.small)
}

// neg returns -a.
func (a decimal) neg() decimal {
	if a.large != nil {
		a.large = new(big.Int).Neg(a.large)
		return a
	}
	if a.small == -1<<63 {
		return decimal{large: new(big.Int).Neg(a.big()), scale: a.scale}
	}
	a.small = -a.small
	return a
}

func (a decimal) sign() int {
	switch {
	case a.large != nil:
		return a.large.Sign()
	case a.small > 0:
		return 1
	case a.small < 0:
		return -1
	}
	return 0
}

func (a decimal) abs() decimal {
	if a.sign() < 0 {
		return a.neg()
	}
	return a
}

func (a decimal) compare(b decimal) int { return a.add(b.neg()).sign() }

// appendTo appends a in plain digits, with at least scale of them after the decimal point. Zero has no sign.
func (a decimal) appendTo(dst []byte, scale int) []byte {
	if a.sign() < 0 {
		dst = append(dst, '-')
	}
	a = a.abs()
	var buf [smallDigits + 2]byte
	var text []byte
	more := max(scale-a.scale, 0)
	if v, ok := shift(a.small, more); ok && a.large == nil {
		text = strconv.AppendInt(buf[:0], v, 10)
	} else {
		text = new(big.Int).Mul(a.big(), bigPow10(more)).Append(nil, 10)
	}
	scale = max(scale, a.scale)
	whole := max(len(text)-scale, 0)
	if whole == 0 {
		dst = append(dst, '0')
	}
	dst = append(dst, text[:whole]...)
	if scale == 0 {
		return dst
	}
	dst = append(dst, '.')
	for range scale - len(text) {
		dst = append(dst, '0')
	}
	return append(dst, text[whole:]...)
}
