package rewrite

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// genDecimal yields numbers that are near each other in value and far apart in spelling.
var genDecimal = rapid.Custom(func(t *rapid.T) string {
	s := rapid.SampledFrom([]string{"", "-"}).Draw(t, "sign")
	whole := rapid.SampledFrom([]string{"0", "1", "9", "10", "100", "12", "120", "999999999999999999", "1000000000000000000", "9223372036854775807",
		"9223372036854775808", "123456789012345678901234567890"}).Draw(t, "whole")
	frac := rapid.SampledFrom([]string{"", ".0", ".00", ".1", ".10", ".01", ".999999999999999999", ".5000000000000000000000"}).Draw(t, "frac")
	exp := rapid.SampledFrom([]string{"", "", "e0", "E+1", "e-1", "e002", "e-18", "e19"}).Draw(t, "exp")
	return s + whole + frac + exp
})

func rat(s string) *big.Rat {
	r, ok := new(big.Rat).SetString(s)
	if !ok {
		panic(s)
	}
	return r
}

func TestNumbersCompareAsDecimals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genDecimal.Draw(t, "a"), genDecimal.Draw(t, "b")
		x, y := readNumber([]byte(a)), readNumber([]byte(b))
		want := rat(a).Cmp(rat(b))
		order, ok := x.compare(&y)
		if !ok || (order < 0) != (want < 0) || (order > 0) != (want > 0) {
			t.Fatalf("%s and %s: %d, %v; want %d", a, b, order, ok, want)
		}
		if x.equal(&y) != (want == 0) || sameNumber([]byte(a), []byte(b)) != (want == 0) {
			t.Fatalf("%s and %s are equal: %v", a, b, x.equal(&y))
		}
		if want == 0 && x.hash() != y.hash() {
			t.Fatalf("%s and %s have different hashes", a, b)
		}
		d, fits := decimalOf(&x)
		e, fits2 := decimalOf(&y)
		if !fits || !fits2 || (d.compare(e) < 0) != (want < 0) || (d.compare(e) > 0) != (want > 0) {
			t.Fatalf("%s and %s as decimals: %d", a, b, d.compare(e))
		}
	})
}

func TestSumIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, sent, current := genDecimal.Draw(t, "base"), genDecimal.Draw(t, "sent"), genDecimal.Draw(t, "current")
		text, ok := sum([]byte(base), []byte(sent), []byte(current))
		if !ok {
			t.Fatal("not summed")
		}
		want := new(big.Rat).Add(rat(current), new(big.Rat).Sub(rat(sent), rat(base)))
		if rat(string(text)).Cmp(want) != 0 {
			t.Fatalf("%s + (%s - %s) = %s", current, sent, base, text)
		}
		var tr tree
		if err := tr.parse(text, Limits{}.withDefaults()); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if strings.ContainsAny(string(text), "eE") || want.Sign() == 0 && text[0] == '-' {
			t.Fatalf("spelled %s", text)
		}
	})
}

func TestSumKeepsTheDecimalPlacesOfItsOperands(t *testing.T) {
	for _, c := range [][4]string{
		{"1.00", "1.05", "1.10", "1.15"}, {"1", "2", "3", "4"}, {"1", "2", "3.0", "4.0"}, {"1e2", "2e2", "5", "105"}, {"0", "15e-1", "1", "2.5"},
		{"", "3", "4", "7"}, {"5", "5.000", "1", "1.000"}, {"0.1", "0.3", "0.2", "0.4"}, {"10", "9", "0", "-1"}, {"0.05", "0.04", "0", "-0.01"},
		{"9223372036854775807", "9223372036854775808", "9223372036854775807", "9223372036854775808"}, {"-9223372036854775808", "0", "0", "9223372036854775808"},
	} {
		var base []byte
		if c[0] != "" {
			base = []byte(c[0])
		}
		if got, ok := sum(base, []byte(c[1]), []byte(c[2])); !ok || string(got) != c[3] {
			t.Errorf("%s + (%s - %s) = %s, want %s", c[2], c[1], c[0], got, c[3])
		}
	}
}

// A document of a few bytes must not become one of gigabytes, or keep a processor busy, by an exponent.
func TestHugeExponentsAreNotWrittenOut(t *testing.T) {
	huge := []string{"1e1001", "1e-1001", "1e999999999999999", "1e99999999999999999999999", "1e-99999999999999999999999", "0." + strings.Repeat("0", 1001) + "1",
		strings.Repeat("9", 1001), "1." + strings.Repeat("0", 1001)}
	for _, s := range huge {
		if text, ok := sum([]byte("1"), []byte(s), []byte("1")); ok {
			t.Errorf("%.20s was summed to %d bytes", s, len(text))
		}
		d, err := Measure(fmt.Appendf(nil, `{"a":1}`), fmt.Appendf(nil, `{"a":%s}`, s))
		if again := d; err != nil || d.Edits > 1 || d.Compare(again) != 0 {
			t.Errorf("%.20s: %v, %v", s, d, err)
		}
	}
	near, _ := Measure([]byte(`{"a":1}`), []byte(`{"a":1e999}`))
	far, _ := Measure([]byte(`{"a":1}`), []byte(`{"a":1e1001}`))
	if near.Compare(far) >= 0 || far.Compare(near) <= 0 {
		t.Error("a delta that can't be written out is not the larger one")
	}
	for _, pair := range [][2]string{{"1e99999999999999999999999", "1e99999999999999999999998"}, {"1e99999999999999999999999", "1e-99999999999999999999999"},
		{"0e99999999999999999999999", "1e99999999999999999999999"}} {
		if sameNumber([]byte(pair[0]), []byte(pair[1])) {
			t.Errorf("%v are taken for equal", pair)
		}
	}
	if !sameNumber([]byte("0e99999999999999999999999"), []byte("-0.00e-5")) || !sameNumber([]byte("1e999999999999999"), []byte("10E999999999999998")) {
		t.Error("equal numbers are taken for different")
	}
	x, y := readNumber([]byte("1e99999999999999999999999")), readNumber([]byte("2"))
	if _, ok := x.compare(&y); ok {
		t.Error("a number whose exponent isn't known was ordered")
	}
}
