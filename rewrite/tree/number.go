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

// smallDigits is how many decimal digits an int64 holds, whichever they are.
const smallDigits = 18

// maxExponentDigits keeps exponents far from the ends of an int64.
const maxExponentDigits = 15

// A number is what the spelling of a JSON number says, whose value is its digits × 10^exp: nothing is written out, whatever the exponent.
type number struct {
	small  int64 // the digits, without zeros at either end, if there are at most smallDigits; else 0
	digits int   // how many; none of zero
	exp    int64
	scale  int64 // digits after the decimal point, as it is spelled: 2 for 1.10, 3 for 1.5e-2
	neg    bool
	wild   bool // the exponent is too long to be known: no engine takes such a number, and it equals only what is spelled alike
}

// readNumber reads a valid JSON number.
func readNumber(src []byte) (n number) {
	text, exp := src, int64(0)
	if at := max(bytes.IndexByte(text, 'e'), bytes.IndexByte(text, 'E')); at >= 0 {
		exp, n.wild = readExponent(text[at+1:])
		text = text[:at]
	}
	if point := bytes.IndexByte(text, '.'); point >= 0 {
		n.scale = int64(len(text) - point - 1)
	}
	n.scale -= exp
	zeros := 0 // at the end, so far
	for _, c := range text {
		switch {
		case c == '-' || c == '.' || c == '0' && n.digits == 0:
		case c == '0':
			zeros++
		default:
			if n.digits += zeros + 1; n.digits <= smallDigits {
				n.small = n.small*pow10[zeros+1] + int64(c-'0')
			}
			zeros = 0
		}
	}
	switch {
	case n.digits == 0:
		return number{scale: n.scale}
	case n.digits > smallDigits:
		n.small = 0
	}
	n.exp, n.neg = int64(zeros)-n.scale, src[0] == '-'
	return n
}

// readExponent reads what follows the e of a number. wild says that it is too long.
func readExponent(src []byte) (exp int64, wild bool) {
	sign := int64(1)
	if len(src) > 0 && (src[0] == '-' || src[0] == '+') {
		sign, src = int64(',')-int64(src[0]), src[1:] // the comma lies between them in ASCII
	}
	src = bytes.TrimLeft(src, "0")
	if len(src) > maxExponentDigits {
		return 0, true
	}
	for _, c := range src {
		exp = exp*10 + int64(c-'0')
	}
	return sign * exp, false
}

// digitsOf appends the digits of a JSON number, without zeros at either end.
func digitsOf(dst, src []byte) []byte {
	for _, c := range src {
		if c|0x20 == 'e' {
			break
		}
		if c > '0' && c <= '9' || c == '0' && len(dst) > 0 {
			dst = append(dst, c)
		}
	}
	return bytes.TrimRight(dst, "0")
}

// sameNumber compares two spellings by value.
func sameNumber(a, b []byte) bool {
	if string(a) == string(b) {
		return true
	}
	x, y := readNumber(a), readNumber(b)
	x.scale = y.scale
	return x == y && !x.wild && (x.digits <= smallDigits || string(digitsOf(nil, a)) == string(digitsOf(nil, b)))
}

// hashNumber is the same for equal numbers.
func hashNumber(src []byte) uint64 {
	n := readNumber(src)
	if n.wild {
		return maphash.Bytes(hashSeed, src)
	}
	h := mix(uint64(n.small)^hashKey) ^ mix(uint64(n.exp)-hashKey)
	if n.digits > smallDigits {
		h ^= maphash.Bytes(hashSeed, digitsOf(nil, src))
	}
	if n.neg {
		h = ^h
	}
	return h
}

// CompareNumbers orders two JSON numbers by value, at a cost that depends on their lengths only. ok is false where an exponent is too long
// to tell.
func CompareNumbers(a, b []byte) (order int, ok bool) {
	x, y := readNumber(a), readNumber(b)
	if x.wild || y.wild {
		return 0, false
	}
	if s, t := x.sign(), y.sign(); s != t || s == 0 {
		return s - t, true
	}
	// Without zeros in front, the place of the first digit decides first.
	order = cmp.Compare(x.exp+int64(x.digits), y.exp+int64(y.digits))
	if order == 0 {
		var p, q [onStack]byte
		order = bytes.Compare(digitsOf(p[:0], a), digitsOf(q[:0], b))
	}
	return order * x.sign(), true
}

func (n *number) sign() int {
	switch {
	case n.digits == 0:
		return 0
	case n.neg:
		return -1
	}
	return 1
}

// Estimate returns about the value of a number, for who only compares how far numbers are apart; whole is the value itself, where it is an
// integer of at most 18 digits and exact says so. ok is false for what is no number, and for one that no float64 is near.
func (v Value) Estimate() (whole int64, exact bool, near float64, ok bool) {
	if v.Kind() != Number {
		return 0, false, 0, false
	}
	n := readNumber(v.Raw())
	switch {
	case n.digits > smallDigits:
		near, err := strconv.ParseFloat(string(v.Raw()), 64)
		return 0, false, near, err == nil
	case n.wild || n.exp > 300 || n.exp < -300:
		return 0, false, 0, false
	case n.neg:
		n.small = -n.small
	}
	if n.exp >= 0 && n.digits+int(n.exp) <= smallDigits {
		whole = n.small * pow10[n.exp]
		return whole, true, float64(whole), true
	}
	return 0, false, float64(n.small) * math.Pow10(int(n.exp)), true
}

// MaxDigits bounds the digits of a number that is calculated with, written out without an exponent. It is what the engines' parser takes.
const MaxDigits = 1000

// A Decimal is an exact decimal number: coefficient × 10^exp. It is a value; the zero Decimal is 0.
type Decimal struct {
	small int64
	large *big.Int // the coefficient where it is not nil; never changed once set
	exp   int64
	scale int64 // the decimal places that it is written with
}

// Decimal returns the value of a number; ok is false for what is none, or has more digits than may be calculated with.
func (v Value) Decimal() (d Decimal, ok bool) {
	if v.Kind() != Number {
		return Decimal{}, false
	}
	n := readNumber(v.Raw())
	if n.wild || n.scale > MaxDigits || n.exp > MaxDigits || n.digits+int(max(n.exp, 0)) > MaxDigits {
		return Decimal{}, false
	}
	d = Decimal{small: n.small, exp: n.exp, scale: n.scale}
	if n.digits > smallDigits {
		d.large, _ = new(big.Int).SetString(string(digitsOf(nil, v.Raw())), 10)
	}
	if n.neg {
		d = d.Neg()
	}
	return d, true
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

// Sign is negative, 0 or positive, as a is.
func (a Decimal) Sign() int {
	if a.large != nil {
		return a.large.Sign()
	}
	return cmp.Compare(a.small, 0)
}

// Abs returns |a|.
func (a Decimal) Abs() Decimal {
	if a.Sign() < 0 {
		return a.Neg()
	}
	return a
}

// Compare is negative if a is less than b, 0 if they are equal, else positive.
func (a Decimal) Compare(b Decimal) int { return a.Add(b.Neg()).Sign() }

// Append appends a in plain digits, with all its decimal places. Zero has no sign. ok is false if that takes more than MaxDigits.
func (a Decimal) Append(dst []byte) (out []byte, ok bool) {
	if a.Sign() < 0 {
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
