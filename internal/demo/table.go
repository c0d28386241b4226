package demo

import (
	"fmt"
	"io"
	"strconv"

	"optimist/internal/demo/app"
)

// outcome holds the results of one kind of change: without optimist, and through it.
type outcome struct {
	shape           app.Shape
	direct, through app.Result
}

const rowFormat = "  %-16s %-23s %13s %16s %15s %9s %10s\n"

// printTable prints how many changes were kept, and how many were lost.
func printTable(out io.Writer, s *stage, results []outcome) {
	fmt.Fprintf(out, "\n%d workers, %d rounds each, one document:\n\n", s.Workers, s.Rounds)
	fmt.Fprintf(out, rowFormat, "change", "where", "acknowledged", "in the document", "lost", "refused", "rounds/s")
	for _, o := range results {
		row(out, labelOf(o.shape), "without optimist", &o.direct)
		row(out, "", "through optimist", &o.through)
	}
	fmt.Fprintln(out)
}

func row(out io.Writer, shape, where string, r *app.Result) {
	n := func(i int64) string { return strconv.FormatInt(i, 10) }
	rate := fmt.Sprintf("%.0f", r.PerSecond())
	fmt.Fprintf(out, rowFormat, shape, where, n(r.Acknowledged), n(r.Found), lost(r), n(r.Refused+r.Errors), rate)
}

func lost(r *app.Result) string {
	switch {
	case r.Invented > 0:
		return fmt.Sprintf("%d, invented %d", r.Lost, r.Invented)
	case r.Lost == 0 || r.Acknowledged == 0:
		return "0"
	}
	return fmt.Sprintf("%d (%.0f %%)", r.Lost, 100*float64(r.Lost)/float64(r.Acknowledged))
}

func labelOf(s app.Shape) string {
	return [...]string{app.Fields: "own fields", app.Counter: "one counter, +1", app.List: "a list, append"}[s]
}
