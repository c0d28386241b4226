package base

import (
	"context"
	"time"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/intake"
	"optimist/internal/mark"
	"optimist/internal/patch"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/wire"
)

// Comparison says how a write under a rule is compared with each read: an _update by the document that its part makes of the read, a
// document under a rule with write_id without the marks. sent is nil for what is no JSON.
func Comparison(ru *rule.Rule, sent []byte, part *patch.Request, room *budget.Account) session.Comparison {
	c := session.Comparison{Sums: ru.Sums, Keys: ru.Keys}
	switch {
	case part != nil:
		c.Part, c.On = true, func(view []byte) ([]byte, error) {
			defer room.Cut(room.Mark()) // it is done for one candidate after the other
			return part.Makes(view)
		}
		c.Sets = func() bool { return ru.NeedsNoBase(nil, part.Incoming, false) }
	case ru.WriteID != "" && sent != nil:
		c.Marks, c.On = ru.WriteID, func(view []byte) ([]byte, error) { return asIfRead(view, sent, ru.WriteID), nil }
	}
	return c
}

// asIfRead is what the client would have sent if it had read view: with the marks of view. So marks make no read more likely than another.
func asIfRead(view, sent []byte, field string) []byte {
	if view == nil {
		return sent
	}
	_, t := mark.Take(view, field)
	if out, ok := mark.Put(sent, field, t); ok && t != nil {
		return out
	}
	out, _ := mark.Take(sent, field)
	return out
}

// sessionStore is the store of what clients have seen, for this write.
func (f *Finder) sessionStore(w *Search) *session.Store {
	sent := w.Sent
	if !w.JSON {
		sent = nil
	}
	return f.Sessions.Comparing(Comparison(w.Rule, sent, w.Part, w.Room))
}

// takeFromSession makes what the session has seen the write's base, and reserves it. Behind another write of the same request, that is what
// the other write has left.
func (f *Finder) takeFromSession(ctx context.Context, w *Search) (err error) {
	known := f.carry(w)
	if w.Base, err = f.sessionStore(w).TakeNext(ctx, w.Session, w.Ref(), w.Series, w.Sent); err != nil {
		return err
	}
	w.judgeMoved(known)
	return w.checkClient(ctx)
}

func (f *Finder) takeCopy(ctx context.Context, w *Search, c session.Copy) (err error) {
	if w.Base, err = f.sessionStore(w).TakeCopy(ctx, w.Session, w.Ref(), c, w.Sent); err != nil {
		return err
	}
	return w.checkClient(ctx)
}

// LeastWait is how long a write waits before anybody asks whether its client has left.
const LeastWait = time.Millisecond

// checkClient gives back the base that was just taken, if the write waited for it and its client left meanwhile. The error is
// context.Canceled then. Such a client may have come again, and have written the document since. That newer write would be the base of the
// older one, which the client gave up: the older one would undo the newer.
func (w *Search) checkClient(ctx context.Context) error {
	if time.Since(w.Began) < LeastWait || !wire.PeerLeft(ctx) {
		return nil
	}
	w.Base.Release()
	return context.Canceled
}

// TakeLate takes a base from the session for a write that ended without one, because the engine couldn't be asked which index the name
// stands for. It takes the name for the index's own, which is mostly right.
func (f *Finder) TakeLate(ctx context.Context, w *Search) {
	whole := w.Op.Kind == api.Index || w.Op.Kind == api.Delete
	if !whole || w.Base.Kind != session.KindNone || !w.Rule.Session || w.Anonymous || w.OnlyNew {
		return
	}
	if _, own := api.OwnGuard(w.Op.Query); own {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, intake.LeastPatience)
	defer cancel()
	if base, err := f.sessionStore(w).Take(ctx, w.Session, w.Ref(), w.Sent); err == nil {
		w.Base = base
		w.Outcome.Base, w.Outcome.Ambiguous = kindOf(base.Kind), base.Ambiguous
	}
}
