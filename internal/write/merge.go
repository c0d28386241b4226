package write

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/rewrite"
)

// mergeResult is what became of one change in an attempt: a document, or why there is none.
type mergeResult struct {
	doc       []byte
	changed   bool
	overwrote []string
	more      int     // paths overwritten beyond those named
	refusal   *Answer // the change can't go: the client's answer
	broken    bool    // because what was sent, or what is there, isn't JSON that can be merged
	missing   bool    // the refusal is that there is no document: the engine is to say so
}

// reasonRule stands for a rule that refuses stale writes; it isn't said as a reason, because it is what was asked for.
const reasonRule = "rule"

// neverMerged tells why a conflict is this change's answer, or "" where it can be merged.
func (s *Service) neverMerged(ctx context.Context, c *change) string {
	switch {
	case c.once:
		return reasonRule
	case c.patch != nil:
		return c.neverPatchedAgain()
	case c.req.Rule.OnConflict == rule.ConflictFail:
		return reasonRule
	case c.base.View == nil && c.base.Kind != session.KindAbsent, c.base.Doubtful:
		return ReasonNumbers
	}
	return s.mergeable(ctx, c)
}

// apply merges one change into body, which is what the changes before it in the batch made of the current revision.
func (s *Service) apply(ctx context.Context, c *change, f *flight, body []byte, first bool) mergeResult {
	switch c.straightened = false; {
	case c.patch != nil:
		return f.applyPatch(c, body)
	case c.once && c.guard != f.cur.Numbers:
		return mergeResult{refusal: c.moved(f.cur.Numbers)}
	case first && (f.direct || c.unmoved(f.cur.Numbers)):
		c.straightened = true // nobody has written since: as it was sent
		return c.transformed(mergeResult{doc: c.sent, changed: true}, body)
	case body == nil:
		return c.transformed(c.intoNothing(), nil)
	}
	if reason := s.neverMerged(ctx, c); reason != "" {
		if reason != reasonRule {
			c.outcome.Reason = reason
		}
		return mergeResult{refusal: f.refusal(c, "the document changed since the revision that the write is based on")}
	}
	r, err := c.merge(body)
	if err != nil {
		return f.unmergeable(c, err)
	}
	return c.transformed(mergeResult{doc: r.Doc, changed: r.Changed, overwrote: r.Overwritten, more: r.OverwrittenMore}, body)
}

// unmoved reports whether n are still the numbers of what the change was made from, all of which its client has seen.
func (c *change) unmoved(n doc.Numbers) bool {
	return c.once || c.base.Numbers.Known() && c.base.Numbers == n && c.straight()
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
	return mergeResult{refusal: f.refusal(c, "and it can't be merged: "+err.Error()), broken: true}
}

func (a *Answer) clone() *Answer {
	b := *a
	b.source = nil
	b.Fields = append(a.Fields[:0:0], a.Fields...)
	return &b
}

// fetchBase makes the current revision the base of a write that has none, as the rule says.
func (s *Service) fetchBase(ctx context.Context, c *change) error {
	c.outcome.Base = BaseFetched
	s.events.Fetch(c.req.Rule.Name)
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

// current reads the change's document as it is now, on its client's behalf. A document whose index isn't there is missing. Errors say
// that nothing was written by it.
func (s *Service) current(ctx context.Context, c *change) (doc.Revision, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	d := c.doc
	if d.Routing == "" {
		d.Routing = c.index.Routing
	}
	rev, err := s.engine.Fetch(ctx, c.req.Caller, d)
	c.noIndex = false
	switch {
	case err == nil, errors.Is(err, doc.ErrMissing):
		return rev, err
	case errors.Is(err, es.ErrNoIndex):
		c.noIndex = true
		return doc.Revision{}, doc.ErrMissing
	case errors.Is(context.Cause(ctx), ErrTimeout):
		return doc.Revision{}, ErrTimeout
	}
	return rev, fmt.Errorf("%w: %w", ErrNotWritten, err)
}

// mayAskAgain reports whether a read that failed is worth another try: its answer was lost, or the engine had no time for it. Where no
// node can be reached the client is told at once.
func mayAskAgain(err error) bool {
	return errors.Is(err, ErrNotWritten) && !es.Answered(err) && !errors.Is(err, upstream.ErrNotSent) && !errors.Is(err, es.ErrNoSource)
}

// refusesSeqNo reports whether a 400 says that the index has no sequence numbers to compare with. The engine has no error type of its own
// for it; the setting's name is part of the reason.
func refusesSeqNo(body []byte) bool { return bytes.Contains(body, []byte("disable_sequence_numbers")) }
