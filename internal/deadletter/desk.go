package deadletter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"optimist/internal/hook"
	"optimist/internal/jsontext"
)

// Desk takes letters in, and hands them out: to the store, or, while that is away, to the folder, from where it moves them when the
// store is back. It is safe for concurrent use; make it with NewDesk.
type Desk struct {
	o     Options
	wake  chan struct{} // something is in the folder
	moves sync.Mutex    // held by who moves a letter, or changes one that may be moved

	damaged map[string]string // letters in the folder that the log has, and why they can't be read. Guarded by moves
}

// Options are what a Desk needs. Store is required.
type Options struct {
	Store Store
	// Folder has the letters that the store can't take now. Nil: they can't be kept.
	Folder *Folder
	// MaxLetter is how many bytes a letter may have. Zero: any number.
	MaxLetter int
	// Lease is how long a replay may take. After it, the letter is doubtful. Default 10 minutes.
	Lease time.Duration
	// Again is the time between two tries to move letters from the folder to the store. Default 5 seconds.
	Again time.Duration
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// Kept is called for each letter that was kept, with the reason and the place: store or folder; and for each that wasn't: lost.
	Kept hook.Func2[string, string]
	// Replayed is called for each replay, with its result.
	Replayed hook.Func1[string]
	Log      *slog.Logger
}

// NewDesk makes a Desk.
func NewDesk(o Options) *Desk {
	o.Lease, o.Again = cmp.Or(o.Lease, 10*time.Minute), cmp.Or(o.Again, 5*time.Second)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Desk{o: o, wake: make(chan struct{}, 1), damaged: map[string]string{}}
}

// Where a letter was kept.
const (
	inStore  = "store"
	inFolder = "folder"
	nowhere  = "lost"
)

// Places are all of these.
func Places() []string { return []string{inStore, inFolder, nowhere} }

// Keep dates a letter, gives it a name if it has none, and stores it. When Keep returns without an error, the letter outlives the process.
// Nobody may change the letter afterwards. If there is a letter of that name already, that one stays as it is.
func (d *Desk) Keep(ctx context.Context, l *Letter) (id string, err error) {
	where, err := d.keep(ctx, l)
	d.o.Kept.Call(l.Reason, where)
	if err != nil {
		return "", err
	}
	return l.ID, nil
}

// keep is Keep, and says where the letter is.
func (d *Desk) keep(ctx context.Context, l *Letter) (where string, err error) {
	now := d.o.Now().UTC().Truncate(time.Millisecond)
	l.Format, l.ID, l.At, l.State = format, cmp.Or(l.ID, newID(now)), now, Waiting
	text, err := jsontext.Marshal(l)
	switch {
	case err != nil:
		return nowhere, err
	case d.o.MaxLetter > 0 && len(text) > d.o.MaxLetter:
		return nowhere, fmt.Errorf("%w: %d bytes", ErrTooLarge, len(text))
	}
	err = ignore(d.store(ctx, l), ErrTaken)
	switch {
	case err == nil:
		return inStore, nil
	case d.o.Folder == nil:
		return nowhere, err
	case errors.Is(err, ErrUnsure): // it may be there twice, and then be replayed twice
		l.State, l.Last = Doubtful, d.note("never replayed; but it may be in the store a second time: "+err.Error())
	}
	if _, failed := d.o.Folder.Put(ctx, l, Revision{}); ignore(failed, ErrTaken) != nil {
		return nowhere, errors.Join(err, failed)
	}
	d.Wake()
	return inFolder, nil
}

// Wake has Move look at the folder, because there is something new in it.
func (d *Desk) Wake() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

// store stores a new letter in the store. Where nobody knows whether that was done, the store is asked.
func (d *Desk) store(ctx context.Context, l *Letter) error {
	_, err := d.o.Store.Put(ctx, l, Revision{})
	if !errors.Is(err, ErrUnsure) {
		return err
	}
	if _, _, there := d.o.Store.Get(ctx, l.ID); there == nil {
		return nil
	}
	return err
}

// lapsed reports whether the replay of a letter is given up: whoever replayed it is gone.
func (d *Desk) lapsed(l *Letter) bool {
	return l.State == Replaying && (l.Last == nil || d.o.Now().Sub(l.Last.At) > d.o.Lease)
}

func ignore(err, known error) error {
	if errors.Is(err, known) {
		return nil
	}
	return err
}

// Listed is a page of letters.
type Listed struct {
	Letters []*Letter `json:"letters"`
	// Next is where the next page begins; empty: there is none.
	Next string `json:"next,omitempty"`
	// InFolder is how many letters wait in this process's folder. Away says why the store doesn't show its own.
	InFolder int    `json:"in_folder"`
	Away     string `json:"away,omitempty"`
}

// List gives letters without bodies, the oldest first: the store's, and those of the folder.
func (d *Desk) List(ctx context.Context, q *Query) (*Listed, error) {
	page := &Listed{Letters: []*Letter{}}
	if d.o.Folder != nil {
		held, _ := d.o.Folder.List(ctx, q) // it never fails
		page.Letters = append(page.Letters, held...)
		page.InFolder, _ = d.o.Folder.Held()
	}
	stored, err := d.o.Store.List(ctx, q)
	switch {
	case err != nil && (!errors.Is(err, ErrAway) || d.o.Folder == nil):
		return nil, err
	case err != nil:
		page.Away = err.Error()
	}
	known := map[string]bool{}
	for _, l := range page.Letters {
		known[l.ID] = true
	}
	for _, l := range stored {
		if !known[l.ID] {
			page.Letters = append(page.Letters, l)
		}
	}
	full := len(page.Letters) >= q.size()
	page.Letters = q.page(page.Letters)
	for i, l := range page.Letters {
		page.Letters[i] = d.judged(l)
	}
	if last := len(page.Letters) - 1; full && page.Letters[last].ID > q.After { // the id of a damaged one may stand elsewhere
		page.Next = page.Letters[last].ID
	}
	return page, nil
}

// judged is a letter with the state that a lapsed replay, or an unfinished move, leaves.
func (d *Desk) judged(l *Letter) *Letter {
	if !d.lapsed(l) && (l.State != Waiting || d.o.Folder == nil || !d.o.Folder.isLeaving(l.ID)) {
		return l
	}
	doubtful := *l
	doubtful.State = Doubtful
	return &doubtful
}

// maxID is how long an id may be in the engine, also one that isn't ours.
const maxID = 512

// place finds a letter, in the folder first: there it is until it is in the store.
func (d *Desk) place(ctx context.Context, id string) (Store, *Letter, Revision, error) {
	if id == "" || len(id) > maxID {
		return nil, nil, Revision{}, ErrNoLetter
	}
	if d.o.Folder != nil {
		if l, at, err := d.o.Folder.Get(ctx, id); !errors.Is(err, ErrNoLetter) {
			return d.o.Folder, l, at, err
		}
	}
	l, at, err := d.o.Store.Get(ctx, id)
	return d.o.Store, l, at, err
}

// Get gives a whole letter.
func (d *Desk) Get(ctx context.Context, id string) (*Letter, error) {
	_, l, _, err := d.place(ctx, id)
	if err != nil {
		return nil, err
	}
	return d.judged(l), nil
}

// Delete takes a letter out, unless somebody replays it.
func (d *Desk) Delete(ctx context.Context, id string) error {
	d.moves.Lock()
	defer d.moves.Unlock()
	store, l, at, err := d.settled(ctx, id)
	switch {
	case err != nil:
		return err
	case l.State == Replaying && !d.lapsed(l):
		return ErrTaken
	}
	return store.Delete(ctx, id, at)
}
