package embedded

import (
	"math"
	"strconv"

	"optimist/rewrite/tree"
)

// compareNumbers orders two numbers by their digits. It stops at the first digit that differs, so that numbers with millions of digits, or
// with any exponent, cost no more than to read them. ok is false if one of the two is no number.
func compareNumbers(a, b string) (order int, ok bool) {
	x, y := numberOf(a), numberOf(b)
	if x == nil || y == nil {
		return 0, false
	}
	return tree.CompareNumbers(x, y)
}

// numberOf returns the text of a number in JSON's form; nil: the text is no number. A string may have other forms, which Java's
// Double.parseDouble reads.
func numberOf(text string) []byte {
	number, parsed := []byte(text), tree.Borrow()
	defer parsed.Return()
	if parsed.Parse(number, limits) == nil && parsed.Root().Kind() == tree.Number {
		return number
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil
	}
	return strconv.AppendFloat(nil, f, 'g', -1, 64)
}

// integers holds, for each type of whole numbers, the smallest value and the first value above the largest.
var integers = map[string]struct{ least, above string }{
	"long": {"-9223372036854775808", "9223372036854775808"}, "integer": {"-2147483648", "2147483648"}, "short": {"-32768", "32768"}, "byte": {"-128", "128"},
}

func badInteger(typ string, n *node) string {
	if bad := badDecimal(n); bad != "" {
		return bad
	}
	number, least, above := numberOf(n.text()), integers[typ].least, integers[typ].above
	if number == nil {
		return ""
	}
	low, ok := tree.CompareNumbers(number, []byte(least))
	high, _ := tree.CompareNumbers(number, []byte(above))
	if ok && (low < 0 || high >= 0) {
		return "Numeric value (" + n.text() + ") out of range of " + typ
	}
	return ""
}

func badDecimal(n *node) string {
	switch n.kind {
	case tree.Number:
		return ""
	case tree.String:
		if s := n.text(); s != "" {
			if _, err := strconv.ParseFloat(s, 64); err != nil {
				return "For input string: " + strconv.Quote(s)
			}
		}
		return ""
	case tree.Object:
		return "Cannot parse object as number"
	default:
		return "Current token not numeric, can not use numeric value accessors"
	}
}
