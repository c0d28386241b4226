package app

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"optimist/internal/obs"
)

// Close ends whatever was started.
func (a *App) Close() {
	a.cancel()
	a.beside.Wait()
	a.closeDoor()
	if a.locks != nil {
		a.locks.Close()
	}
	if a.admin != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = a.admin.Shutdown(ctx) // a profile that somebody is reading needn't be waited for
	}
	for _, l := range []net.Listener{a.data, a.adminPlace} {
		if l != nil {
			_ = l.Close() // closed already, mostly
		}
	}
	if a.nodes != nil {
		a.nodes.Close()
	}
	if a.notes != nil {
		a.notes.Close()
	}
	for _, end := range slices.Backward(a.atEnd) {
		end()
	}
	if a.engine != nil {
		_ = a.engine.Close() // it holds nothing that could be lost by it
	}
}

// closeDoor ends the requests that are under way. Their clients are told what is known of them: a write that is out at the engine outlasts
// its client, and isn't waited for any more.
func (a *App) closeDoor() {
	if a.door == nil {
		return
	}
	a.door.Stop()
	a.nodes.HangUp()
	a.door.Close()
}

// ErrCut reports an end that cut requests.
var ErrCut = errors.New("requests were cut")

// errDrainTimeout is why a drain ends before its requests.
var errDrainTimeout = errors.New("drain.timeout")

// Drain ends the App without cutting a request: readiness goes first, so that load balancers send nothing new; after the
// configured delay, unless at is now, the listener; then the requests under way are waited for. When ctx ends, or drain.timeout
// passes, what is left is cut: ErrCut, if there was something. ctx's cause says why, for the log.
func (a *App) Drain(ctx context.Context, now bool) error {
	a.draining.Store(true)
	c := a.current.Load().Drain
	if !now {
		select {
		case <-time.After(c.Delay.Std()):
		case <-ctx.Done():
			return a.cut(context.Cause(ctx))
		}
	}
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, c.Timeout.Std(), errDrainTimeout)
		defer cancel()
	}
	open, active := a.door.Connections()
	a.log.Info("listener closed, finishing requests", "connections", open, "requests", active)
	if a.locks != nil {
		a.locks.Drain()
	}
	if a.door.Drain(ctx) != nil {
		return a.cut(context.Cause(ctx))
	}
	a.flushJournals(ctx)
	a.log.Info("drained")
	return nil
}

func (a *App) cut(why error) error {
	_, active := a.door.Connections()
	a.closeDoor()
	if active == 0 {
		a.log.Info("ended", obs.KeyReason, why.Error())
		return nil
	}
	a.log.Warn("ended, requests were cut", obs.KeyReason, why.Error(), "requests", active)
	return ErrCut
}

// flushTimeout bounds how long the end waits for the journals of locks with undo.
const flushTimeout = 5 * time.Second

// flushJournals stores what this process alone knows of the writes in journals.
func (a *App) flushJournals(ctx context.Context) {
	if a.undo == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, flushTimeout)
	defer cancel()
	if err := a.undo.Flush(ctx); err != nil {
		a.log.Warn("outcomes of writes under locks with undo aren't stored", obs.KeyError, err.Error())
	}
}
