package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

type locksCmd struct {
	Ls   locksLs   `cmd:"" help:"List the locks that are held."`
	Show locksShow `cmd:"" help:"Show who holds one lock, and how many wait for it."`
	Rm   locksRm   `cmd:"" help:"Release a lock, or all locks of an owner, in the holder's place."`
}

// Help is the command's manual, beyond its flags.
func (locksCmd) Help() string {
	return `The name of a lock is its path, as in /_lock/global/nightly, /shop/_lock/doc/4711 or /fs/_lock/tree/clinton.

Leases end by themselves when nobody renews them. If you release one early, the next owner gets the lock while the old
one may still work. The old owner notices with its next renewal, or when the protected system refuses its token.`
}

// adminFlag names the optimist that is asked.
type adminFlag struct {
	Admin string `help:"Admin listener of an optimist. Default ${default}." default:"127.0.0.1:9281" env:"OPTIMIST_ADMIN" placeholder:"ADDR"`
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
	query := url.Values{"size": {"1000"}}
	for key, value := range map[string]string{"owner": c.Owner, "prefix": c.Prefix, "older_than": c.OlderThan} {
		if value != "" {
			query.Set(key, value)
		}
	}
	list := leaseList{out: p.stdout, table: tabwriter.NewWriter(p.stdout, 0, 0, 2, ' ', 0), json: c.JSON}
	for {
		page, err := c.page(p.ctx, query)
		if err != nil {
			return err
		}
		for _, raw := range page.Locks {
			if err := list.add(raw); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return list.end()
		}
		query.Set("after", page.Next)
	}
}

// leasePage is a part of the leases that are held; Next says where the next part begins.
type leasePage struct {
	Locks []json.RawMessage
	Next  string
}

func (c *locksLs) page(ctx context.Context, query url.Values) (page leasePage, err error) {
	answer, err := (&adminClient{"locks ls", c.Admin}).do(ctx, http.MethodGet, "/_optimist/locks?"+query.Encode(), nil)
	if err == nil {
		err = answer.read(c.Admin, &page)
	}
	return page, err
}

// leaseList prints leases: as a table, or each as the JSON that it came as.
type leaseList struct {
	out   io.Writer
	table *tabwriter.Writer
	json  bool
	n     int
}

func (l *leaseList) add(raw json.RawMessage) error {
	l.n++
	if l.json {
		fmt.Fprintf(l.out, "%s\n", raw)
		return nil
	}
	var held heldLease
	if err := json.Unmarshal(raw, &held); err != nil {
		return err
	}
	if l.n == 1 {
		fmt.Fprintln(l.table, "LOCK\tOWNER\tMODE\tTOKEN\tENDS IN\tWAITING\tNOTE")
	}
	waiting := ""
	if held.Waiting != nil {
		waiting = strconv.FormatInt(*held.Waiting, 10)
	}
	fmt.Fprintf(l.table, "%s\t%s\t%s\t%d\t%s\t%s\t%s\n", held.Lock, shownName(held.Owner), held.mode(), held.Token, held.endsIn(), waiting,
		shownName(held.Note))
	return nil
}

func (l *leaseList) end() error {
	if l.n == 0 && !l.json {
		fmt.Fprintln(l.out, "no locks are held")
	}
	return l.table.Flush()
}

func (l *heldLease) mode() string {
	if l.Mode == "" {
		return "exclusive"
	}
	return l.Mode
}

func (l *heldLease) endsIn() string {
	return (time.Duration(l.ExpiresIn) * time.Millisecond).Round(time.Second).String()
}

// shownName is what a client has named, for a terminal: it must not be able to write more than a word there.
func shownName(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		return strconv.Quote(s)
	}
	return s
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
	reply, err := (&adminClient{"locks show", c.Admin}).do(p.ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	var one struct {
		heldLease
		Leases []heldLease
	}
	if err := reply.read(c.Admin, &one); err != nil {
		return err
	}
	if c.JSON {
		fmt.Fprintf(p.stdout, "%s\n", bytes.TrimSpace(reply.body))
		return nil
	}
	if one.Leases == nil {
		one.Leases = []heldLease{one.heldLease}
	}
	for i := range one.Leases {
		if i > 0 {
			fmt.Fprintln(p.stdout)
		}
		one.Leases[i].tell(p.stdout)
	}
	return nil
}

func (l *heldLease) tell(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "lock:\t%s\nowner:\t%s\nmode:\t%s\ntoken:\t%d\n", l.Lock, shownName(l.Owner), l.mode(), l.Token)
	fmt.Fprintf(w, "acquired:\t%s\nends:\t%s (in %s)\n", l.AcquiredAt, l.ExpiresAt, l.endsIn())
	if l.Note != "" {
		fmt.Fprintf(w, "note:\t%s\n", shownName(l.Note))
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
	client := &adminClient{"locks rm", c.Admin}
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
	reply, err := client.do(p.ctx, http.MethodDelete, path, nil)
	if err != nil {
		return err
	}
	var ended struct{ Leases []heldLease }
	if err := reply.read(c.Admin, &ended); err != nil {
		return err
	}
	for _, l := range ended.Leases {
		fmt.Fprintf(p.stdout, "released: %s, held by %s with token %d\n", l.Lock, shownName(l.Owner), l.Token)
	}
	return nil
}

func (c *locksRm) all(p *process, client *adminClient) error {
	body, err := json.Marshal(map[string]string{"owner": c.Owner})
	if err != nil {
		return err
	}
	reply, err := client.do(p.ctx, http.MethodPost, "/_optimist/locks/_release", body)
	if err != nil {
		return err
	}
	var ended struct{ Locks []string }
	if err := reply.read(c.Admin, &ended); err != nil {
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

// lockPath is where the admin listener has a lock. What the path lacks of percent-encoding is put in; slashes stay what they are.
func lockPath(command, lock string) (string, error) {
	if !strings.HasPrefix(lock, "/") || strings.ContainsAny(lock, "?#") {
		return "", usageError("optimist %s: the name of a lock is its path, as in /_lock/global/nightly; %q is not a path", command, lock)
	}
	var b strings.Builder
	b.WriteString("/_optimist/locks")
	for i := range len(lock) {
		if c := lock[i]; c <= ' ' || c >= 0x7f {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String(), nil
}
