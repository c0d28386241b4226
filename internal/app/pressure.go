package app

import (
	"optimist/internal/config"
	"optimist/internal/delivery"
	"optimist/internal/es"
	"optimist/internal/obs"
	"optimist/internal/pressure"
)

// carrier is what carries guarded writes to the engine: directly, unless the configuration bounds how many are under way.
func (a *App) carrier(u *config.Upstream) es.Doer {
	if !u.AdaptiveLimit {
		return a.nodes
	}
	limiter := pressure.New(pressure.Options{Most: u.MaxConnections * len(u.URLs), Wait: u.AcquireTimeout.Std(), IsBusy: delivery.IsBusy})
	a.metrics.WatchWrites(func() obs.Writes { return obs.Writes(limiter.Stats()) })
	return limiter.Over(a.nodes)
}
