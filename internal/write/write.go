// Package write takes one write of a client from request to answer: it chooses the base, guards the write, and on a conflict merges the
// client's change into the newer revision and writes again.
//
// It answers success only for what the engine acknowledged, and it never sends a write again whose outcome is unknown, unless that
// can't apply the change twice. It doesn't know connections, configuration files or other proxies.
package write

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/stamp"
	"optimist/internal/wire"
	"optimist/retry"
)

var (
	// ErrPreconditionRequired reports a write without a base where the rule demands one. Nothing was sent.
	ErrPreconditionRequired = errors.New("the write names no revision that it is based on, and the rule demands one")

	// ErrBaseLost reports a write whose base was known and is not any more, where the rule refuses such writes. Nothing was sent.
	ErrBaseLost = errors.New("the revision that the write is based on is not known any more; read the document again")

	// ErrAmbiguous reports a write for which several reads of the session could be the base, where the rule refuses to guess. Nothing was
	// sent.
	ErrAmbiguous = errors.New("several revisions that this session has read could be the base of the write")

	// ErrBadMatch reports an If-Match that isn't * or one or more of the ETags that optimist gives.
	ErrBadMatch = errors.New(`If-Match must be *, or ETags as given with reads and writes of the document: "<seq_no>-<primary_term>"`)

	// ErrNoMatch reports an If-Match that can't be met, because there is no document. Nothing was sent.
	ErrNoMatch = errors.New("If-Match asks for a document, and there is none")

	// ErrContradiction reports a write that is only to be done where there is no document, and only where there is one. Nothing was sent.
	ErrContradiction = errors.New("If-None-Match: * asks that there be no document, and If-Match or a version asks for one")

	// ErrUnknownOutcome reports a write that may or may not have been applied.
	// Whatever error has it in its chain is one; all others say that nothing was written.
	ErrUnknownOutcome = errors.New("the outcome of the write is unknown: it was sent, and it can't be told whether it was applied")

	// ErrNotWritten reports that the engine couldn't be asked what had to be known before the write. Nothing was written.
	ErrNotWritten = catalog.ErrUnavailable

	// ErrTimeout reports that the time which the client gave ended before the write's turn came. Nothing was written.
	ErrTimeout = errors.New("the request's own timeout ended before it could be written")
)

// Engine is what this package asks the engine besides the write itself; *es.Client is one.
type Engine interface {
	catalog.Engine
	Fetch(ctx context.Context, who es.Caller, d es.Document) (doc.Revision, error)
	// Typed reports whether the engine names types in its answers.
	Typed() bool
}

// primaries tells whether a conflict was one with others; a *catalog.Catalog does.
type primaries interface {
	SamePrimary(ctx context.Context, who catalog.Asker, f *catalog.Conflict, current int64) bool
}

// Events are told what happens, for metrics. Calls must be quick and safe for concurrent use; any may be nil.
type Events struct {
	Conflict func(rule string)                                 // the engine answered 409 to a guarded write
	Fetch    func(rule string)                                 // a document was fetched for a merge
	Batch    func(changes int)                                 // one write carried so many changes
	Done     func(rule string, o *outcome.Outcome, status int) // a write was answered
	Unguard  func(index, reason string)                        // an index was found that can't be guarded or merged
	Took     func(kind session.Kind, reason session.Reason)    // a base was chosen
}

// Options are what a Service needs. Upstream, Engine and Sessions are required.
type Options struct {
	Upstream es.Doer
	Engine   Engine
	Sessions *session.Store
	Events   Events
	Log      *slog.Logger
	// OwnAuth says that the upstream has credentials of the proxy's own, which then ask what an index is.
	OwnAuth bool
	// AnswerTimeout bounds how long one guarded write waits for its answer; after it the outcome is unknown. The engine itself gives
	// up after the request's timeout (a minute). Default two minutes.
	AnswerTimeout time.Duration
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
	primaries primaries
	carrier   carrier // of guarded writes
	direct    single  // of writes that go as they are
	questions single  // of what is asked for an answer's form
	observer  observer
	lanes     *retry.Lanes[*change]
	events    Events
	log       *slog.Logger
	timeout   time.Duration
	now       func() time.Time
}

// New makes a Service.
func New(o Options) *Service {
	if o.AnswerTimeout == 0 {
		o.AnswerTimeout = 2 * time.Minute
	}
	if o.BatchLimit == 0 {
		o.BatchLimit = 64
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{engine: o.Engine, sessions: o.Sessions, events: o.Events.orNothing(), log: o.Log,
		timeout: o.AnswerTimeout, now: o.Now, observer: unobserved{}}
	s.direct = single{o.Upstream, o.AnswerTimeout}
	s.carrier, s.questions = s.direct, s.direct
	s.lanes = retry.NewLanes(o.BatchLimit, share)
	s.catalog = catalog.New(catalog.Options{Engine: o.Engine, OwnAuth: o.OwnAuth, Now: o.Now, Unguardable: s.events.Unguard,
		Recreated: func(index string) {
			s.lanes.DropGuesses()
			s.sessions.DropIndex(index)
		}})
	s.primaries = s.catalog
	return s
}

func (e Events) orNothing() Events {
	if e.Conflict == nil {
		e.Conflict = func(string) {}
	}
	if e.Fetch == nil {
		e.Fetch = func(string) {}
	}
	if e.Batch == nil {
		e.Batch = func(int) {}
	}
	if e.Done == nil {
		e.Done = func(string, *outcome.Outcome, int) {}
	}
	if e.Unguard == nil {
		e.Unguard = func(string, string) {}
	}
	if e.Took == nil {
		e.Took = func(session.Kind, session.Reason) {}
	}
	return e
}

// Request is a write of one document, taken by a rule. Its slices must stay as they are until Do returns. Whoever writes again and again
// may use one Request for it, one write after the other.
type Request struct {
	Op         *api.Op // Index, IndexAuto, Create, Update, Patch or Delete
	Method     []byte
	Fields     []wire.Field // the client's end-to-end fields
	Body       []byte       // as sent, without transfer coding
	Rule       *rule.Rule
	Session    session.Session
	Caller     es.Caller // the client's credentials
	Background bool
	Anonymous  bool // there is no telling this client from others with its credentials: it has no session
	// Reason says why the write can't be guarded at all (signed requests): it is passed as it is, and said.
	Reason string
	// Stamp is the one that was taken out of the body; the zero value is none.
	Stamp stamp.Stamp

	change change // of the Do under way
}

// Do performs the write and returns the answer for the client. Errors that a client is to blame for, or that say that nothing was
// acknowledged, are this package's sentinels and those of upstream; the caller maps them to a status. ctx ends when the client
// leaves: what isn't sent by then never is; what is, runs to its end, and the session knows of it.
func (s *Service) Do(ctx context.Context, r *Request) (*respond.Answer, error) {
	c := &r.change
	if err := c.read(r, s.now); err != nil {
		return nil, err
	}
	defer func() { c.base.Release() }() // a panic must not have the session wait for ever
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	return s.finish(c, s.perform(ctx, c))
}

// perform does what a write of its kind takes: a base, an intent, a place in the document's lane.
func (s *Service) perform(ctx context.Context, c *change) error {
	switch kind := c.req.Op.Kind; {
	case c.req.Reason != "":
		c.untransformed = true
		return s.pass(ctx, c, c.req.Reason)
	case kind == api.Update:
		return s.update(ctx, c)
	case kind == api.Patch:
		return s.patchDocument(ctx, c)
	case kind == api.Delete && c.onlyNew:
		return s.deleteNothing(ctx, c)
	case kind == api.Create || kind == api.Index && c.onlyNew:
		return s.create(ctx, c)
	case kind == api.IndexAuto:
		return s.pass(ctx, c, "")
	}
	return s.put(ctx, c)
}

// Answered notes that the answer of Do is written to the client, if that is still there: see session.Base.Answered.
func (s *Service) Answered(r *Request) { r.change.base.Answered() }

// Failure is an error with what is known of the write's outcome, for the header.
type Failure struct {
	Outcome outcome.Outcome
	Err     error
}

// Error is the cause's.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

// IndicesChanged makes the Service ask again what indices are: the proxy has seen a change of settings, mappings, aliases, templates or
// pipelines. What is known of documents under the given names (decoded) is forgotten: they stand for other indices now. Call it after the
// engine's answer and before the client's.
func (s *Service) IndicesChanged(recreated ...string) {
	s.lanes.DropGuesses()
	s.catalog.Forget(recreated...)
	for _, name := range recreated {
		s.sessions.DropIndex(name)
	}
}

// Catalog is what the Service knows of indices.
func (s *Service) Catalog() *catalog.Catalog { return s.catalog }

// Busy is the number of documents with changes under way, and of changes that wait for their turn.
func (s *Service) Busy() (lanes, waiting int) { return s.lanes.Busy() }
