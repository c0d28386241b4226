package config

import (
	"errors"
	"fmt"
	"math"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Duration is a time span, written as in the engine: a whole number and a unit, 500ms, 30s, 5m.
type Duration time.Duration

// Std is d as the standard library has it.
func (d Duration) Std() time.Duration { return time.Duration(d) }

// durationUnits are the engine's, longest first, so that String finds the largest that fits.
func durationUnits() []struct {
	name string
	unit time.Duration
} {
	return []struct {
		name string
		unit time.Duration
	}{{"d", 24 * time.Hour}, {"h", time.Hour}, {"m", time.Minute}, {"s", time.Second}, {"ms", time.Millisecond},
		{"micros", time.Microsecond}, {"nanos", time.Nanosecond}}
}

// ParseDuration reads a duration as the engine writes it: whole numbers, one unit of nanos, micros, ms, s, m, h, d; or 0.
func ParseDuration(s string) (Duration, error) {
	if s == "0" {
		return 0, nil
	}
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	unit := s[digits:]
	if digits == 0 || unit == "" {
		return 0, fmt.Errorf("%q is no duration: write a whole number and a unit, as in 500ms, 30s, 5m", s)
	}
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	for _, u := range durationUnits() {
		if u.name != unit {
			continue
		}
		if err != nil || n > math.MaxInt64/int64(u.unit) {
			return 0, fmt.Errorf("%q is longer than optimist can count", s)
		}
		return Duration(n * int64(u.unit)), nil
	}
	if std, err := time.ParseDuration(s); err == nil && std >= 0 {
		return 0, fmt.Errorf("%q is no duration: whole numbers and one unit only; write %s", s, Duration(std))
	}
	return 0, fmt.Errorf("%q is no duration: its unit must be one of ms, s, m, h, d", s)
}

// String writes d with the largest unit that leaves a whole number.
func (d Duration) String() string {
	if d == 0 {
		return "0s"
	}
	for _, u := range durationUnits() {
		if d%Duration(u.unit) == 0 {
			return strconv.FormatInt(int64(d)/int64(u.unit), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(d), 10) + "nanos"
}

// MarshalText writes d as String does.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads what ParseDuration does.
func (d *Duration) UnmarshalText(b []byte) (err error) {
	*d, err = ParseDuration(string(b))
	return err
}

// Size is a number of bytes, written with a unit: 64KiB, 256MiB, 1GiB.
type Size int64

// Bytes is s as a number.
func (s Size) Bytes() int64 { return int64(s) }

// ParseSize reads a size: a whole number and one of B, KiB, MiB, GiB, TiB, or the engine's own kb, mb, gb, tb, which mean the same
// powers of 1024; or 0.
func ParseSize(s string) (Size, error) {
	if s == "0" {
		return 0, nil
	}
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	var shift uint
	switch strings.ToLower(s[digits:]) {
	case "b":
	case "kib", "kb":
		shift = 10
	case "mib", "mb":
		shift = 20
	case "gib", "gb":
		shift = 30
	case "tib", "tb":
		shift = 40
	default:
		return 0, fmt.Errorf("%q is no size: write a whole number and a unit, as in 64KiB, 256MiB, 1GiB", s)
	}
	if digits == 0 {
		return 0, fmt.Errorf("%q is no size: write a whole number and a unit, as in 64KiB, 256MiB, 1GiB", s)
	}
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	if err != nil || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("%q is more than optimist can count", s)
	}
	return Size(n << shift), nil
}

// String writes s with the largest unit that leaves a whole number.
func (s Size) String() string {
	for _, u := range []struct {
		name  string
		shift uint
	}{{"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}} {
		if s != 0 && s%(1<<u.shift) == 0 {
			return strconv.FormatInt(int64(s)>>u.shift, 10) + u.name
		}
	}
	return strconv.FormatInt(int64(s), 10) + "B"
}

// MarshalText writes s as String does.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads what ParseSize does.
func (s *Size) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSize(string(b))
	return err
}

// UnmarshalText reads an address (10.1.2.3) or a network (10.0.0.0/8).
func (p *Prefix) UnmarshalText(b []byte) error {
	text := string(b)
	if strings.Contains(text, "/") {
		prefix, err := netip.ParsePrefix(text)
		if err != nil {
			return fmt.Errorf("%q is no network: write it as in 10.0.0.0/8 or fd00::/8", text)
		}
		p.Prefix = prefix.Masked()
		return nil
	}
	addr, err := netip.ParseAddr(text)
	if err != nil || addr.Zone() != "" {
		return fmt.Errorf("%q is no address: write it as in 10.1.2.3, or a network as in 10.0.0.0/8", text)
	}
	addr = addr.Unmap()
	p.Prefix = netip.PrefixFrom(addr, addr.BitLen())
	return nil
}

var (
	errPointerSlash  = errors.New("a path is a JSON Pointer and begins with a slash, as in /stock or /lines/*/price")
	errPointerRoot   = errors.New("the empty path is the whole document: that is merge.default")
	errPointerEscape = errors.New("in a JSON Pointer a ~ is written ~0 and a / within a name ~1")
)

// checkPointer says what is wrong with a JSON Pointer (RFC 6901) as used in merge.paths.
func checkPointer(p string) error {
	if p == "" {
		return errPointerRoot
	}
	if p[0] != '/' {
		return errPointerSlash
	}
	for i := 0; i < len(p); i++ {
		if p[i] == '~' && (i+1 == len(p) || p[i+1] != '0' && p[i+1] != '1') {
			return errPointerEscape
		}
	}
	return nil
}
