// Package lockrouter gives out locks: it takes the requests under _lock, makes them wait in their order if the lock is held, and
// hands the lock to the next one when it is free.
//
// A lease is not a mutex: a clock that steps, an engine that fails over, or a holder that is stopped can end one early. The token
// decides. The package doesn't know where lock documents are kept (see Store), or through which door a request came.
package lockrouter

import (
	"context"
	"errors"
	"fmt"

	"optimist/lockrouter/state"
)

// ErrStore reports that the store couldn't be asked, or that its answer was lost. The operation may have been carried out or not. All calls
// can be repeated.
var ErrStore = errors.New("the store of the locks is unavailable")

// ErrNotDone reports that a call was not carried out, and never will be: it wasn't sent, or the store has refused it. It is an ErrStore.
// Who gets an ErrStore that isn't one has to take back what the call may have acquired.
var ErrNotDone = fmt.Errorf("%w: nothing was done", ErrStore)

// NotDone makes an ErrNotDone of an ErrStore, with the same text.
func NotDone(err error) error { return notDoneError{err} }

type notDoneError struct{ error }

func (e notDoneError) Unwrap() error { return e.error }

// Is reports whether target is ErrNotDone.
func (notDoneError) Is(target error) bool { return target == ErrNotDone }

// Store keeps lock documents. Its methods are safe for concurrent use. Every error is, or wraps, ErrStore.
type Store interface {
	// Do carries out each call on its document, as one atomic step. It returns the documents after these steps, in the order of the
	// changes. The steps run in any order, and each succeeds or fails by itself. No two changes may be for one document. A positive verdict
	// means that the change was written, and replicated as far as the store replicates.
	Do(ctx context.Context, changes []Change) []Changed
	// Read returns the documents as they are now, with one request. A missing document is nil.
	Read(ctx context.Context, ids []string) ([]*state.Doc, error)
	// Find lists documents. The list may be a second old, so nothing may be decided by it.
	Find(ctx context.Context, q *Query) (*Page, error)
	// Timed reports whether the store's clock decides when leases end. If not, they end when this process has seen them unchanged for long
	// enough.
	Timed() bool
}

// Change is a call for one document.
type Change struct {
	ID   string
	Call *state.Call
}

// Changed is the result of a Change. The caller must not change Doc.
type Changed struct {
	Doc     *state.Doc
	Results []state.Result
	Err     error
}

// Query says which documents are listed. Only documents with leases are.
type Query struct {
	Owner  string // only those of this owner, if not empty
	Owners string // only those of an owner that begins so, if not empty
	Prefix string // only those whose path begins so
	Before int64  // only those with a lease from before that time, in ms by the store's clock, if not 0
	After  string // only those behind this path, which is the last one of the page before
	Size   int
}

// Page is a part of a list, in the order of the paths.
type Page struct {
	Docs []*state.Doc
	Next string // what Query.After has to be for the next page; empty at the end
}
