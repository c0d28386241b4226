package write

import (
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
	"optimist/internal/rule"
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

// Events are called for metrics. They must be quick and safe for concurrent use; any may be missing.
type Events struct {
	Conflict    hook.Func1[string]                            // a rule's guarded write was answered with a 409
	Fetch       hook.Func1[string]                            // a document was fetched for a rule's merge
	Batch       hook.Func1[int]                               // one write carried this number of changes
	Done        hook.Func3[*rule.Rule, *outcome.Outcome, int] // a rule's write got an answer with this status; 0: it got an error
	Unguardable hook.Func2[string, string]                    // an index that can't be guarded or merged was found, with the reason
	BaseChosen  hook.Func2[session.Kind, session.Reason]      // a session has chosen a base of this kind
	Collision   hook.Func1[*learn.Conflict]                   // a write met changes that its client hadn't seen; the client waits meanwhile
	Blind       hook.Func2[string, session.Session]           // a session overwrote a document of this index, without having read it
	// Marked is called if marks have shown whether a write whose answer was lost was applied, with the rule's name and the result.
	Marked hook.Func2[string, bool]
	// StrategiesUnused is called if the engine has merged an _update under a rule with strategies, which the engine doesn't know.
	StrategiesUnused hook.Func1[string]
}

// Options are what a Service needs. Upstream, Engine and Sessions are required.
type Options struct {
	Upstream es.Doer
	// Writes carries the writes, and may have them wait. Nil: Upstream carries them.
	Writes   es.Doer
	Engine   Engine
	Sessions *session.Store
	Events   Events
	// Letters keeps the writes that can't be placed, if their rule asks for it. Nil: it keeps none.
	Letters undeliverable.Letters
	// Locks know who may write, of rules that enforce locks. Nil: nothing is locked.
	Locks gate.Locks
	// OwnAuth says that the upstream has optimist's own credentials, so that optimist asks about indices with these.
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
	primaries *catalog.Catalog // tells whose conflict it was; nil: always that of another client, because nothing is sent
	carrier   carrier          // of guarded writes
	direct    single           // of writes that go as they are
	noops     noop.Asker       // asks for the engine's answer to a write that changes nothing
	means     apply.Means      // of intents
	letters   undeliverable.Letters
	gate      *gate.Gate
	lanes     *retry.Lanes[*change]
	events    Events
}

// IndicesChanged makes the Service ask again what indices are. Call it if a client with those credentials has changed settings, mappings,
// aliases, templates or pipelines, after the engine has answered, and before the client gets the answer. The names in recreated (decoded)
// stand for other indices now: the Service forgets their documents.
func (s *Service) IndicesChanged(credentials session.Credentials, recreated ...string) {
	s.lanes.DropGuesses()
	for _, name := range recreated {
		s.sessions.DropIndex(credentials, name) // first: the lines below forget which clients this concerns
	}
	s.catalog.Forget(credentials, recreated...)
}

// IndexRenewed makes the Service ask again what an index is, because reads or writes have shown that it was made anew.
func (s *Service) IndexRenewed(credentials session.Credentials, name string) {
	s.lanes.DropGuesses()
	s.catalog.Forget(credentials, name)
}

// Catalog is what the Service knows of indices.
func (s *Service) Catalog() *catalog.Catalog { return s.catalog }
