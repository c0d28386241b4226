package write

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/upstream"
)

// doubt is what is known of the writes of an attempt that may have been applied although the engine acknowledged none of them.
//
// A lost answer leaves the outcome open. A conflict does, too, where the shard's primary changed meanwhile: the engine then tries
// again by itself, and may conflict with its own first try.
type doubt struct {
	guard   doc.Numbers      // of the last write
	version int64            // of the revision that it was guarded by; 0: none, or not known
	last    try              // the last write, until it is judged
	pending catalog.Conflict // conflicts of which it isn't known yet whether they were conflicts with others
}

// try is a write that was sent.
type try struct {
	catalog.Conflict
	version int64 // of the revision that it was guarded by; 0: none, or not known
	body    []byte
}

// conflicted notes the engine's conflict. Errors are served whole, whatever filter_path says.
func (d *doubt) conflicted(res *upstream.Response) {
	d.last.Answered, d.last.Node = time.Now(), res.Node
	d.last.Shard = gjson.GetBytes(res.Payload, "error.shard").String()
}

// open reports whether a conflict may have been one with a write of the attempt's own.
func (d *doubt) open() bool { return !d.last.Answered.IsZero() || !d.pending.Answered.IsZero() }

// inherited is what an attempt has that goes on for one of the changes.
func (d *doubt) inherited() doubt { return doubt{pending: d.pending} }

// merged takes the last write's conflict to those that are pending, and returns these.
func (d *doubt) merged() catalog.Conflict {
	switch {
	case d.pending.Answered.IsZero():
		d.pending = d.last.Conflict
	case !d.last.Answered.IsZero():
		d.pending.Answered, d.pending.Node, d.pending.Shard = d.last.Answered, d.last.Node, d.last.Shard
	}
	d.last = try{}
	return d.pending
}

// lost deals with a write without an answer. What is left open afterwards may be sent again: by the guard, or because twice is as
// good as once.
func (a *attempt) lost(ctx context.Context, err error) error {
	lost := errors.Is(err, ErrUnknownOutcome)
	for _, c := range a.open {
		if c.maybeApplied = c.maybeApplied || lost; !lost {
			c.attempts-- // nothing was sent
		}
	}
	if !lost {
		return err
	}
	a.batch.Forget()
	if err := a.fetch(ctx); err != nil || len(a.open) == 0 {
		return err
	}
	return doc.ErrConflict
}

func (a *attempt) anyMaybeApplied() bool {
	for _, c := range a.open {
		if c.maybeApplied {
			return true
		}
	}
	return false
}

// judgeDoubt sorts the changes of which a try may have been applied, on the revision just read. The order is that of safety: marks
// prove; a revision that is still the guard's shows that no try was applied, and the same guard keeps a late one from counting twice; a
// change that is as good twice as once, with every path it touches as it was, is replayed; of the rest the outcome is unknown.
//
// An equal body proves nothing: somebody else may have written it. Nor does it prove anything that there is no document, as there
// was none: it may have been made and deleted since, and absence has no numbers that would tell.
func (a *attempt) judgeDoubt(ctx context.Context) {
	still := a.cur.Numbers == a.doubt.guard && a.doubt.guard.Known()
	if still || a.othersWrote() {
		a.doubt.last = try{}
	}
	left := a.open[:0:len(a.open)]
	for _, c := range a.open {
		switch decided := a.judgeMarks(ctx, c); {
		case decided && c.answer != nil:
		case decided, !c.maybeApplied && !a.doubt.open(), still, a.mayRepeat(c), !c.maybeApplied && a.samePrimary(ctx):
			left = append(left, c)
		default:
			c.err = ErrUnknownOutcome
		}
	}
	a.open = left
}

// mayRepeat reports whether the change is as good twice as once, with every path it touches as it was. A try that may have been applied to
// a document which was deleted since isn't repeated in one that was made anew: its client wrote to the other. Where there was no document
// at all, any that is there now may be the second.
func (a *attempt) mayRepeat(c *change) bool {
	if c.maybeApplied && (!a.doubt.guard.Known() || a.cur.Version != 0 && a.cur.Version <= a.doubt.version) {
		return false
	}
	return c.intent.Repeatable(&c.draft, a.cur)
}

// othersWrote reports whether the revision just read shows by itself that the last try wasn't applied: one write has been made
// since the guard, and it left something else.
func (a *attempt) othersWrote() bool {
	t := &a.doubt.last
	if a.open[0].goesAsPart() {
		return false // the engine stores what it makes of a part in its own spelling
	}
	if t.body == nil && a.cur.Known() {
		return true // a delete leaves nothing
	}
	return (t.version > 0 || !t.Guard.Known()) && a.cur.Version == t.version+1 && !a.open[0].mayBeRewritten() &&
		!bytes.Equal(bytes.TrimSpace(a.cur.Source), bytes.TrimSpace(t.body))
}

// samePrimary reports whether the conflicts of which that isn't known yet were conflicts with others: if so they are dispelled,
// else all open changes may have been applied.
func (a *attempt) samePrimary(ctx context.Context) bool {
	pending := a.doubt.merged()
	if pending.Answered.IsZero() {
		return true
	}
	first := a.open[0]
	pending.Index = first.Doc.Index
	same := a.s.primaries.SamePrimary(ctx, first.Asker(), &pending, a.cur.PrimaryTerm)
	for _, changes := range [2][]*change{a.open, a.alone} {
		for _, c := range changes {
			c.maybeApplied = c.maybeApplied || !same
		}
	}
	a.doubt.pending = catalog.Conflict{}
	return same
}

// settleDoubt is for when a change is refused, or trying ends: a conflict is the answer only if it was one with others.
func (a *attempt) settleDoubt(ctx context.Context) {
	if len(a.open) > 0 && a.doubt.open() {
		a.samePrimary(ctx)
	}
}
