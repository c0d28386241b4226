package session

import (
	"context"

	"optimist/internal/choice"
	"optimist/internal/doc"
	"optimist/internal/indexstate"
	"optimist/internal/repeat"
	"optimist/internal/viewcache"
)

// selection is one call of Take, TakeAt or TakeCopy.
type selection struct {
	s    *Store
	sh   *shard
	ix   indexstate.Index[Session]
	sess Session // with the trace, the program and the network of the request
	k    viewcache.Key
	choice.Request
	readInTrace bool // a read of the request's trace is outstanding
	traceTells  bool // the trace names the base: readInTrace, and earlier writes haven't shown that traces mislead in this index
	ownCopy     bool // the given numbers are those of a copy that no other client holds

	client       context.Context // of the request; nil: the call never waits
	attempt      *repeat.Attempt // nil: nobody looks for repeats of the write, and it hasn't waited
	lookedBefore bool            // the write has looked for a base before
	arrived      uint64          // the order of the newest read when the write first looked
	came         int64           // the time at that moment
	now          int64

	maybeEarlier bool // the client may have read before the start: only the content shows that the write was made from a later read

	after *result // what the write before this one in its series has left; nil: the write is in no series, or that isn't known

	first     *repeat.Attempt // the earlier write that this one certainly repeats; nil: none
	inDoubt   *repeat.Attempt // an earlier write of the same bytes whose outcome is unknown; nil: none
	mayRepeat bool            // the base is a guess, and another write of the session sends, or has sent, the same bytes
}

func (s *Store) selection(sess Session, ref doc.Ref, sent []byte) selection {
	k := viewcache.KeyOf(sess, ref)
	t := selection{s: s, sh: s.shard(k), sess: sess, k: k}
	t.Request = choice.Request{Sent: sent, On: s.compare.On, Part: s.compare.Part, Named: sess.IsNamed()}
	return t
}

// hasChangedSince reports whether the client has changed documents after a moment, and optimist doesn't know which ones.
func (t *selection) hasChangedSince(moment int64) bool {
	thread, ok := t.sess.Thread()
	return ok && t.s.changers.Since(thread.Bare(), moment)
}

// isUnclear reports whether an answer without numbers has shown the client another revision after the base of c. The write may be made from
// that one. It is false for a write that names its base.
func (t *selection) isUnclear(c *claim) bool {
	return !t.Explicit.Known() && (c.Contradiction || t.Named && t.ix.ShownSince(t.k.Session.Bare(), c.At, t.now))
}

func (t *selection) count(k Kind) {
	if !t.s.dryRun {
		t.sh.taken[k]++
	}
}

// guesses reports whether the write's base has to be guessed, because the client doesn't name it.
func (t *selection) guesses() bool {
	return t.attempt.IsLookedFor() && !t.Explicit.Known() && !t.traceTells
}

// ownKey is the key with strings that the store owns.
func (t *selection) ownKey(e *viewcache.Entry) viewcache.Key {
	k := t.k
	if d := t.sh.DocumentOf(k, e, t.ix.Gone()); d != nil {
		k.Ref = d.Key.Ref
	} else {
		k.Ref = k.Ref.Clone()
	}
	return k
}

// lastSent returns the numbers of the revision that the last write of the same bytes left.
func (t *selection) lastSent(e *viewcache.Entry) doc.Numbers {
	if e == nil {
		return t.first.Numbers()
	}
	return e.Repeats.Last(t.attempt, t.first)
}

// bodyOfExplicit returns the body that some session has read under the numbers that the client names. It returns nil if no session has, and
// in two cases in which the base must only guard. First, the numbers are ambiguous: the answer to a write of another body had the same
// numbers. Second, a named session has written from that revision before: the earlier change may be in the new body, and would count twice.
func (t *selection) bodyOfExplicit(e *viewcache.Entry) []byte {
	if !t.ownCopy && (t.OfAnswer || t.Spent || e != nil && answerNamesStored(&e.View, t.Explicit)) {
		return nil
	}
	return t.sh.DocumentOf(t.k, e, t.ix.Gone()).Find(t.Explicit).Bytes()
}

// answerNamesStored reports whether the answer to the view's write had the numbers n, although the revision n isn't the sent document. The
// answer to a PATCH is of this kind.
func answerNamesStored(v *viewcache.View, n doc.Numbers) bool {
	return v.Difference && v.Numbers == n && (!v.Answer.Known() || v.Answer == n)
}
