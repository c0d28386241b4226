package undo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"optimist/internal/enginetest"
	"optimist/internal/undo"
	"optimist/internal/upstream"
	"optimist/rewrite/merge"
)

// TestWhatIsLeftHasADeadLetterWhateverBreaks: the rollback can't undo a sum of unknown outcome, and writes the document as it is. Something
// breaks between that write and the dead letter. The rollback that goes on finds its plan carried out.
func TestWhatIsLeftHasADeadLetterWhateverBreaks(t *testing.T) {
	broken := errors.New("it breaks once")
	for name, breaks := range map[string]func(e *enginetest.Engine, o *undo.Options, once func() error){
		"the answer to the write is lost": func(e *enginetest.Engine, _ *undo.Options, once func() error) {
			e.After = func(r *upstream.Request, _ *upstream.Response) error {
				if strings.HasPrefix(string(r.Target), "/_bulk") && once() != nil {
					return enginetest.ErrLost
				}
				return nil
			}
		},
		"the process ends behind the write": func(_ *enginetest.Engine, o *undo.Options, once func() error) {
			o.Fault = func(step string) error {
				if step == "written" {
					return once()
				}
				return nil
			}
		},
		"the dead letter isn't kept": func(_ *enginetest.Engine, o *undo.Options, once func() error) {
			keep := o.Left
			o.Left = func(ctx context.Context, l *undo.Left) error {
				if err := once(); err != nil {
					return err
				}
				return keep(ctx, l)
			}
		},
		"the process ends behind the dead letter": func(_ *enginetest.Engine, o *undo.Options, once func() error) {
			keep := o.Left
			o.Left = func(ctx context.Context, l *undo.Left) error { return errors.Join(keep(ctx, l), once()) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			sums, err := merge.New(merge.Sent, []merge.PathRule{{Path: "/n", Strategy: merge.Sum}})
			if err != nil {
				t.Fatal(err)
			}
			letters := map[string]string{}
			e, broke := enginetest.New(), false
			o := undo.Options{Upstream: e, Index: "undo", Authorization: "Basic x", Grace: time.Millisecond,
				Merger: func(string) undo.Merger { return sums },
				Left:   func(_ context.Context, l *undo.Left) error { letters[l.Name] = l.Why; return nil }}
			breaks(e, &o, func() error {
				if broke {
					return nil
				}
				broke = true
				return broken
			})
			s := undo.New(o)
			noted(t, s, e)
			e.Put(t, "/docs/_doc/1", `{"n":10}`)
			n, err := s.Rollback(t.Context(), 7)
			if err != nil {
				n, err = s.Rollback(t.Context(), 7)
			}
			if why := letters["7 0 /_lock/global/x"]; err != nil || n != 1 || len(letters) != 1 || !strings.Contains(why, "it isn't known") || !broke {
				t.Errorf("%d left, letters %q, %v, broken: %v; want one letter", n, letters, err, broke)
			}
		})
	}
}
