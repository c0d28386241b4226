package write

import (
	"context"
	"time"
)

// leastPatience is how long a write waits for its turn at least, whatever its own timeout: the engine, too, takes a timeout of 0 only as
// "don't wait for shards", and writes.
const leastPatience = time.Second

// withTimeout bounds what the change waits for by the client's own timeout.
func (c *change) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.deadline.IsZero() {
		return ctx, func() {}
	}
	end := c.deadline
	if least := time.Now().Add(leastPatience); end.Before(least) {
		end = least
	}
	return context.WithDeadlineCause(ctx, end, ErrTimeout)
}
