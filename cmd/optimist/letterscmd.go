package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"optimist/internal/config"
	"optimist/internal/deadletter"
	"optimist/internal/printable"
)

type lettersCmd struct {
	List   lettersList   `cmd:"" aliases:"ls" help:"List dead letters, the oldest first."`
	Show   lettersShow   `cmd:"" help:"Show one whole dead letter."`
	Replay lettersReplay `cmd:"" help:"Make the writes of dead letters again, and delete those that are acknowledged."`
	Delete lettersDelete `cmd:"" aliases:"rm" help:"Delete dead letters without making their writes."`
}

// Help is the command's manual, beyond its flags.
func (lettersCmd) Help() string {
	return `A rule with on_exhausted: dead_letter keeps the writes that can't be placed. Nothing of them was written.

A replay goes through the rules and guards, from what the client had seen when it made the write, with the credentials that you
give. Three kinds of dead letters aren't replayed unless you say so. Look at them first.

A doubtful one (--doubtful): its write may have been made already.
An unchecked one (--unchecked): the engine was away or busy, so it has not checked whether the client may write. Anybody who can reach
the data port may have sent it.
One without a base (--overwrite): it isn't known what the client had seen, so a whole document replaces what is stored now.`
}

const lettersPath = "/_optimist/dead-letters"

// letterFilter says which letters are meant.
type letterFilter struct {
	Rule      string `help:"Only of this rule." placeholder:"RULE"`
	Index     string `help:"Only of this index." placeholder:"INDEX"`
	Document  string `help:"Only of documents with this id." placeholder:"ID"`
	Reason    string `help:"Only for this reason: conflict, busy, refused, unreachable, timeout or undo." placeholder:"WHY"`
	State     string `help:"Only in this state: waiting, replaying or doubtful." placeholder:"STATE"`
	OlderThan string `help:"Only those kept longer ago than this, such as 30s or 2h." placeholder:"TIME"`
	NewerThan string `help:"Only those kept since then." placeholder:"TIME"`
}

func (f *letterFilter) values() map[string]string {
	all := map[string]string{"rule": f.Rule, "index": f.Index, "document": f.Document, "reason": f.Reason, "state": f.State,
		"older_than": f.OlderThan, "newer_than": f.NewerThan}
	maps.DeleteFunc(all, func(_, v string) bool { return v == "" })
	return all
}

type lettersList struct {
	adminFlag    `embed:""`
	letterFilter `embed:""`
	JSON         bool `help:"Print one JSON object for each line."`
}

// Run lists all pages.
func (c *lettersList) Run(p *process) error {
	l := listing{client: adminClient{command: "dead-letters list", where: c.adminFlag}, path: lettersPath, size: "500", member: "letters",
		filter: c.values(), asJSON: c.JSON, empty: "there are no dead letters", partly: "only the letters in the folder are listed: ",
		head: "ID\tKEPT\tSTATE\tREASON\tRULE\tWRITE\tDETAIL", row: letterRow}
	return l.print(p)
}

// letterRow writes the row of a dead letter.
func letterRow(table io.Writer, entry json.RawMessage) error {
	var l deadletter.Letter
	if err := json.Unmarshal(entry, &l); err != nil {
		return err
	}
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", printable.Word(l.ID), seconds(l.At), l.State, l.Reason, l.Rule,
		printable.Word(l.Request.Method+" "+l.Request.Target), printable.Word(shortened(l.Detail)))
	return nil
}

// shortened is a text for a row of a table.
func shortened(s string) string {
	const enough = 80
	if r := []rune(s); len(r) > enough {
		return string(r[:enough]) + "…"
	}
	return s
}

type lettersShow struct {
	adminFlag `embed:""`
	ID        string `arg:"" help:"The dead letter's id."`
}

// Run prints the letter as JSON: that is what it is.
func (c *lettersShow) Run(p *process) error {
	var l json.RawMessage
	path, err := letterPath("dead-letters show", c.ID)
	if err != nil {
		return err
	}
	answer, err := (&adminClient{command: "dead-letters show", where: c.adminFlag}).do(p.ctx, http.MethodGet, path, nil, &l)
	if err == nil {
		fmt.Fprintf(p.stdout, "%s\n", bytes.TrimSpace(answer))
	}
	return err
}

// letterPath is a letter's path on the admin listener.
func letterPath(command, id string) (string, error) {
	if id == "" || strings.ContainsAny(id[:1], "._") || strings.Contains(id, "/") { // others may be of what is no letter of ours
		return "", usageError("optimist %s: %q is no id of a dead letter; `optimist dead-letters list` has them", command, id)
	}
	return lettersPath + "/" + url.PathEscape(id), nil
}

type lettersReplay struct {
	adminFlag    `embed:""`
	letterFilter `embed:""`
	IDs          []string `arg:"" optional:"" name:"id" help:"Ids of dead letters."`
	All          bool     `help:"All, or all that the filter selects. The oldest first."`
	Doubtful     bool     `help:"Also those whose write may have been made already. It may be made twice."`
	Unchecked    bool     `help:"Also those whose client the engine has not checked, because it was away or busy."`
	Overwrite    bool     `help:"Also whole documents whose base is unknown. They replace what is stored."`
	APIKeyFile   string   `help:"File with the API key by which the writes are made." placeholder:"FILE"`
	BasicFile    string   `help:"Instead of it: file with user:password." placeholder:"FILE"`
	BearerFile   string   `help:"Instead of it: file with a token." placeholder:"FILE"`
}

// Run replays.
func (c *lettersReplay) Run(p *process) error {
	given := 0
	for _, name := range []string{c.APIKeyFile, c.BasicFile, c.BearerFile} {
		if name != "" {
			given++
		}
	}
	if given > 1 {
		return usageError("optimist dead-letters replay: give one of --api-key-file, --basic-file and --bearer-file")
	}
	authorization, err := (&config.Auth{APIKeyFile: c.APIKeyFile, BasicFile: c.BasicFile, BearerFile: c.BearerFile}).
		AuthorizationOf(flagOf)
	if err != nil {
		return usageError("optimist dead-letters replay: %v", err)
	}
	run := &lettersRun{command: "dead-letters replay", action: "_replay", where: c.adminFlag, authorization: authorization,
		asked: map[string]any{"doubtful": c.Doubtful, "unchecked": c.Unchecked, "overwrite": c.Overwrite}}
	return run.run(p, c.IDs, c.All, &c.letterFilter)
}

// flagOf is the flag for a key of the configuration.
func flagOf(key string) string { return "--" + strings.ReplaceAll(key, "_", "-") }

type lettersDelete struct {
	adminFlag    `embed:""`
	letterFilter `embed:""`
	IDs          []string `arg:"" optional:"" name:"id" help:"Ids of dead letters."`
	All          bool     `help:"All, or all that the filter selects."`
}

// Run deletes.
func (c *lettersDelete) Run(p *process) error {
	run := &lettersRun{command: "dead-letters delete", action: "_delete", where: c.adminFlag, asked: map[string]any{}}
	return run.run(p, c.IDs, c.All, &c.letterFilter)
}

// lettersRun does something to several letters, and says how far it is.
type lettersRun struct {
	command, action string
	where           adminFlag
	authorization   string
	asked           map[string]any // of the requests' bodies
	counts          map[string]int
	away            string // why the store's letters weren't seen
}

// errSomeLeft ends a command that has not done all of it. What failed was printed.
var errSomeLeft = errors.New("not all of it was done: see above")

func (r *lettersRun) run(p *process, ids []string, all bool, f *letterFilter) error {
	r.counts = map[string]int{}
	filter := f.values()
	switch {
	case len(ids) == 0 && !all:
		return usageError("optimist %s: name dead letters by their ids, or --all, with a filter perhaps", r.command)
	case len(ids) > 0 && (all || len(filter) > 0):
		return usageError("optimist %s: ids are for single dead letters, --all and filters for many", r.command)
	}
	do := r.each(ids)
	if all {
		do = r.pages(filter)
	}
	if err := do(p); err != nil {
		return err
	}
	r.tell(p.stdout)
	if r.away != "" {
		return errors.New("not all dead letters were looked at, only those in optimist's folder: " + r.away)
	}
	for result, n := range r.counts {
		if n > 0 && result != deadletter.Replayed && result != "deleted" && !(all && result == deadletter.Missing) {
			return errSomeLeft
		}
	}
	return nil
}

// each goes through single letters.
func (r *lettersRun) each(ids []string) func(p *process) error {
	return func(p *process) error {
		for _, id := range ids {
			path, err := letterPath(r.command, id)
			if err != nil {
				return err
			}
			one := &deadletter.Result{}
			if r.action == "_delete" {
				one, err = r.deleteOne(p, id, path)
			} else {
				err = r.ask(p, http.MethodPost, path+"/"+r.action, r.asked, one)
			}
			if err != nil {
				return err
			}
			r.count(p.stdout, one)
		}
		return nil
	}
}

// deleteOne deletes a letter. The letter may be gone, or be replayed at the same time: that concerns no other letter.
func (r *lettersRun) deleteOne(p *process, id, path string) (*deadletter.Result, error) {
	err := r.ask(p, http.MethodDelete, path, nil, &struct{}{})
	var refused *adminError
	switch {
	case err == nil:
		return &deadletter.Result{ID: id, Result: "deleted"}, nil
	case errors.As(err, &refused) && refused.Type == "dead_letter_not_found":
		return &deadletter.Result{ID: id, Result: deadletter.Missing, Reason: refused.Reason}, nil
	case errors.As(err, &refused) && refused.Type == "dead_letter_taken":
		return &deadletter.Result{ID: id, Result: deadletter.Busy, Reason: refused.Reason}, nil
	}
	return nil, err
}

// pages goes through all that are meant.
func (r *lettersRun) pages(filter map[string]string) func(p *process) error {
	return func(p *process) error {
		r.asked["all"] = true
		for name, value := range filter {
			r.asked[name] = value
		}
		var busy []*deadletter.Result
		for {
			var page struct {
				Results    []*deadletter.Result
				Next, Away string
			}
			if err := r.ask(p, http.MethodPost, lettersPath+"/"+r.action, r.asked, &page); err != nil {
				return err
			}
			for _, one := range page.Results {
				if one.Result == deadletter.Busy {
					busy = append(busy, one)
					continue
				}
				r.count(p.stdout, one)
			}
			r.away = cmp.Or(page.Away, r.away)
			if page.Next == "" {
				return r.again(p, busy)
			}
			r.tell(p.stderr) // how far it is
			r.asked["after"] = page.Next
		}
	}
}

// again tries the letters once more that another command was replaying. By now, most of them are gone.
func (r *lettersRun) again(p *process, busy []*deadletter.Result) error {
	for _, one := range busy {
		if path, err := letterPath(r.command, one.ID); err == nil && r.action == "_replay" {
			if err := r.ask(p, http.MethodPost, path+"/"+r.action, r.asked, one); err != nil {
				return err
			}
		}
		r.count(p.stdout, one)
	}
	return nil
}

// patience is how long one call may take: a letter that is under way is finished.
const patience = 5 * time.Minute

func (r *lettersRun) ask(p *process, method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	client := &adminClient{command: r.command, where: r.where, authorization: r.authorization, timeout: patience}
	_, err = client.do(p.ctx, method, path, text, into)
	return err
}

// count counts a result, and prints one that leaves the letter.
func (r *lettersRun) count(out io.Writer, one *deadletter.Result) {
	r.counts[one.Result]++
	if one.Result == deadletter.Replayed || one.Result == "deleted" {
		return
	}
	fmt.Fprintf(out, "%s: %s: %s\n", printable.Word(one.ID), one.Result, printable.Line(one.Reason))
}

// tell prints what was done so far.
func (r *lettersRun) tell(out io.Writer) {
	var parts []string
	for _, result := range slices.Sorted(maps.Keys(r.counts)) {
		parts = append(parts, result+" "+strconv.Itoa(r.counts[result]))
	}
	if len(parts) == 0 {
		parts = []string{"there are no such dead letters"}
	}
	fmt.Fprintln(out, strings.Join(parts, ", "))
}
