package write

import (
	"context"
	"time"

	"optimist/internal/apply"
	"optimist/internal/base"
	"optimist/internal/catalog"
	"optimist/internal/es"
	"optimist/internal/gate"
	"optimist/internal/hook"
	"optimist/internal/learn"
	"optimist/internal/noop"
	"optimist/internal/outcome"
	"optimist/internal/session"
	"optimist/internal/undeliverable"
	"optimist/retry"
)

// Engine is what this package asks the engine besides the write itself; *es.Client is one.
type Engine interface {
	catalog.Engine
	base.Fetcher
	// Typed reports whether the engine names types in its answers.
	Typed() bool
}

// primaries tells whether a conflict was one with others; a *catalog.Catalog does.
type primaries interface {
	SamePrimary(ctx context.Context, asker catalog.Asker, f *catalog.Conflict, current int64) bool
}

// Events are called for metrics. They must be quick and safe for concurrent use; any may be missing.
type Events struct {
	Conflict    hook.Func1[string]                        // a rule's guarded write was answered with a 409
	Fetch       hook.Func1[string]                        // a document was fetched for a rule's merge
	Batch       hook.Func1[int]                           // one write carried so many changes
	Done        hook.Func3[string, *outcome.Outcome, int] // a rule's write was answered, with this status; 0: with an error
	Unguardable hook.Func2[string, string]                // an index that can't be guarded or merged was found, with the reason
	BaseChosen  hook.Func2[session.Kind, session.Reason]  // what a session knew was chosen as a base
	Collision   hook.Func1[*learn.Conflict]               // a write met changes that its client hadn't seen; the client waits meanwhile
	Blind       hook.Func2[string, session.Session]       // a session overwrote a document of this index, without having read it
	// Marked is called if an answer was lost and marks showed whether the write was applied, with the rule's name and the result.
	Marked hook.Func2[string, bool]
	// StrategiesUnused is told the name of a rule with strategies under which the engine merged an _update: it doesn't know them.
	StrategiesUnused hook.Func1[string]
}

// Options are what a Service needs. Upstream, Engine and Sessions are required.
type Options struct {
	Upstream es.Doer
	// Writes is what carries the writes, where that isn't Upstream: it may have them wait.
	Writes   es.Doer
	Engine   Engine
	Sessions *session.Store
	Events   Events
	// Letters keep the writes that can't be placed, of rules that ask for it. Nil: nothing is kept.
	Letters undeliverable.Letters
	// Locks know who may write, of rules that enforce locks. Nil: nothing is locked.
	Locks gate.Locks
	// OwnAuth says that the upstream has optimist's own credentials. Questions about indices then go by these.
	OwnAuth bool
	// MaxBody is how many bytes a patch, or a rule's transform, may add to a document: as many as a guarded body may have. Zero: as many
	// as package edit allows.
	MaxBody int64
	// BatchLimit is how many waiting changes share one write at most. Default 64.
	BatchLimit int
	// Now is the clock that rules see. Default time.Now.
	Now func() time.Time
}

// Service performs the writes that a rule takes. It is safe for concurrent use.
type Service struct {
	engine    Engine
	sessions  *session.Store
	catalog   *catalog.Catalog
	bases     *base.Finder
	primaries primaries
	carrier   carrier     // of guarded writes
	direct    single      // of writes that go as they are
	noops     noop.Asker  // asks for the engine's answer to a write that changes nothing
	means     apply.Means // of intents
	letters   undeliverable.Letters
	gate      *gate.Gate
	lanes     *retry.Lanes[*change]
	events    Events
}

// NoteAnswer notes that the answer of Do is written to the client, if that is still there: see session.Base.NoteAnswer.
func (s *Service) NoteAnswer(r *Request) { r.change.Base.NoteAnswer() }

// TakeUnanswered is for a Request that isn't kept until then: see session.Base.TakeUnanswered.
func (r *Request) TakeUnanswered() session.Unanswered { return r.change.Base.TakeUnanswered() }

// IndicesChanged makes the Service ask again what indices are: optimist has seen a change of settings, mappings, aliases, templates or
// pipelines, by a client with those credentials. The Service forgets the documents under the given names (decoded): they stand for other
// indices now. Call it after the engine's answer and before the client's.
func (s *Service) IndicesChanged(credentials session.Credentials, recreated ...string) {
	s.lanes.DropGuesses()
	for _, name := range recreated {
		s.sessions.DropIndex(credentials, name) // first: whom it concerns is forgotten with the rest
	}
	s.catalog.Forget(credentials, recreated...)
}

// IndexRenewed makes the Service ask again what an index is: the sessions have found out that it was made anew.
func (s *Service) IndexRenewed(credentials session.Credentials, name string) {
	s.lanes.DropGuesses()
	s.catalog.Forget(credentials, name)
}

// Catalog is what the Service knows of indices.
func (s *Service) Catalog() *catalog.Catalog { return s.catalog }
