package rule

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Switch holds what can be changed while running: the mode of the whole, and the rules in force. All of its methods may be
// called at any time by anybody. A request asks once and keeps what it got, so that no change reaches it half-way.
type Switch struct {
	mode atomic.Uint32
	set  atomic.Pointer[Set]

	changing sync.Mutex // held by who changes one of them
	resumes  func(missed bool)
}

// NewSwitch starts with a mode and rules.
func NewSwitch(m Mode, s *Set) *Switch {
	w := new(Switch)
	w.SetMode(m)
	w.SetRules(s)
	return w
}

// Mode is the mode of the whole.
func (w *Switch) Mode() Mode { return Mode(w.mode.Load()) } //nolint:gosec // only modes are stored

// SetMode changes the mode of the whole and returns the one before.
func (w *Switch) SetMode(m Mode) (before Mode) {
	w.changing.Lock()
	defer w.changing.Unlock()
	if before = w.Mode(); before == Off && m != Off {
		w.resume(true)
	}
	w.mode.Store(uint32(m))
	return before
}

// OnResume has f called before requests are watched that weren't: the mode was Off, of the whole or of a rule, or there is another rule.
// missed says that requests which were watched once went by unseen meanwhile. f must not change the Switch.
func (w *Switch) OnResume(f func(missed bool)) {
	w.changing.Lock()
	defer w.changing.Unlock()
	w.resumes = f
}

func (w *Switch) resume(missed bool) {
	if w.resumes != nil {
		w.resumes(missed)
	}
}

// Rules are the rules in force, never nil.
func (w *Switch) Rules() *Set { return w.set.Load() }

// SetRules puts other rules into force, for requests that come after it.
func (w *Switch) SetRules(s *Set) {
	w.changing.Lock()
	defer w.changing.Unlock()
	if before := w.Rules(); before != nil {
		if more, missed := before.watchesLess(s); more {
			w.resume(missed)
		}
	}
	w.set.Store(s)
}

// watchesLess reports whether the next rules have one that watches and isn't among these, by its name; or that was off, which is missed.
func (s *Set) watchesLess(next *Set) (less, missed bool) {
	for _, r := range next.rules {
		i := slices.IndexFunc(s.rules, func(o *Rule) bool { return o.Name == r.Name })
		if r.Mode == Off || i >= 0 && s.rules[i].Mode != Off {
			continue
		}
		less, missed = true, missed || i >= 0
	}
	return less, missed
}

// Effective is the mode for a rule's requests: the lesser of the rule's and the whole's. Nil is Off: no rule took it.
func (w *Switch) Effective(r *Rule) Mode {
	if r == nil {
		return Off
	}
	return min(r.Mode, w.Mode())
}
