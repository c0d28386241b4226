// Package write takes one write of a client from request to answer: it chooses the base, guards the write, and on a conflict
// merges the client's change into the newer revision and writes again.
//
// It answers success only if the engine has acknowledged the write. If the outcome is unknown, it sends a write again only if the change
// can't be applied twice by that. It doesn't know connections, configuration files or other proxies.
package write

import (
	"cmp"
	"context"
	"errors"
	"time"

	"optimist/internal/api"
	"optimist/internal/apply"
	"optimist/internal/base"
	"optimist/internal/budget"
	"optimist/internal/catalog"
	"optimist/internal/delivery"
	"optimist/internal/gate"
	"optimist/internal/noop"
	"optimist/internal/respond"
	"optimist/internal/session"
	"optimist/retry"
)

// New makes a Service.
func New(o Options) *Service {
	o.BatchLimit = cmp.Or(o.BatchLimit, 64)
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{engine: o.Engine, sessions: o.Sessions, events: o.Events,
		means: apply.Means{Now: o.Now, MaxBody: int(o.MaxBody)}, letters: o.Letters}
	if o.Writes == nil {
		o.Writes = o.Upstream
	}
	s.direct, s.noops = single{delivery.Sender{Up: o.Writes}}, noop.Asker{Sender: delivery.Sender{Up: o.Upstream}}
	s.lanes = retry.NewLanes(o.BatchLimit, s.mayJoin)
	s.lanes.Waits, s.lanes.Late = (*change).waits, func(c *change) bool { return c.Late }
	s.catalog = catalog.New(catalog.Options{Engine: o.Engine, OwnAuth: o.OwnAuth, Now: o.Now, Unguardable: s.events.Unguardable.Call,
		Sessions: o.Sessions,
		Recreated: func(credentials session.Credentials, index string) {
			s.lanes.DropGuesses()
			s.sessions.DropIndex(credentials, index)
		}})
	s.carrier, s.primaries = s.direct, s.catalog
	s.bases = &base.Finder{Engine: o.Engine, Catalog: s.catalog, Sessions: o.Sessions, Fetched: o.Events.Fetch, Chosen: o.Events.BaseChosen}
	s.gate = &gate.Gate{Locks: o.Locks, Bases: s.bases}
	return s
}

// Do performs the write and returns the answer for the client. Errors of the client, and errors that say that nothing was acknowledged, are
// this package's sentinels, those of upstream, and budget.ErrOverloaded; the caller maps them to a status. ctx ends when the client leaves.
// A write that isn't sent by then is never sent. A write that is sent runs to its end, and the session learns the result. The error is
// base.ErrParked if the request's Parker has the write: see Resume.
func (s *Service) Do(ctx context.Context, r *Request) (*respond.Answer, error) {
	c := &r.change
	if err := c.read(r, s); err != nil {
		return nil, err
	}
	c.Room = budget.Of(ctx)
	c.ctx, c.cancel = c.Within(ctx)
	defer c.release()
	return s.end(c, s.perform(c.ctx, c))
}

// Resume goes on with a write of which Do has returned base.ErrParked: the answer to its first try is there. It returns what Do would have
// returned. Unless that answer is an acknowledgement, Resume may wait for other requests to the engine.
func (s *Service) Resume(r *Request) (*respond.Answer, error) {
	c := &r.change
	defer c.release()
	c.lead.resume(c.ctx)
	return s.end(c, s.outOfLane(c.ctx, c))
}

func (a *attempt) resume(ctx context.Context) {
	defer a.batch.End()
	a.do(ctx)
	a.reportCollisions()
}

// release gives back what a write holds, unless the write is parked. It also runs after a panic, so that the session doesn't wait for ever.
func (c *change) release() {
	if !c.lead.parked {
		c.Base.Release()
		c.cancel()
	}
}

// waits tells the change's Parker that the change waits for its turn.
func (c *change) waits() {
	if c.req.Parker != nil {
		c.req.Parker.Waits()
	}
}

// perform does what this kind of write needs: a base, an intent, a place in the document's lane.
func (s *Service) perform(ctx context.Context, c *change) error {
	switch kind := c.Op.Kind; {
	case c.req.Reason != "":
		c.intents.Untransformed = true
		return s.pass(ctx, c, c.req.Reason)
	case kind == api.Update:
		return s.update(ctx, c)
	case kind == api.Patch:
		return s.patchDocument(ctx, c)
	case kind == api.Delete && c.OnlyNew:
		return s.deleteNothing(ctx, c)
	case c.isCreate():
		return s.create(ctx, c)
	case kind == api.IndexAuto:
		return s.createAnywhere(ctx, c)
	}
	return s.put(ctx, c)
}

// end makes the answer of a write that perform has ended with err. If the name was moved to another index meanwhile, end first performs
// the write again, in that index. It doesn't if the write may have been applied: the other index may be a copy of the one before, with the
// write in it. The error is base.ErrParked if the write is parked, and so hasn't ended.
func (s *Service) end(c *change, err error) (*respond.Answer, error) {
	for errors.Is(err, base.ErrMoved) && !errors.Is(err, ErrUnknownOutcome) && c.moves < maxMoves {
		if err = s.beginAgain(c); err == nil {
			err = s.perform(c.ctx, c)
		}
	}
	if c.lead.parked {
		return nil, base.ErrParked
	}
	if s.letters != nil && c.Rule.DeadLetters && !c.InOthersStream() {
		err = s.keep(c.ctx, c, err)
	}
	return s.finish(c, err)
}
