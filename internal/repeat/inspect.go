package repeat

import (
	"fmt"
	"slices"
)

// These are for tests of sessions.

// Attempts returns the attempts that are kept, oldest first.
func (k *History) Attempts() []*Attempt { return k.kept }

// Awaits reports whether a client waits for the attempt's answer, as far as is known.
func (a *Attempt) Awaits() bool { return a.client != nil }

// IsUnheard reports whether the attempt was acknowledged when its client had left, and hasn't been repeated yet.
func (a *Attempt) IsUnheard() bool { return a.state == unheard }

// IsOver reports whether the attempt holds neither a request's context nor another attempt.
func (a *Attempt) IsOver() bool { return a.client == nil && a.repeat == nil }

// String shows the attempt.
func (a *Attempt) String() string {
	return fmt.Sprintf("%d %v %d %d %v %v", a.hash, a.numbers, a.state, a.at, a.client != nil, a.repeat != nil)
}

// Check returns what is wrong with the pending writes; nil: nothing.
func (fs *PendingTable[K]) Check() error {
	for k, f := range fs.of {
		if len(f.writes)+len(f.queue) == 0 {
			return fmt.Errorf("pending at %v: %+v", k, f)
		}
	}
	if i := slices.IndexFunc(fs.idle, func(f *Pending) bool {
		return len(f.writes) != 0 || len(f.queue) != 0 || f.done != nil
	}); i >= 0 {
		return fmt.Errorf("idle: %+v", fs.idle[i])
	}
	return nil
}
