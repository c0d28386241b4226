package write

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/stamp"
	"optimist/internal/uri"
	"optimist/internal/wire"
)

// stampedAge is how old what is known of an index may be where a stamp is held against it: its client may have had that for days.
const stampedAge = time.Second

// locate finds out which index the change's document is in, and with which routing: two aliases that route may have a document each
// of the same id.
func (s *Service) locate(ctx context.Context, c *change) (err error) {
	maxAge := time.Duration(0)
	if c.req.Stamp.Known() {
		maxAge = stampedAge
	}
	c.index, err = s.catalog.Describe(ctx, c.req.asker(), c.Name, maxAge)
	c.Doc.Index, c.Doc.Routing = c.index.Name, cmp.Or(c.Doc.Routing, c.index.Routing)
	return err
}

// chooseBase finds what the change is based on, strongest first: the client's own guard, If-Match, a stamp, what the session has
// seen. pass says that the write goes as it is.
func (s *Service) chooseBase(ctx context.Context, c *change) (pass bool, err error) {
	if c.req.Given.known() {
		c.takeGiven()
		return false, nil
	}
	if n, found := api.OwnGuard(c.req.Op.Query); found {
		return s.takeGuard(ctx, c, n)
	}
	if _, given := api.ReadGuard(c.out.Query); given {
		c.out.Query = uri.Without(nil, c.out.Query, api.GuardParams...) // there is one now
	}
	m, matched, err := c.ifMatch()
	if err != nil {
		return false, err
	}
	carried, stamped := c.carried()
	switch {
	case matched:
		held, err := s.holdStamped(ctx, c)
		if err != nil {
			return false, err
		}
		err = s.takeMatch(ctx, c, m)
		c.base.Join(held)
		return false, err
	case stamped:
		return false, s.takeStamp(ctx, c, carried)
	}
	if c.req.Rule.Session && !c.req.Anonymous {
		if err := s.takeSeen(ctx, c); err != nil {
			return false, err
		}
	}
	s.events.BaseChosen.Call(c.base.Kind, c.base.Reason)
	c.outcome.Base, c.outcome.Ambiguous = baseKind(c.base.Kind), c.base.Ambiguous
	if c.base.Ambiguous && c.req.Rule.FailAmbiguous && (c.part == nil || !c.isForEngine()) {
		return false, ErrAmbiguous
	}
	switch c.base.Kind {
	case session.KindNone, session.KindLost:
		switch {
		case c.part == nil:
		case c.base.Kind == session.KindLost && c.req.Rule.RejectLost:
			return false, ErrBaseLost
		default:
			return true, nil // the engine merges it, as it would any _update
		}
		return s.withoutBase(ctx, c)
	}
	c.outcome.Reason = c.base.Reason.String() // of one whose numbers alone are known
	return false, nil
}

// isForEngine reports whether what the client has seen is nothing to its part: it isn't known, or there was no document, and the part
// makes none. Nor is it in a session that is inferred, where the part says the same whatever its base: perhaps nobody has read the
// document for it. A read that it took would be missed by the client that made it.
func (c *change) isForEngine() bool {
	switch kind := c.base.Kind; {
	case kind == session.KindNone, kind == session.KindLost:
		return true
	case kind == session.KindAbsent && !c.part.Upsert:
		return true
	case c.req.Session.IsNamed(), !c.baseKnown():
		return false
	}
	switch c.outcome.Base {
	case outcome.BaseRead, outcome.BaseView, outcome.BaseAbsent:
		overrides, err := c.req.Rule.Merger.Overrides(c.base.View, c.part.Incoming)
		return overrides && err == nil
	}
	return false
}

// baseKnown reports whether the client's change can be told from its base.
func (c *change) baseKnown() bool { return c.base.View != nil || c.base.Kind == session.KindAbsent }

// viewIsStored reports whether the client has seen exactly what the engine holds at the base: then what it sends needs no merge
// there.
func (c *change) viewIsStored() bool {
	switch {
	case c.base.Kind != session.KindView:
		return true
	case c.base.Stored == nil:
		// The engine may hold other bytes (a pipeline): where nothing is merged, the numbers are guard enough. So they are of
		// what the client itself wrote, and of which nothing else is known.
		return c.base.View == nil && !c.base.StoredDiffers || c.part == nil && c.whyUnmergeable() != ""
	}
	return bytes.Equal(c.base.View, c.base.Stored)
}

// seen is what clients have seen, for who writes what the change does.
func (s *Service) seen(c *change) *session.Store {
	switch {
	case c.part == nil && c.field() != "" && c.JSON && c.sent != nil:
		return s.sessions.ForPart(c.asIfRead)
	case c.part == nil:
		return s.sessions
	}
	return s.sessions.ForPart(func(base []byte) ([]byte, error) {
		defer c.taken.Cut(c.taken.Mark()) // it is done for one candidate after the other
		return c.part.Makes(base)
	})
}

// takeSeen reserves what the session has seen as the change's base.
func (s *Service) takeSeen(ctx context.Context, c *change) (err error) {
	if c.base, err = s.seen(c).Take(ctx, c.req.Session, c.Doc.Ref, c.sent); err != nil {
		return err
	}
	return c.stillThere(ctx)
}

func (s *Service) takeCopy(ctx context.Context, c *change, held session.Copy) (err error) {
	if c.base, err = s.seen(c).TakeCopy(ctx, c.req.Session, c.Doc.Ref, held, c.sent); err != nil {
		return err
	}
	return c.stillThere(ctx)
}

// leastWait is how long a client waits at least: whether it has left isn't asked before.
const leastWait = time.Millisecond

// stillThere reports whether the change's client is, where it had to wait for the base that was just taken; if not, that is given
// back. A client that left may have come again and gone on since: what it has written meanwhile would be the base of what it gave
// up, which would undo that.
func (c *change) stillThere(ctx context.Context) error {
	if time.Since(c.began) < leastWait || !wire.PeerLeft(ctx) {
		return nil
	}
	c.base.Release()
	return context.Canceled
}

// withoutBase does what the rule says of writes whose base isn't known. One that was known once is passed only where one that
// never was is passed, too.
func (s *Service) withoutBase(ctx context.Context, c *change) (pass bool, err error) {
	if c.base.Kind == session.KindLost {
		c.outcome.Reason = c.base.Reason.String()
		if c.req.Rule.RejectLost {
			return false, s.refuseLost(ctx, c)
		}
	}
	if c.base.Reason == session.ReasonBlind {
		c.outcome.Reason = outcome.ReasonBlind
	}
	switch {
	case c.req.Rule.Unknown == rule.UnknownReject:
		return false, ErrPreconditionRequired
	case c.req.Rule.Unknown == rule.UnknownFetch, c.req.Journal != nil:
		return false, s.fetchBase(ctx, c)
	default:
		return true, nil
	}
}

// refuseLost refuses a write whose base is lost. After a restart nothing is known of any client: there a write that finds no
// document is a create, which overwrites nothing. In all other cases the client has seen a document, which somebody may have
// deleted.
func (s *Service) refuseLost(ctx context.Context, c *change) error {
	if c.sent == nil || c.base.Reason != session.ReasonRestart {
		return ErrBaseLost
	}
	if err := s.fetchBase(ctx, c); err != nil {
		return err
	}
	if c.base.Kind != session.KindAbsent {
		c.outcome.Base = outcome.BaseLost
		return ErrBaseLost
	}
	c.outcome.Reason = ""
	return nil
}

// fetchBase makes the current revision the base of a write that has none, as the rule says.
func (s *Service) fetchBase(ctx context.Context, c *change) error {
	c.outcome.Base = outcome.BaseFetched
	s.events.Fetch.Call(c.req.Rule.Name)
	rev, err := s.current(ctx, c)
	// The reservation stays: it is for this write, whatever its base, and must be ended.
	b := &c.base
	switch {
	case errors.Is(err, doc.ErrMissing):
		b.Kind = session.KindAbsent
	case errors.Is(err, es.ErrNoSource) && rev.Known():
		b.Kind, b.Numbers, b.Version = session.KindGiven, rev.Numbers, rev.Version // guarded, never merged
	case err != nil:
		return err
	default:
		b.Kind, b.Numbers, b.Version, b.View, b.Stored = session.KindRead, rev.Numbers, rev.Version, rev.Source, rev.Source
	}
	return nil
}

// carried is the copy of the document that the write's stamp says it was made from. ok is false where there is no stamp, or one
// of another document, or of another life of its index: the engine would take those numbers for its own.
func (c *change) carried() (held session.Copy, ok bool) {
	st := &c.req.Stamp
	if !st.Known() || !c.req.Rule.FromStamp || c.index.UUID == "" {
		return held, false
	}
	if st.Document != stamp.DocumentOf(c.index.UUID, c.Doc.Routing, c.Doc.ID) {
		return held, false
	}
	held = session.Copy{Numbers: st.Numbers, Token: uint64(st.Copy), Served: true}
	if c.req.Rule.FailConflict {
		held.Token = 0 // one from before the rule said so is held against the revision, too, and not against what was sent since
	}
	return held, true
}

// baseKind is the kind of a base of the session's, as the outcome names it.
func baseKind(k session.Kind) outcome.BaseKind {
	switch k {
	case session.KindRead:
		return outcome.BaseRead
	case session.KindView:
		return outcome.BaseView
	case session.KindAbsent:
		return outcome.BaseAbsent
	case session.KindLost:
		return outcome.BaseLost
	default:
		return outcome.BaseNone
	}
}

// reasonRule stands for a rule that refuses stale writes. The outcome doesn't name it, because it is what was asked for.
const reasonRule = "rule"

// whyConflictStands tells why a conflict is this change's answer, or "" where the change can be applied to a newer revision.
func (s *Service) whyConflictStands(ctx context.Context, c *change) string {
	switch {
	case c.guard.Known():
		return reasonRule
	case !c.stales:
		return c.whyPipelineStands()
	case c.req.Rule.FailConflict:
		return reasonRule
	case !c.baseKnown() || c.base.Doubtful:
		return outcome.ReasonNumbers
	}
	if c.part != nil {
		return "" // nothing is written back but the part
	}
	if reason := c.whyUnmergeable(); reason != "" {
		return reason
	}
	whole, err := s.seesWhole(ctx, c)
	switch {
	case err != nil:
		return outcome.ReasonUnasked
	case !whole:
		return outcome.ReasonFiltered
	}
	return ""
}

// whyUnmergeable is why the change can't be merged, from what is known of the index and the request.
func (c *change) whyUnmergeable() string {
	switch {
	case c.index.Unknown != "":
		return c.index.Unknown
	case c.index.Partial:
		return outcome.ReasonSource
	case !c.JSON:
		return cmp.Or(c.whyPipelineStands(), outcome.ReasonFormat)
	}
	return c.whyPipelineStands()
}

// whyPipelineStands is the reason where an ingest pipeline would run again over what is merged, and the rule doesn't allow that.
func (c *change) whyPipelineStands() string {
	if (c.Pipeline || c.index.Pipeline) && !c.req.Rule.RerunPipeline {
		return outcome.ReasonPipeline
	}
	return ""
}

// revision is what the engine holds at the change's base, as far as is known.
func (c *change) revision() doc.Revision {
	if c.guard.Known() {
		return doc.Revision{Numbers: c.guard, Version: c.base.Version}
	}
	return doc.Revision{Numbers: c.base.Numbers, Version: c.base.Version, Source: c.base.Stored}
}
