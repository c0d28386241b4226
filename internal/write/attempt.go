package write

import (
	"context"
	"errors"
	"slices"
	"time"

	"optimist/internal/ack"
	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/budget"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/doubt"
	"optimist/internal/es"
	"optimist/internal/gate"
	"optimist/internal/intake"
	"optimist/internal/intent"
	"optimist/internal/journal"
	"optimist/internal/jsontext"
	"optimist/internal/mark"
	"optimist/internal/outbound"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/upstream"
	"optimist/retry"
)

// attempt is the work on one batch of changes to a document: here a 409 becomes a 200.
//
// Each try asks every change's intent for the document that shall replace the current revision, and writes it guarded by that revision. At
// the first try, the current revision is the base, or a guess: the revision that the lane's last write left. A guarded write may be made
// from a guess, but nothing else may be decided by it. After a conflict, the attempt reads the current revision from the engine.
type attempt struct {
	s           *Service
	batch       *retry.Batch[*change]
	open        []*change // without an answer yet, in order
	separate    []*change // can't go with the others: each goes by itself, after them
	cur         doc.Revision
	trail       mark.Trail // the marks of cur, which aren't in its Source
	source      source
	doubt       doubt.Record
	load        load   // of the last try
	body        []byte // the document of load, without marks
	changes     int    // how many changes the last fold has put into the document
	policy      retry.Policy
	began       time.Time
	parked      bool            // the first try waits for the engine's answer: see Parker
	item        *es.Item        // what was read of the answer to the last try; nil: nobody has read it yet
	noted       *journal.Entry  // the journal's entry of the last try; nil: there is none
	budgetLevel int64           // what the leader's request held before the first try
	conflict    *respond.Answer // the engine's last 409, for when trying ends
	noIndex     bool            // the engine had no such index when the document was last read
}

// source is where the current revision comes from.
type source uint8

const (
	unread source = iota // nothing is known yet
	based                // it is the base of a change
	guess                // it is what the lane's last write left
	early                // it was read from the engine before the first try: a write may be made from it, but nothing else decided by it
	read                 // it was read from the engine after the lane's last write
)

// isRead reports whether the revision was read from the engine.
func (s source) isRead() bool { return s >= early }

// errNoGuard reports that the engine can't guard a write, for the reason that the outcome has. Nothing was written.
var errNoGuard = errors.New("the engine can't guard the write")

// inLane has the change written in its document's lane.
func (s *Service) inLane(ctx context.Context, c *change) error {
	c.shareable = c.isShareable()
	err := s.lanes.Do(ctx, c.place(), c, c.req.Background, func(b *retry.Batch[*change]) { s.run(ctx, b) })
	if err != nil || c.lead.parked {
		return err
	}
	return s.outOfLane(ctx, c)
}

// outOfLane is the rest of inLane, once the lane is done with the change.
func (s *Service) outOfLane(ctx context.Context, c *change) error {
	switch err := c.verdict(); {
	case c.patch == nil && c.Part != nil && (errors.Is(err, errNoGuard) || errors.Is(err, es.ErrNoSource) && c.attempts == 0):
		c.leaveToEngine()
		return s.updateUnseen(ctx, c)
	case !errors.Is(err, errNoGuard) || c.patch != nil:
		return err
	}
	if c.Outcome.Base == outcome.BaseAbsent {
		c.Outcome.Base = outcome.BaseNone // the engine, too, takes it whether or not there is a document
	}
	return s.pass(ctx, c, c.Outcome.Reason)
}

// place is where the change's document is. If the index isn't known, each realm gets a place of its own: a gateway may choose by the realm.
func (c *change) place() retry.Place {
	if c.Index.UUID != "" {
		return retry.Place{Ref: c.Ref(), UUID: c.Index.UUID}
	}
	realm := c.Credentials()
	return retry.Place{Ref: c.Ref(), UUID: string(realm[:])}
}

// mayJoin reports whether m may go in the same write as first. Both must be shareable, and have the same rule, credentials, lock tokens,
// route, parameters and media type. Both are patches, or neither is. The lane is locked during the call.
func (s *Service) mayJoin(first, m *change) bool {
	return s.mayShare(first) && m.shareable && first.Rule == m.Rule && (first.patch == nil) == (m.patch == nil) &&
		first.policy().MaxAttempts == m.policy().MaxAttempts &&
		first.req.Tokens.Equal(m.req.Tokens) && first.Credentials() == m.Credentials() && first.req.Route == m.req.Route &&
		outbound.Alike(&first.out, &m.out)
}

// isShareable reports whether the change may share a write with others, if its client sees documents whole.
func (c *change) isShareable() bool {
	switch {
	case c.req.WriteID != 0, c.req.Journal != nil: // a shared write leaves one mark, and no note
		return false
	case !c.Plain, c.WhyUnmergeable() != "":
		return false
	case c.patch != nil:
		return !c.guard.Known() && !c.OnlyNew
	case c.Part != nil, c.Op.Kind == api.Delete:
		return false
	}
	return !c.Rule.FailConflict && !gate.ReadsPath(c.Rule) && c.Outcome.Base != outcome.BaseExplicit && c.BaseKnown() && !c.Base.OnlyGuards()
}

// mayShare reports whether the change may share a write now. That its client sees documents whole is often found out while changes wait.
func (s *Service) mayShare(c *change) bool {
	return c.shareable && (c.patch != nil || s.catalog.KnownWhole(c.Asker(), c.Name))
}

// run leads a batch from its first try to its answers.
func (s *Service) run(ctx context.Context, b *retry.Batch[*change]) {
	if len(b.Members) > 1 {
		s.events.Batch.Call(len(b.Members))
		var cancel context.CancelFunc
		ctx, cancel = intake.Outlive(ctx)
		defer cancel()
	}
	a := &b.Members[0].lead
	*a = attempt{}
	a.s, a.batch, a.open = s, b, b.Members
	if len(b.Members) > 1 {
		a.open = slices.Clone(b.Members) // a change that leaves a.open stays a member
	}
	for _, c := range b.Members {
		c.budgetLevel = c.Room.Mark()
	}
	a.do(ctx)
	if a.parked {
		b.Keep()
		return
	}
	a.reportCollisions()
}

// reportCollisions is called once all changes of the batch have their answers, and before a client gets its answer: after that, the memory
// of its change may belong to another request.
func (a *attempt) reportCollisions() {
	for _, c := range a.batch.Members {
		a.s.reportCollision(c)
	}
}

func (a *attempt) do(ctx context.Context) {
	var err error
	if !a.parked {
		a.budgetLevel, a.policy, a.began = budget.Of(ctx).Mark(), a.open[0].policy(), time.Now()
		err = a.start(ctx)
	}
	if err == nil {
		err = retry.DoSince(ctx, a.policy, a.began, a.try)
	}
	switch {
	case a.parked:
		return
	case err != nil && !errors.Is(err, base.ErrMoved): // if the name was moved, the tries were refused in another index
		a.judgeConflicts(ctx)
	}
	for _, c := range a.open {
		c.answer, c.err = a.lastAnswer(c, err)
	}
	for _, c := range a.separate {
		a.goAlone(ctx, c)
	}
}

// try is one turn of the loop. It returns doc.ErrConflict to be called again.
func (a *attempt) try(ctx context.Context, n int) error {
	if a.parked {
		a.parked = false
		res, item, err := a.open[0].req.Parker.Received()
		a.item = item
		res, err = delivery.Received(res, err)
		return a.handleAnswer(ctx, res, err)
	}
	if !a.source.isRead() {
		a.releaseMemory(budget.Of(ctx))
		if n > 1 {
			a.source = unread
		}
	}
	body, err := a.compose(ctx)
	for err == nil && len(a.open) > 0 && a.admit(ctx, body) {
		body, err = a.compose(ctx)
	}
	switch {
	case err != nil || len(a.open) == 0:
		return err
	case (n > 1 || a.source.isRead()) && ctx.Err() != nil:
		return context.Cause(ctx) // the client has left: a write that isn't sent yet is never sent
	}
	a.body = body
	res, err := a.send(ctx, body)
	if a.parked {
		return err
	}
	return a.handleAnswer(ctx, res, err)
}

// releaseMemory gives back the memory of the earlier try: of the document that it has read, and of its drafts.
func (a *attempt) releaseMemory(leaders *budget.Account) {
	leaders.Cut(a.budgetLevel)
	for _, c := range a.open {
		if c.Room != leaders {
			c.Room.Cut(c.budgetLevel)
		}
	}
}

// start chooses the revision for the first try. A base can't be it if the lane has replaced it, or if the index was made anew since. The
// error is base.ErrMoved.
func (a *attempt) start(ctx context.Context) error {
	first := a.open[0]
	switch rev, ok := a.batch.Guess(first.scope()); {
	case ok && a.s.mayShare(first) && jsontext.Valid(first.Sent):
		a.cur, a.trail = first.unmarked(rev)
		a.source = guess
	case !first.fromBase, slices.ContainsFunc(a.open, func(c *change) bool { return c.Base.IsVoid() }): // the current document is read
	case a.batch.Superseded(first.revision().Numbers) && a.s.whyNotReplayed(ctx, first) == "":
		switch err := a.fetch(ctx); {
		case err == nil:
			a.source = early
		case errors.Is(err, base.ErrMoved):
			return err
		case ctx.Err() == nil:
			a.fromBases()
		}
	default:
		a.fromBases()
	}
	return nil
}

// fromBases has the next try made from the newest base of the batch, which is the most likely to be current.
func (a *attempt) fromBases() {
	first := a.open[0]
	a.cur, a.trail, a.source = first.revision(), first.trail, based
	for _, c := range a.open[1:] {
		if r := c.revision(); r.Source != nil && r.SeqNo > a.cur.SeqNo {
			a.cur, a.trail = r, c.trail
		}
	}
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
	a.source, a.item = unread, nil
	a.load = load{change: first, body: body, part: first.draft.Part, remove: first.draft.Delete, guard: a.cur.Numbers}
	if first.field() != "" {
		a.mark()
	}
	if first.req.Journal != nil {
		if err := a.noteInJournal(ctx); err != nil {
			return nil, err
		}
	}
	if a.mayPark() && a.load.park() {
		a.parked = true
		return nil, base.ErrParked
	}
	return a.s.carrier.carry(ctx, &a.load)
}

// mayPark reports whether nobody has to wait for the answer to the try that is about to be sent.
func (a *attempt) mayPark() bool {
	first := a.open[0]
	return first.req.Parker != nil && len(a.batch.Members) == 1 && first.attempts == 1 && first.req.Journal == nil && first.patch == nil &&
		first.moves == 0 && !first.onlyCreates()
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

// handleAnswer deals with the result of a try.
func (a *attempt) handleAnswer(ctx context.Context, res *upstream.Response, err error) error {
	first := a.open[0]
	conflict := err == nil && first.isConflict(res)
	if conflict {
		why := ack.Why(res.Fields, res.Payload)
		if conflict = a.s.concerns(ctx, first, &why); conflict {
			a.doubt.Conflicted(res.Node, why.Shard)
		} else {
			res.Release()
			err = errAnothers
		}
	}
	if first.req.Journal != nil {
		a.tellJournal(ctx, res, err)
	}
	switch {
	case err != nil:
		return a.handleNoAnswer(ctx, err)
	case conflict:
		return a.handleConflict(ctx, res)
	case res.Status == 200 || res.Status == 201:
		return a.handleSuccess(ctx, res)
	case res.Status == 404 && first.goesAsPart() && first.Part.Upsert && ack.SaysMissing(res):
		res.Release()
		a.conflict = first.conflict(intent.ErrDeleted.Error())
		return doc.ErrConflict
	case res.Status/100 == 4 && res.Status != 429 && len(a.open) > 1:
		// One change that the engine refuses, or all of them together, must not fail the others: each goes alone.
		res.Release()
		a.split(ctx)
		return nil
	case res.Status == 400 && !first.maybeApplied && ack.RefusesGuard(res):
		res.Release()
		a.s.catalog.RefusedGuard(first.Asker(), first.Doc.Index)
		a.endUnguarded(outcome.ReasonSeqNo)
		return nil
	}
	a.handleError(res)
	return nil
}

// isConflict reports whether the answer to a try says that somebody else has written: a 409, or the noop of an _update that only creates.
func (c *change) isConflict(res *upstream.Response) bool {
	return res.Status == 409 || res.Status == 200 && c.onlyCreates() && !ack.IsDropped(res)
}

// endUnguarded ends the attempt on its only change, which the engine can't guard. The change may then go without a guard, so no try may
// have been applied.
func (a *attempt) endUnguarded(reason string) {
	c := a.open[0]
	c.Outcome.Reason, c.err, a.open = reason, errNoGuard, nil
}

// split gives every open change an attempt of its own. If a try of a change may have been applied, its outcome stays unknown.
func (a *attempt) split(ctx context.Context) {
	for _, c := range a.open {
		if c.maybeApplied {
			c.err = ErrUnknownOutcome
			continue
		}
		a.goAlone(ctx, c)
	}
	a.open = nil
}

// goAlone gives a change of the batch an attempt of its own.
func (a *attempt) goAlone(ctx context.Context, c *change) {
	a.batch.Forget() // the change must not start from the batch's document
	(&attempt{s: a.s, batch: a.batch, open: []*change{c}}).do(ctx)
}

// lastAnswer is the answer to a change that is still open when the tries end: the engine's own conflict, if that came last.
func (a *attempt) lastAnswer(c *change, err error) (*respond.Answer, error) {
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
