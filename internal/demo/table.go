package demo

import (
	"fmt"
	"io"
	"text/tabwriter"

	"optimist/internal/demo/app"
)

// printTable prints what became of the changes.
func printTable(out io.Writer, s *stage, results []outcome) {
	fmt.Fprintf(out, "\n%d workers, %d rounds each, one document:\n\n", s.Workers, s.Rounds)
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "  change\twhere\tacknowledged\tin the document\tlost\trefused\trounds/s\t")
	for _, o := range results {
		row(w, describe(o.shape), "straight at the engine", &o.direct)
		row(w, "", "through optimist", &o.through)
	}
	_ = w.Flush() // to a terminal or a pipe that has gone: nobody's loss
	fmt.Fprintln(out)
}

func row(w io.Writer, shape, where string, r *app.Result) {
	fmt.Fprintf(w, "  %s\t%s\t%d\t%d\t%s\t%d\t%.0f\t\n", shape, where, r.Acknowledged, r.Found, lost(r), r.Refused+r.Errors, r.PerSecond())
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
