package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"

	"optimist/internal/learn"
	"optimist/internal/printable"
)

type suggestCmd struct {
	adminFlag `embed:""`
	Index     string `help:"Only for this index." placeholder:"INDEX"`
}

// Help is the command's manual, beyond its flags.
func (suggestCmd) Help() string {
	return `It prints a file of rules: numbers that two clients moved at the same time (sum), times (max), sets (union), lists of
objects with a key (by_key). The comments have the evidence. It suggests nothing that the configuration has already.

optimist learns from conflicts, in the modes guard and observe, from its start on. It can't know what an application means
by a number: read what it suggests. Then optimist check and optimist test say what the file does.`
}

// Run asks the admin listener.
func (c *suggestCmd) Run(p *process) error {
	path := "/_optimist/suggestions"
	if c.Index != "" {
		path += "?" + url.Values{"index": {c.Index}}.Encode()
	}
	var s learn.Suggestions
	if _, err := (&adminClient{command: "suggest", where: c.adminFlag}).do(p.ctx, http.MethodGet, path, nil, &s); err != nil {
		return err
	}
	s.WriteYAML(p.stdout)
	return nil
}

type hotCmd struct {
	adminFlag `embed:""`
	Top       int `help:"How many documents. Default ${default}." default:"20" placeholder:"N"`
}

// Help is the command's manual, beyond its flags.
func (hotCmd) Help() string {
	return `It lists the documents with the most conflicts of late: how many since they were first seen, how many a minute, the
clients and the paths that took part, what decides at these paths, and how the writes ended. In observe mode a
conflict is a write that erased another client's change (lost).

A number stands for each client, unless the configuration says learning: {clients: shown}.`
}

// Run asks the admin listener.
func (c *hotCmd) Run(p *process) error {
	if c.Top < 1 {
		return usageError("optimist hot: --top is 1 or more")
	}
	var hot struct{ Documents []learn.Hot }
	_, err := (&adminClient{command: "hot", where: c.adminFlag}).do(p.ctx, http.MethodGet, "/_optimist/hot?top="+strconv.Itoa(c.Top), nil,
		&hot)
	if err != nil {
		return err
	}
	if len(hot.Documents) == 0 {
		fmt.Fprintln(p.stdout, "no conflicts so far")
		return nil
	}
	t := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "DOCUMENT\tCONFLICTS\tA MINUTE\tCLIENTS\tPATHS\tOUTCOMES")
	for i := range hot.Documents {
		d := &hot.Documents[i]
		fmt.Fprintf(t, "%s\t%d\t%.1f\t%s\t%s\t%s\n", printable.Word(d.Index+"/"+d.ID), d.Conflicts, d.PerMinute, shownNames(d.Clients),
			shownNames(d.Paths), shownNames(d.Outcomes))
	}
	return t.Flush()
}

// maxShown is how many names of a kind stand in a line.
const maxShown = 3

// shownNames are the first of a list, with how often each was met, and what decides there.
func shownNames(list []learn.Named) string {
	var parts []string
	for i := range list[:min(len(list), maxShown)] {
		n := &list[i]
		part := printable.Word(n.Name) + " " + strconv.Itoa(n.Conflicts)
		if n.Strategy != "" {
			part += " (" + n.Strategy + ")"
		}
		parts = append(parts, part)
	}
	if more := len(list) - maxShown; more > 0 {
		parts = append(parts, fmt.Sprintf("+%d", more))
	}
	return strings.Join(parts, ", ")
}
