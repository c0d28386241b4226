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

type undoCmd struct {
	Ls   undoLs   `cmd:"" aliases:"list" help:"List the journals that are open, or have left dead letters."`
	Show undoShow `cmd:"" help:"Show the writes that are noted under one lock."`
}

// Help is the command's manual, beyond its flags.
func (undoCmd) Help() string {
	return `A lock with undo: true has a journal of the writes that were made under it, until its holder releases the lock.

A journal is open while the lease lasts, and lapsed when the lease has ended. optimist then undoes its writes: when somebody asks for
the lock, or within some seconds. Meanwhile the journal is being_undone. After that it is gone. If a write couldn't be undone, a dead
letter holds it, and the journal is left for a day. The list may be a second behind.`
}

const undoPath = "/_optimist/undo"

// journalRow is a journal as the admin listener tells of it.
type journalRow struct {
	Lock   string
	Owner  string
	Token  int64
	Locks  int // that were acquired together, if several were
	State  string
	Began  time.Time `json:"begun_at"`
	Left   int       `json:"dead_letters"`
	Writes int
	Bytes  int64
	Purged bool
}

type undoLs struct {
	adminFlag `embed:""`
	Owner     string `help:"Only of this owner. With a star at the end: of all owners that begin so." placeholder:"OWNER"`
	Prefix    string `help:"Only of locks whose path begins so." placeholder:"PATH"`
	State     string `help:"Only in this state: open, lapsed, being_undone or left." placeholder:"STATE"`
	OlderThan string `help:"Only journals that were begun longer ago than this, such as 30s or 2h." placeholder:"TIME"`
	JSON      bool   `help:"Print one JSON object for each line."`
}

// Run lists all pages.
func (c *undoLs) Run(p *process) error {
	l := listing{client: adminClient{command: "undo ls", where: c.adminFlag}, path: undoPath, size: "1000", member: "journals",
		filter: map[string]string{"owner": c.Owner, "prefix": c.Prefix, "state": c.State, "older_than": c.OlderThan}, asJSON: c.JSON,
		empty: "there are no journals", head: "LOCK\tOWNER\tTOKEN\tSTATE\tBEGUN\tDEAD LETTERS", row: journalsRow}
	return l.print(p)
}

// journalsRow writes the row of a journal.
func journalsRow(table io.Writer, entry json.RawMessage) error {
	var j journalRow
	if err := json.Unmarshal(entry, &j); err != nil {
		return err
	}
	fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%d\n", j.locks(), printable.Word(j.Owner), j.Token, j.State, seconds(j.Began), j.Left)
	return nil
}

// locks names the journal's lock, or the first of several, and how many more there are.
func (j *journalRow) locks() string {
	if j.Locks > 1 {
		return fmt.Sprintf("%s (+%d)", printable.Word(j.Lock), j.Locks-1)
	}
	return printable.Word(j.Lock)
}

type undoShow struct {
	adminFlag `embed:""`
	Lock      string `arg:"" help:"Path of the lock."`
	Documents bool   `help:"Also the documents before and after each write, which may hold secrets. Prints JSON."`
	JSON      bool   `help:"Print one JSON object for each journal, and then one for each write."`
}

// entryRow is a write of a journal as the admin listener tells of it.
type entryRow struct {
	N         int
	Index, ID string
	Operation string
	Noted     time.Time `json:"noted_at"`
	State     string
}

// Run shows all pages.
func (c *undoShow) Run(p *process) error {
	path, err := pathOfLock("undo show", undoPath, c.Lock)
	if err != nil {
		return err
	}
	query := url.Values{"size": {"1000"}}
	if c.Documents {
		query.Set("documents", "true")
	}
	table := tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0)
	first := true
	type page struct {
		Journals, Entries []json.RawMessage
		Next              string
	}
	client := &adminClient{command: "undo show", where: c.adminFlag}
	err = eachPage(p.ctx, client, path, query, func(l *page) (next string, err error) {
		if first {
			if err := c.journals(p.stdout, l.Journals); err != nil {
				return "", err
			}
		}
		for i, raw := range l.Entries {
			if err := c.entry(p.stdout, table, raw, first && i == 0); err != nil {
				return "", err
			}
		}
		first = false
		return l.Next, nil
	})
	if err != nil {
		return err
	}
	return table.Flush()
}

func (c *undoShow) asJSON() bool { return c.JSON || c.Documents }

// journals writes what is said of the journals as a whole.
func (c *undoShow) journals(out io.Writer, all []json.RawMessage) error {
	for _, raw := range all {
		if c.asJSON() {
			if err := jsonLine(out, raw); err != nil {
				return err
			}
			continue
		}
		var j journalRow
		if err := json.Unmarshal(raw, &j); err != nil {
			return err
		}
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "lock:\t%s\nowner:\t%s\ntoken:\t%d\nstate:\t%s\nbegun:\t%s\n", j.locks(), printable.Word(j.Owner), j.Token,
			j.State, seconds(j.Began))
		if j.Purged {
			fmt.Fprintln(w, "writes:\tremoved, some minutes after the end")
		} else {
			fmt.Fprintf(w, "writes:\t%d, of %d bytes\n", j.Writes, j.Bytes)
		}
		if j.Left > 0 {
			fmt.Fprintf(w, "dead letters:\t%d\n", j.Left)
		}
		fmt.Fprintln(w)
		if err := w.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// entry writes one write: as JSON, or as a row of the table.
func (c *undoShow) entry(out, table io.Writer, raw json.RawMessage, first bool) error {
	if c.asJSON() {
		return jsonLine(out, raw)
	}
	if first {
		fmt.Fprintln(table, "N\tINDEX\tID\tOPERATION\tNOTED\tSTATE")
	}
	var e entryRow
	if err := json.Unmarshal(raw, &e); err != nil {
		return err
	}
	fmt.Fprintf(table, "%d\t%s\t%s\t%s\t%s\t%s\n", e.N, printable.Word(e.Index), printable.Word(e.ID), e.Operation, seconds(e.Noted), e.State)
	return nil
}
