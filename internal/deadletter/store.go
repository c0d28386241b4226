package deadletter

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

var (
	// ErrNoLetter reports that there is no such letter: somebody has replayed or deleted it.
	ErrNoLetter = errors.New("there is no such dead letter")
	// ErrTaken reports that the letter isn't at the revision any more, or, of a new one, that it is there. Nothing was changed.
	ErrTaken = errors.New("the dead letter has changed meanwhile")
	// ErrFull reports that a folder holds as many bytes as it may. Nothing was stored.
	ErrFull = errors.New("the folder of dead letters is full (dead_letters.max_folder)")
	// ErrTooLarge reports a letter that is larger than letters may be. Nothing was stored.
	ErrTooLarge = errors.New("the dead letter is too large (dead_letters.max_letter)")
	// ErrAway reports a store that can't be asked now. Nothing was stored.
	ErrAway = errors.New("the store of the dead letters can't be reached")
	// ErrUnsure reports that a letter may be stored, or changed, or not.
	ErrUnsure = errors.New("it isn't known whether the store of the dead letters has done it")
	// ErrStore reports a store that refuses what it is asked.
	ErrStore = errors.New("the store of the dead letters refuses")
)

// Revision is the state that a letter is in, as its store counts. The zero value is that of a letter which isn't there.
type Revision struct{ n, term int64 }

// Store keeps letters. It is safe for concurrent use. All stores are held to one suite of tests.
type Store interface {
	// Put stores a letter in place of a revision; the zero Revision asks that it be new. The letter outlives the process once Put has
	// returned without an error. Errors: ErrTaken, ErrAway, ErrUnsure, ErrFull, ErrStore.
	Put(ctx context.Context, l *Letter, in Revision) (Revision, error)
	// Get gives one letter, as the last Put that anybody's Put, Get or List has seen has left it. One that can't be read is Damaged. Errors:
	// ErrNoLetter, ErrAway, ErrStore.
	Get(ctx context.Context, id string) (*Letter, Revision, error)
	// List gives letters without bodies, the oldest first, as the last Put has left them, and those that can't be read.
	List(ctx context.Context, q *Query) ([]*Letter, error)
	// Delete takes a letter out that is at a revision. Errors: ErrNoLetter, ErrTaken, ErrAway, ErrUnsure, ErrStore.
	Delete(ctx context.Context, id string, at Revision) error
}

// Query selects letters. Zero fields don't count.
type Query struct {
	Rule, Index, Document, Reason string
	State                         State
	Before, Since                 time.Time
	After                         string // an id: only letters that come after it
	Size                          int    // how many at most; 0: as many as there are, at most maxPage
}

// maxPage is how many letters a list has at most.
const maxPage = 1000

// takes reports whether the query means the letter.
func (q *Query) takes(l *Letter) bool {
	for _, one := range [...][2]string{{q.Rule, l.Rule}, {q.Index, l.Index}, {q.Document, l.Document}, {q.Reason, l.Reason},
		{string(q.State), string(l.State)}} {
		if one[0] != "" && one[0] != one[1] {
			return false
		}
	}
	return l.ID > q.from() && (q.Before.IsZero() || l.ID < idAt(q.Before))
}

// from is the id behind which the letters stand that the query means.
func (q *Query) from() string {
	if q.Since.IsZero() {
		return q.After
	}
	return max(q.After, idAt(q.Since))
}

func (q *Query) size() int {
	if q.Size <= 0 || q.Size > maxPage {
		return maxPage
	}
	return q.Size
}

// page sorts the letters that a store has found, and cuts them to the query's size.
func (q *Query) page(found []*Letter) []*Letter {
	slices.SortFunc(found, func(a, b *Letter) int { return cmp.Compare(a.ID, b.ID) })
	return found[:min(len(found), q.size())]
}
