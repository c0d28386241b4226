package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"text/tabwriter"
	"time"

	"optimist/internal/printable"
)

// listing is a list that the admin listener keeps, such as that of the locks. A command prints all of it: as a table, or as JSON.
type listing struct {
	client adminClient
	path   string
	// size is how many entries a page has, and filter which are asked for, by the query parameters' names. Empty ones don't count.
	size   string
	filter map[string]string
	member string // of a page, that holds the entries
	asJSON bool
	empty  string // said in place of an empty table
	partly string // said before the reason why some entries can't be listed
	head   string // the table's first line
	// row writes an entry's line into the table.
	row func(table io.Writer, entry json.RawMessage) error
}

// print prints all pages.
func (l *listing) print(p *process) error {
	query := url.Values{"size": {l.size}}
	for name, value := range l.filter {
		if value != "" {
			query.Set(name, value)
		}
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	listed := 0
	err := eachPage(p.ctx, &l.client, l.path, query, func(page *map[string]json.RawMessage) (next string, err error) {
		var entries []json.RawMessage
		if err := json.Unmarshal((*page)[l.member], &entries); err != nil {
			return "", fmt.Errorf("%s has no list of %s: %w", l.path, l.member, err)
		}
		for _, entry := range entries {
			if err := l.entry(p.stdout, table, entry, listed); err != nil {
				return "", err
			}
			listed++
		}
		next = textOf(*page, "next")
		if away := textOf(*page, "away"); away != "" && next == "" {
			fmt.Fprintln(p.stderr, l.partly+printable.Line(away))
		}
		return next, nil
	})
	if err != nil {
		return err
	}
	if listed == 0 && !l.asJSON {
		fmt.Fprintln(p.stdout, l.empty)
	}
	return table.Flush()
}

// entry writes the n-th entry, from 0.
func (l *listing) entry(out, table io.Writer, entry json.RawMessage, n int) error {
	if l.asJSON {
		return jsonLine(out, entry)
	}
	if n == 0 {
		fmt.Fprintln(table, l.head)
	}
	return l.row(table, entry)
}

// textOf is a member of a page, as text; "" where it isn't one.
func textOf(page map[string]json.RawMessage, member string) (text string) {
	if json.Unmarshal(page[member], &text) != nil {
		return ""
	}
	return text
}

// jsonLine writes JSON without the line breaks that the listener has put in.
func jsonLine(out io.Writer, raw json.RawMessage) error {
	line, err := json.Marshal(raw)
	if err == nil {
		fmt.Fprintf(out, "%s\n", line)
	}
	return err
}

// seconds is a time for a row of a table.
func seconds(t time.Time) string {
	if t.IsZero() {
		return "unknown"
	}
	return t.UTC().Format(time.RFC3339)
}
