package write

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"optimist/internal/ack"
	"optimist/internal/base"
	"optimist/internal/budget"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/doubt"
	"optimist/internal/es"
	"optimist/internal/intake"
	"optimist/internal/intent"
	"optimist/internal/jsontext"
	"optimist/internal/mark"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/internal/undo"
	"optimist/internal/upstream"
	"optimist/retry"
)

// attempt is the work on one batch of changes to a document: here a 409 becomes a 200.
//
// Each try asks every change's intent what shall stand in place of the current revision, and writes that under the revision's guard. At
// the first try the current revision is the base itself, or what the lane's last write left. The latter is a guess: a guarded write may be
// made from it, but nothing is decided by it. After a conflict, the current revision is read from the engine.
type attempt struct {
	s            *Service
	batch        *retry.Batch[*change]
	open         []*change // without an answer yet, in order
	separate     []*change // could not go with the others: each goes by itself, after them
	cur          doc.Revision
	trail        mark.Trail // the marks of cur, which aren't in its Source
	source       source
	early        bool // cur was read before the first try, to make a write from: nothing is decided by it
	doubt        doubt.Record
	load         load            // of the last try
	body         []byte          // the document of load, without marks
	changes      int             // how many changes the last fold has put into the document
	until        time.Time       // no try begins later, if the policy has a limit
	parked       bool            // the first try waits for its answer: see Parker
	journalPlace undo.Place      // where the journal has its note of the last try; zero: nowhere
	budgetLevel  int64           // what the leader's request held before the first try
	conflict     *respond.Answer // the engine's last 409, for when trying ends
	noIndex      bool            // there was no index when the document was last read
}

// source is where the current revision comes from.
type source uint8

const (
	unread source = iota // nothing is known yet
	based                // it is the base of a change
	guess                // it is what the lane's last write left
	read                 // it was read from the engine after the lane's last write
)

// inLane has the change written in its document's lane.
func (s *Service) inLane(ctx context.Context, c *change) error {
	c.shareable = c.shareable && c.req.WriteID == 0 && c.req.Journal == nil // a shared write leaves the mark of one
	err := s.lanes.Do(ctx, c.place(), c, c.req.Background, func(b *retry.Batch[*change]) { s.run(ctx, b) })
	if err != nil || c.parked != nil {
		return err
	}
	return s.outOfLane(ctx, c)
}

// outOfLane is the rest of inLane, once the lane is done with the change.
func (s *Service) outOfLane(ctx context.Context, c *change) error {
	switch err := c.verdict(); {
	case c.patch == nil && c.Part != nil && (errors.Is(err, errNoGuard) || errors.Is(err, es.ErrNoSource) && c.attempts == 0):
		c.leaveToEngine()
		return s.updateUnseen(ctx, c, false)
	case !errors.Is(err, errNoGuard) || c.patch != nil:
		return err
	}
	return s.pass(ctx, c, outcome.ReasonSeqNo)
}

// place is the place of the change's document. If its index isn't known, each realm has a place of its own: a gateway may send its
// clients elsewhere.
func (c *change) place() retry.Place {
	if c.Index.UUID != "" {
		return retry.Place{Ref: c.Ref(), UUID: c.Index.UUID}
	}
	realm := c.Credentials()
	return retry.Place{Ref: c.Ref(), UUID: string(realm[:])}
}

// run leads a batch from its first try to its answers.
func (s *Service) run(ctx context.Context, b *retry.Batch[*change]) {
	if len(b.Members) > 1 {
		s.events.Batch.Call(len(b.Members))
		var cancel context.CancelFunc
		ctx, cancel = intake.Outlive(ctx)
		defer cancel()
	}
	a, _ := s.attempts.Get().(*attempt)
	*a = attempt{s: s, batch: b, open: b.Members}
	if len(b.Members) > 1 {
		a.open = slices.Clone(b.Members) // a change that leaves a.open stays a member
	}
	for _, c := range b.Members {
		c.budgetLevel = c.Room.Mark()
	}
	if a.do(ctx); a.parked {
		b.Members[0].parked = a
		b.Keep()
		return
	}
	s.leaveBatch(a)
}

// leaveBatch is for when all changes of a batch have their answers.
func (s *Service) leaveBatch(a *attempt) {
	for _, c := range a.batch.Members { // before any of them has its answer: then their memory may belong to other requests
		s.reportCollision(c)
	}
	*a = attempt{}
	s.attempts.Put(a)
}

func (a *attempt) do(ctx context.Context) {
	p := a.open[0].policy()
	if !a.parked {
		a.budgetLevel, a.until = budget.Of(ctx).Mark(), time.Now().Add(p.MaxElapsed)
		a.start(ctx)
	} else if p.MaxElapsed > 0 {
		p.MaxElapsed = max(time.Until(a.until), 1)
	}
	err := retry.Do(ctx, p, a.try)
	switch {
	case a.parked:
		return
	case err != nil:
		a.settleDoubt(ctx)
	}
	for _, c := range a.open {
		c.answer, c.err = a.last(c, err)
	}
	for _, c := range a.separate {
		a.single(ctx, c)
	}
}

// try is one turn of the loop. It returns doc.ErrConflict to be called again.
func (a *attempt) try(ctx context.Context, n int) error {
	if a.parked {
		a.parked = false
		res, err := delivery.Received(a.open[0].req.Parker.Received())
		return a.judge(ctx, res, err)
	}
	if a.source != read {
		if a.giveBack(budget.Of(ctx)); n > 1 {
			a.source = unread
		}
	}
	body, err := a.compose(ctx)
	for err == nil && len(a.open) > 0 && a.s.gate.Enforces(a.open[0].Rule) && a.admit(ctx, body) {
		body, err = a.compose(ctx)
	}
	switch {
	case err != nil || len(a.open) == 0:
		return err
	case (n > 1 || a.source == read) && ctx.Err() != nil:
		return context.Cause(ctx) // the client has left: what isn't sent yet never is
	}
	a.body = body
	res, err := a.send(ctx, body)
	if a.parked {
		return err
	}
	return a.judge(ctx, res, err)
}

// giveBack gives back the memory of the try before this one. The document that it read is on the account of the leader's request. The
// drafts are on the accounts of their own requests. Neither is used any more.
func (a *attempt) giveBack(leaders *budget.Account) {
	leaders.Cut(a.budgetLevel)
	for _, c := range a.open {
		if c.Room != leaders {
			c.Room.Cut(c.budgetLevel)
		}
	}
}

// start chooses the revision that the first try is made from. A base that the lane has replaced is none: its guard would fail.
func (a *attempt) start(ctx context.Context) {
	first := a.open[0]
	switch rev, ok := a.batch.Guess(first.scope()); {
	case ok && a.s.mayShare(first) && jsontext.Valid(first.Sent):
		a.cur, a.trail = first.unmarked(rev)
		a.source = guess
	case !first.fromBase: // it is a change of the current document
	case a.batch.Superseded(first.revision().Numbers) && a.s.bases.WhyNotReplayed(ctx, &first.Search, first.guard.Known(), true) == "" &&
		(a.fetch(ctx) == nil || ctx.Err() != nil):
		a.early = true
	default:
		a.fromBases()
	}
}

// fromBases has the next try made from the newest base of the batch, which is the most likely to be current.
func (a *attempt) fromBases() {
	first := a.open[0]
	a.cur, a.trail, a.source, a.early = first.revision(), first.trail, based, false
	for _, c := range a.open[1:] {
		if r := c.revision(); r.Source != nil && r.SeqNo > a.cur.SeqNo {
			a.cur, a.trail = r, c.trail
		}
	}
}

// compose makes the document to write from the current revision. A write under a guard may start from a guess. A decision (a refusal, or
// that nothing has to be written) needs a fresh read: it is about the stored document, not about one that waiting changes may make.
func (a *attempt) compose(ctx context.Context) (body []byte, err error) {
	for {
		if a.source == unread {
			if err := a.fetch(ctx); err != nil || len(a.open) == 0 {
				return nil, err
			}
		}
		if !a.cur.Known() && len(a.open) > 1 {
			// Creates share no write: without numbers, the others couldn't learn that they haven't seen all of the document.
			a.split(ctx)
			return nil, nil
		}
		body, refusal := a.fold(ctx)
		switch {
		case len(a.open) == 0:
			return nil, nil
		case errors.Is(refusal, budget.ErrOverloaded):
			return nil, refusal
		case a.source != read && (refusal != nil || a.changes == 0 && a.source == guess):
			a.source = unread
		case a.early && (refusal != nil || a.changes == 0):
			a.fromBases() // the engine says first whether the client may write there at all
		default:
			if refusal != nil {
				a.settleDoubt(ctx)
			}
			a.decide(ctx, refusal)
			return body, nil
		}
	}
}

// fold asks the intents one after the other: each gets the draft of the one before, and returns the draft that replaces it. A change that
// is refused beside others goes alone after them, because the others may be refused themselves.
func (a *attempt) fold(ctx context.Context) (body []byte, refusal error) {
	cur, left := a.cur, a.open[:0:len(a.open)]
	a.changes = 0
	for _, c := range a.open {
		d, err := a.next(ctx, c, cur)
		if err != nil && len(a.open) > 1 {
			a.separate = append(a.separate, c)
			continue
		}
		if err == nil && !d.Unchanged {
			a.changes, cur = a.changes+1, doc.Revision{Source: d.Body}
		}
		c.draft, refusal = d, err
		left = append(left, c)
	}
	a.open = left
	return cur.Source, refusal
}

// next is the change's draft for cur. cur has no numbers if it is the draft of an earlier change in the batch.
func (a *attempt) next(ctx context.Context, c *change, cur doc.Revision) (intent.Draft, error) {
	if c.intent.Merges(cur) && cur.Source != nil {
		if reason := a.s.bases.WhyNotReplayed(ctx, &c.Search, c.guard.Known(), c.fromBase); reason != "" {
			return intent.Draft{}, &noReplayError{reason}
		}
	}
	d, err := c.intent.Next(cur)
	if d.Echo && c.Rule.FailAmbiguous {
		return intent.Draft{}, base.ErrAmbiguous
	}
	return d, err
}

// fetch reads the current revision, with the client's own credentials. Then it judges the changes that may have been applied by an
// earlier try.
func (a *attempt) fetch(ctx context.Context) error {
	first := a.open[0]
	a.s.events.Fetch.Call(first.Rule.Name)
	a.batch.Forget()
	if a.anyMaybeApplied() {
		ctx = context.WithoutCancel(ctx) // the client may have left, but its next write builds on the result
	}
	rev, err := a.s.bases.Current(ctx, &first.Search)
	a.batch.Again()
	a.noIndex = errors.Is(err, base.ErrNoIndex)
	switch {
	case err == nil, errors.Is(err, doc.ErrMissing):
		a.cur, a.trail = first.unmarked(rev)
		if err == nil {
			a.locateAgain(ctx)
		}
		if a.source = read; len(a.open) > 0 {
			a.judgeDoubt(ctx)
		}
		return nil
	case delivery.MayAskAgain(err):
		return fmt.Errorf("%w: %w", doc.ErrConflict, err)
	case a.anyMaybeApplied(), a.conflict != nil && !a.samePrimary(ctx):
		return delivery.Unknown(err)
	case a.conflict != nil:
		// Nothing was written: the engine's conflict says so, and the client knows what to do about it.
		a.answerAll(func(*change) *respond.Answer { return a.conflict.Clone() })
		return nil
	}
	return err
}

// locateAgain asks what the index is, for changes that came before there was one. The write that made the index may have given it a
// pipeline, or a _source that isn't kept whole. Changes can't be merged into its documents then, nor patches be applied. An index that
// optimist can't ask about counts as one.
func (a *attempt) locateAgain(ctx context.Context) {
	left := a.open[:0:len(a.open)]
	for _, c := range a.open {
		if c.Index.UUID == "" && c.Index.Unknown == "" {
			if err := a.s.bases.Locate(ctx, &c.Search); err != nil {
				c.Index.Unknown = outcome.ReasonMetadata
			}
			if c.patch != nil && !c.maybeApplied && a.s.barPatch(c) {
				continue
			}
		}
		left = append(left, c)
	}
	a.open = left
}

// send writes once under the current revision's guard.
func (a *attempt) send(ctx context.Context, body []byte) (*upstream.Response, error) {
	first := a.open[0]
	for _, c := range a.open {
		c.attempts++
		c.Outcome.Kind = a.kind(c)
		c.showInOutcome()
	}
	a.doubt.Send(&a.cur, body)
	a.source, a.early = unread, false
	a.load = load{change: first, body: body, part: first.draft.Part, remove: first.draft.Delete, guard: a.cur.Numbers}
	if first.field() != "" {
		a.mark()
	}
	if first.req.Journal != nil {
		if err := a.enter(ctx); err != nil {
			return nil, err
		}
	}
	if a.mayPark() && first.req.Parker.Park(a.load.request()) {
		a.parked = true
		return nil, base.ErrParked
	}
	res, err := a.s.carrier.carry(ctx, &a.load)
	if first.req.Journal != nil {
		a.leave(ctx, res, err)
	}
	return res, err
}

// mayPark reports whether nobody has to wait for the answer to the try that is about to be sent.
func (a *attempt) mayPark() bool {
	first := a.open[0]
	return first.req.Parker != nil && len(a.batch.Members) == 1 && first.attempts == 1 && first.req.Journal == nil && first.patch == nil &&
		!first.onlyCreates()
}

func (a *attempt) kind(c *change) outcome.Kind {
	switch {
	case len(a.batch.Members) > 1 && len(a.open) > 1:
		return outcome.Combined
	case c.draft.AsSent, c.attempts == 1 && !c.draft.Merged():
		return outcome.Guarded
	}
	return outcome.Merged
}

// judge deals with what came of a try.
func (a *attempt) judge(ctx context.Context, res *upstream.Response, err error) error {
	first := a.open[0]
	switch {
	case err != nil:
		return a.lost(ctx, err)
	case res.Status == 409, res.Status == 200 && first.onlyCreates():
		return a.conflicted(ctx, res)
	case res.Status == 200 || res.Status == 201:
		a.acknowledge(ctx, res)
		return nil
	case res.Status == 404 && first.goesAsPart() && first.Part.Upsert && ack.SaysMissing(res):
		res.Release()
		a.conflict = first.conflict(intent.ErrDeleted.Error())
		return doc.ErrConflict
	case res.Status/100 == 4 && res.Status != 429 && len(a.open) > 1:
		// What is wrong with one change, or with all of them together, must not fail the others: each goes alone.
		res.Release()
		a.split(ctx)
		return nil
	case res.Status == 400 && ack.RefusesGuard(res):
		res.Release()
		a.s.catalog.RefusedGuard(first.Asker(), first.Doc.Index)
		first.err, a.open = errNoGuard, nil
		return nil
	}
	a.answerFrom(res)
	return nil
}

// conflicted remembers the engine's conflict, and ends here for changes that are never merged.
func (a *attempt) conflicted(ctx context.Context, res *upstream.Response) error {
	first := a.open[0]
	a.s.events.Conflict.Call(first.Rule.Name)
	a.batch.Forget()
	a.batch.Again()
	a.conflict = first.conflictOf(res)
	a.doubt.Conflicted(res)
	res.Release()
	if len(a.open) > 1 || first.maybeApplied {
		return doc.ErrConflict
	}
	reason := a.s.bases.WhyNotReplayed(ctx, &first.Search, first.guard.Known(), first.fromBase)
	if reason == "" || !a.samePrimary(ctx) {
		return doc.ErrConflict
	}
	if reason != base.ReasonRule && first.Base.Reason == session.ReasonNone {
		first.Outcome.Reason = reason
	}
	first.Outcome.Kind = outcome.Guarded
	a.answerAll(func(*change) *respond.Answer { return a.conflict })
	return nil
}

// split gives every open change an attempt of its own. If a try of a change may have been applied, its outcome stays unknown.
func (a *attempt) split(ctx context.Context) {
	for _, c := range a.open {
		if c.maybeApplied {
			c.err = ErrUnknownOutcome
			continue
		}
		a.single(ctx, c)
	}
	a.open = nil
}

// single gives a change of the batch an attempt of its own.
func (a *attempt) single(ctx context.Context, c *change) {
	a.batch.Forget() // the batch's document is no start for it
	(&attempt{s: a.s, batch: a.batch, open: []*change{c}, doubt: a.doubt.Inherited()}).do(ctx)
}

// last is the answer to a change that is still open when the tries end: the engine's own conflict, if that came last.
func (a *attempt) last(c *change, err error) (*respond.Answer, error) {
	switch {
	case c.maybeApplied && !errors.Is(err, ErrUnknownOutcome):
		return nil, delivery.Unknown(err)
	case err == nil:
		return nil, errors.New("the attempt ended without an answer")
	case a.conflict != nil && (errors.Is(err, doc.ErrConflict) || errors.Is(err, intake.ErrTimeout)):
		return a.conflict.Clone(), nil
	}
	return nil, err
}
