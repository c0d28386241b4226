package doctor

import (
	"fmt"
	"io"
	"text/tabwriter"

	"optimist/internal/printable"
)

// maxListed is how many indices stand in the table; clusters have thousands.
const maxListed = 50

// Write prints the report as tables for people. What the engine says is escaped: it must not write to the terminal what it likes. The error
// is w's.
func (r *Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r.Findings {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Level, f.Topic, printable.Line(f.Text))
	}
	if len(r.Indices) > 0 {
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w)
		fmt.Fprintln(t, "\tINDEX\tRULE\tWHAT OPTIMIST DOES\tWHY")
		for i, x := range r.Indices {
			if i == maxListed {
				fmt.Fprintf(t, "\tand %d more\t\t\t\n", len(r.Indices)-maxListed)
				break
			}
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", x.Level, printable.Word(x.Name), x.Rule, x.Does, printable.Line(x.Why))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "\n%s\n", r.verdict())
	return err
}

func (r *Report) verdict() string {
	switch r.worst() {
	case Fail:
		return "Something won't work: see FAIL."
	case Warn:
		return "It will work, with the limits under warn."
	}
	return "Everything that doctor looked at will work through optimist."
}
