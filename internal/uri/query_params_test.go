package uri

import "testing"

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
