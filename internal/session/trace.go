package session

import (
	"context"
	"slices"

	"optimist/internal/doc"
)

// Trace is the trace id of the W3C Trace Context that a request carries: what belongs to one piece of work. The zero value is none.
//
// It tells the clients of an inferred session apart as far as it can, and isn't a session of its own: many set-ups begin a trace with
// each request. A write is made from
//
//	a read of its trace that is outstanding; several threads of work may share a trace, and then the closest of them
//	what its trace wrote last, from such a read
//	whatever it would be without a trace: its read may have been made outside of the trace
type Trace [16]byte

// In returns the session with the trace that its request is of. A session that its client named has none: the name says more.
func (s Session) In(t Trace) Session {
	if !s.named {
		s.trace = t
	}
	return s
}

// OfTrace returns the session of all clients with these credentials whose requests are of the trace.
func OfTrace(c Credentials, t Trace) Session { return Session{credentials: c, name: t} }

// InTrace reports whether the request is of a trace.
func (s Session) InTrace() bool { return s.trace != Trace{} }

// Thread returns the session of the thread of work that the client names: itself, or that of what is written in its trace. ok is false
// where it names none.
func (s Session) Thread() (thread Session, ok bool) {
	if s.InTrace() {
		return s.written(), true
	}
	return s, s.named
}

// written is the session of what is written in the trace.
func (s Session) written() Session {
	w := Session{credentials: s.credentials, name: s.trace, named: true, holder: true}
	for i, b := range s.name {
		w.name[i] ^= b
	}
	return w
}

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
	thread := sess.written()
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
	gone := t.s.index(t.k.ref.Index, t.k.sess.credentials, now).Gone()
	t.sh.mu.Lock()
	defer t.sh.mu.Unlock()
	return t.sh.get(t.k, gone, now).hasReadIn(t.trace), t.sh.get(k, gone, now) != nil || t.sh.inFlight[k] != nil
}
