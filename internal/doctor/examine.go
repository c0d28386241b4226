package doctor

import (
	"cmp"
	"context"
	"time"
)

// Examine makes all checks. A cluster that doesn't answer is a finding, too. If ctx ends, the report has the findings until then.
func Examine(ctx context.Context, o Options) *Report {
	o.Timeout = cmp.Or(o.Timeout, 10*time.Second)
	e := &examination{Options: o, ctx: ctx, report: &Report{Seen: -1}}
	e.reach()
	if e.node.Doer == nil {
		return e.report
	}
	e.version()
	e.cluster()
	e.privileges()
	e.scripts()
	e.indices()
	return e.report
}
