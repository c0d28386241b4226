package rewrite

// calculate applies Sum, Max or Min to a value that both sides changed. A nil text keeps current's. ok is false where the
// values are not of a kind that the strategy can be applied to.
func (r *run) calculate(st Strategy, b, s, c int32) (text []byte, ok bool) {
	numbers := r.sent.is(s, kindNumber) && r.cur.is(c, kindNumber)
	if st == Sum {
		if !numbers || b != none && !r.base.is(b, kindNumber) && !r.base.is(b, kindNull) {
			return nil, false
		}
		var base []byte
		if r.base.is(b, kindNumber) {
			base = r.base.raw(b)
		}
		return sum(base, r.sent.raw(s), r.cur.raw(c))
	}
	var order int
	switch {
	case numbers:
		x, y := readNumber(r.sent.raw(s)), readNumber(r.cur.raw(c))
		if order, ok = x.compare(&y); !ok {
			return nil, false
		}
	case r.sent.is(s, kindString) && r.cur.is(c, kindString):
		x, xEsc := r.sent.text(s)
		y, yEsc := r.cur.text(c)
		order = compareText(x, y, xEsc, yEsc)
	default:
		return nil, false
	}
	if st == Max && order > 0 || st == Min && order < 0 {
		return r.sent.raw(s), true
	}
	return nil, true
}

// sum returns current + (sent - base), exactly, with as many decimal places as the operand that has the most of them, so
// that 1.10 + 0.05 is 1.15 and integers stay integers. A nil base is 0. ok is false if that needs more than maxDigits.
func sum(base, sent, current []byte) (text []byte, ok bool) {
	total, scale := decimal{}, 0
	for i, src := range [3][]byte{current, sent, base} {
		if src == nil {
			continue
		}
		n := readNumber(src)
		d, fits := decimalOf(&n)
		if !fits {
			return nil, false
		}
		if i == 2 {
			d = d.neg()
		}
		total, scale = total.add(d), max(scale, int(n.scale))
	}
	text = total.appendTo(nil, scale)
	return text, len(text) <= maxDigits+len("-.")
}
