package main

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"optimist/internal/app"
	"optimist/internal/config"
	"optimist/internal/printable"
)

type checkCmd struct {
	File   string `arg:"" optional:"" help:"Configuration file."`
	Config string `help:"The same, as a flag like that of other commands." env:"OPTIMIST_CONFIG" placeholder:"FILE"`
	Strict bool   `help:"Fail on warnings, too. For continuous integration."`
}

// Help is the command's manual, beyond its flags.
func (checkCmd) Help() string {
	return `It lists all mistakes at once, as compilers do: FILE:LINE:COLUMN: what is wrong, and what would be right. If
there are none, it prints a summary of the configuration.

Exit status: 0 if the file can be used, 1 if not. With --strict, 1 also if there are warnings.`
}

// Run checks the file alone: flags and variables of serve play no part.
func (c *checkCmd) Run(p *process) error {
	name := cmp.Or(c.File, c.Config)
	if name == "" {
		return usageError("optimist check: no file is named: optimist check FILE")
	}
	cfg, _, err := (&settings{Config: name}).load()
	if err != nil {
		return badConfig(p.stderr, err, exitFailed)
	}
	found := append(warnings(cfg), app.Unusable(cfg)...)
	found.Sort()
	tell(p.stderr, found)
	summary(p.stdout, cfg)
	if c.Strict && len(found) > 0 {
		return &exitError{exitFailed, fmt.Sprintf("optimist: %s, and --strict fails on warnings", count(len(found), "warning"))}
	}
	return nil
}

// summary says what is in force in words.
func summary(w io.Writer, c *config.Config) {
	up := "no upstream (to be given to serve)"
	if n := len(c.Upstream.URLs); n > 0 {
		up = "upstream " + strings.Join(c.Upstream.URLs, ", ")
	}
	fmt.Fprintln(w, printable.Line(fmt.Sprintf("%s can be used: mode %s, data on %s, admin on %s, %s.",
		c.File(), c.Mode, c.Listen, cmp.Or(c.Admin, "no port"), up))+"\n")
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "RULE\tTAKES\tOPERATIONS\tON A CONFLICT")
	for i := range c.Rules {
		r := &c.Rules[i]
		end := onConflict(r) + steps(r) + exceptions(r)
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", r.Name, printable.Line(takes(r)+conditions(r)), operations(r), printable.Line(end))
	}
	_ = t.Flush() // to standard output; nobody could be told
	fmt.Fprintln(w, "\nThe first rule that matches takes a write. If none matches, the write is forwarded as it is.")
}

// operations names those that a rule takes.
func operations(r *config.Rule) string {
	all := config.Default().Rules[0].Match.Ops
	if !slices.ContainsFunc(all, func(op config.Op) bool { return !slices.Contains(r.Match.Ops, op) }) {
		return "all"
	}
	texts := make([]string, len(r.Match.Ops))
	for i, op := range r.Match.Ops {
		texts[i] = string(op)
	}
	return strings.Join(texts, ", ")
}

// takes names a rule's indices, in words where they are the default.
func takes(r *config.Rule) string {
	if r.Match.ByDefault() {
		return "every index but .*, logs-*, metrics-*, traces-*, optimist-*, data streams"
	}
	in := slices.DeleteFunc(slices.Clone(r.Match.Index), func(s string) bool { return strings.HasPrefix(s, "-") })
	var out []string
	for _, s := range r.Match.Index {
		if rest, ok := strings.CutPrefix(s, "-"); ok {
			out = append(out, rest)
		}
	}
	if len(out) == 0 {
		return strings.Join(in, ", ")
	}
	return strings.Join(in, ", ") + " but " + strings.Join(out, ", ")
}

// conditions names what else a rule asks of a request.
func conditions(r *config.Rule) string {
	text := ""
	for i, h := range r.Match.Headers {
		text += []string{" with ", " and "}[min(i, 1)] + h.Name + ": " + h.Pattern
	}
	if len(r.Match.Users) > 0 {
		text += " from " + strings.Join(r.Match.Users, ", ")
	}
	return text
}

// steps says how many there are of a rule's transform.
func steps(r *config.Rule) string {
	if len(r.Transform) == 0 {
		return ""
	}
	return "; then " + count(len(r.Transform), "step")
}

// exceptions says what the rule does that other rules don't.
func exceptions(r *config.Rule) string {
	text := ""
	for _, x := range []struct {
		is   bool
		says string
	}{
		{r.Update == config.UpdateEngine, "_updates are merged by the engine"},
		{r.Bulk == config.BulkPass, "items of a _bulk go as they are"},
		{r.Bulk == config.BulkRefuse, "items of a _bulk are refused"},
		{r.Pipeline == config.PipelineRerun, "pipelines run again on what is merged"},
		{r.OnMissing == config.MissingRecreate, "makes documents anew that were deleted since"},
		{r.Rerun, "_update_by_query runs again after conflicts"},
		{r.WriteID != "", "leaves marks in " + r.WriteID},
		{r.Base.Stamp != "", "stamps documents in " + r.Base.Stamp},
		{r.Base.Unknown == config.UnknownFetch && r.Locks != config.LocksEnforce, "without a base, from the current document"},
		{r.Base.Unknown == config.UnknownReject, "428 without a base"},
		{r.Base.Lost == config.LostReject, "409 if the base was lost"},
		{r.Base.Ambiguous == config.AmbiguousFail, "409 if the base is ambiguous"},
		{r.Rejected == config.RejectedPass, "429 at once if the engine is busy"},
		{r.Priority == config.PriorityBackground, "other writes go first"},
		{r.Locks == config.LocksEnforce, "423 if another client holds its lock"},
		{r.OnExhausted == config.ExhaustedDeadLetter, "a dead letter if it can't be placed"},
	} {
		if x.is {
			text += "; " + x.says
		}
	}
	return text
}

// onConflict says what a rule does with a stale write.
func onConflict(r *config.Rule) string {
	switch {
	case r.Mode != config.ModeGuard:
		return "nothing: mode " + string(r.Mode)
	case r.OnConflict == config.ConflictFail:
		return "409"
	}
	text := "merges: " + string(r.Merge.Default)
	for _, p := range r.Merge.Paths {
		strategy := string(p.Strategy)
		if p.Key != "" {
			strategy += " " + p.Key
		}
		text += fmt.Sprintf(", %s %s", p.Path, strategy)
	}
	return text
}
