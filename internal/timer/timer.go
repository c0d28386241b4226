// Package timer waits, and calls functions from time to time.
package timer

import (
	"context"
	"math/rand/v2"
	"time"
)

// Every calls do until ctx ends, once in that time. The moments are random, so that proxies which were started together don't do it
// together. It returns when ctx has ended, and do with it.
func Every(ctx context.Context, every time.Duration, do func(ctx context.Context)) {
	for Sleep(ctx, every/2+rand.N(every)) == nil { //nolint:gosec // nothing secret
		do(ctx)
	}
}

// Sleep waits. Its error is the cause of ctx's end, if that comes first.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
