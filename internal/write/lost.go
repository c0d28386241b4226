package write

import (
	"context"
	"fmt"

	"optimist/internal/session"
)

func (f *flight) anyLost() bool {
	for _, c := range f.open {
		if c.lost {
			return true
		}
	}
	return false
}

// judgeLost sorts the changes of which a try may have been applied, on the revision just read. The order is that of safety: a
// revision that is still the guard's shows that no try was applied, and the same guard keeps a late one from counting twice; a
// change that is as good twice as once, with every path it touches as it was, is replayed; of the rest the outcome is unknown. An
// equal body proves nothing: somebody else may have written it. Nor does it that there is no document, as there was none: it may have
// been made and deleted since, and absence has no numbers that would tell.
//
// A conflict leaves an outcome open, too, where the shard's primary changed meanwhile: the engine then tries again by itself, and may
// conflict with its own first try. That is asked for only where it makes a difference.
func (f *flight) judgeLost(ctx context.Context) {
	still := f.cur.Numbers == f.guard && f.guard.Known()
	if still || f.othersWrote() {
		f.try = try{}
	}
	left := f.open[:0:len(f.open)]
	for _, c := range f.open {
		switch {
		case !c.lost && !f.doubtful(), still, f.repeatable(c), !c.lost && f.primaryStayed(ctx):
			left = append(left, c)
		default:
			c.err = ErrUnknownOutcome
		}
	}
	f.open = left
}

// verdict is the change's error. A refusal says nothing of a try before it that may have been applied.
func (c *change) verdict() error {
	if c.err == nil && c.lost && c.answer != nil && c.answer.Status >= 300 {
		status := c.answer.Status
		c.answer.Release()
		c.answer = nil
		return fmt.Errorf("%w; a later try was answered with %d", ErrUnknownOutcome, status)
	}
	return c.err
}

func (f *flight) repeatable(c *change) bool {
	if t := c.transform(); t != nil && !t.Repeatable() {
		return false
	}
	if c.patch != nil {
		return c.patch.repeatable(f.cur.Source)
	}
	if c.base.View == nil && c.base.Kind != session.KindAbsent || f.cur.Source == nil || c.sent == nil {
		return false
	}
	ok, err := c.req.Rule.Merger.Repeatable(c.base.View, c.sent, f.cur.Source)
	return ok && err == nil
}

// giveBack returns the base of a write that wasn't acknowledged to its session. Where the write may have been applied, and must not be
// applied twice, only the numbers are: a client that repeats it then writes under its guard, and a conflict is the answer.
func (c *change) giveBack(unknown bool) {
	if unknown && c.sent != nil && c.patch == nil {
		view := c.base.View // nil: absent, or not known, and not merged then
		ok, err := c.req.Rule.Merger.Repeatable(view, c.sent, view)
		if t := c.transform(); !ok || err != nil || t != nil && !t.Repeatable() {
			c.base.Doubt()
			return
		}
	}
	c.base.Release()
}
