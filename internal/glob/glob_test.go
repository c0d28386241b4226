package glob

import "testing"

func TestAStarStandsForAnyNumberOfBytes(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"a", "a", true}, {"a", "ab", false}, {"ab", "a", false},
		{"a*c", "ac", true}, {"a*c", "abbc", true}, {"a*c", "abcd", false}, {"*b*", "abc", true}, {"*.raw", "a.b.raw", true},
		{"a*b*c", "a-c-b-c", true}, {"a*b*c", "a-c-b", false}, {"**", "x", true}, {"*aab", "aaab", true}, {"a*a", "a", false}, {"a*a", "aa", true}, {"ab", "b", false}, {"a*b", "b", false},
	} {
		if got := Match(c.pattern, c.text); got != c.want {
			t.Errorf("%q of %q: %v", c.pattern, c.text, got)
		}
		if got := Match(c.pattern, []byte(c.text)); got != c.want {
			t.Errorf("%q of %q as bytes: %v", c.pattern, c.text, got)
		}
	}
}
