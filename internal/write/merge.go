package write

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"optimist/internal/doc"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/rewrite"
)

// mergeResult is what became of one change in an attempt: a document, or why there is none.
type mergeResult struct {
	doc       []byte
	changed   bool
	overwrote []string
	more      int     // paths overwritten beyond those named
	refusal   *Answer // the change can't go: the client's answer
}

// reasonRule stands for a rule that refuses stale writes; it isn't said as a reason, because it is what was asked for.
const reasonRule = "rule"

// neverMerged tells why a conflict is this change's answer, or "" where it can be merged.
func (s *Service) neverMerged(ctx context.Context, c *change) string {
	switch {
	case c.req.Rule.OnConflict == rule.ConflictFail:
		return reasonRule
	case c.base.View == nil && c.base.Kind != session.KindAbsent:
		return ReasonNumbers
	}
	return s.gates.mergeable(ctx, c)
}

// apply merges one change into body, which is what the changes before it in the batch made of the current revision.
func (s *Service) apply(ctx context.Context, c *change, f *flight, body []byte, first bool) mergeResult {
	if first && (f.direct || c.base.Numbers.Known() && c.base.Numbers == f.cur.Numbers && c.straight()) {
		return mergeResult{doc: c.sent, changed: true} // nobody has written since: as it was sent
	}
	if body == nil {
		return c.intoNothing()
	}
	if reason := s.neverMerged(ctx, c); reason != "" {
		if reason != reasonRule {
			c.outcome.Reason = reason
		}
		return mergeResult{refusal: f.refusal(c, "the document changed since the revision that the write is based on")}
	}
	r, err := c.req.Rule.Merger.Merge(c.base.View, c.sent, body)
	if err != nil {
		return f.unmergeable(c, err)
	}
	return mergeResult{doc: r.Doc, changed: r.Changed, overwrote: r.Overwritten, more: r.OverwrittenMore}
}

// intoNothing is a write of a document that isn't there (any more).
func (c *change) intoNothing() mergeResult {
	if c.base.Kind == session.KindAbsent || c.req.Rule.OnMissing == rule.MissingRecreate {
		return mergeResult{doc: c.sent, changed: true}
	}
	return mergeResult{refusal: conflict(c.doc, "the document was deleted since the revision that the write is based on")}
}

// refusal is the engine's own conflict where there is one, else one of its shape.
func (f *flight) refusal(c *change, reason string) *Answer {
	if f.refused != nil {
		return f.refused.clone()
	}
	return conflict(c.doc, reason)
}

// unmergeable is the answer to a change whose merge failed.
func (f *flight) unmergeable(c *change, err error) mergeResult {
	var both *rewrite.ConflictError
	if errors.As(err, &both) {
		reason := "both the client and somebody else changed [" + strings.Join(both.Paths, ", ") + "]"
		return mergeResult{refusal: conflict(c.doc, "rule ["+c.req.Rule.Name+"] refuses to merge: "+reason)}
	}
	// What the merge can't read, the engine may still store: it is guarded, and the conflict is the answer.
	c.outcome.Reason = ReasonFormat
	return mergeResult{refusal: f.refusal(c, "and it can't be merged: "+err.Error())}
}

func (a *Answer) clone() *Answer {
	b := *a
	b.source = nil
	b.Fields = append(a.Fields[:0:0], a.Fields...)
	return &b
}

func (f *flight) anyLost() bool {
	for _, c := range f.open {
		if c.lost {
			return true
		}
	}
	return false
}

// judgeLost sorts the changes of which a try may have been applied, on the revision just read. The order is that of safety: a
// revision that is still the guard's shows that no try was applied, and the same guard keeps a late one from counting twice; a
// change that is as good twice as once, with every path it touches as it was, is replayed; of the rest the outcome is unknown. An
// equal body proves nothing: somebody else may have written it.
func (f *flight) judgeLost() {
	moved := f.guard.Known() && f.cur.Known() && f.cur.PrimaryTerm != f.guard.PrimaryTerm
	still := f.cur.Numbers == f.guard
	left := f.open[:0:len(f.open)]
	for _, c := range f.open {
		// After a change of primary the engine tries by itself again, and may conflict with its own first try.
		c.lost = c.lost || moved && c.outcome.Attempts > 0
		if !c.lost || still || f.repeatable(c) {
			left = append(left, c)
			continue
		}
		c.err = ErrUnknownOutcome
	}
	f.open = left
}

func (f *flight) repeatable(c *change) bool {
	if c.base.View == nil && c.base.Kind != session.KindAbsent || f.cur.Source == nil || c.sent == nil {
		return false
	}
	ok, err := c.req.Rule.Merger.Repeatable(c.base.View, c.sent, f.cur.Source)
	return ok && err == nil
}

// fetchBase makes the current revision the base of a write that has none, as the rule says.
func (s *Service) fetchBase(ctx context.Context, c *change) error {
	c.outcome.Base = BaseFetched
	s.events.Fetch(c.req.Rule.Name)
	rev, err := s.engine.Fetch(ctx, c.req.Caller, c.doc)
	switch {
	case errors.Is(err, doc.ErrMissing):
		c.base = session.Base{Kind: session.KindAbsent}
	case err != nil:
		return err
	default:
		c.base = session.Base{Kind: session.KindRead, Numbers: rev.Numbers, Version: rev.Version, View: rev.Source, Stored: rev.Source}
	}
	return nil
}

// refusesSeqNo reports whether a 400 says that the index has no sequence numbers to compare with. The engine has no error type of its own
// for it; the setting's name is part of the reason.
func refusesSeqNo(body []byte) bool { return bytes.Contains(body, []byte("disable_sequence_numbers")) }
