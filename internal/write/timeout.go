package write

import (
	"context"
	"math"
	"strconv"
	"time"
)

// leastPatience is how long a write waits for its turn at least, whatever its own timeout: the engine, too, takes a timeout of 0 only as
// "don't wait for shards", and writes.
const leastPatience = time.Second

// units are the engine's units of time.
var units = [...]struct {
	name string
	unit time.Duration
}{
	{"nanos", 1}, {"micros", time.Microsecond}, {"ms", time.Millisecond}, {"s", time.Second},
	{"m", time.Minute}, {"h", time.Hour}, {"d", 24 * time.Hour},
}

// parseTimeout reads the value of the timeout parameter. ok is false for what is no bound: -1, and what the engine refuses.
func parseTimeout(v []byte) (d time.Duration, ok bool) {
	if string(v) == "0" {
		return 0, true
	}
	n := 0
	for n < len(v) && (v[n] >= '0' && v[n] <= '9' || v[n] == '.') {
		n++
	}
	for _, u := range units {
		if string(v[n:]) != u.name {
			continue
		}
		f, err := strconv.ParseFloat(string(v[:n]), 64)
		f *= float64(u.unit)
		return time.Duration(f), err == nil && f < math.MaxInt64
	}
	return 0, false
}

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
