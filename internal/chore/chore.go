// Package chore does what has to be done from time to time, by every proxy.
package chore

import (
	"context"
	"math/rand/v2"
	"time"

	"optimist/retry"
)

// Every calls do until ctx ends, once in that time. The moments are random, so that proxies which were started together don't do it
// together. It returns when ctx has ended, and do with it.
func Every(ctx context.Context, every time.Duration, do func(ctx context.Context)) {
	for retry.Sleep(ctx, every/2+rand.N(every)) == nil { //nolint:gosec // nothing secret
		do(ctx)
	}
}
