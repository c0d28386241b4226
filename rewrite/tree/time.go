package tree

import "slices"

// Milliseconds is how many digits behind the second a time has at most that isn't finer than a millisecond.
const Milliseconds = 3

// PartOfSecond returns the digits behind the second, if the value is a text with a time as a clock shows it. Otherwise there are none.
func (v Value) PartOfSecond() (digits []byte) {
	const layout = `"2006-01-02T15:04:05.`
	raw := v.Raw()
	if v.Kind() != String || len(raw) <= len(layout) {
		return nil
	}
	for i, c := range []byte(layout) {
		if isDigit(c) != isDigit(raw[i]) || !isDigit(c) && c != 'T' && c != raw[i] {
			return nil
		}
	}
	digits = raw[len(layout):]
	if end := slices.IndexFunc(digits, func(c byte) bool { return !isDigit(c) }); end >= 0 {
		digits = digits[:end]
	}
	return digits
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
