package tree

import (
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

type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

func value(t tb, src string) Value {
	t.Helper()
	var tr Tree
	if err := tr.Parse([]byte(src), Limits{}); err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return tr.Root()
}

// sum is current + (sent - base); nothing is 0.
func sum(t tb, base, sent, current string) (text string, ok bool) {
	t.Helper()
	var total Decimal
	for i, src := range []string{current, sent, base} {
		if src == "" {
			continue
		}
		d, ok := value(t, src).Decimal()
		if !ok {
			return "", false
		}
		if i == 2 {
			d = d.Neg()
		}
		total = total.Add(d)
	}
	out, ok := total.Append(nil)
	return string(out), ok
}

func TestNumbersCompareAsDecimals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a, b := genDecimal.Draw(t, "a"), genDecimal.Draw(t, "b")
		far := rapid.SampledFrom([]string{"", "", "", "e900", "e-900"}) // each can be calculated with, and needn't be to compare them
		if !strings.ContainsAny(a+b, "eE") {
			a, b = a+far.Draw(t, "far a"), b+far.Draw(t, "far b")
		}
		x, y := value(t, a), value(t, b)
		want := rat(a).Cmp(rat(b))
		order, ok := x.Compare(y)
		if !ok || (order < 0) != (want < 0) || (order > 0) != (want > 0) {
			t.Fatalf("%s and %s: %d, %v; want %d", a, b, order, ok, want)
		}
		if x.Equal(y) != (want == 0) {
			t.Fatalf("%s and %s are equal: %v", a, b, x.Equal(y))
		}
		if want == 0 && x.Hash() != y.Hash() {
			t.Fatalf("%s and %s have different hashes", a, b)
		}
		d, fits := x.Decimal()
		e, fits2 := y.Decimal()
		if !fits || !fits2 || (d.Compare(e) < 0) != (want < 0) || (d.Compare(e) > 0) != (want > 0) {
			t.Fatalf("%s and %s as decimals: %d", a, b, d.Compare(e))
		}
	})
}

func TestSumIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, sent, current := genDecimal.Draw(t, "base"), genDecimal.Draw(t, "sent"), genDecimal.Draw(t, "current")
		text, ok := sum(t, base, sent, current)
		if !ok {
			t.Fatal("not summed")
		}
		want := new(big.Rat).Add(rat(current), new(big.Rat).Sub(rat(sent), rat(base)))
		if rat(text).Cmp(want) != 0 {
			t.Fatalf("%s + (%s - %s) = %s", current, sent, base, text)
		}
		value(t, text)
		if strings.ContainsAny(text, "eE") || want.Sign() == 0 && text[0] == '-' {
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
		if got, ok := sum(t, c[0], c[1], c[2]); !ok || got != c[3] {
			t.Errorf("%s + (%s - %s) = %s, want %s", c[2], c[1], c[0], got, c[3])
		}
	}
}

// A document of a few bytes must not become one of gigabytes, or keep a processor busy, by an exponent.
func TestHugeExponentsAreNotWrittenOut(t *testing.T) {
	for _, s := range []string{"1e1001", "1e-1001", "1e999999999999999", "1e99999999999999999999999", "1e-99999999999999999999999",
		"0." + strings.Repeat("0", 1001) + "1", strings.Repeat("9", 1001), "1." + strings.Repeat("0", 1001)} {
		if text, ok := sum(t, "1", s, "1"); ok {
			t.Errorf("%.20s was summed to %d bytes", s, len(text))
		}
	}
	for _, pair := range [][2]string{{"1e99999999999999999999999", "1e99999999999999999999998"}, {"1e99999999999999999999999", "1e-99999999999999999999999"},
		{"0e99999999999999999999999", "1e99999999999999999999999"}} {
		if value(t, pair[0]).Equal(value(t, pair[1])) {
			t.Errorf("%v are taken for equal", pair)
		}
	}
	if !value(t, "0e99999999999999999999999").Equal(value(t, "-0.00e-5")) || !value(t, "1e999999999999999").Equal(value(t, "10E999999999999998")) {
		t.Error("equal numbers are taken for different")
	}
	if _, ok := value(t, "1e99999999999999999999999").Compare(value(t, "2")); ok {
		t.Error("a number whose exponent isn't known was ordered")
	}
}
