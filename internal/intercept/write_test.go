package intercept

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"optimist/internal/base"
	"optimist/internal/etag"
	"optimist/internal/intake"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// What became of a write is account by its status, too: who gets a 409 reads again, who gets a 504 must not take it for either.
func TestErrorsOfWritesHaveTheirStatus(t *testing.T) {
	for err, want := range map[error]string{
		write.ErrUnknownOutcome: "504 unknown_outcome", intake.ErrTimeout: "503 timeout_exception", base.ErrPreconditionRequired: "428 precondition_required",
		base.ErrLost: "409 version_conflict_engine_exception", base.ErrAmbiguous: "409 version_conflict_engine_exception",
		base.ErrNoMatch: "409 version_conflict_engine_exception", etag.ErrBad: "400 illegal_argument_exception",
		intake.ErrContradiction: "400 illegal_argument_exception",
	} {
		var f *proxy.Failure
		if !errors.As(failure(fmt.Errorf("on the way: %w", err)), &f) || fmt.Sprint(f.Status, " ", f.Type) != want || !strings.Contains(f.Reason, err.Error()) {
			t.Errorf("%v: %v, want %s", err, f, want)
		}
	}
}

func TestARequestsPriorityIsStrongerThanItsRules(t *testing.T) {
	foreground, jobs := &rule.Rule{}, &rule.Rule{Background: true}
	for _, c := range []struct {
		said string
		ru   *rule.Rule
		want bool
	}{{"", foreground, false}, {"", jobs, true}, {"Background", foreground, true}, {"foreground", jobs, false}} {
		var fields []wire.Field
		if c.said != "" {
			fields = []wire.Field{{Name: []byte("optimist-PRIORITY"), Value: []byte(c.said)}}
		}
		if background(fields, c.ru) != c.want {
			t.Errorf("%q under %v: background %v", c.said, c.ru.Background, !c.want)
		}
	}
}

// What guarding would have done is said beside what was lost, for whoever decides by it.
func TestObserveSaysWhatGuardingWouldHaveDone(t *testing.T) {
	merge, refuse := &rule.Rule{}, &rule.Rule{FailConflict: true}
	for _, c := range []struct {
		base session.Base
		lost bool
		ru   *rule.Rule
		want outcome.Kind
	}{
		{session.Base{}, false, merge, outcome.Passed}, {session.Base{Kind: session.KindRead, Version: 3}, false, merge, outcome.Guarded},
		{session.Base{Kind: session.KindRead, Version: 3}, true, merge, outcome.Merged}, {session.Base{Kind: session.KindRead, Version: 3}, true, refuse, outcome.Guarded},
		{session.Base{Kind: session.KindAbsent}, false, merge, outcome.Guarded}, {session.Base{Kind: session.KindAbsent}, true, merge, outcome.Merged},
	} {
		if got := would(&c.base, c.lost, c.ru); got != c.want {
			t.Errorf("%v of version %d, lost %v: %v, want %v", c.base.Kind, c.base.Version, c.lost, got, c.want)
		}
	}
}
