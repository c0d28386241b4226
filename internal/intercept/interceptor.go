package intercept

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/bulk"
	"optimist/internal/catalog"
	"optimist/internal/client"
	"optimist/internal/es"
	"optimist/internal/fencing"
	"optimist/internal/idempotency"
	"optimist/internal/journal"
	"optimist/internal/learn"
	"optimist/internal/obs"
	"optimist/internal/outbound"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/share"
	"optimist/internal/tenantheader"
	"optimist/internal/watch"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// Options are what an Interceptor needs. All but Now are required.
type Options struct {
	Rules    *rule.Switch
	Upstream es.Doer
	// Carrier is what carries the writes of bulks: it may have them wait.
	Carrier es.Doer
	// Documents reads those of which an item of a bulk has met a conflict.
	Documents bulk.Documents
	Writes    *write.Service
	Sessions  *session.Store
	Identity  client.Identity
	Metrics   *obs.Metrics
	Learner   *learn.Learner
	Log       *slog.Logger
	// OwnAuth says that the upstream has optimist's own credentials. Questions about indices then go by these, whoever the client is.
	OwnAuth bool
	// Types says whether the engine has mapping types, as far as is known.
	Types func() api.Types
	// MaxBody is up to how many bytes of body a write is held to be guarded. Longer ones are passed, and the answer says so.
	MaxBody int64
	// Keys keeps what became of requests with an Idempotency-Key. Nil: the field means nothing.
	Keys *idempotency.Store
	// Journals finds the journals of tokens, each named once, for a client that the engine knows, and whose places in the engine that takes.
	// The error is the client's answer. Nil: nothing is undone.
	Journals func(ctx context.Context, by share.Client, tokens []int64) (Journals, error)
	// TenantHeaders looks for fields that choose a tenant, and that nobody has named.
	TenantHeaders *tenantheader.Finder
	// Now is the clock by which a client waits for a read. Default time.Now.
	Now func() time.Time
}

// Interceptor decides about requests. It is safe for concurrent use; make it with New.
type Interceptor struct {
	Options
	catalog *catalog.Catalog
	watcher *watch.Watcher

	known    *known     // by a read
	bulkers  *known     // by a bulk: a gateway may answer that before it looks who the client is, so it counts for nothing else
	lineages *lineages  // of what is observed
	works    sync.Pool  // of *works
	rooms    sync.Pool  // of *room
	cutOff   obs.Seldom // bulks whose answers can't be kept
}

// New makes an Interceptor.
func New(o Options) *Interceptor {
	o.Rules.OnResume(o.Sessions.Resume)
	i := &Interceptor{Options: o, catalog: o.Writes.Catalog(), known: newKnown(), bulkers: newKnown(), lineages: newLineages()}
	i.watcher = watch.New(watch.Options{Rules: o.Rules, Upstream: o.Upstream, Catalog: i.catalog, Sessions: o.Sessions, Metrics: o.Metrics,
		MaxBody: o.MaxBody, TenantHeaders: o.TenantHeaders, Now: o.Now})
	return i
}

// request is the request that a connection has under way, with what is kept from one to the next.
type request struct {
	client.Request
	keyed
	write   write.Request
	out     outbound.Room // of write
	reading watch.Reading
	tokens  fencing.Tokens  // of the locks under which its client works
	journal journal.Journal // of one of them; nil: nothing is to be undone
}

// endWrite forgets the write: an idle connection holds no bodies.
func (r *request) endWrite() { r.write, r.out = write.Request{}, outbound.Room{} }

// of is an exchange's request.
func (i *Interceptor) of(x *proxy.Exchange) *request {
	r, ok := x.Local.(*request)
	if !ok {
		r = &request{}
		x.Local = r
	}
	r.Begin(&i.Identity, x)
	return r
}

// SessionName is a request's session in a word that can be shown and kept: see client.Identity.
func (i *Interceptor) SessionName(x *proxy.Exchange) string {
	return i.Identity.Name(x.Head().Fields, x.Op().Query, x.Client(), x.Subject())
}

// Owner is for whom a request holds memory.
func (i *Interceptor) Owner(x *proxy.Exchange) budget.Owner {
	c := i.Identity.Of(x.Head().Fields, x.Op().Query, x.Client(), x.Subject())
	return c.Owner()
}

// outcomeField is the field that says what became of a write, or of several.
func outcomeField(o interface{ Append(dst []byte) []byte }) wire.Field {
	return wire.Field{Name: []byte("Optimist-Outcome"), Value: o.Append(nil)}
}
