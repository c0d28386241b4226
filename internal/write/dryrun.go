package write

import (
	"context"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/delivery"
	"optimist/internal/doc"
	"optimist/internal/explain"
	"optimist/internal/noop"
	"optimist/internal/respond"
	"optimist/retry"
)

// Explain tells what Do would do with the write, without doing it. It runs Do with a stand-in for the engine, which answers as the engine
// would for the current document. It reserves no base, holds up no lane and counts nothing. It doesn't know for what reasons the engine
// itself would refuse the document.
//
// Errors are those of Do. If an error is the client's answer (a rule demands a base, for example), there is an account, too.
func (s *Service) Explain(ctx context.Context, r *Request) (*explain.Account, error) {
	a := &explain.Account{Requests: []explain.Request{}}
	eyes := &explain.Onlooker{Engine: s.engine}
	stage := *s
	stage.sessions, stage.means.Observer, stage.primaries = s.sessions.Glance(), a, nil
	stage.bases = &base.Finder{Engine: eyes, Catalog: s.catalog, Sessions: stage.sessions}
	stage.gate = s.gate.Glance(stage.bases)
	c := &r.change
	play := &explain.Rehearsal{Account: a, Passed: r.Reason,
		Look:  func(ctx context.Context) (doc.Revision, error) { return stage.bases.Current(ctx, &c.Search) },
		Named: func() respond.Document { return stage.documentOf(c) }}
	stage.letters = nil // the account says what would be refused; no dead letter is made
	stage.direct, stage.events = single{delivery.Sender{Up: play}}, Events{}
	stage.carrier, stage.noops = stage.direct, noop.Asker{Sender: delivery.Sender{Up: explain.Silence{}}}
	stage.lanes = retry.NewLanes(1, stage.mayJoin)
	answer, err := stage.Do(ctx, r)
	if play.Failed != nil {
		return nil, play.Failed
	}
	c.fillAccount(a)
	if last := eyes.Last; last != nil {
		a.Current = explain.NewRevision(last.Numbers, last.Version, last.Source)
	}
	if n := len(a.Requests); n > 0 && a.Requests[n-1].Status >= 300 {
		a.Document = nil
	}
	if play.Undecided != "" && answer != nil && answer.Status < 300 {
		answer.Status, answer.Body = 0, nil
		a.Notes = append(a.Notes, play.Undecided)
	}
	a.Outcome = explain.OutcomeOf(&c.Outcome)
	if answer != nil {
		a.SetAnswer(answer.Status, answer.Body)
		defer answer.Release()
	}
	if c.Rule.DeadLetters && (err != nil || answer != nil && c.undelivered(nil).Why() != "") {
		a.Notes = append(a.Notes,
			"on_exhausted is dead_letter: a write that can't be placed is kept, and its client gets a 202 in place of the error")
	}
	return a, err
}

// fillAccount fills in what the write is about.
func (c *change) fillAccount(a *explain.Account) {
	a.About(&c.Search)
	switch {
	case c.patch != nil && (c.Part == nil || !c.BaseKnown()):
		a.SetChange(c.draft.From, c.draft.Edited)
	case c.BaseKnown() && (c.Part != nil || c.JSON && c.Op.Kind != api.Update):
		a.SetChange(c.Base.View, c.inHand())
	}
}
