package write

import (
	"context"

	"optimist/internal/api"
	"optimist/internal/delivery"
	"optimist/internal/outcome"
	"optimist/internal/session"
	"optimist/internal/uri"
)

// put writes a document, or deletes it, under its base's guard. In a data stream, the base must be a revision that the client has read.
func (s *Service) put(ctx context.Context, c *change) error {
	if err := s.bases.Locate(ctx, &c.Search); err != nil {
		return err
	}
	switch {
	case c.InOthersStream():
		return s.pass(ctx, c, outcome.ReasonDataStream)
	case !s.catalog.Guardable(c.Asker(), c.Index):
		return s.pass(ctx, c, outcome.ReasonSeqNo)
	}
	passed, err := s.chooseWay(ctx, c)
	if err != nil {
		return err
	}
	if c.Op.Kind == api.Delete && c.Base.Kind == session.KindAbsent {
		if done, err := s.deleteUnseen(ctx, c); done || err != nil {
			return err
		}
	}
	if passed || c.Index.DataStream != "" && (!c.Base.Numbers.Known() || c.Outcome.Base == outcome.BaseFetched) {
		return s.pass(ctx, c, c.Outcome.Reason)
	}
	c.unmark()
	c.fromBase = true
	if c.Op.Kind == api.Delete {
		c.intent = c.intents.Delete()
	} else {
		c.intent = c.intents.Document(c.guard)
	}
	return s.inLane(ctx, c)
}

// chooseWay chooses the base, and whether the write is passed.
func (s *Service) chooseWay(ctx context.Context, c *change) (passed bool, err error) {
	passed, err = s.chooseBase(ctx, c)
	if err == nil && passed && c.req.Journal != nil {
		passed, err = s.readBeforePass(ctx, c)
	}
	if err != nil || c.Rule.Transform == nil {
		return passed, err
	}
	reads, err := s.settleTransform(ctx, c)
	if err == nil && passed && reads {
		return s.readBeforePass(ctx, c)
	}
	return passed, err
}

// chooseBase finds the base. pass says that the write goes as it is.
func (s *Service) chooseBase(ctx context.Context, c *change) (pass bool, err error) {
	if pass, err = s.bases.Choose(ctx, &c.Search); c.Dropped != nil {
		c.out.Query = uri.Without(nil, c.out.Query, c.Dropped...)
	}
	return pass, err
}

// create makes a document. The engine itself refuses that when the document exists: its conflict is the answer.
func (s *Service) create(ctx context.Context, c *change) error {
	if c.req.Journal != nil {
		return s.createJournalled(ctx, c)
	}
	reason, err := s.bases.ChooseForCreate(ctx, &c.Search)
	if err != nil {
		return err
	}
	return s.pass(ctx, c, reason)
}

// createAnywhere makes a document whose id the engine makes. There is no base.
func (s *Service) createAnywhere(ctx context.Context, c *change) error {
	reason := ""
	if c.Rule.MayMeetStreams() {
		if err := s.bases.Locate(ctx, &c.Search); err != nil {
			return err
		}
		if c.InOthersStream() {
			reason = outcome.ReasonDataStream
		}
	}
	return s.pass(ctx, c, reason)
}

// settleTransform finds out whether the rule's transform can be applied to a write: the body has to be JSON, and a document that the
// transform reads has to be readable as it is stored. reads says that the transform needs the stored document.
func (s *Service) settleTransform(ctx context.Context, c *change) (reads bool, err error) {
	t := c.intents.Transformer()
	if t == nil {
		return false, nil
	}
	reason := outcome.ReasonFormat
	if c.JSON {
		if !t.ReadsCurrent() || c.Base.Kind == session.KindAbsent {
			return false, nil
		}
		if reason, err = s.bases.WhyUnreadable(ctx, &c.Search); err != nil {
			return false, delivery.CantAsk(err)
		}
	}
	if reason != "" {
		c.intents.Untransformed, c.Outcome.Untransformed = true, true
		if c.Outcome.Reason == "" {
			c.Outcome.Reason = reason
		}
	}
	return reason == "", nil
}

// readBeforePass is for a write that would be passed, although a transform or a journal needs the stored document. It fetches the document,
// and guards the write: by the client's own numbers, or else by those of the document. pass says that the write is passed all the same,
// because the client gives a version of its own: the engine takes no guard beside one.
func (s *Service) readBeforePass(ctx context.Context, c *change) (pass bool, err error) {
	n, own := api.OwnGuard(c.Op.Query)
	switch {
	case own && !n.Known():
		return true, nil
	case own:
		c.guard = n
		c.out.Query = uri.Without(nil, c.out.Query, "if_seq_no", "if_primary_term")
		return false, nil
	}
	return false, s.bases.FetchBase(ctx, &c.Search)
}
