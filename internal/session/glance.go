package session

import (
	"context"

	"optimist/internal/doc"
)

// Glance is a Store for who only wants to know which base a write would have. What is taken is given back before anybody else can miss it:
// a reservation, however short, would leave another base to a write of the same session. Nothing is counted, and the bases end nothing.
type Glance struct{ s *Store }

// Glance returns the store for looking.
func (s *Store) Glance() Glance { return Glance{s} }

// Take is Store.Take, and waits as that does.
func (g Glance) Take(ctx context.Context, sess Session, ref doc.Ref, sent []byte) (Base, error) {
	t := g.s.taking(sess, ref, sent)
	t.glance = true
	b, err := t.take(ctx)
	b.end()
	return b, err
}

// TakeAt is Store.TakeAt.
func (g Glance) TakeAt(sess Session, ref doc.Ref, n doc.Numbers, sent []byte) Base {
	t := g.s.taking(sess, ref, sent)
	t.given, t.glance = n, true
	b, _ := t.try()
	b.end()
	return b
}

// TakeCopy is Store.TakeCopy, and waits as that does.
func (g Glance) TakeCopy(ctx context.Context, sess Session, ref doc.Ref, c Copy, sent []byte) (Base, error) {
	t := g.s.taking(sess, ref, sent)
	t.given, t.glance = c.Numbers, true
	b, err := t.takeCopy(ctx, c)
	b.end()
	b.joined = nil
	return b, err
}

// Hold is Store.Hold, and waits as that does.
func (g Glance) Hold(ctx context.Context, sess Session, ref doc.Ref, c Copy, sent []byte) (Base, error) {
	return g.Take(ctx, sess.holding(c), ref, sent)
}

// Witness has nobody see anything.
func (Glance) Witness(Session, doc.Ref) Base { return Base{} }

// Wrote does nothing.
func (Glance) Wrote(string) {}
