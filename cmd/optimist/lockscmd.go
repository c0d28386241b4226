package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"optimist/internal/printable"
	"optimist/internal/uri"
)

type locksCmd struct {
	Ls   locksLs   `cmd:"" aliases:"list" help:"List the locks that are held."`
	Show locksShow `cmd:"" help:"Show who holds one lock, and how many wait for it."`
	Rm   locksRm   `cmd:"" aliases:"release" help:"Release a lock, or all locks of an owner, in the holder's place."`
}

// Help is the command's manual, beyond its flags.
func (locksCmd) Help() string {
	return `The name of a lock is its path, as in /_lock/global/nightly, /shop/_lock/doc/4711 or /fs/_lock/tree/clinton.

Leases end by themselves when nobody renews them. If you release one early, the next owner gets the lock while the old
one may still work. The old owner notices with its next renewal, or when the protected system refuses its token.`
}

// heldLease is a lease as the admin listener tells of it.
type heldLease struct {
	Lock       string `json:"lock"`
	Owner      string `json:"owner"`
	Token      int64  `json:"token"`
	Mode       string `json:"mode"`
	AcquiredAt string `json:"acquired_at"`
	ExpiresAt  string `json:"expires_at"`
	ExpiresIn  int64  `json:"expires_in_ms"`
	Note       string `json:"note"`
	Waiting    *int64 `json:"waiting"`
}

type locksLs struct {
	adminFlag `embed:""`
	Owner     string `help:"Only locks of this owner. With a star at the end: of all owners that begin so." placeholder:"OWNER"`
	Prefix    string `help:"Only locks whose path begins so." placeholder:"PATH"`
	OlderThan string `help:"Only locks that are held for longer, such as 30s or 2h." placeholder:"TIME"`
	JSON      bool   `help:"Print one JSON object for each line."`
}

// Run lists all pages.
func (c *locksLs) Run(p *process) error {
	l := listing{client: adminClient{command: "locks ls", where: c.adminFlag}, path: "/_optimist/locks", size: "1000", member: "locks",
		filter: map[string]string{"owner": c.Owner, "prefix": c.Prefix, "older_than": c.OlderThan}, asJSON: c.JSON,
		empty: "no locks are held", head: "LOCK\tOWNER\tMODE\tTOKEN\tENDS IN\tWAITING\tNOTE", row: leaseRow}
	return l.print(p)
}

// leaseRow writes the row of a lease.
func leaseRow(table io.Writer, entry json.RawMessage) error {
	var l heldLease
	if err := json.Unmarshal(entry, &l); err != nil {
		return err
	}
	waiting := ""
	if l.Waiting != nil {
		waiting = strconv.FormatInt(*l.Waiting, 10)
	}
	fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", l.Lock, printable.Word(l.Owner), l.mode(), l.Token, l.endsIn(), waiting,
		printable.Word(l.Note))
	return nil
}

func (l *heldLease) mode() string { return cmp.Or(l.Mode, "exclusive") }

func (l *heldLease) endsIn() string {
	return (time.Duration(l.ExpiresIn) * time.Millisecond).Round(time.Second).String()
}

type locksShow struct {
	adminFlag `embed:""`
	Lock      string `arg:"" help:"Path of the lock."`
	JSON      bool   `help:"Print the answer as JSON."`
}

// Run asks for one lock.
func (c *locksShow) Run(p *process) error {
	path, err := lockPath("locks show", c.Lock)
	if err != nil {
		return err
	}
	var one struct {
		heldLease
		Leases []heldLease
	}
	answer, err := (&adminClient{command: "locks show", where: c.adminFlag}).do(p.ctx, http.MethodGet, path, nil, &one)
	if err != nil {
		return err
	}
	if c.JSON {
		return jsonLine(p.stdout, answer)
	}
	if one.Leases == nil {
		one.Leases = []heldLease{one.heldLease}
	}
	for i := range one.Leases {
		if i > 0 {
			fmt.Fprintln(p.stdout)
		}
		one.Leases[i].write(p.stdout)
	}
	return nil
}

func (l *heldLease) write(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "lock:\t%s\nowner:\t%s\nmode:\t%s\ntoken:\t%d\n", l.Lock, printable.Word(l.Owner), l.mode(), l.Token)
	fmt.Fprintf(w, "acquired:\t%s\nends:\t%s (in %s)\n", l.AcquiredAt, l.ExpiresAt, l.endsIn())
	if l.Note != "" {
		fmt.Fprintf(w, "note:\t%s\n", printable.Word(l.Note))
	}
	if l.Waiting != nil {
		fmt.Fprintf(w, "waiting:\t%d\n", *l.Waiting)
	}
	_ = w.Flush() // what is printed to a terminal that has gone is nobody's loss
}

type locksRm struct {
	adminFlag `embed:""`
	Lock      string `arg:"" optional:"" help:"Path of the lock."`
	Token     int64  `help:"Only the lease with this token. A later lease stays." placeholder:"N"`
	Owner     string `help:"Instead of one lock: all of this owner. With a star at the end: of all owners that begin so." placeholder:"OWNER"`
}

// Run releases.
func (c *locksRm) Run(p *process) error {
	client := &adminClient{command: "locks rm", where: c.adminFlag}
	switch {
	case (c.Lock == "") == (c.Owner == ""):
		return usageError("optimist locks rm: name one lock, or an owner with --owner")
	case c.Owner != "" && c.Token != 0:
		return usageError("optimist locks rm: --token is for one lock, --owner for many")
	case c.Owner != "":
		return c.all(p, client)
	}
	path, err := lockPath("locks rm", c.Lock)
	if err != nil {
		return err
	}
	if c.Token != 0 {
		path += "?token=" + strconv.FormatInt(c.Token, 10)
	}
	var ended struct{ Leases []heldLease }
	if _, err := client.do(p.ctx, http.MethodDelete, path, nil, &ended); err != nil {
		return err
	}
	for _, l := range ended.Leases {
		fmt.Fprintf(p.stdout, "released: %s, held by %s with token %d\n", l.Lock, printable.Word(l.Owner), l.Token)
	}
	return nil
}

func (c *locksRm) all(p *process, client *adminClient) error {
	body, err := json.Marshal(map[string]string{"owner": c.Owner})
	if err != nil {
		return err
	}
	var ended struct{ Locks []string }
	if _, err := client.do(p.ctx, http.MethodPost, "/_optimist/locks/_release", body, &ended); err != nil {
		return err
	}
	for _, lock := range ended.Locks {
		fmt.Fprintln(p.stdout, "released:", lock)
	}
	if len(ended.Locks) == 0 {
		fmt.Fprintln(p.stdout, "no locks are held")
	}
	return nil
}

// lockPath is where the admin listener has a lock.
func lockPath(command, lock string) (string, error) {
	return pathOfLock(command, "/_optimist/locks", lock)
}

// pathOfLock is where the admin listener has something of a lock, below root. What the path lacks of percent-encoding is put in; slashes
// stay what they are.
func pathOfLock(command, root, lock string) (string, error) {
	if !strings.HasPrefix(lock, "/") || strings.ContainsAny(lock, "?#") {
		return "", usageError("optimist %s: the name of a lock is its path, as in /_lock/global/nightly; %q is not a path", command, lock)
	}
	plain := uri.PlainBytes(func(c byte) bool { return c > ' ' && c < 0x7f })
	return string(uri.AppendEncoded([]byte(root), lock, plain)), nil
}
