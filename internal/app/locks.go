package app

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/coding"
	"optimist/internal/config"
	"optimist/internal/es"
	"optimist/lockrouter"
	"optimist/lockrouter/compat"
	"optimist/lockrouter/engine"
	"optimist/lockrouter/memcached"
	"optimist/lockrouter/state"
	"optimist/lockrouter/zookeeper"
	"optimist/proxy"
)

// maxLockBody is how large the body of a request for locks may be, in bytes: ids of thousands of documents fit.
const maxLockBody = 4 << 20

// cleanEvery is how often idle locks' documents are looked for.
const cleanEvery = time.Hour

// openLocks makes what gives out locks, unless it is switched off. Nothing is asked of the engine before the first lock is.
func (a *App) openLocks(c *config.Config) error {
	l := &c.Locks
	if l.Path == "" {
		return nil
	}
	o := lockrouter.Options{
		Path: l.Path, Reserved: l.Compat.Index, TTL: l.TTL.Std(), MaxTTL: l.MaxTTL.Std(),
		Foreground: l.Wait.Foreground.Std(), Background: l.Wait.Background.Std(), MaxWait: l.Wait.Max.Std(),
		Bound: l.Overtake, Chain: l.Chain, MostHeld: l.TreeSize, MostWaiting: c.Limits.MaxConnections, Search: a.search, Touch: a.touch,
		Log: a.log,
		Events: lockrouter.Events{
			Acquired: func(class state.Class, outcome string, took time.Duration) {
				a.metrics.LockRequest(string(class), outcome, took)
			},
			Contended: func(class state.Class) { a.metrics.LockContended.Inc(string(class)) },
			Lapsed:    a.metrics.LeasesLapsed,
		},
	}
	if err := a.openLockStore(l, &o); err != nil {
		return err
	}
	if a.undo != nil {
		o.Undo = a.undo
	}
	a.locks = lockrouter.New(o)
	if a.undo != nil {
		a.beside.Go(func() { a.undo.SweepEvery(a.ctx, sweepUndoEvery, a.locks.Recover) })
	}
	if l.Compat.Index != "" {
		a.compat = compat.New(compat.Options{Locks: a.locks, Index: l.Compat.Index, Type: l.Compat.Type, TTL: l.Compat.TTL.Std(),
			Refresh: a.refresh})
	}
	a.metrics.WatchLocks(a.locks.Held, func(class string) int { return a.locks.Waiting(state.Class(class)) })
	return nil
}

// openLockStore makes what the locks are in.
func (a *App) openLockStore(l *config.Locks, o *lockrouter.Options) error {
	switch l.Store {
	case config.StoreZooKeeper:
		z := &l.ZooKeeper
		retries := z.ConnectionRetries
		if retries == 0 {
			retries = -1
		}
		k, err := zookeeper.New(zookeeper.Options{Servers: z.Servers, Root: z.Root, SessionTimeout: z.SessionTimeout.Std(), Retries: retries,
			RetryDelay: z.ConnectionDelay.Std(), Foreground: z.Prefixes.Foreground, Background: z.Prefixes.Background,
			Lapsed: a.metrics.LeasesLapsed, Log: a.log})
		if err != nil {
			return err
		}
		o.Keeper, o.Ability = k, zookeeper.Ability()
		a.atEnd = append(a.atEnd, k.Close)
	case config.StoreMemcached:
		m := &l.Memcached
		k := memcached.New(memcached.Options{Servers: m.Servers, Prefix: m.Prefix, Timeout: m.Timeout.Std(), Delay: m.Delay.Std()})
		o.Keeper, o.Ability = k, memcached.Ability()
		a.atEnd = append(a.atEnd, k.Close)
	default:
		store := a.lockDocuments(l)
		o.Store, o.Gates, o.Enforces = store, store, a.enforces
	}
	return nil
}

// lockDocuments is the store of locks in the engine.
func (a *App) lockDocuments(l *config.Locks) *engine.Store {
	scripts := engine.Auto
	switch l.Scripts {
	case config.ScriptsAlways:
		scripts = engine.Always
	case config.ScriptsNever:
		scripts = engine.Never
	}
	store := engine.New(engine.Options{Upstream: a.nodes, Index: l.Index, Scripts: scripts, InMemory: a.o.InMemory, Log: a.log})
	a.beside.Go(func() { store.CleanEvery(a.ctx, cleanEvery) })
	return store
}

// lock answers a request for a lock. It reports false for others.
func (a *App) lock(x *proxy.Exchange) bool {
	if a.locks == nil {
		return false
	}
	if !a.locks.Takes(x.Op().Path) {
		return a.compat != nil && a.compatLock(x)
	}
	if a.interceptor.DryRun(x) {
		return true
	}
	op := x.Op()
	op.Kind = api.Lock // from here on it is ours: its errors and metrics, too
	body, err := lockBody(x)
	if err != nil {
		x.Fail(err)
		return true
	}
	answer, err := a.locks.Serve(x.Context(), &lockrouter.Request{Method: string(x.Head().Method), Path: op.Path, Query: op.Query, Body: body,
		Fields: x.Head().EndToEnd(nil), Client: x.Place()})
	a.answerLock(x, answer, err)
	return true
}

// answerLock gives the client what was decided.
func (a *App) answerLock(x *proxy.Exchange, answer *lockrouter.Answer, err error) {
	switch {
	case errors.Is(err, lockrouter.ErrStore):
		x.Fail(&proxy.Failure{Status: http.StatusServiceUnavailable, Type: lockrouter.TypeStore, Reason: err.Error()})
		return
	case err != nil:
		x.Fail(err)
		return
	}
	_ = x.AnswerOwn(answer.Status, answer.Fields, answer.Body)
}

// compatLock answers a request that changes or reads the index of locks.compat. It reports false for others.
func (a *App) compatLock(x *proxy.Exchange) bool {
	op := x.Op()
	concern := a.compat.Concerns(op)
	if concern == compat.Nothing {
		return false
	}
	if concern == compat.Everything {
		if a.interceptor.DryRun(x) {
			return true
		}
		op.Kind = api.Lock
	}
	body, err := lockBody(x)
	switch {
	case err != nil && (concern == compat.Everything || errors.Is(err, budget.ErrOverloaded)):
		x.Fail(err)
		return true
	case err != nil: // too large to be looked into, or not what it says to be: the engine's matter
		return false
	}
	answer, err := a.compat.Serve(x.Context(), &compat.Request{Method: string(x.Head().Method), Op: op, Body: body,
		Session: a.interceptor.SessionName(x), Client: x.Place().Network.Addr().String(), Own: x})
	if err == nil && answer == nil {
		return false
	}
	op.Kind = api.Lock
	a.answerLock(x, answer, err)
	return true
}

// operateLocks answers the admin listener's requests for locks. path is that of a lock, or what is asked of all of them.
func (a *App) operateLocks(ctx context.Context, method string, path, query, body []byte) (status int, answer []byte, err error) {
	root := []byte(a.current.Load().Locks.Path)
	switch string(path) {
	case "", "/":
		path = root
	case "/_release":
		path = append(root, path...)
	}
	served, err := a.locks.Serve(ctx, &lockrouter.Request{Method: method, Path: path, Query: query, Body: body, Admin: true})
	if err != nil {
		return 0, nil, err
	}
	return served.Status, served.Body, nil
}

// lockBody is the body of a request for locks without its content coding.
func lockBody(x *proxy.Exchange) ([]byte, error) {
	body, err := x.Body(maxLockBody)
	if err != nil {
		return nil, err
	}
	body, err = coding.DecodeIn(budget.Of(x.Context()), body, x.Head().Get("content-encoding"), maxLockBody)
	switch {
	case errors.Is(err, budget.ErrOverloaded), errors.Is(err, budget.ErrTooMuch):
		return nil, err
	case errors.Is(err, coding.ErrTooLarge):
		return nil, proxy.ErrTooLarge
	case err != nil:
		return nil, &proxy.Failure{Status: 400, Type: "parse_exception", Reason: "the body can't be read: " + err.Error()}
	}
	return body, nil
}

// refresh asks the engine for the refresh that a client asks for.
func (a *App) refresh(ctx context.Context, q *compat.Request) (status int, body []byte, err error) {
	way := es.Way{Reads: true}
	if x, ok := q.Own.(*proxy.Exchange); ok {
		way.Caller = es.Caller{Fields: x.Head().EndToEnd(nil), Params: a.interceptor.Identity.Params(q.Op.Query), Client: x.Place()}
	}
	index := es.Segment(a.current.Load().Locks.Compat.Index)
	answer, err := es.Ask(ctx, a.nodes, esapi.IndicesRefreshRequest{Index: []string{index}}, way)
	return answer.Status, answer.Body, err
}

// callerOf is the client of a request for locks.
func (a *App) callerOf(q *lockrouter.Request) es.Caller {
	return es.Caller{Fields: q.Fields, Params: a.interceptor.Identity.Params(q.Query), Client: q.Client}
}

// search searches on behalf of the client that asked for locks: what it may not see it can't lock.
func (a *App) search(ctx context.Context, q *lockrouter.Request, index string, query []byte, most int) ([]string, error) {
	docs, caller := &es.Client{Upstream: a.nodes}, a.callerOf(q)
	var refusal *es.StatusError
	// Whoever may search and not refresh finds what was written a second ago.
	if err := docs.Refresh(ctx, caller, index); err != nil && !errors.As(err, &refusal) {
		return nil, err
	}
	found, err := docs.Find(ctx, caller, index, query, most)
	if err == nil {
		ids := make([]string, len(found))
		for i := range found {
			ids[i] = found[i].ID
		}
		return ids, nil
	}
	if !errors.As(err, &refusal) {
		return nil, err
	}
	f := &lockrouter.Failure{Status: refusal.Status, Type: "search_failed", Reason: err.Error()}
	if v := gjson.GetManyBytes(refusal.Body, "error.type", "error.reason"); v[0].Str != "" {
		f.Type, f.Reason = v[0].Str, v[1].Str
	}
	return nil, f
}
