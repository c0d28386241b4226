package write

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"optimist/internal/ack"
	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intent"
	"optimist/internal/journal"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/respond"
	"optimist/internal/stamp"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/retry"
)

// Who merges an _update. Each of these functions leaves to the next one what it can't do:
//
//	updateSeen (partial.go)  optimist merges the part of a client that has seen the document: a change from the client's view
//	updateHere               optimist merges any part, as a patch, if a transform or locks need the whole document
//	updateByEngine           the engine merges: under a guard that the client names (updateGuarded), with tries that optimist adds
//	                         (updateRetried), or as the client sent it (pass)

// update performs an _update. Two kinds have a way of their own: with If-None-Match: *, and with a journal, only optimist can merge them.
func (s *Service) update(ctx context.Context, c *change) error {
	c.epoch, c.epochAt = s.sessions.Epoch(), s.sessions.Now()
	if c.OnlyNew {
		return s.updateOnlyNew(ctx, c)
	}
	piped, err := s.pipesUpsert(ctx, c)
	if err != nil {
		return err
	}
	switch {
	case piped && c.req.Journal != nil:
		return journal.ForEngine()
	case piped:
		c.Outcome.Reason = outcome.ReasonPipeline
		return s.updateByEngine(ctx, c)
	case c.req.Journal != nil:
		return s.updateJournalled(ctx, c)
	}
	if taken, err := s.updateSeen(ctx, c); taken || err != nil {
		return err
	}
	return s.updateUnseen(ctx, c)
}

// updateUnseen is update for a client that hasn't seen the document.
func (s *Service) updateUnseen(ctx context.Context, c *change) error {
	if c.makesUpdates() {
		if taken, err := s.updateHere(ctx, c); taken || err != nil {
			return err
		}
	}
	return s.updateByEngine(ctx, c)
}

// pipesUpsert reports whether the engine runs an ingest pipeline over the upsert of an _update. In a bulk it does so even if there is a
// document, and the engine takes no upsert together with a guard. So such an _update has to go as it is.
func (s *Service) pipesUpsert(ctx context.Context, c *change) (piped bool, err error) {
	switch {
	case c.req.Piped:
		return true, nil
	case c.Way == nil, !patch.Upserts(c.Op, c.req.Body):
		return false, nil
	}
	err = s.bases.Locate(ctx, &c.Search)
	return c.Index.Pipeline, err
}

// updateByEngine sends an _update for the engine to merge.
func (s *Service) updateByEngine(ctx context.Context, c *change) error {
	c.Outcome.Untransformed = c.Rule.Transform != nil
	if s.gate.Enforces(c.Rule) {
		return s.pass(ctx, c, c.Outcome.Reason) // the client gives its own guard, or wants none
	}
	if c.Rule.HasStrategies {
		s.events.StrategiesUnused.Call(c.Rule.Name)
	}
	if _, found := api.OwnGuard(c.Op.Query); found || api.GuardsItself(c.req.Body) {
		c.Outcome.Base = outcome.BaseExplicit
		return s.pass(ctx, c, outcome.ReasonExplicit)
	}
	n, found, err := s.bases.GuardOfPart(ctx, &c.Search)
	switch _, given := uri.Param(c.Op.Query, "retry_on_conflict"); {
	case err != nil:
		return err
	case found:
		return s.updateGuarded(ctx, c, n)
	case given, c.Rule.RetryOnConflict == 0:
		return s.pass(ctx, c, c.Outcome.Reason)
	}
	return s.updateRetried(ctx, c)
}

// updateRetried sends an _update, and sends it again as long as it conflicts with other clients' writes. After a change of primary the
// engine sends an _update again by itself. So a script may have run, and have conflicted with itself.
func (s *Service) updateRetried(ctx context.Context, c *change) error {
	retries, onlyOnce := c.Rule.RetryOnConflict, !c.JSON || patch.RunsScript(c.req.Body)
	if onlyOnce {
		retries = 0 // the engine itself would try again after a conflict with its own first try, and run the script twice
	}
	err := retry.Do(ctx, c.policy(), func(ctx context.Context, n int) error {
		if n > 1 && ctx.Err() != nil {
			return doc.ErrConflict // updateOnce has set the answer
		}
		met := catalog.Conflict{Sent: time.Now()}
		c.Outcome.Kind = outcome.Retried
		res, err := s.updateOnce(ctx, c, doc.Numbers{}, c.out.Retried(c.req.Body, retries))
		if err != nil || c.answer.Status != http.StatusConflict {
			return err
		}
		s.events.Conflict.Call(c.Rule.Name)
		met.Answered, met.Node, met.Shard = time.Now(), res.Node, ack.Why(c.answer.Fields, c.answer.Body).Shard
		if onlyOnce && !met.Quick() && (s.bases.Locate(ctx, &c.Search) != nil || !s.metOthers(ctx, c, met, 0)) {
			c.answer.Release()
			c.answer = nil
			return fmt.Errorf("%w: it may have conflicted with its own first try", ErrUnknownOutcome)
		}
		return doc.ErrConflict
	})
	if c.answer != nil {
		return nil // the answer is the engine's last one
	}
	return err
}

// updateOnce sends an _update once, under a guard, if it has one. The engine's answer, whatever it is, becomes the change's answer.
func (s *Service) updateOnce(ctx context.Context, c *change, guard doc.Numbers, r *upstream.Request) (*upstream.Response, error) {
	c.answer.Release()
	c.answer = nil
	res, got, err := s.sendDirect(ctx, c, guard, r)
	if err != nil {
		return nil, err
	}
	c.setAnswer(c.answerRoom.FromEngine(res))
	if res.Status < 300 {
		s.sessions.Wrote(c.Session.Credentials(), c.Doc.Index)
		s.noteUpdate(ctx, c, res, &got)
	}
	return res, nil
}

// updateGuarded sends an _update under a guard. The engine takes no guard with an upsert. A client that sends a stamp has seen the
// document, so its upsert is left out: if the document is gone, that is a conflict.
func (s *Service) updateGuarded(ctx context.Context, c *change, n doc.Numbers) error {
	upserts := false
	if c.Outcome.Base == outcome.BaseStamp { // the client names no guard, and doesn't know of this one
		c.out.Query = uri.Without(nil, c.out.Query, "retry_on_conflict")
		c.req.Body, upserts = stamp.Without(c.req.Body, "upsert", "doc_as_upsert")
		if _, given := uri.Param(c.out.Query, "doc_as_upsert"); given {
			upserts, c.out.Query = true, uri.Without(nil, c.out.Query, "doc_as_upsert")
		}
	}
	c.Outcome.Kind = outcome.Guarded
	_, err := s.updateOnce(ctx, c, n, c.out.Guarded(c.req.Body, n, false))
	if err != nil || !upserts || c.answer.Status != http.StatusNotFound {
		return err
	}
	c.answer.Release()
	c.answer = c.conflict(intent.ErrDeleted.Error())
	return nil
}

// makesUpdates reports whether optimist itself merges the doc of an _update, and writes the whole document: a transform, and locks, need
// the whole document.
func (c *change) makesUpdates() bool { return c.Rule.Transform != nil || c.Rule.Locks != nil }

// updateHere performs an _update with `doc` under a rule with a transform, like a patch: it reads the document, merges the part as the
// engine would, applies the transform, and writes the whole document under the guard of the read. In the part alone, `default` would
// overwrite, `increment` would count from nothing, and `now` would turn every noop into a write.
//
// taken is false for requests that only the engine can carry out. They pass untransformed: an _update with a script; one through an
// ingest pipeline (unless it may run again), of a document that isn't seen whole, or by a client that can't read it; and invalid
// requests, so that the engine says what is wrong. An upsert is transformed like any document.
func (s *Service) updateHere(ctx context.Context, c *change) (taken bool, err error) {
	p, refusal, ok := patch.ReadUpdate(c.Op, c.Fields, c.req.Body, false, c.Room)
	if !ok {
		return false, nil
	}
	before := *c
	if c.Part != nil && c.Rule.MergeExplicit {
		p.Guard = doc.Numbers{} // the guard is the base
	}
	c.asPatch(p)
	valid := refusal == nil && !(p.Upsert && p.Guard.Known())
	if c.Part != nil {
		s.rebasePatch(c)
	}
	if valid {
		if err = s.edit(ctx, c); !c.onlyEngineCan(err) {
			return true, err
		}
	}
	// The change is as before, except for the reason why the engine has to apply it.
	before.Outcome.Reason = c.Outcome.Reason
	if c.Part == nil {
		c.Base.Release()
	}
	*c = before
	return false, nil
}

// onlyEngineCan reports whether only the engine can carry out an _update, of which edit has ended with err. Nothing was written.
func (c *change) onlyEngineCan(err error) bool {
	unread := errors.Is(err, es.ErrForbidden) || errors.Is(err, es.ErrNoSource)
	return c.obstacle == unpatchable || errors.Is(err, errNoGuard) || unread && c.attempts == 0
}

// updateOnlyNew performs, as a patch, an _update that wants no document to be there. The engine would apply it to one that came meanwhile.
func (s *Service) updateOnlyNew(ctx context.Context, c *change) error {
	p, refusal, ok := patch.ReadUpdate(c.Op, c.Fields, c.Sent, true, c.Room)
	if !ok {
		c.answer = respond.Error(http.StatusBadRequest, "illegal_argument_exception", "["+c.Doc.ID+"]: If-None-Match: * can't be kept with this "+
			"_update: it has to be JSON, with a doc or a script, and without scripted_upsert. A PUT with If-None-Match: * makes a document")
		return nil
	}
	c.asPatch(p)
	if refusal != nil {
		c.answer = refusal
		return nil
	}
	return s.edit(ctx, c)
}
