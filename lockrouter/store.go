// Package lockrouter gives out locks: it takes the requests under _lock, makes them wait in their order if the lock is held, and
// hands the lock to the next one when it is free.
//
// A lease is not a mutex: a clock that steps, an engine that fails over, or a holder that is stopped can end one early. The token
// decides. The package doesn't know where lock documents are kept (see Store), or through which door a request came.
package lockrouter

import (
	"context"
	"errors"

	"optimist/lockrouter/state"
)

// ErrStore reports that the store couldn't be asked, or that its answer was lost: what was asked for may have been done or not. All calls
// can be repeated.
var ErrStore = errors.New("the store of the locks is unavailable")

// Store keeps lock documents. Its methods are safe for concurrent use. Every error is, or wraps, ErrStore.
type Store interface {
	// Do carries each call out on its document, as one atomic step, and gives the documents as they are then, in the order of the changes.
	// The steps of several changes are in no order, and each succeeds or fails by itself. No two may be of one document. A positive
	// verdict is given only for what was written, and replicated as far as the store replicates anything.
	Do(ctx context.Context, changes []Change) []Changed
	// Read gives the documents as they are now, with one request; nil for one that isn't there.
	Read(ctx context.Context, ids []string) ([]*state.Doc, error)
	// Find lists documents. It may be a second behind, and so decides nothing.
	Find(ctx context.Context, q *Query) (*Page, error)
	// Timed reports whether leases are judged by the store's clock; else by how long this process has seen them unchanged.
	Timed() bool
}

// Change is a call for one document.
type Change struct {
	ID   string
	Call *state.Call
}

// Changed is what became of a Change. Doc is not to be changed.
type Changed struct {
	Doc     *state.Doc
	Results []state.Result
	Err     error
}

// Query says which documents are listed: those with leases.
type Query struct {
	Owner  string // only those of this owner, if not empty
	Owners string // only those of an owner that begins so, if not empty
	Prefix string // only those whose path begins so
	// Without has a release pass over locks whose path begins so. Stores needn't know it.
	Without string
	Before  int64  // only those with a lease from before, in ms by the store's clock, if not 0
	After   string // only those behind this path: the last of the page before
	Size    int
}

// Page is a part of a list, in the order of the paths.
type Page struct {
	Docs []*state.Doc
	Next string // what Query.After has to be for the next page; empty at the end
}
