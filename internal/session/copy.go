package session

import (
	"context"

	"optimist/internal/doc"
	"optimist/internal/seen"
)

// TakeCopy chooses the base of a write from a copy and reserves it: what was last sent from the copy, or, of a copy from which
// nothing was, the revision that was served, with its body if some session under the same credentials holds it. What is lost of a
// copy, and what an answer of another proxy named, is KindGiven with the numbers alone. A write of the same copy, or without a
// Token of the same named session, that is in flight is waited for, as Take does, and with its errors: what is repeated after a
// time-out so counts once.
//
// The session has seen afterwards what was sent, as after any write of its own.
func (s *Store) TakeCopy(ctx context.Context, sess Session, ref doc.Ref, c Copy, sent []byte) (Base, error) {
	t := s.taking(sess, ref, sent)
	t.Given = c.Numbers
	if c.Token == 0 {
		// In a named session they are the numbers of its own thread, and name its view as well.
		t.Served, t.Thread = c.Served && !t.Named, t.Named
		return t.take(ctx)
	}
	own, err := s.Hold(ctx, sess, ref, c, sent)
	if err != nil {
		return Base{}, err
	}
	if own.Kind == KindNone && c.Served {
		t.Served, t.soleHolder = true, true
		b, _ := t.try()
		b.Join(own)
		return b, nil
	}
	own.Join(s.Witness(sess, ref))
	if own.Kind != KindView { // also where a delete was sent from it: what was handed out names a document
		own.Kind, own.Reason, own.Numbers = KindGiven, ReasonNone, c.Numbers
	}
	return own, nil
}

// Hold reserves what was last sent from a copy, for a write with another base, which it is to be joined to: KindNone is a copy
// from which nothing was sent. It waits, and fails, as TakeCopy does.
func (s *Store) Hold(ctx context.Context, sess Session, ref doc.Ref, c Copy, sent []byte) (Base, error) {
	return s.Take(ctx, sess.Holding(c), ref, sent)
}

// Join has o end together with b, as b does.
func (b *Base) Join(o Base) {
	if o.claim.store == nil {
		return
	}
	j := new(Base) // not o itself: most have nothing to join
	*j = o
	j.joined, b.joined = b.joined, j
}

// Witness reserves nothing: Kind is KindNone. With its Commit the session has seen what it sent, whatever the write was based on.
func (s *Store) Witness(sess Session, ref doc.Ref) Base {
	if s.dryRun {
		return Base{}
	}
	k := seen.KeyOf(sess, ref.Clone())
	b := Base{claim: claim{store: s, key: k, since: s.Epoch(), kind: KindGiven, kept: true}}
	sh := s.shard(k)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	sh.depart(&b.claim)
	return b
}
