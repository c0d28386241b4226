package rule

import (
	"slices"

	"optimist/internal/config"
)

// Mode is what is done with writes. Less is less: Off < Observe < Guard.
type Mode uint8

// The modes.
const (
	Off     Mode = iota // the pass-through alone
	Observe             // no byte is changed; lost updates are counted
	Guard
)

// modes are the configuration's words for them.
var modes = []config.Mode{Off: config.ModeOff, Observe: config.ModeObserve, Guard: config.ModeGuard}

// String is the mode as the configuration writes it.
func (m Mode) String() string { return string(modes[m]) }

// ModeOf is the mode that the configuration names; the empty word is Guard.
func ModeOf(word config.Mode) Mode {
	m, _ := ParseMode(string(word))
	return m
}

// ParseMode reads guard, observe or off; ok is false, and the mode Guard, for anything else.
func ParseMode(s string) (m Mode, ok bool) {
	i := slices.Index(modes, config.Mode(s))
	if i < 0 {
		return Guard, false
	}
	return Mode(i), true //nolint:gosec // one of three names
}
