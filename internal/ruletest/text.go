package ruletest

import (
	"cmp"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/tidwall/gjson"

	"optimist/internal/explain"
	"optimist/internal/rule"
)

// AccountText is an account for a terminal.
func AccountText(a *explain.Account) string {
	var b strings.Builder
	line := func(what, format string, args ...any) {
		fmt.Fprintf(&b, "%-10s%s\n", what, fmt.Sprintf(format, args...))
	}
	line("write", "%s of %s/%s%s", a.Operation, a.Index, a.ID, ofRouting(a))
	line("rule", "%s", ruleText(a))
	for _, s := range a.Skipped {
		if a.Rule == nil || s.Why != rule.OtherIndices { // most rules are about something else
			line("skipped", "%s: %s", s.Rule, s.Why)
		}
	}
	if a.Base != nil {
		line("base", "%s", baseText(a))
	}
	if a.Current != nil {
		line("current", "%s", revisionText(a.Current))
	}
	changeText(&b, a)
	mergeText(&b, a)
	stepsText(&b, a)
	for _, r := range a.Requests {
		fmt.Fprintf(&b, "request   %s %s%s\n", r.Method, r.Target, requestText(&r))
	}
	if a.Document != nil {
		fmt.Fprintf(&b, "document  %s\n", a.Document)
	}
	outcomeText(&b, a)
	for _, n := range a.Notes {
		fmt.Fprintf(&b, "note      %s\n", n)
	}
	return b.String()
}

func ofRouting(a *explain.Account) string {
	if a.Routing == "" {
		return ""
	}
	return ", routing " + a.Routing
}

func ruleText(a *explain.Account) string {
	if a.Rule == nil {
		return "none"
	}
	text := fmt.Sprintf("%s, the %s rule", a.Rule.Name, ordinal(a.Rule.Place))
	if a.Rule.Index != "" {
		text += fmt.Sprintf("; its index %s takes it", a.Rule.Index)
	}
	return text + "; mode " + a.Mode
}

func ordinal(n int) string {
	switch {
	case n%100 >= 11 && n%100 <= 13:
	case n%10 == 1:
		return fmt.Sprintf("%dst", n)
	case n%10 == 2:
		return fmt.Sprintf("%dnd", n)
	case n%10 == 3:
		return fmt.Sprintf("%drd", n)
	}
	return fmt.Sprintf("%dth", n)
}

func baseText(a *explain.Account) string {
	text := a.Base.Kind
	if a.Base.Ambiguous {
		text += " (a guess among several)"
	}
	if a.Base.Exists {
		text += ": " + revisionText(a.Base)
	}
	return text
}

func revisionText(r *explain.Revision) string {
	if !r.Exists {
		return "there is no document"
	}
	text := fmt.Sprintf("seq_no %d, primary term %d", *r.SeqNo, r.PrimaryTerm)
	if r.Version != 0 {
		text += fmt.Sprintf(", version %d", r.Version)
	}
	if r.Document != nil {
		text += "  " + short(r.Document)
	}
	return text
}

func changeText(b *strings.Builder, a *explain.Account) {
	ops := gjson.ParseBytes(a.Change).Array()
	if len(ops) == 0 {
		return
	}
	what := "from the base to what the client sent"
	if a.Operation == "patch" {
		what = "from the current document to the patched one"
	}
	fmt.Fprintf(b, "change    (%s, as a JSON Patch)\n", what)
	for _, op := range ops {
		fmt.Fprintf(b, "            %s\n", short([]byte(op.Raw)))
	}
}

func mergeText(b *strings.Builder, a *explain.Account) {
	if len(a.Merge) == 0 {
		return
	}
	b.WriteString("merge     (decision by path: base, sent, current -> result)\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for i := range a.Merge {
		d := &a.Merge[i]
		path := cmp.Or(d.Path, "(all)")
		sides := side(d.Base) + ", " + side(d.Sent) + ", " + side(d.Current) + " -> " + side(d.Result)
		fmt.Fprintf(t, "            %s\t%s\t%s\t%s\n", path, d.Decision, sides, whyText(d))
	}
	_ = t.Flush() // into memory
}

// side is one side of a decision: a dash where there is nothing.
func side(raw []byte) string {
	if raw == nil {
		return "-"
	}
	return short(raw)
}

func whyText(d *explain.Decision) string {
	var text string
	switch {
	case d.Strategy == "" && d.Decision == "taken":
		return "only the client changed it"
	case d.Strategy == "" && d.Decision == "kept":
		return "only another client changed it"
	case d.Strategy == "" && d.Decision == "same":
		return "both changed it to the same"
	case d.Strategy == "":
		return "both changed it: the edits of both"
	case d.Rule == "":
		text = "both changed it: " + d.Strategy + ", the default"
	default:
		text = "both changed it: " + d.Strategy + ", by " + d.Rule
	}
	if d.Unfit {
		text += ", which can't be applied to this"
	}
	return text
}

func stepsText(b *strings.Builder, a *explain.Account) {
	if len(a.Transform) == 0 {
		return
	}
	b.WriteString("transform\n")
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	for _, s := range a.Transform {
		what := "done"
		switch {
		case s.Refuses:
			what = "refuses the write"
		case !s.Done:
			what = "not done"
		}
		if s.Why != "" {
			what += ": " + s.Why
		}
		fmt.Fprintf(t, "            transform[%d]\t%s\t%s\n", s.Step, strings.TrimSpace(s.Op+" "+s.Path), what)
	}
	_ = t.Flush() // into memory
}

func requestText(r *explain.Request) string {
	switch r.Status {
	case 409:
		return "  (would conflict)"
	case 0:
		return ""
	}
	return fmt.Sprintf("  (would be answered with %d)", r.Status)
}

func outcomeText(b *strings.Builder, a *explain.Account) {
	o := &a.Outcome
	b.WriteString("outcome   ")
	switch {
	case o.Error != nil:
		fmt.Fprintf(b, "%d %s: %s", o.Status, o.Error.Type, o.Error.Reason)
	case o.Status == 0:
		b.WriteString("the engine's answer")
	default:
		fmt.Fprintf(b, "%d %s", o.Status, o.Result)
	}
	if o.Field != "" {
		fmt.Fprintf(b, "\n          Optimist-Outcome: %s", o.Field)
	}
	b.WriteString("\n")
}
