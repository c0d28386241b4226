package write

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"optimist/internal/es"
	"optimist/internal/rule"
	"optimist/internal/session"
)

// Reasons why a write is passed, or guarded and never merged. They are tokens of the outcome and labels of a metric.
const (
	ReasonSigned     = "signed"          // the request is signed over its query or body
	ReasonAuth       = "connection_auth" // the authentication belongs to the connection (Negotiate, NTLM)
	ReasonFragment   = "fragment"        // the request's target has a number sign, behind which engines heed no parameter
	ReasonFormat     = "format"          // the body isn't JSON, or not one object
	ReasonTooLarge   = "too_large"       // the body is over the limit up to which writes are held
	ReasonDataStream = "data_stream"     // the index backs a data stream, and no rule names it
	ReasonSeqNo      = "no_seq_no"       // the index has no sequence numbers
	ReasonSource     = "source"          // _source isn't kept whole: guarded, not merged
	ReasonPipeline   = "pipeline"        // an ingest pipeline changes what is written: guarded, not merged
	ReasonFiltered   = "filtered"        // the client's view may be filtered: guarded, not merged
	ReasonMetadata   = "metadata"        // what the index is may not be asked: guarded, not merged
	ReasonNumbers    = "numbers"         // the base's body isn't known: guarded, not merged
	ReasonBlind      = "blind"           // the session writes what it hasn't read
	ReasonExplicit   = "explicit"        // the client brought its own guard
	ReasonBulk       = "bulk"            // the items of a bulk are not guarded
	ReasonByQuery    = "by_query"        // nor are the documents of an update or delete by query
)

const (
	gateAge      = time.Minute
	gateRefused  = 10 * time.Second // how long a refusal or a failure is believed
	gateCount    = 4096
	gateStamped  = time.Second      // how old it may be where a stamp is held against it, which the client may have had for days
	gateStale    = time.Second      // how long what was known is gone on with when the engine can't be asked
	gatePatience = 30 * time.Second // how long an answer is waited for, by whoever is still there
)

// gates remember what is known of indices: what a name stands for, whether documents can be merged, and who sees them whole.
type gates struct {
	engine  Engine
	unguard func(index, reason string)
	ownAuth bool
	names   *lru.Cache[gateKey, *gate]
	noSeqNo *lru.Cache[string, time.Time]
	uuids   *lru.Cache[string, string] // of the indices described
	terms   *lru.Cache[shardAt, *primary]
	renewed func(index string) // an index was made anew, and the proxy hasn't seen it
}

// gateKey is a name and who asked: what one client may know of an index isn't another's.
type gateKey struct {
	name string
	who  session.Credentials
}

// gate is what is known of one name. What is known is read without waiting for anybody; the mutex makes many writes that need to know
// ask once.
type gate struct {
	mu    sync.Mutex
	name  atomic.Pointer[meaning] // nil: it was never asked
	sight atomic.Pointer[sight]   // nil: it was never tried
}

// meaning is what a name stands for.
type meaning struct {
	index  es.Index
	reason string // why it isn't known
	asked  time.Time
	until  time.Time // up to when it is believed
}

func (m *meaning) believed(now time.Time) bool { return m != nil && now.Before(m.until) }

// sight is whether documents are seen whole.
type sight struct {
	whole bool
	until time.Time // up to when it is believed
}

func (s *sight) believed(now time.Time) bool { return s != nil && now.Before(s.until) }

func newGates(s *Service, ownAuth bool) *gates {
	names, _ := lru.New[gateKey, *gate](gateCount) // fails for a size of zero only
	noSeqNo, _ := lru.New[string, time.Time](gateCount)
	uuids, _ := lru.New[string, string](gateCount)
	terms, _ := lru.New[shardAt, *primary](gateCount)
	return &gates{engine: s.engine, unguard: s.events.Unguard, ownAuth: ownAuth, names: names, noSeqNo: noSeqNo, uuids: uuids, terms: terms,
		renewed: func(index string) {
			s.lanes.DropGuesses()
			s.store.DropIndex(index)
		}}
}

func (g *gates) drop() {
	g.names.Purge()
	g.noSeqNo.Purge()
	g.uuids.Purge()
}

// of is the gate for a name and a client.
func (g *gates) of(name string, who session.Credentials) *gate {
	key := gateKey{name, who}
	if x, ok := g.names.Get(key); ok {
		return x
	}
	x := &gate{}
	if before, found, _ := g.names.PeekOrAdd(key, x); found {
		return before
	}
	return x
}

// describe tells what the name stands for in a write. Where that may not be known it is taken for an index's own name, and reason says
// why. An index that isn't there yet is remembered by nobody: the write may make it. The error says that the engine couldn't be asked:
// a name that may be an alias is no place to look for a base.
func (g *gates) describe(ctx context.Context, r *Request, name string) (ix es.Index, reason string, err error) {
	x := g.of(name, r.Session.Credentials())
	good := func(m *meaning) bool {
		now := time.Now()
		return m.believed(now) && (!r.Stamp.Known() || now.Sub(m.asked) < gateStamped)
	}
	if m := x.name.Load(); good(m) {
		return m.index, m.reason, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	before := x.name.Load()
	if good(before) {
		return before.index, before.reason, nil
	}
	now := time.Now()
	who := r.Caller
	if g.ownAuth {
		who = es.Caller{Own: true}
	}
	ctx, cancel := asking(ctx)
	defer cancel()
	m := &meaning{asked: now}
	m.index, err = g.engine.Describe(ctx, who, name)
	switch {
	case err == nil:
		m.until = now.Add(gateAge)
		if name != "" && name[0] == '<' { // a date expression stands for another index tomorrow
			m.until = now.Add(time.Second)
		}
		g.described(m.index)
	case errors.Is(err, es.ErrNoIndex):
		return es.Index{Name: name}, "", nil
	case !es.Answered(err) && before != nil && before.index.Name != "":
		*m = *before
		m.asked, m.until = now, now.Add(gateStale)
	case !es.Answered(err):
		return es.Index{Name: name}, "", fmt.Errorf("%w: it can't be asked what [%s] is: %w", ErrNotWritten, name, err)
	default:
		m.index, m.reason, m.until = es.Index{Name: name}, ReasonMetadata, now.Add(gateRefused)
		g.unguard(name, ReasonMetadata)
	}
	x.name.Store(m)
	return m.index, m.reason, nil
}

// asking is for questions whose answers many wait for: they don't end with the client that happened to ask first.
func asking(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), gatePatience)
}

// described takes note of what an index is.
func (g *gates) described(ix es.Index) {
	if why := cantMerge(ix); why != "" {
		g.unguard(ix.Name, why)
	}
	if before, found, _ := g.uuids.PeekOrAdd(ix.Name, ix.UUID); found && before != ix.UUID {
		g.uuids.Add(ix.Name, ix.UUID)
		g.renewed(ix.Name) // its numbers mean other documents, and the engine would take the old ones
	}
}

func cantMerge(ix es.Index) string {
	switch {
	case ix.NoSeqNo:
		return ReasonSeqNo
	case ix.Partial:
		return ReasonSource
	case ix.Pipeline:
		return ReasonPipeline
	}
	return ""
}

// mergeable tells whether the client's documents of the index may be fetched, merged and written back; if not, why.
func (g *gates) mergeable(ctx context.Context, c *change) (reason string) {
	if reason = c.staticReason(); reason != "" {
		return reason
	}
	if whole, err := g.whole(ctx, c); err != nil || !whole {
		return ReasonFiltered // for now, if it couldn't be asked: the next write asks again
	}
	return ""
}

// whole tells whether the client's view of the index's documents is unfiltered. The error says that the engine couldn't be asked.
func (g *gates) whole(ctx context.Context, c *change) (bool, error) {
	x := g.of(c.name, c.req.Session.Credentials())
	if seen := x.sight.Load(); seen.believed(time.Now()) {
		return seen.whole, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	now := time.Now()
	if seen := x.sight.Load(); seen.believed(now) {
		return seen.whole, nil
	}
	ctx, cancel := asking(ctx)
	defer cancel()
	whole, err := g.engine.SeesWhole(ctx, c.req.Caller, c.name, c.doc.Routing)
	if err != nil && !es.Answered(err) {
		return false, err
	}
	seen := &sight{whole: whole && err == nil, until: now.Add(gateAge)}
	if !seen.whole {
		seen.until = now.Add(gateRefused)
		g.unguard(c.doc.Index, ReasonFiltered)
	}
	x.sight.Store(seen)
	return seen.whole, nil
}

// knownMergeable is mergeable as far as it is known without asking, or waiting for somebody who asks.
func (g *gates) knownMergeable(c *change) bool {
	if c.staticReason() != "" {
		return false
	}
	seen := g.of(c.name, c.req.Session.Credentials()).sight.Load()
	return seen.believed(time.Now()) && seen.whole
}

// staticReason is why the change can't be merged, from what is known of the index and the request.
func (c *change) staticReason() string {
	switch {
	case c.metadata != "":
		return c.metadata
	case c.index.Partial:
		return ReasonSource
	case (c.index.Pipeline || c.pipeline) && c.req.Rule.Pipeline != rule.PipelineRerun:
		return ReasonPipeline
	case !c.json:
		return ReasonFormat
	}
	return ""
}

// hasSeqNo tells whether guards work in the index, as far as is known.
func (g *gates) hasSeqNo(ix es.Index) bool {
	if ix.NoSeqNo {
		return false
	}
	until, found := g.noSeqNo.Get(ix.Name)
	return !found || time.Now().After(until)
}

// foundNoSeqNo remembers that the engine refused a guard in the index because it has no sequence numbers.
func (g *gates) foundNoSeqNo(index string) {
	g.noSeqNo.Add(index, time.Now().Add(gateAge))
	g.unguard(index, ReasonSeqNo)
}
