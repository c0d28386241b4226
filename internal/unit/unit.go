// Package unit reads and writes durations and sizes with their units, as the engine does: 500ms, 30s, 1d; 64kb, 64KiB.
//
// It doesn't read fractions, several units in one value, or negative values: the engine refuses them, too.
package unit

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// scale is one unit, and how many of the smallest it stands for.
type scale struct {
	name string
	of   int64
}

// durations are the engine's units of time, longest first, so that String finds the largest that fits.
func durations() []scale {
	return []scale{{"d", int64(24 * time.Hour)}, {"h", int64(time.Hour)}, {"m", int64(time.Minute)}, {"s", int64(time.Second)},
		{"ms", int64(time.Millisecond)}, {"micros", int64(time.Microsecond)}, {"nanos", 1}}
}

// sizes are the units of sizes, largest first. The engine's own kb, mb, gb and tb mean the same powers of 1024.
func sizes() []scale {
	return []scale{{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}
}

// write gives n the largest unit that leaves a whole number.
func write(n int64, scales []scale) string {
	for _, s := range scales {
		if n%s.of == 0 {
			return strconv.FormatInt(n/s.of, 10) + s.name
		}
	}
	return strconv.FormatInt(n, 10) // not reached: the last unit fits
}

// cut parts a text into its digits and what follows them.
func cut(s string) (digits, unit string) {
	unit = strings.TrimLeft(s, "0123456789")
	return s[:len(s)-len(unit)], unit
}

// multiply is digits times of; ok is false where that is more than an int64 holds.
func multiply(digits string, of int64) (n int64, ok bool) {
	n, err := strconv.ParseInt(digits, 10, 64)
	return n * of, err == nil && n <= math.MaxInt64/of
}

// Duration is a time span, written as in the engine: a whole number and a unit, 500ms, 30s, 5m.
type Duration time.Duration

// Std is d as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// ParseDuration reads a duration as the engine writes it: a whole number and one of nanos, micros, ms, s, m, h, d; or 0. The error says
// what would be right.
func ParseDuration(s string) (Duration, error) {
	if s == "0" {
		return 0, nil
	}
	digits, name := cut(s)
	if digits != "" && name == "" {
		return 0, fmt.Errorf("%q is not a duration: write a whole number and a unit, here perhaps %ss or %[2]sms", s, digits)
	}
	if digits == "" {
		return 0, fmt.Errorf("%q is not a duration: write a whole number and a unit, as in 500ms, 30s, 5m", s)
	}
	for _, u := range durations() {
		if u.name != name {
			continue
		}
		n, ok := multiply(digits, u.of)
		if !ok {
			return 0, fmt.Errorf("%q is longer than optimist can count", s)
		}
		return Duration(n), nil
	}
	if std, err := time.ParseDuration(s); err == nil && std >= 0 {
		return 0, fmt.Errorf("%q is not a duration: whole numbers and one unit only; write %s", s, Duration(std))
	}
	return 0, fmt.Errorf("%q is not a duration: its unit must be one of ms, s, m, h, d", s)
}

// String writes d with the largest unit that leaves a whole number.
func (d Duration) String() string {
	if d == 0 {
		return "0s"
	}
	return write(int64(d), durations())
}

// MarshalText writes d as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what ParseDuration does, and changes nothing on an error.
func (d *Duration) UnmarshalText(b []byte) error {
	read, err := ParseDuration(string(b))
	if err == nil {
		*d = read
	}
	return err
}

// Size is a number of bytes, written with a unit: 64KiB, 256MiB, 1GiB.
type Size int64

// Bytes is s as a number.
func (s Size) Bytes() int64 { return int64(s) }

// ParseSize reads a size: a whole number and one of B, KiB, MiB, GiB, TiB, or the engine's own kb, mb, gb, tb; or 0. The error says what
// would be right.
func ParseSize(s string) (Size, error) {
	if s == "0" {
		return 0, nil
	}
	digits, name := cut(s)
	for _, u := range sizes() {
		if digits == "" || !strings.EqualFold(name, u.name) && !strings.EqualFold(name, strings.Replace(u.name, "i", "", 1)) {
			continue
		}
		n, ok := multiply(digits, u.of)
		if !ok {
			return 0, fmt.Errorf("%q is more than optimist can count", s)
		}
		return Size(n), nil
	}
	if digits != "" {
		for _, u := range sizes() {
			if name == "" && u.of == 1 || strings.EqualFold(name, u.name[:1]) {
				return 0, fmt.Errorf("%q is not a size: write a whole number and a unit, here perhaps %s%s", s, digits, u.name)
			}
		}
	}
	return 0, fmt.Errorf("%q is not a size: write a whole number and a unit, as in 64KiB, 256MiB, 1GiB", s)
}

// String writes s with the largest unit that leaves a whole number.
func (s Size) String() string {
	if s == 0 {
		return "0B"
	}
	return write(int64(s), sizes())
}

// MarshalText writes s as String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSize does, and changes nothing on an error.
func (s *Size) UnmarshalText(b []byte) error {
	read, err := ParseSize(string(b))
	if err == nil {
		*s = read
	}
	return err
}
