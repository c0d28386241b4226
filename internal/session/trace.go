package session

import (
	"context"
	"slices"

	"optimist/internal/doc"
)

// tracedRead is an outstanding read that was made in a trace.
type tracedRead struct {
	trace   Trace
	numbers doc.Numbers
}

// maxTraced bounds how many of them are known of a session and document. Those before are of no trace.
const maxTraced = 512

// trace notes that a read was made in t.
func (e *entry) trace(t Trace, n doc.Numbers) {
	if t == (Trace{}) {
		return
	}
	if len(e.traced) == maxTraced {
		e.traced = slices.Delete(e.traced, 0, 1)
	}
	e.traced = append(e.traced, tracedRead{t, n})
}

// untrace returns in which trace the read was made that a write in t takes, one of count of the same revision: in t if one was, else
// in none if one was, else in that of the oldest.
func (e *entry) untrace(t Trace, n doc.Numbers, count int) Trace {
	i := slices.Index(e.traced, tracedRead{t, n})
	for k := len(e.traced) - 1; i < 0 && k >= 0; k-- {
		if e.traced[k].numbers != n {
			continue
		}
		if count--; count == 0 {
			i = k
		}
	}
	if i < 0 {
		return Trace{}
	}
	t = e.traced[i].trace
	e.traced = slices.Delete(e.traced, i, i+1)
	return t
}

// hasReadIn reports whether a read that was made in t is outstanding.
func (e *entry) hasReadIn(t Trace) bool {
	return e != nil && t != (Trace{}) && slices.ContainsFunc(e.reads, func(r read) bool {
		return slices.Contains(e.traced, tracedRead{t, r.numbers})
	})
}

// takeInTrace is take for a write in a trace.
func (t *taking) takeInTrace(ctx context.Context, sess Session) (Base, error) {
	thread := sess.Written()
	reads, wrote := t.traceHas(thread)
	if !reads && wrote {
		b, err := t.s.Take(ctx, thread, t.k.ref, t.Sent) // waits for what is in flight
		if err != nil || b.Kind == KindView || b.Kind == KindAbsent {
			b.Join(t.s.Witness(sess, t.k.ref))
			return b, err
		}
		b.Release()
		reads, _ = t.traceHas(thread)
	}
	t.traced = reads
	b, err := t.take(ctx)
	if b.claim.trace == t.trace && b.claim.store != nil {
		b.Join(t.s.Witness(thread, t.k.ref)) // so that it knows what was sent
	}
	return b, err
}

// traceHas reports whether reads of the trace are outstanding, and whether a write from one of them is known, or in flight.
func (t *taking) traceHas(thread Session) (reads, wrote bool) {
	now, k := t.s.clock(), key{sess: thread, ref: t.k.ref}
	gone := t.s.index(t.k.ref.Index, t.k.sess.Credentials(), now).Gone()
	t.sh.mu.Lock()
	defer t.sh.mu.Unlock()
	return t.sh.get(t.k, gone, now).hasReadIn(t.trace), t.sh.get(k, gone, now) != nil || t.sh.inFlight.Of(k) != nil
}
