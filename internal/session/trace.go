package session

import (
	"context"

	"optimist/internal/viewcache"
)

// takeInTrace does what Take says, for a write in a trace.
func (t *selection) takeInTrace(ctx context.Context) (Base, error) {
	thread := t.sess.Written()
	reads, wrote := t.traceHas()
	if !reads && wrote {
		b, err := t.s.Take(ctx, thread, t.k.Ref, t.Sent) // waits for the trace's write in flight
		switch {
		case err != nil, b.Kind == KindView, b.Kind == KindAbsent, b.Kind == KindLost: // lost: the trace has seen a revision that nobody knows
			b.Join(t.s.Witness(t.sess, t.k.Ref))
			return b, err
		}
		b.Release()
		reads, _ = t.traceHas()
	}
	t.readInTrace = reads
	t.traceTells = reads && t.s.findOf(t.k, t.s.clock()).TracesTell()
	b, err := t.take(ctx)
	if b.claim.trace == t.sess.Trace() && b.claim.sh != nil {
		b.Join(t.s.Witness(thread, t.k.Ref)) // so that the sent document becomes the trace's view
	}
	return b, err
}

// traceHas reports whether reads of the trace are outstanding, and whether the store knows a write from one of them, or has one in flight.
func (t *selection) traceHas() (reads, wrote bool) {
	thread := viewcache.KeyOf(t.sess.Written(), t.k.Ref)
	_, e, gone, now := t.s.open(t.k)
	defer t.sh.mu.Unlock()
	return e.HasReadIn(t.sess.Trace()), t.sh.Get(thread, gone, now) != nil || t.sh.pending.Of(thread) != nil
}
