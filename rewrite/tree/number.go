package tree

import (
	"bytes"
	"cmp"
	"hash/maphash"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// MaxDigits bounds the digits of a number that is looked into. It is what the engines' parser takes; one beyond it equals what is spelled
// alike, and can't be ordered. A number that is calculated with must fit into as many digits without an exponent.
const MaxDigits = 1000

// maxExponentDigits keeps exponents far from the ends of an int64.
const maxExponentDigits = 15

// smallDigits is how many decimal digits an int64 holds, whichever they are.
const smallDigits = 18

// A Decimal is an exact decimal number: coefficient × 10^exp. It is a value; the zero Decimal is 0.
type Decimal struct {
	small  int64    // the coefficient; it doesn't end in a zero
	large  *big.Int // the same where it is not nil; never changed once set
	exp    int64
	scale  int64 // digits after the decimal point, as it was written: 2 for 1.10, 3 for 1.5e-2
	digits int   // of the coefficient, as it was read
}

// readNumber reads a valid JSON number. ok is false for one with too many digits, or an exponent that is too long.
func readNumber(src []byte) (d Decimal, ok bool) {
	text, exp, ok := src, int64(0), true
	if at := max(bytes.IndexByte(text, 'e'), bytes.IndexByte(text, 'E')); at >= 0 {
		exp, ok = readExponent(text[at+1:])
		text = text[:at]
	}
	if point := bytes.IndexByte(text, '.'); point >= 0 {
		d.scale = int64(len(text) - point - 1)
	}
	d.scale -= exp
	zeros := 0 // at the end, so far
	for _, c := range text {
		switch {
		case c == '-' || c == '.' || c == '0' && d.digits == 0:
		case c == '0':
			zeros++
		default:
			if d.digits += zeros + 1; d.digits <= smallDigits {
				d.small = d.small*pow10[zeros+1] + int64(c-'0')
			}
			zeros = 0
		}
	}
	if d.digits == 0 {
		return Decimal{scale: max(d.scale, 0)}, true
	}
	if d.exp = int64(zeros) - d.scale; !ok || d.digits > MaxDigits {
		return d, false
	}
	if d.digits > smallDigits {
		text = bytes.TrimRight(bytes.Replace(text, []byte("."), nil, 1), "0")
		d.large, _ = new(big.Int).SetString(string(text), 10)
		d.small = 0
	} else if src[0] == '-' {
		d.small = -d.small
	}
	return d, true
}

// readExponent reads what follows the e of a number.
func readExponent(src []byte) (exp int64, ok bool) {
	sign := int64(1)
	if len(src) > 0 && (src[0] == '-' || src[0] == '+') {
		sign, src = int64(',')-int64(src[0]), src[1:] // the comma lies between them in ASCII
	}
	src = bytes.TrimLeft(src, "0")
	if len(src) > maxExponentDigits {
		return 0, false
	}
	for _, c := range src {
		exp = exp*10 + int64(c-'0')
	}
	return sign * exp, true
}

// sameNumber compares two spellings by value.
func sameNumber(a, b []byte) bool {
	if string(a) == string(b) {
		return true
	}
	x, ok1 := readNumber(a)
	y, ok2 := readNumber(b)
	return ok1 && ok2 && x.exp == y.exp && x.small == y.small && (x.large == y.large ||
		x.large != nil && y.large != nil && x.large.Cmp(y.large) == 0)
}

// hashNumber is the same for equal numbers.
func hashNumber(src []byte) uint64 {
	d, ok := readNumber(src)
	if !ok {
		return maphash.Bytes(hashSeed, src)
	}
	h := mix(uint64(d.small)^hashKey) ^ mix(uint64(d.exp)-hashKey)
	if d.large != nil {
		for _, word := range d.large.Bits() {
			h = mix(h ^ uint64(word))
		}
	}
	return h
}

// compareNumbers orders two spellings by value; ok is false where one can't be read.
func compareNumbers(a, b []byte) (order int, ok bool) {
	x, ok1 := readNumber(a)
	y, ok2 := readNumber(b)
	if s := x.sign(); s != 0 && s == y.sign() && (x.exp-y.exp > MaxDigits || y.exp-x.exp > MaxDigits) {
		return s * cmp.Compare(x.exp, y.exp), ok1 && ok2 // whatever the digits are
	}
	if x.sign() != y.sign() {
		return x.sign() - y.sign(), ok1 && ok2
	}
	return x.Compare(y), ok1 && ok2
}

// Decimal returns the value of a number; ok is false for what is none, or has more digits than may be calculated with.
func (v Value) Decimal() (d Decimal, ok bool) {
	if v.Kind() != Number {
		return Decimal{}, false
	}
	d, ok = readNumber(v.Raw())
	return d, ok && d.scale <= MaxDigits && d.exp <= MaxDigits && d.digits+int(max(d.exp, 0)) <= MaxDigits
}

// Add returns a + b, with as many decimal places as the one that has the most: 1.10 + 0.05 is 1.15, and integers stay integers.
func (a Decimal) Add(b Decimal) Decimal {
	if a.exp > b.exp {
		a, b = b, a
	}
	sum := Decimal{exp: a.exp, scale: max(a.scale, b.scale)}
	if a.large == nil && b.large == nil {
		if c, ok := shift(b.small, b.exp-a.exp); ok {
			if sum.small = a.small + c; (sum.small > a.small) == (c > 0) && sum.small != math.MinInt64 {
				return sum
			}
		}
	}
	sum.small, sum.large = 0, b.shifted(b.exp-a.exp)
	sum.large.Add(sum.large, a.shifted(0))
	return sum
}

var pow10 = [smallDigits + 1]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
	1e17, 1e18}

// shift returns v × 10^n, and whether an int64 holds it.
func shift(v, n int64) (int64, bool) {
	if v == 0 || n == 0 {
		return v, true
	}
	if n > smallDigits {
		return 0, false
	}
	hi, lo := bits.Mul64(uint64(max(v, -v)), uint64(pow10[n]))
	return v * pow10[n], hi == 0 && lo <= math.MaxInt64
}

// shifted returns a new integer: the coefficient × 10^n.
func (a Decimal) shifted(n int64) *big.Int {
	c := big.NewInt(a.small)
	if a.large != nil {
		c.Set(a.large)
	}
	return c.Mul(c, new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil))
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
	scale := int(max(a.scale, 0))
	var buf [smallDigits + 2]byte
	var text []byte
	if n, fits := shift(a.small, int64(scale)+a.exp); fits && a.large == nil {
		text = strconv.AppendInt(buf[:0], max(n, -n), 10)
	} else {
		text = a.Abs().shifted(int64(scale)+a.exp).Append(nil, 10)
	}
	whole := max(len(text)-scale, 0)
	if whole == 0 {
		dst = append(dst, '0')
	}
	dst = append(dst, text[:whole]...)
	if scale > 0 {
		dst = append(dst, '.')
		for range scale - len(text) {
			dst = append(dst, '0')
		}
		dst = append(dst, text[whole:]...)
	}
	return dst, max(len(text), scale) <= MaxDigits
}
