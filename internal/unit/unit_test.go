package unit

import (
	"testing"
	"time"
)

func TestDurationsAreTheEngines(t *testing.T) {
	for text, want := range map[string]time.Duration{"0": 0, "500ms": 500 * time.Millisecond, "30s": 30 * time.Second, "5m": 5 * time.Minute,
		"2h": 2 * time.Hour, "1d": 24 * time.Hour, "7micros": 7 * time.Microsecond, "9nanos": 9} {
		d, err := ParseDuration(text)
		if err != nil || d.Std() != want {
			t.Errorf("%s: %v, %v", text, d, err)
		}
		if again, err := ParseDuration(d.String()); err != nil || again != d {
			t.Errorf("%s is written %s, which is %v, %v", text, d, again, err)
		}
	}
	for _, text := range []string{"", "s", "5", "-1", "-1s", "1y", "1.5s", "1m30s", "1 s", "1S", "9223372036854775807d"} {
		if d, err := ParseDuration(text); err == nil {
			t.Errorf("%q is %v", text, d)
		}
	}
}

func TestSizesAreExact(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "1b": 1, "64KiB": 65536, "64kb": 65536, "1MiB": 1 << 20, "3GiB": 3 << 30, "1tb": 1 << 40} {
		s, err := ParseSize(text)
		if err != nil || s.Bytes() != want {
			t.Errorf("%s: %v, %v", text, s, err)
		}
		if again, err := ParseSize(s.String()); err != nil || again != s {
			t.Errorf("%s is written %s, which is %v, %v", text, s, again, err)
		}
	}
	for _, text := range []string{"", "1", "KiB", "-1KiB", "1.5GiB", "9223372036854775807TiB", "1XB"} {
		if s, err := ParseSize(text); err == nil {
			t.Errorf("%q is %v", text, s)
		}
	}
}
