package write

import (
	"bytes"
	"context"
	"errors"

	"optimist/internal/api"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/intent"
	"optimist/internal/mark"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/stamp"
	"optimist/retry"
)

// Under a rule with write_id, marks show whether a write whose answer was lost was applied. Every write of a whole document, or of a part
// that optimist merges, leaves a mark in the document: an id, and the revision that the write replaced. The document keeps the last few.
//
//	the document has a mark of our write                      our write was applied
//	another write's mark says that it replaced our guard      it wasn't applied, and never will be: a revision is replaced once
//	neither                                                   nobody can tell
//
// Marks belong to optimist: intents, rules and merges never see them. optimist takes them out of a document that it reads, and puts them
// back into one that it writes. Kept documents (a session's views, a lane's guess) include them.

// dropMarks takes the field of marks out of a client's part. The document's own marks are put in last.
func (c *change) dropMarks() {
	if c.Op.Kind == api.Update {
		c.req.Body = mark.Drop(c.req.Body, c.field(), "doc", "upsert")
		c.Sent = c.req.Body
	}
}

// unmarked returns a revision without its marks, and the marks.
func (c *change) unmarked(rev doc.Revision) (doc.Revision, mark.Trail) {
	if c.field() == "" || rev.Source == nil {
		return rev, nil
	}
	var t mark.Trail
	rev.Source, t = mark.Take(rev.Source, c.field())
	return rev, t
}

// unmark takes the marks out of the change's known base, and out of the sent body.
func (c *change) unmark() {
	if c.field() == "" {
		return
	}
	var t mark.Trail
	if c.Base.Stored, t = mark.Take(c.Base.Stored, c.field()); t != nil {
		c.trail = t
	}
	c.Base.View, _ = mark.Take(c.Base.View, c.field())
	if c.Part == nil {
		c.Sent, _ = mark.Take(c.Sent, c.field())
	}
}

// withMarks is a document with the marks that the change's last write left.
func (c *change) withMarks(document []byte) []byte {
	if c.trailLeft == nil || document == nil {
		return document
	}
	if out, ok := mark.Put(document, c.field(), c.trailLeft); ok {
		return out
	}
	return document
}

// newMark is the mark of a write that replaces the revision over. Without numbers, the write creates the document.
func (c *change) newMark(over doc.Numbers) mark.Mark {
	m := mark.Mark{ID: c.req.WriteID, Over: over, New: !over.Known()}
	if m.ID == 0 {
		m.ID = mark.NewID()
	}
	if c.Index.UUID != "" {
		m.Document = stamp.DocumentOf(c.Index.UUID, c.Ref().Routing, c.Doc.ID)
	}
	return m
}

// mark puts a mark into the load of an attempt, for all changes in it. It leaves out a part that changes nothing: without a mark, the
// engine finds the document unchanged, and doesn't write it.
func (a *attempt) mark() {
	first, l := a.open[0], &a.load
	if l.remove || l.body == nil || l.part != nil && bytes.Equal(bytes.TrimSpace(l.body), bytes.TrimSpace(a.cur.Source)) {
		return
	}
	m := first.newMark(a.cur.Numbers)
	t := a.trail.With(m)
	body, ok := mark.Put(l.body, first.field(), t)
	if !ok {
		return
	}
	l.body = body
	if l.part != nil {
		l.part, _ = mark.Put(l.part, first.field(), t)
	}
	for _, c := range a.open {
		if !c.maybeApplied {
			c.tries = c.tries[:0] // the revision just read shows that none of these tries was applied
		}
		c.tries, c.trailLeft = append(c.tries, m), t
	}
}

// current is the revision that was read, as the engine holds it.
func (a *attempt) current(c *change) doc.Revision {
	rev := a.cur
	if c.field() != "" && rev.Source != nil && len(a.trail) > 0 {
		rev.Source, _ = mark.Put(rev.Source, c.field(), a.trail)
	}
	return rev
}

// evidence is what the marks of a revision say of a change's tries.
type evidence uint8

const (
	noEvidence evidence = iota
	applied             // a try was applied, and the change has its answer
	notApplied          // no try was applied, and none will be: the change may be made again
)

// judgeMarks judges the change by the marks of the revision just read.
func (a *attempt) judgeMarks(c *change) (found evidence) {
	if len(c.tries) == 0 || a.cur.Source == nil {
		return noEvidence
	}
	doubtful := c.maybeApplied
	switch at := a.trail.Find(c.tries); {
	case at >= 0:
		found = applied
		a.answerApplied(c, at)
	case a.trail.Excludes(c.tries):
		found = notApplied
		c.tries, c.maybeApplied = nil, false
		a.doubt.Dispel()
	default:
		return noEvidence
	}
	if doubtful {
		a.s.events.Marked.Call(c.Rule.Name, found == applied)
	}
	return found
}

// answerApplied answers a change that was applied: its mark stands at a place in the trail of the revision just read. Marks behind it are
// of later writes, which the client hasn't seen.
func (a *attempt) answerApplied(c *change, at int) {
	c.maybeApplied, c.trailLeft = false, a.trail
	m := a.trail[at]
	rev := a.current(c)
	inAnswer := rev
	last := at == len(a.trail)-1
	if !last {
		inAnswer.Numbers = m.Over
	}
	result := respond.Updated
	if m.New {
		result = respond.Created
	}
	if c.patch != nil && c.patch.Shows.Whole() {
		inAnswer = rev // the answer shows the client the whole revision
	}
	c.answer = respond.Written(a.s.documentOf(c), inAnswer, result)
	switch {
	case c.patch != nil:
		c.patch.Show(c.answer, inAnswer, rev.Source)
		a.s.rememberPatched(c, rev)
	case c.Part != nil:
		c.Part.Show(c.answer, inAnswer, rev.Source)
		rev.Source = nil
		c.settle(ending{stored: rev, created: m.New, current: m.Over})
	case !last && m.New:
		c.settle(ending{created: true}) // the numbers of the revision that its client has seen aren't known
	default:
		same := last && bytes.Equal(bytes.TrimSpace(a.cur.Source), bytes.TrimSpace(c.Sent))
		c.settle(ending{stored: rev, created: m.New, current: m.Over, same: same})
	}
	c.answer = c.filtered(c.answer)
	a.s.sessions.Wrote(c.Session.Credentials(), c.Doc.Index)
}

// markPassed puts a mark into a write that is never merged. optimist knows the revision that it replaces only if the write creates the
// document, or the client guards it.
func (c *change) markPassed(body []byte) []byte {
	kind := c.Op.Kind
	if c.field() == "" || kind != api.Index && kind != api.Create {
		return body
	}
	n, _ := api.OwnGuard(c.Op.Query)
	m, t := c.newMark(n), mark.Trail(nil)
	m.New = c.isCreate()
	if n.Known() && n == c.Base.Numbers {
		t = c.trail
	}
	t = t.With(m)
	out, ok := mark.Put(body, c.field(), t)
	if !ok {
		return body
	}
	c.tries, c.trailLeft = append(c.tries, m), t
	return out
}

// findPassed finds out whether a passed write was applied whose answer is lost; lost is the error of that write. If findPassed can't find
// it out, it returns lost.
func (s *Service) findPassed(ctx context.Context, c *change, lost error) error {
	if len(c.tries) == 0 || !errors.Is(lost, ErrUnknownOutcome) {
		return lost
	}
	c.maybeApplied = true
	ctx = context.WithoutCancel(ctx) // the client may have left, but its next write builds on the result
	a := &attempt{s: s, open: []*change{c}}
	err := retry.Do(ctx, c.policy(), func(ctx context.Context, _ int) error {
		s.events.Fetch.Call(c.Rule.Name)
		rev, err := s.bases.Current(ctx, &c.Search)
		if err != nil && delivery.MayAskAgain(err) {
			return doc.ErrConflict
		}
		a.cur, a.trail = c.unmarked(rev)
		return err
	})
	if err != nil {
		return lost
	}
	switch a.judgeMarks(c) {
	case noEvidence:
		return lost
	case notApplied: // another write has replaced the revision that the client's guard names
		guard, _ := api.OwnGuard(c.Op.Query)
		c.answer = c.conflict((&intent.MovedError{Guard: guard, Current: a.cur.Numbers}).Error())
	}
	return nil
}

// Find looks for the mark of a write with the request's WriteID. If it finds the mark, the write was applied, and Find returns the client's
// answer. If not, the answer is nil, and the outcome unknown. Find notes nothing in the session. Errors are those of Do.
func (s *Service) Find(ctx context.Context, r *Request) (*respond.Answer, error) {
	c := &r.change
	if err := c.read(r, s); err != nil || c.field() == "" || r.WriteID == 0 {
		return nil, err
	}
	switch r.Op.Kind {
	case api.Index, api.Create, api.Update, api.Patch:
	default:
		return nil, nil
	}
	if err := s.bases.Locate(ctx, &c.Search); err != nil {
		return nil, err
	}
	rev, err := s.bases.Current(ctx, &c.Search)
	if errors.Is(err, doc.ErrMissing) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	a := &attempt{s: s, open: []*change{c}}
	a.cur, a.trail = c.unmarked(rev)
	at := a.trail.Find([]mark.Mark{{ID: r.WriteID}})
	if at < 0 {
		return nil, nil
	}
	c.unmark()
	c.Outcome.Kind, c.Outcome.Reason = outcome.Guarded, outcome.ReasonFound
	a.answerApplied(c, at)
	s.events.Marked.Call(r.Rule.Name, true)
	return s.finish(c, nil)
}
