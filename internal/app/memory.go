package app

import (
	"optimist/internal/budget"
	"optimist/internal/config"
	"optimist/internal/obs"
)

// openBudget makes what requests take their memory from.
func (a *App) openBudget(c *config.Config) error {
	a.budget = budget.New(budget.Options{Limit: c.Limits.MemoryOr(budget.Machine()), Refused: a.overloaded})
	a.metrics.WatchMemory(a.budget.Limit(), a.budget.Used)
	return nil
}

const (
	// ofConnection is what a connection takes beside the budget: its buffers, its stacks, and what is free for each request.
	ofConnection = 16 << 10
	// ofProgram is what the program takes with no client: its code's data, metrics, what it knows of indices and locks, and room for the
	// garbage collector to work in.
	ofProgram = 32 << 20
)

// MemoryOfAll is how many bytes the whole process takes at most, if all that is bounded reaches its bound.
func (a *App) MemoryOfAll() int64 {
	c := a.current.Load()
	return a.budget.Limit() + c.Sessions.Memory.Bytes() + int64(c.Limits.MaxConnections)*ofConnection + ofProgram
}

// overloaded counts a request that found no memory. The log tells of the first at once, and then of how many there were.
func (a *App) overloaded(o budget.Owner) {
	a.metrics.MemoryRefused(o.Anonymous())
	if count, tell := a.overloads.Count(); tell {
		a.log.Warn("requests find no memory: writes get a 503, reads aren't remembered (limits.memory)", obs.KeyCount, count,
			obs.KeyClient, o.Address.String(), "taken", a.budget.Used(), "limit", a.budget.Limit())
	}
}
