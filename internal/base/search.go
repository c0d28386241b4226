// Package base finds what a write is based on: the revision that its client names, by a guard of its own, an If-Match or a stamp; else the
// one that the client's session has seen; else, where the rule says so, the one that is stored now.
//
// It takes a base from the session and ends none: whoever searched for one commits it, or gives it back. It sends no writes.
package base

import (
	"context"
	"errors"
	"fmt"
	"time"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/hook"
	"optimist/internal/intake"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/stamp"
	"optimist/internal/wire"
)

var (
	// ErrPreconditionRequired reports a write without a base where the rule demands one. Nothing was sent.
	ErrPreconditionRequired = errors.New("the write names no revision that it is based on, and the rule demands one")

	// ErrLost reports a write whose base was known and is not any more, where the rule refuses such writes. Nothing was sent.
	ErrLost = errors.New("the revision that the write is based on is not known any more; read the document again")

	// ErrAmbiguous reports a write for which several reads of the session could be the base, where the rule refuses to guess.
	// Nothing was written.
	ErrAmbiguous = errors.New("several revisions that this session has read could be the base of the write")

	// ErrNoMatch reports an If-Match that can't be met, because there is no document. Nothing was sent.
	ErrNoMatch = errors.New("If-Match asks for a document, and there is none")

	// ErrNoIndex reports that there is no document because there is no index.
	ErrNoIndex = fmt.Errorf("%w: no such index", doc.ErrMissing)
)

// Search is the search for one write's base. It is used by one goroutine at a time.
type Search struct {
	// What the write is: filled in before the search.
	intake.Write
	Op        *api.Op
	Fields    []wire.Field
	Rule      *rule.Rule
	Asker     catalog.Asker // on whose behalf the engine is asked
	Session   session.Session
	Anonymous bool // the client has no session
	Guarded   bool // the write must not go without a guard: it is to be undone, perhaps
	Stamp     stamp.Stamp
	Given     *Given  // the base is known from before. Nil: it is searched for
	Way       Fetcher // reads the document. Nil: the Finder's Engine does
	Began     time.Time
	Room      *budget.Account
	Sent      []byte         // the document, or of an _update that is merged here the part; nil for a delete
	Part      *patch.Request // what an _update says whose part is a change from the base; nil: for the engine alone, or no _update

	// What was found.
	Index   catalog.Index
	Base    session.Base
	Outcome outcome.Outcome // its Base, Ambiguous and Reason
	Void    []string        // parameters of the request that the base's own guard takes the place of
}

// Given is what a client had seen when it made a write.
type Given struct {
	Kind    session.Kind
	Numbers doc.Numbers
	Version int64
	View    []byte // what the client saw; nil: not known
	Stored  []byte // what the engine held at Numbers; nil: not known
}

// known reports whether it says anything.
func (g *Given) known() bool {
	return g != nil && g.Kind != session.KindNone && g.Kind != session.KindLost
}

// Fetcher reads documents as they are now.
type Fetcher interface {
	Fetch(ctx context.Context, who es.Caller, d es.Document) (doc.Revision, error)
}

// Finder finds bases. Engine, Catalog and Sessions are required. It is safe for concurrent use, and isn't changed while it is used.
type Finder struct {
	Engine   Fetcher
	Catalog  *catalog.Catalog
	Sessions *session.Store
	Fetched  hook.Func1[string]                       // a document is fetched as a base, under the rule of this name
	Chosen   hook.Func2[session.Kind, session.Reason] // what a session knew was chosen
}
