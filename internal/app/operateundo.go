package app

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"optimist/internal/admin"
	"optimist/internal/es"
	"optimist/internal/journal"
	"optimist/internal/undo"
	"optimist/internal/unit"
	"optimist/lockrouter"
)

// journalLapsed is the state of an open journal whose lease has ended. The writes are undone when somebody asks for the lock, or by the
// next sweep.
const journalLapsed undo.State = "lapsed"

// The sizes of a page of journals, and of a page of writes.
const (
	undoPage    = 100
	maxUndoPage = 1000
	// mostImages is how many bytes of documents one answer has. A write with more is shown without them.
	mostImages = 4 << 20
)

// errUndoAfter reports a page that begins nowhere.
var errUndoAfter = &lockrouter.Failure{Status: http.StatusBadRequest, Type: "invalid_request",
	Reason: "after is what the page before has as next"}

// undoQuery is what a request for journals asks.
type undoQuery struct {
	owner, owners, prefix string
	state                 undo.State
	before                time.Time // begun before; zero: at any time
	size                  int
	after                 string
	documents             bool
}

// journalView is a journal as operators see it.
type journalView struct {
	Lock   string     `json:"lock"`
	Owner  string     `json:"owner"`
	Token  int64      `json:"token"`
	Leases int        `json:"locks,omitempty"` // how many were acquired together, if several were. The Lock is the first
	State  undo.State `json:"state"`
	Began  time.Time  `json:"begun_at,omitzero"`
	Left   int        `json:"dead_letters,omitempty"`
	Writes *int       `json:"writes,omitempty"`
	Bytes  *int64     `json:"bytes,omitempty"`
	Purged bool       `json:"purged,omitempty"`
}

// entryView is a write of a journal as operators see it.
type entryView struct {
	Token     int64     `json:"token"`
	Nth       int       `json:"n"`
	Index     string    `json:"index"`
	ID        string    `json:"id"`
	Routing   string    `json:"routing,omitempty"`
	Rule      string    `json:"rule,omitempty"`
	Operation string    `json:"operation"`
	Noted     time.Time `json:"noted_at,omitzero"`
	State     string    `json:"state"`
	Before    es.Bytes  `json:"before,omitempty"`
	After     es.Bytes  `json:"after,omitempty"`
	TooLarge  bool      `json:"too_large,omitempty"` // the documents are there, and aren't shown
}

// operateUndo answers the admin listener's requests for journals.
func (a *App) operateUndo(ctx context.Context, r *admin.UndoRequest) (status int, answer any) {
	if a.undo == nil || a.locks == nil {
		return letterError(http.StatusNotFound, "undo_off",
			errors.New("there are no journals: locks with undo need undo.auth, and locks in the engine (locks.store: engine)"))
	}
	query, err := readUndoQuery(r, time.Now())
	if err != nil {
		return letterError(http.StatusBadRequest, "invalid_request", err)
	}
	if lock := strings.TrimSuffix(string(r.Lock), "/"); lock != "" {
		answer, err = a.showJournals(ctx, lock, query)
	} else {
		answer, err = a.listJournals(ctx, query)
	}
	var f *lockrouter.Failure
	switch {
	case errors.As(err, &f):
		return letterError(f.Status, f.Type, errors.New(f.Reason))
	case err != nil:
		return letterError(http.StatusServiceUnavailable, journal.TypeStore, err)
	}
	return http.StatusOK, answer
}

// readUndoQuery reads the query. What can't be understood is an error: it may have been meant to leave something out.
func readUndoQuery(r *admin.UndoRequest, now time.Time) (*undoQuery, error) {
	query := &undoQuery{size: undoPage}
	one := len(r.Lock) > 1
	for name, value := range r.Query {
		var err error
		switch {
		case value == "" && (name == "size" || name == "state" || name == "older_than"): // not said
		case name == "pretty": // the answer always is
		case name == "size":
			query.size, err = strconv.Atoi(value)
			if err != nil || query.size < 1 || query.size > maxUndoPage {
				err = errors.New("size is a number from 1 to " + strconv.Itoa(maxUndoPage))
			}
		case name == "after":
			query.after = value
		case one && name == "documents":
			query.documents, err = strconv.ParseBool(cmp.Or(value, "true"))
			if err != nil {
				err = errors.New("documents is true or false")
			}
		case one:
			err = noSuchParameter(name, "documents, size and after")
		default:
			err = query.filter(name, value, now)
		}
		if err != nil {
			return nil, err
		}
	}
	return query, nil
}

// noSuchParameter refuses a parameter of a query: it may have been meant to leave something out.
func noSuchParameter(name, known string) error {
	return errors.New(name + ": there is no such parameter; there are " + known)
}

// filter reads a parameter that says which journals are listed.
func (k *undoQuery) filter(name, value string, now time.Time) error {
	switch name {
	case "owner":
		k.owner = value
		if begin, ok := strings.CutSuffix(value, "*"); ok {
			k.owner, k.owners = "", begin
		}
	case "prefix":
		k.prefix = value
	case "state":
		k.state = undo.State(value)
		if !slices.Contains([]undo.State{undo.Open, journalLapsed, undo.Rolling, undo.Kept}, k.state) {
			return errors.New("state: want open, lapsed, being_undone or left")
		}
	case "older_than":
		d, err := unit.ParseDuration(value)
		if err != nil {
			return errors.New("older_than: " + err.Error())
		}
		k.before = now.Add(-d.Std())
	default:
		return noSuchParameter(name, "owner, prefix, state, older_than, size and after")
	}
	return nil
}

// means reports whether a journal is to be listed. One of which nobody knows when it was begun is older than any time.
func (k *undoQuery) means(j *journalView) bool {
	return (k.owner == "" || k.owner == j.Owner) && strings.HasPrefix(j.Owner, k.owners) && strings.HasPrefix(j.Lock, k.prefix) &&
		(k.state == "" || k.state == j.State) && (k.before.IsZero() || j.Began.Before(k.before))
}

func (a *App) listJournals(ctx context.Context, query *undoQuery) (answer any, err error) {
	after := int64(-1)
	if query.after != "" {
		if after, err = strconv.ParseInt(query.after, 10, 64); err != nil {
			return nil, errUndoAfter
		}
	}
	listed, next, err := a.undo.List(ctx, after, query.size)
	if err != nil {
		return nil, err
	}
	all, err := a.viewJournals(ctx, listed)
	if err != nil {
		return nil, err
	}
	page := struct {
		Journals []*journalView `json:"journals"`
		Next     string         `json:"next,omitempty"`
	}{Journals: []*journalView{}}
	for _, j := range all {
		if query.means(j) {
			page.Journals = append(page.Journals, j)
		}
	}
	if next >= 0 {
		page.Next = strconv.FormatInt(next, 10)
	}
	return page, nil
}

// viewJournals adds what the locks know: whether the leases last.
func (a *App) viewJournals(ctx context.Context, listed []undo.Listed) ([]*journalView, error) {
	leases := make([]undo.Lock, len(listed))
	for i := range listed {
		leases[i] = listed[i].Lock
	}
	lasting, err := a.locks.Lasting(ctx, leases)
	if err != nil {
		return nil, err
	}
	all := make([]*journalView, len(listed))
	for i := range listed {
		j := &listed[i]
		all[i] = &journalView{Lock: j.Name, Owner: j.Owner, Token: j.Token, State: j.State, Began: j.Began, Left: j.Left, Purged: j.Purged}
		if j.Leases > 1 {
			all[i].Leases = j.Leases
		}
		if j.State == undo.Open && !lasting[i] {
			all[i].State = journalLapsed
		}
	}
	return all, nil
}

// showJournals shows the writes in the journals of one lock, those of the oldest lease first.
func (a *App) showJournals(ctx context.Context, path string, query *undoQuery) (any, error) {
	lock, err := a.locks.JournalOf([]byte(path))
	if err != nil {
		return nil, err
	}
	from, behind, err := query.place()
	if err != nil {
		return nil, err
	}
	listed, err := a.undo.Of(ctx, lock)
	if err != nil {
		return nil, err
	}
	if len(listed) == 0 {
		return nil, &lockrouter.Failure{Status: http.StatusNotFound, Type: "journal_not_found",
			Reason: "there is no journal of " + lock.Name + ": it wasn't acquired with undo, or was released, or everything is undone"}
	}
	page := &undoEntries{Entries: []*entryView{}, room: query.size}
	if page.Journals, err = a.viewJournals(ctx, listed); err != nil {
		return nil, err
	}
	for _, j := range page.Journals {
		if j.Token != from {
			behind = 0
		}
		entries, err := a.undo.Entries(ctx, j.Token, behind, page.room, query.documents)
		if err != nil {
			return nil, err
		}
		j.Writes, j.Bytes = &entries.Writes, &entries.Bytes
		if j.Token >= from {
			page.add(j, entries, behind)
		}
	}
	return page, nil
}

// place reads where a page begins: behind the nth write of the journal of a token.
func (k *undoQuery) place() (token int64, nth int, err error) {
	if k.after == "" {
		return 0, 0, nil
	}
	text, number, _ := strings.Cut(k.after, "-")
	token, err = strconv.ParseInt(text, 10, 64)
	if err == nil {
		nth, err = strconv.Atoi(number)
	}
	if err != nil || token < 0 || nth < 0 {
		return 0, 0, errUndoAfter
	}
	return token, nth, nil
}

// undoEntries is a page of the writes in one lock's journals.
type undoEntries struct {
	Journals []*journalView `json:"journals"`
	Entries  []*entryView   `json:"entries"`
	Next     string         `json:"next,omitempty"`

	room   int // for so many more entries
	images int // bytes so far
}

// add adds what there is room for.
func (p *undoEntries) add(j *journalView, entries *undo.Entries, behind int) {
	for i := range entries.Entries {
		e := &entries.Entries[i]
		size := len(e.Before) + len(e.After)
		if p.Next != "" || size <= mostImages && p.images+size > mostImages {
			break
		}
		s := &entryView{Token: j.Token, Nth: e.Nth, Index: e.Index, ID: e.ID, Routing: e.Routing, Rule: e.Rule, Operation: e.Operation,
			Noted: e.Noted, State: e.State, Before: e.Before, After: e.After}
		if size > mostImages {
			s.Before, s.After, s.TooLarge = nil, nil, true
		} else {
			p.images += size
		}
		p.Entries = append(p.Entries, s)
		p.room--
		behind = e.Nth
	}
	if behind < *j.Writes && p.Next == "" {
		p.Next = strconv.FormatInt(j.Token, 10) + "-" + strconv.Itoa(behind)
		p.room = 0
	}
}
