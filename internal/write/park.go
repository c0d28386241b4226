package write

import (
	"context"

	"optimist/internal/respond"
)

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
