package uri

import (
	"slices"
	"testing"
)

func TestParametersGoBehindThoseThatAreThere(t *testing.T) {
	for _, c := range [][3]string{
		{"/a", "", "/a"}, {"/a?b=1", "", "/a?b=1"}, {"/a", "c=2&d", "/a?c=2&d"}, {"/a?b=1", "c=2", "/a?b=1&c=2"},
	} {
		target := append(make([]byte, 0, 64), c[0]...)
		got := string(WithParams(target, []byte(c[1])))
		if got != c[2] || string(target[:cap(target)][len(c[0]):][:1]) != "\x00" {
			t.Errorf("%s with %s: %s", c[0], c[1], got)
		}
	}
}

// EachParam says what Pairs says.
func TestParametersAreGoneThroughAsTheyAreListed(t *testing.T) {
	for _, query := range []string{"", "a", "a=", "=a=1", "a=1&b=2;c", "&&a=1&", "a+b=%20c&\xfc=\xe9", "a=%zz", "b=1&a=%e", "a=1%%"} {
		want, err := Pairs([]byte(query), DecodeValue)
		var got []Pair
		failed := EachParam([]byte(query), func(name, value []byte) bool {
			got = append(got, Pair{string(name), string(value)})
			return true
		})
		if (err == nil) != (failed == nil) || err == nil && !slices.Equal(got, want) {
			t.Errorf("%q: %q, %v; want %q, %v", query, got, failed, want, err)
		}
	}
	n := 0
	if err := EachParam([]byte("a&b&c=%zz"), func([]byte, []byte) bool { n++; return n < 2 }); err != nil || n != 2 {
		t.Errorf("%d, %v", n, err)
	}
}
