// Package catalog knows which indices names stand for, and what can be done there: whether writes can be guarded, whether
// documents can be merged, whether a client sees documents whole, and whether a shard kept its primary.
//
// It asks the engine if it doesn't know, and remembers the answer for a bounded time. After a change in the engine it may be
// wrong until that time ends. What it learns with one client's credentials it never uses for another client.
package catalog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strings"
	"sync/atomic"
	"time"

	"optimist/internal/budget"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/hook"
	"optimist/internal/identity"
	"optimist/internal/outcome"
	"optimist/internal/quota"
	"optimist/internal/session"
)

// ErrTooLong is why the engine isn't asked about a name. It wouldn't take so long a path.
var ErrTooLong = errors.New("the name is too long")

const (
	trustAge     = time.Minute
	refusalAge   = 10 * time.Second // how long a refusal or a failure is believed
	aliasAge     = time.Second      // an alias may be moved without optimist: so long it is believed for writes
	dateMathAge  = time.Second      // a date expression stands for another index tomorrow
	outageAge    = time.Second      // how long the last answer is used on when the engine can't be asked
	maxNames     = 4096
	maxName      = 1 << 10          // bytes: no index has so long a name, but a date expression may be as long as somebody likes
	askingBudget = 30 * time.Second // how long an answer is waited for at most
	readBudget   = time.Second      // and how long for a read, whose client waits for its answer meanwhile: see Patience
)

// Engine is what the catalog asks the engine; *es.Client is one.
type Engine interface {
	ResolveIndex(ctx context.Context, caller es.Caller, name string) (es.Index, error)
	SeesWhole(ctx context.Context, caller es.Caller, index, routing string) (bool, error)
	PrimaryTerm(ctx context.Context, caller es.Caller, s es.Shard, node string) (int64, error)
	List(ctx context.Context, caller es.Caller, expression string) (es.Listing, error)
}

// Asker is the client on whose behalf the engine is asked.
type Asker struct {
	// Realm stands for whatever may decide which indices the client sees: see client.Client. Clients of different realms may be of
	// different clusters; nothing that is known for one counts for another.
	Realm       session.Credentials
	Credentials session.Credentials
	Caller      es.Caller
	// Until is when the client has no use for an answer any more: its write isn't tried again then. Zero: it isn't known.
	Until time.Time
	// Patience is that of the read for which Learn and IsSame ask. Nil: each of their questions is of a read of its own.
	Patience *Patience
}

// patience is how long the client waits for an answer. It is at least as long as a read waits.
func (a *Asker) patience() time.Duration {
	if a.Until.IsZero() {
		return askingBudget
	}
	return min(max(time.Until(a.Until), readBudget), askingBudget)
}

// network is where the client is.
func (a *Asker) network() identity.Network { return a.Caller.Client.Network }

// Index is what a name stands for. Unknown is the reason why that isn't known; the name is then taken for an index's own. An
// index that isn't there has no UUID.
type Index struct {
	es.Index
	Unknown string
	// Stranger says that it isn't known because the engine doesn't know the client's credentials (401). It tells no such client anything of
	// other names, either.
	Stranger bool
	// Before are the indices (concrete) for which the name stood before, the latest first: it has been moved. They must not be changed.
	Before []string
	// oneOfMany says that only searches have shown them: the name may stand for several indices, one of which is the first of Before.
	oneOfMany bool
	// backed is the data stream that the index backed, if what is known of it has been dropped.
	backed string
}

// Exists reports whether the index is there, and is known.
func (ix *Index) Exists() bool { return ix.Unknown == "" && ix.UUID != "" }

// Options are what a Catalog needs. Engine is required.
type Options struct {
	Engine Engine
	// OwnAuth says that the upstream has credentials of optimist's own. They then ask what an index is.
	OwnAuth bool
	// Unguardable is called when an index is found that can't be guarded or merged.
	Unguardable hook.Func2[string, string] // index, reason
	// Recreated is called when an index turns out to be another one of the same name, for clients with those credentials.
	Recreated hook.Func2[session.Credentials, string]
	// Sessions has suspicions about indices of which clients with other credentials have found that they aren't the same any more: those may
	// be of another cluster. They are settled whenever the engine has said what an index is. Nil: there are none.
	Sessions *session.Store
	// Now is the clock. Default time.Now.
	Now func() time.Time
}

// Catalog is safe for concurrent use.
type Catalog struct {
	Options
	names      *shared[nameKey, *entry]
	noSeqNo    *shared[nameKey, time.Time] // by the concrete name
	uuids      *shared[nameKey, identified]
	indices    *shared[incarnation, session.Epoch] // since when each is known, to whomever
	seed       maphash.Seed
	identified [maxNames]atomic.Bool // by the hash of a nameKey: whether the name has ever had a UUID in the realm
	primaries  *shared[shardAt, *primary]
}

// shared is what is remembered, by the networks of the clients that were the first to need it. Names and credentials may be made up, in any
// number. So if there is too much, the network that has most loses what was needed last.
type shared[K comparable, V any] = quota.Shared[identity.Network, K, V]

func newShared[K comparable, V any]() *shared[K, V] {
	return quota.NewShared[identity.Network, K, V](maxNames)
}

// nameKey is a name in a realm.
type nameKey struct {
	name  string
	realm session.Credentials
}

// entry is what is known of one name.
type entry struct {
	index question[Index]
	// missing is when the engine was asked that said last that there is no such index. Who has the turn of index looks at it.
	missing time.Time
	several atomic.Pointer[answer[Index]] // a read has learnt that no index is called so, or more than one; nil: none has
	whole   question[bool]                // whether the realm's clients see its documents whole
}

func newEntry() *entry { return &entry{index: newQuestion[Index](), whole: newQuestion[bool]()} }

// New makes a Catalog.
func New(o Options) *Catalog {
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sessions == nil {
		o.Sessions = session.New(session.Options{})
	}
	return &Catalog{Options: o, seed: maphash.MakeSeed(),
		names: newShared[nameKey, *entry](), noSeqNo: newShared[nameKey, time.Time](), uuids: newShared[nameKey, identified](),
		indices: newShared[incarnation, session.Epoch](), primaries: newShared[shardAt, *primary]()}
}

// Forget drops all answers: settings, mappings, templates, aliases or pipelines may have changed. It stays known for which indices names
// have stood: what clients have read there is no base any more if the name has been moved. The identities of indices stay known, except of
// those (names, decoded) that were certainly created again, as seen by the given credentials.
func (c *Catalog) Forget(credentials session.Credentials, recreated ...string) {
	c.names.Change(func(_ nameKey, e *entry) (*entry, bool) { return e.emptied(), true })
	c.noSeqNo.Clear()
	for _, name := range recreated {
		c.forgetUUID(credentials, name)
	}
}

// entryOf returns the entry for a name and a client, making one if there is none. The error is that of a name which is too long to be asked
// about, or remembered.
func (c *Catalog) entryOf(asker Asker, name string) (*entry, error) {
	if len(name) > maxName {
		return nil, unavailable(name, ErrTooLong)
	}
	if e, ok := c.names.Get(nameKey{name, asker.Realm}); ok {
		return e, nil
	}
	return c.names.GetOrAdd(asker.network(), nameKey{strings.Clone(name), asker.Realm}, newEntry()), nil
}

// Resolve tells what a name (decoded) stands for in a write. The answer is no older than maxAge, or than the catalog's own bound
// where maxAge is zero: a second for a name that isn't the index's own. Nor is it older than a suspicion about the index. An index that
// isn't there yet is not remembered: the write may make it. But callers that wait at the same time share that answer, as they do any other,
// and a failure. After a failure, what was known before counts. If nothing was, the write can't be sent: so the question has all the time
// that a question may have. The error is doc.ErrNotWritten.
func (c *Catalog) Resolve(ctx context.Context, asker Asker, name string, maxAge time.Duration) (Index, error) {
	if !wasKnown(c.last(asker.Realm, name)) {
		asker.Until = time.Time{}
	}
	ix, err := c.resolve(ctx, asker, name, maxAge)
	if err == nil && maxAge == 0 && ix.Exists() && ix.Name != name {
		return c.resolve(ctx, asker, name, aliasAge)
	}
	return ix, err
}

// Learn is Resolve for a read: it waits as Patience says. For a while after a failure, Learn asks nothing. For as long, it doesn't ask
// again whether a name stands for one index, if it didn't: it may be an alias of several, by which a client searches all the time. What it
// learns is also for Cached, Knows and Home. The error is doc.ErrNotWritten.
func (c *Catalog) Learn(ctx context.Context, asker Asker, name string) (Index, error) {
	return c.learn(ctx, asker, name, false)
}

// LearnFound is Learn for the name of an index in which a document was found: so there is one now, whatever was learnt before.
func (c *Catalog) LearnFound(ctx context.Context, asker Asker, name string) (Index, error) {
	return c.learn(ctx, asker, name, true)
}

// learn takes what is known, in this order: the last answer; another read's answer that the name stands for no index, or for several; a
// failure of late. If nothing is known, learn asks. For other reads it keeps that the name stands for no index or for several, or that the
// engine takes too long.
func (c *Catalog) learn(ctx context.Context, asker Asker, name string, found bool) (Index, error) {
	began := c.Now()
	e, err := c.entryOf(asker, name)
	if err != nil {
		return unknown(name), err
	}
	if a := e.index.last.Load(); c.holds(a, asker, began, 0) {
		return a.value, nil
	}
	if a := e.several.Load(); !found && c.holds(a, asker, began, 0) {
		return a.value, nil
	}
	if f := e.index.failure.Load(); f != nil && began.Before(f.ended.Add(refusalAge)) {
		return lastKnown(e.index.last.Load(), name, f.err)
	}
	ix, err := c.resolveSoon(ctx, asker, name, 0)
	switch {
	case err == nil && ix.UUID == "" && ix.Unknown == "":
		e.several.Store(&answer[Index]{value: ix, askedAt: began, until: began.Add(refusalAge)})
	case errors.Is(err, context.DeadlineExceeded) && !e.index.failure.Load().counts(began, readBudget):
		// The read has waited for a question that goes on. A failure that is known by now isn't the read's own: those who wait share it.
		e.index.failure.Store(&failure{c.Now(), readBudget, err})
	case errors.Is(err, errImpatient):
		if known, ok := c.Cached(asker.Realm, name); ok {
			return known, nil
		}
	}
	return ix, err
}

// resolve is Resolve but for maxAge, of which zero means any age.
func (c *Catalog) resolve(ctx context.Context, asker Asker, name string, maxAge time.Duration) (Index, error) {
	began := c.Now()
	e, err := c.entryOf(asker, name)
	if err != nil {
		return unknown(name), err
	}
	if a := e.index.last.Load(); c.holds(a, asker, began, maxAge) {
		return a.value, nil
	}
	if err := e.index.take(ctx, &asker); err != nil {
		return lastKnown(e.index.last.Load(), name, err)
	}
	defer e.index.leave()
	bound := asker.patience() // what is left of it
	now, before := c.Now(), e.index.last.Load()
	switch f := e.index.failure.Load(); {
	case c.holds(before, asker, now, maxAge), c.holds(before, asker, now, 0) && before.askedAt.After(began): // while this caller waited
		return before.value, nil
	case e.missing.After(began):
		return unknown(name), nil
	case f.counts(began, bound):
		return lastKnown(before, name, f.err)
	}
	ctx, cancel := detached(ctx, bound)
	defer cancel()
	ix, err := c.identify(ctx, asker, name)
	a := &answer[Index]{value: Index{Index: ix, Before: pastOf(before, &ix)}, askedAt: now, until: now.Add(trustAge)}
	switch {
	case err == nil:
		if name != "" && name[0] == '<' {
			a.until = now.Add(dateMathAge)
		}
	case errors.Is(err, es.ErrNoIndex):
		c.noIndex(e, asker, name)
		e.missing = now
		return unknown(name), nil
	case !es.IsAnswer(err), (es.IsBlocked(err) || es.IsPage(err)) && wasKnown(before):
		f := &failure{c.Now(), bound, err}
		e.index.failure.Store(f)
		if a.value, err = lastKnown(before, name, err); err != nil {
			return a.value, err
		}
		a.until = f.ended.Add(outageAge)
	default:
		a.value.Index, a.value.Unknown, a.until = es.Index{Name: name}, outcome.ReasonMetadata, now.Add(refusalAge)
		if es.IsPage(err) {
			a.until = now.Add(outageAge)
		}
		a.value.Stranger = es.IsStranger(err) && !c.OwnAuth
		if !es.IsStranger(err) { // who can make up any name
			c.Unguardable.Call(name, outcome.ReasonMetadata)
		}
	}
	e.index.last.Store(a)
	return a.value, nil
}

// unknown is a name of which nothing is known.
func unknown(name string) Index { return Index{Index: es.Index{Name: name}} }

func wasKnown(before *answer[Index]) bool { return before != nil && before.value.Name != "" }

// lastKnown is what was known of the name before a question about it failed with err.
func lastKnown(before *answer[Index], name string, err error) (Index, error) {
	if wasKnown(before) {
		return before.value, nil
	}
	return unknown(name), unavailable(name, err)
}

func unavailable(name string, err error) error {
	return fmt.Errorf("%w: it can't be asked what [%.*s] is: %w", doc.ErrNotWritten, maxName, name, err)
}

// Cached is Resolve from memory: it neither asks the engine, nor waits for another call that asks.
func (c *Catalog) Cached(realm session.Credentials, name string) (Index, bool) {
	a := c.last(realm, name)
	if !a.fresh(c.Now(), 0) {
		return Index{}, false
	}
	return a.value, true
}

// last is the last answer to what a name stands for, however old; nil: there is none.
func (c *Catalog) last(realm session.Credentials, name string) *answer[Index] {
	if e, found := c.names.Get(nameKey{name, realm}); found {
		return e.index.last.Load()
	}
	return nil
}

// Stream is the data stream that the index (concrete) backs, by the last answer of the engine, however old that is: an index hardly ever
// leaves its stream. It is empty if there is none, or if the engine was never asked.
func (c *Catalog) Stream(realm session.Credentials, index string) string {
	if a := c.last(realm, index); a != nil {
		return a.value.backs()
	}
	return ""
}

// Ref is the document of that id which a request with that routing finds by the index's name. It has a routing only if the index may have
// another document of the same id.
func (ix *Index) Ref(routing, id string) doc.Ref {
	ref := doc.Ref{Index: ix.Name, Routing: cmp.Or(routing, ix.Routing), ID: id}
	if ix.OneShard {
		ref.Routing = ""
	}
	return ref
}

// Home is the document ref (by the index's own name), which a request finds by a name, as Index.Ref has it. own is the document's routing
// as an answer tells it, or "". Where the catalog doesn't know enough, the document has no routing, or the one that is maybe; nothing is
// asked for it.
func (c *Catalog) Home(realm session.Credentials, name string, ref doc.Ref, own string) (home doc.Ref, maybe string) {
	sure := true
	if ref.Routing == "" && name != "" && name != ref.Index {
		if ref.Routing, sure = c.routing(realm, name); !sure {
			ref.Routing = own
		}
	}
	if ref.Routing == "" {
		return ref, ""
	}
	is, _ := c.uuids.Peek(nameKey{ref.Index, realm})
	ix := Index{Index: es.Index{Name: ref.Index, OneShard: is.oneShard}}
	if home = ix.Ref(ref.Routing, ref.ID); home.Routing != "" && !(sure && is.uuid != "") {
		home.Routing, maybe = "", home.Routing
	}
	return home, maybe
}

// Knows reports whether it is known which index a name (concrete) stands for.
func (c *Catalog) Knows(realm session.Credentials, index string) bool {
	is, _ := c.uuids.Peek(nameKey{index, realm})
	return is.uuid != ""
}

// routing is the routing that documents get which are read or written through a name, an alias that routes. It is "" for all others. It
// may be of long ago: aliases hardly change, and what is known of a changed one is forgotten (see Forget). known is false where the engine
// hasn't been asked, or doesn't tell; nothing is asked for it.
func (c *Catalog) routing(realm session.Credentials, name string) (routing string, known bool) {
	a := c.last(realm, name)
	if a == nil || a.value.Unknown != "" || a.value.Name == "" {
		return "", false
	}
	return a.value.Routing, true
}

// asker is who is asked as: optimist itself, where it has credentials of its own, of the tenant that the client names.
func (c *Catalog) asker(asker Asker) es.Caller {
	caller := asker.Caller
	caller.Own = c.OwnAuth
	return caller
}

// detached is for questions whose answers many wait for: they don't end with the client that happened to ask first.
func detached(ctx context.Context, bound time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(budget.Detached(context.WithoutCancel(ctx)), bound)
}
