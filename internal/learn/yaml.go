package learn

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// WriteYAML writes the suggestions as a file of rules, with the evidence in comments. If the configuration has rules of its own, the
// file is one for rule_files; else it is a configuration, which keeps the default rule for all other indices.
func (s *Suggestions) WriteYAML(out io.Writer) {
	var rules, notes strings.Builder
	names := map[string]bool{"rest": true}
	for i := range s.Indices {
		ix := &s.Indices[i]
		if ix.Claims || !ix.suggests() {
			ix.writeNotes(&notes)
		} else {
			ix.writeRule(&rules, names)
		}
	}
	if rules.Len()+notes.Len() == 0 {
		fmt.Fprintf(out, "# optimist has seen %s.\n# There is no rule to suggest.\n", counted(s.Conflicts, "conflict"))
		return
	}
	fmt.Fprintf(out, "# optimist has learnt this from %s. Read it before you use it:\n", counted(s.Conflicts, "conflict"))
	fmt.Fprint(out, "# a number that two clients move may be counted (sum), or be a state that both set.\n")
	switch {
	case rules.Len() == 0:
		fmt.Fprint(out, "# There is no rule to suggest.\n"+notes.String())
		return
	case s.OwnRules:
		fmt.Fprint(out, "# Name this file in rule_files. Its rules come before a rule for all other indices.\n")
	}
	fmt.Fprint(out, notes.String()+"rules:\n"+rules.String())
	if !s.OwnRules {
		fmt.Fprint(out, "  - name: rest # all other indices, as without rules\n")
	}
}

// suggests reports whether there is a path about which a rule should say something.
func (ix *IndexSuggestions) suggests() bool {
	return slices.ContainsFunc(ix.Paths, PathSuggestion.isNew)
}

func (p PathSuggestion) isNew() bool { return p.Strategy != "" && p.Configured == "" }

// line is the line of a rule's merge.paths.
func (p *PathSuggestion) line() string {
	strategy := p.Strategy
	if p.Key != "" {
		strategy = "{by_key: " + quote(p.Key) + "}"
	}
	return quote(p.Path) + ": " + strategy
}

// writeRule writes a rule of its own for the index.
func (ix *IndexSuggestions) writeRule(out *strings.Builder, names map[string]bool) {
	fmt.Fprintf(out, "  - name: %s\n    match: {index: [%s]}\n", quote(ruleName(ix.Index, names)), quote(ix.Index))
	if ix.Rule != "" && ix.Rule != "default" {
		fmt.Fprintf(out, "    # Rule %s takes these writes now: copy what else it says.\n", ix.Rule)
	}
	fmt.Fprint(out, "    merge:\n      paths:\n")
	for i := range ix.Paths {
		p := &ix.Paths[i]
		fmt.Fprintf(out, "        # %s\n", p.comment())
		if p.isNew() {
			fmt.Fprintf(out, "        %s\n", p.line())
		}
	}
}

// writeNotes writes what is known of an index that a rule takes by its name, or for which there is nothing to be suggested.
func (ix *IndexSuggestions) writeNotes(out *strings.Builder) {
	fmt.Fprintf(out, "#\n# index %s:\n", quote(ix.Index))
	for i := range ix.Paths {
		p := &ix.Paths[i]
		fmt.Fprintf(out, "#   %s\n", p.comment())
		if p.isNew() {
			fmt.Fprintf(out, "#   add to merge.paths of rule %s:  %s\n", ix.Rule, p.line())
		}
	}
}

// comment is the evidence, with what is to be said of it.
func (p *PathSuggestion) comment() string {
	text := quote(p.Path) + ": " + p.Because
	switch {
	case p.Configured != "":
		text += "; " + p.Configured + " already"
	case p.Strategy == "":
		text += "; nothing is suggested (current keeps the first value, fail tells the client)"
	}
	return text
}

// ruleName makes a rule's name of an index's that no other rule has.
func ruleName(index string, taken map[string]bool) string {
	name := regexp.MustCompile(`[^A-Za-z0-9._-]`).ReplaceAllString(index, "_")
	name = name[:min(len(name), 56)]
	for n := 2; taken[name]; n++ {
		name = strings.TrimSuffix(name, "-"+strconv.Itoa(n-1)) + "-" + strconv.Itoa(n)
	}
	taken[name] = true
	return name
}
