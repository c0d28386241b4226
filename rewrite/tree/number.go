package tree

import (
	"bytes"
	"cmp"
	"hash/maphash"
)

// A number is the decimal value of a JSON number, as slices of its spelling: nothing is expanded, whatever the exponent.
// Its value is (-1)^neg × digits × 10^exp, where the digits are those of whole, then those of frac. There are no zeros at
// either end, and none at all for zero, so that equal values have equal digits and exponents.
type number struct {
	whole, frac []byte
	exp         int64
	scale       int64 // digits after the decimal point, as it is spelled: 2 for 1.10, 3 for 1.5e-2
	neg         bool
	// wild is an exponent too long for exp. Such numbers are equal only where they are spelled alike, and can't be ordered
	// or added: no engine takes them.
	wild []byte
}

// maxExponentDigits keeps exp, with the number of digits added, far from the ends of an int64.
const maxExponentDigits = 15

// readNumber reads a valid JSON number.
func readNumber(src []byte) number {
	var n number
	if src[0] == '-' {
		n.neg, src = true, src[1:]
	}
	end := digits(src, 0)
	n.whole, src = src[:end], src[end:]
	if len(src) > 0 && src[0] == '.' {
		end = digits(src, 1)
		n.frac, src = src[1:end], src[end:]
	}
	n.scale = int64(len(n.frac))
	if len(src) > 0 {
		n.readExponent(src[1:])
	}
	n.scale -= n.exp
	n.trim()
	return n
}

func (n *number) readExponent(src []byte) {
	spelled := src
	neg := src[0] == '-'
	if neg || src[0] == '+' {
		src = src[1:]
	}
	src = bytes.TrimLeft(src, "0")
	if len(src) > maxExponentDigits {
		n.wild = spelled
		return
	}
	for _, c := range src {
		n.exp = n.exp*10 + int64(c-'0')
	}
	if neg {
		n.exp = -n.exp
	}
}

// trim takes the zeros off both ends, and the sign off zero.
func (n *number) trim() {
	n.frac = bytes.TrimRight(n.frac, "0")
	n.exp -= int64(len(n.frac))
	if len(n.frac) == 0 {
		whole := bytes.TrimRight(n.whole, "0")
		n.exp += int64(len(n.whole) - len(whole))
		n.whole = whole
	}
	n.whole = bytes.TrimLeft(n.whole, "0")
	if len(n.whole) == 0 {
		n.frac = bytes.TrimLeft(n.frac, "0")
	}
	if n.isZero() {
		n.exp, n.neg, n.wild = 0, false, nil
	}
}

func (n *number) isZero() bool { return len(n.whole)+len(n.frac) == 0 }

func (n *number) len() int { return len(n.whole) + len(n.frac) }

// digit returns digit i from the left, and '0' beyond the last.
func (n *number) digit(i int) byte {
	switch {
	case i < len(n.whole):
		return n.whole[i]
	case i < n.len():
		return n.frac[i-len(n.whole)]
	}
	return '0'
}

// equal reports whether both are the same decimal.
func (n *number) equal(o *number) bool {
	if n.neg != o.neg || n.exp != o.exp || n.len() != o.len() || !bytes.Equal(n.wild, o.wild) {
		return false
	}
	for i := range n.len() {
		if n.digit(i) != o.digit(i) {
			return false
		}
	}
	return true
}

// compare orders two numbers; ok is false where an exponent is too long to tell.
func (n *number) compare(o *number) (order int, ok bool) {
	if n.wild != nil || o.wild != nil {
		return 0, n.equal(o)
	}
	if n.neg != o.neg || n.isZero() || o.isZero() {
		return n.sign() - o.sign(), true
	}
	if n.neg {
		n, o = o, n
	}
	return n.compareAbs(o), true
}

func (n *number) sign() int {
	switch {
	case n.isZero():
		return 0
	case n.neg:
		return -1
	}
	return 1
}

func (n *number) compareAbs(o *number) int {
	// Without zeros in front, the place of the first digit decides first.
	if c := cmp.Compare(n.exp+int64(n.len()), o.exp+int64(o.len())); c != 0 {
		return c
	}
	for i := range max(n.len(), o.len()) {
		if a, b := n.digit(i), o.digit(i); a != b {
			return int(a) - int(b)
		}
	}
	return 0
}

// hash is the same for equal numbers.
func (n *number) hash() uint64 {
	var sum uint64
	if n.wild == nil && n.len() <= smallDigits {
		sum = mix(uint64(n.small()) ^ hashKey)
	} else {
		var h maphash.Hash
		h.SetSeed(hashSeed)
		h.Write(n.whole)
		h.Write(n.frac)
		h.Write(n.wild)
		sum = h.Sum64()
	}
	sum ^= mix(uint64(n.exp) - hashKey)
	if n.neg {
		sum = ^sum
	}
	return sum
}

// smallDigits is how many decimal digits an int64 holds, whichever they are.
const smallDigits = 18

// small returns the digits as an integer; there must be at most smallDigits.
func (n *number) small() int64 {
	var v int64
	for _, c := range n.whole {
		v = v*10 + int64(c-'0')
	}
	for _, c := range n.frac {
		v = v*10 + int64(c-'0')
	}
	return v
}

// sameNumber compares two spellings by value.
func sameNumber(a, b []byte) bool {
	if string(a) == string(b) {
		return true
	}
	x, y := readNumber(a), readNumber(b)
	return x.equal(&y)
}
