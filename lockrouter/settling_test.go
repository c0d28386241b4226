package lockrouter_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"optimist/internal/undo"
	"optimist/lockrouter"
)

// settling are journals that can't be settled in time, and why.
type settling struct {
	lockrouter.Undo
	why error
}

func (s settling) Settle(ctx context.Context, _ *undo.Lock, _ func(int64, string) (bool, error)) error {
	<-ctx.Done()
	return fmt.Errorf("%w: %w", s.why, ctx.Err())
}

// TestOnlyWhatIsBeingUndoneIsSaidToBe: nobody knows that of journals which can't be read in time.
func TestOnlyWhatIsBeingUndoneIsSaidToBe(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		for _, c := range []struct {
			why    error
			status int
			typ    string
		}{{undo.ErrBusy, 409, lockrouter.TypeHeld}, {undo.ErrStore, 503, "lock_store_unavailable"}} {
			r := router(t, s, lockrouter.Options{Undo: settling{why: c.why}, Patience: time.Second})
			_ = ask(t, r, c.status, c.typ, "PUT", global, `{"owner":"next","wait":"0"}`)
		}
	})
}
