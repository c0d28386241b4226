package rule

import (
	"sync/atomic"

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

// String is the mode as the configuration writes it.
func (m Mode) String() string {
	switch m {
	case Off:
		return string(config.ModeOff)
	case Observe:
		return string(config.ModeObserve)
	}
	return string(config.ModeGuard)
}

// ModeOf is the mode that the configuration names; the empty word is Guard.
func ModeOf(word config.Mode) Mode {
	switch word {
	case config.ModeOff:
		return Off
	case config.ModeObserve:
		return Observe
	}
	return Guard
}

// ParseMode reads guard, observe or off; ok is false for anything else.
func ParseMode(s string) (m Mode, ok bool) {
	switch config.Mode(s) {
	case config.ModeOff, config.ModeObserve, config.ModeGuard:
		return ModeOf(config.Mode(s)), true
	}
	return Guard, false
}

// Switch holds what can be changed while running: the mode of the whole, and the rules in force. All of its methods may be
// called at any time by anybody. A request asks once and keeps what it got, so that no change reaches it half-way.
type Switch struct {
	mode atomic.Uint32
	set  atomic.Pointer[Set]
}

// NewSwitch starts with a mode and rules.
func NewSwitch(m Mode, s *Set) *Switch {
	w := new(Switch)
	w.SetMode(m)
	w.SetRules(s)
	return w
}

// Mode is the mode of the whole.
func (w *Switch) Mode() Mode { return Mode(w.mode.Load()) }

// SetMode changes the mode of the whole and returns the one before.
func (w *Switch) SetMode(m Mode) (before Mode) { return Mode(w.mode.Swap(uint32(m))) }

// Rules are the rules in force, never nil.
func (w *Switch) Rules() *Set { return w.set.Load() }

// SetRules puts other rules into force, for requests that come after it.
func (w *Switch) SetRules(s *Set) { w.set.Store(s) }

// Effective is the mode for a rule's requests: the lesser of the rule's and the whole's. Nil is Off: no rule took it.
func (w *Switch) Effective(r *Rule) Mode {
	if r == nil {
		return Off
	}
	return min(r.Mode, w.Mode())
}
