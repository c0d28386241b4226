// Package base finds a write's base. The base is the revision that the client names, by its own guard, an If-Match or a stamp.
// Otherwise it is the revision that the client's session has seen. Otherwise, if the rule says so, it is the stored revision.
//
// The package takes a base from the session, but doesn't end it: the caller commits the base, or gives it back. It sends no
// writes.
package base

import (
	"cmp"
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
	ErrPreconditionRequired = errors.New("the write names no revision that it is based on, and the rule demands one: " +
		"read the document first, or send If-Match")

	// ErrLost reports a write whose base was known and is not any more, where the rule refuses such writes. Nothing was sent.
	ErrLost = errors.New("the revision that the write is based on is not known any more; read the document again")

	// ErrAmbiguous reports a write for which several reads of the session could be the base, where the rule refuses to guess.
	// Nothing was written.
	ErrAmbiguous = errors.New("several revisions that this session has read, or was shown, could be the base of the write")

	// ErrNoMatch reports an If-Match that can't be met, because there is no document. Nothing was sent.
	ErrNoMatch = errors.New("If-Match asks for a document, and there is none")

	// ErrNoIndex reports that there is no document because there is no index.
	ErrNoIndex = fmt.Errorf("%w: no such index", doc.ErrMissing)
)

// Request is one client's write, as far as its base depends on it. It stays as it is during the search.
type Request struct {
	Op        *api.Op      // Index, IndexAuto, Create, Update, Patch or Delete
	Fields    []wire.Field // the client's end-to-end fields
	Rule      *rule.Rule
	Session   session.Session
	Anonymous bool                // optimist can't tell this client from others with its credentials: the client has no session
	Caller    es.Caller           // on whose behalf the engine is asked
	Names     es.Document         // of the document, decoded, if the caller knows them; without an index, Op says them
	Realm     session.Credentials // stands for what is known of indices: see client.Client. Zero: the session's credentials do
	// Stamp is the one that was taken out of the body; the zero value is none.
	Stamp stamp.Stamp
	// Series is the writes of the same document that the same request brings, one after the other. Nil: there is no other.
	Series *session.Series
	// Preset is the base of a write that is made again (a dead letter). Sessions are not asked for one then. Nil: it is a client's write.
	Preset *Preset
	// Way takes the write to the engine, and reads its document. Nil: requests of their own do.
	Way Way
}

// Way takes writes of one document to the engine, and reads that document: an item of a bulk, say, has both done together with other
// items. Package base only reads.
type Way interface {
	es.Doer
	Fetcher
}

// ErrParked reports that a Parker has the write.
var ErrParked = errors.New("the write waits for its answer")

// Credentials are those under which knowledge of indices is kept: the realm's, else the session's.
func (r *Request) Credentials() session.Credentials { return cmp.Or(r.Realm, r.Session.Credentials()) }

// Asker is the request's client, for the catalog. It waits for an answer no longer than its write is tried.
func (w *Search) Asker() catalog.Asker {
	a := catalog.Asker{Realm: w.Credentials(), Credentials: w.Session.Credentials(), Caller: w.Caller, Until: w.Deadline}
	if most := w.Rule.Retry.MaxElapsed; most > 0 && !w.Began.IsZero() {
		if end := w.Began.Add(most); a.Until.IsZero() || end.Before(a.Until) {
			a.Until = end
		}
	}
	return a
}

// Search is the search for one write's base. It is used by one goroutine at a time.
type Search struct {
	Question
	Result
}

// Question is what the search goes by. It is filled in before.
type Question struct {
	*Request
	intake.Terms                // what the request says
	Found        *catalog.Index // that the write is of, if it was just asked what that is; nil: Locate asks
	Journalled   bool           // the write must not go without a guard: it may have to be undone
	Began        time.Time
	Room         *budget.Account
	Sent         []byte         // the document; the part of an _update that is merged here; nil for a delete
	Part         *patch.Request // an _update whose part is a change from the base; nil: the engine merges it, or it is no _update
}

// Result is what the search finds.
type Result struct {
	Index   catalog.Index
	Base    session.Base
	Outcome outcome.Outcome // its Base, Ambiguous and Reason
	Dropped []string        // parameters of the request that the base's own guard takes the place of
	Moved   bool            // the client saw the base in the index for which the name stood before
}

// Preset is what a client had seen when it made a write.
type Preset struct {
	Kind    session.Kind
	Numbers doc.Numbers
	Version int64
	View    []byte // what the client saw; nil: not known
	Stored  []byte // what the engine held at Numbers; nil: not known
}

// known reports whether it says anything.
func (g *Preset) known() bool {
	return g != nil && g.Kind != session.KindNone && g.Kind != session.KindLost
}

// Fetcher reads documents as they are now.
type Fetcher interface {
	Fetch(ctx context.Context, caller es.Caller, d es.Document) (doc.Revision, error)
}

// Finder finds bases. Engine, Catalog and Sessions are required. It is safe for concurrent use, and isn't changed while it is used.
type Finder struct {
	Engine   Fetcher
	Catalog  *catalog.Catalog
	Sessions *session.Store
	Fetched  hook.Func1[string]                       // a document is fetched as a base, under the rule of this name
	Chosen   hook.Func2[session.Kind, session.Reason] // what a session knew was chosen
}
