package session

import (
	"context"

	"optimist/internal/doc"
	"optimist/internal/viewcache"
)

// TakeCopy chooses the base of a write that was made from a copy, and reserves it. If clients have sent documents from this copy before,
// the base is the last one that was sent. Otherwise it is the revision that was served as this copy. Its body is known if some session with
// the same credentials holds it. If the store has forgotten the copy, or another proxy has handed it out, the base is KindExplicit, and has
// only the numbers.
//
// TakeCopy waits for a write from the same copy that is in flight, as Take does, and with the same errors. So a write that is
// repeated after a time-out counts once. For a copy without a Token it waits for writes of the same named session.
//
// After the write the session has seen what was sent, as after any write of its own.
func (s *Store) TakeCopy(ctx context.Context, sess Session, ref doc.Ref, c Copy, sent []byte) (Base, error) {
	t := s.selection(sess, ref, sent)
	t.Explicit = c.Numbers
	if c.Token == 0 {
		// In a named session the numbers are those of the session's own thread, and may name its view.
		t.Served, t.Thread = c.Served && !t.Named, t.Named
		return t.take(ctx)
	}
	own, err := s.Hold(ctx, sess, ref, c, sent)
	if err != nil {
		return Base{}, err
	}
	if own.Kind == KindNone && c.Served {
		t.Served, t.ownCopy = true, true
		b, _ := t.try()
		b.Join(own)
		return b, nil
	}
	own.Join(s.Witness(sess, ref))
	if own.Kind != KindView { // also after a delete from the copy, because the copy names a document all the same
		own.Kind, own.Reason, own.Numbers = KindExplicit, ReasonNone, c.Numbers
	}
	return own, nil
}

// Hold reserves what was last sent from a copy, for a write that has another base. Join the two. If nothing was sent from the copy,
// the Kind is KindNone. Hold waits as TakeCopy does, and with the same errors.
func (s *Store) Hold(ctx context.Context, sess Session, ref doc.Ref, c Copy, sent []byte) (Base, error) {
	return s.Take(ctx, sess.Holding(c), ref, sent)
}

// Join makes o end when b ends, and in the same way.
func (b *Base) Join(o Base) {
	if o.claim.sh == nil {
		return
	}
	j := new(Base) // not o itself: most have nothing to join
	*j = o
	j.joined, b.joined = b.joined, j
}

// Witness returns a base that reserves nothing: its Kind is KindNone. After its Commit the session has seen the sent body, with any base.
func (s *Store) Witness(sess Session, ref doc.Ref) Base {
	if s.dryRun {
		return Base{}
	}
	k := viewcache.KeyOf(sess, ref.Clone())
	sh := s.shard(k)
	b := Base{claim: claim{sh: sh, key: k, network: sess.Network(), since: s.Epoch(), kind: KindExplicit}}
	sh.mu.Lock()
	defer sh.mu.Unlock()
	b.claim.arrived, b.claim.came = sh.Order, s.clock()
	sh.startPending(&b.claim)
	return b
}
