package app

import (
	"context"

	"optimist/internal/config"
	"optimist/internal/fencing"
	"optimist/internal/gate"
	"optimist/internal/outcome"
	"optimist/lockrouter"
	"optimist/proxy"
)

// enforcement asks the locks on behalf of writes.
type enforcement struct{ a *App }

// Admit implements gate.Locks.
func (e enforcement) Admit(ctx context.Context, q *fencing.Question) *gate.Refusal {
	answer, why := e.a.locks.Admit(ctx, q)
	if answer == nil {
		return nil
	}
	refusal := &gate.Refusal{Status: answer.Status, Fields: answer.Fields, Body: answer.Body}
	switch why {
	case lockrouter.Stale:
		refusal.Reason = outcome.ReasonStaleToken
	case lockrouter.StoreUnavailable:
		refusal.Reason = outcome.ReasonLockStore
	case lockrouter.Unplaced:
		refusal.Reason = outcome.ReasonUnguardable
	default:
		refusal.Reason = outcome.ReasonLocked
	}
	return refusal
}

// writeLocks is what writes ask; nil where there are no locks.
func (a *App) writeLocks(c *config.Config) gate.Locks {
	if c.Locks.Path == "" {
		return nil
	}
	return enforcement{a}
}

// enforces reports whether a rule enforces locks.
func (a *App) enforces() bool { return a.rules.Rules().Enforces() != nil }

// touch has documents written as they are, on behalf of the client that has locked them.
func (a *App) touch(ctx context.Context, q *lockrouter.Request, index string, ids []string) error {
	err := a.interceptor.Touch(ctx, a.callerOf(q), index, ids)
	if err == nil {
		return nil
	}
	if f := proxy.FailureOf(err, false); f != nil {
		return &lockrouter.Failure{Status: f.Status, Type: f.Type, Reason: f.Reason, Fields: f.Fields}
	}
	return err
}
