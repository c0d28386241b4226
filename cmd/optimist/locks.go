package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/elastic/go-elasticsearch/v8/esapi"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/coding"
	"optimist/internal/config"
	"optimist/internal/es"
	"optimist/internal/guard"
	"optimist/internal/wire"
	"optimist/lockrouter"
	"optimist/lockrouter/compat"
	"optimist/lockrouter/engine"
	"optimist/lockrouter/state"
	"optimist/proxy"
)

// maxLockBody is how large the body of a request for locks may be, in bytes: ids of thousands of documents fit.
const maxLockBody = 4 << 20

// cleanEvery is how often idle locks' documents are looked for.
const cleanEvery = time.Hour

// openLocks makes what gives out locks, unless it is switched off. Nothing is asked of the engine before the first lock is.
func (s *service) openLocks(c *config.Config) error {
	l := &c.Locks
	if l.Path == "" {
		return nil
	}
	scripts := engine.Auto
	switch l.Scripts {
	case config.ScriptsAlways:
		scripts = engine.Always
	case config.ScriptsNever:
		scripts = engine.Never
	}
	store := engine.New(engine.Options{Upstream: s.nodes, Index: l.Index, Scripts: scripts, Log: s.log})
	s.beside.Go(func() { store.CleanEvery(s.ctx, cleanEvery) })
	s.locks = lockrouter.New(lockrouter.Options{
		Store: store,
		Path:  l.Path, TTL: l.TTL.Std(), MaxTTL: l.MaxTTL.Std(),
		Foreground: l.Wait.Foreground.Std(), Background: l.Wait.Background.Std(), MaxWait: l.Wait.Max.Std(),
		Bound: l.Overtake, Chain: l.Chain, MostHeld: l.TreeSize, Search: s.found, Log: s.log,
		Events: lockrouter.Events{
			Acquired: func(class state.Class, outcome string, took time.Duration) {
				s.metrics.LockRequest(string(class), outcome, took)
			},
			Contended: func(class state.Class) { s.metrics.LockContended(string(class)) },
			Lapsed:    s.metrics.LeasesLapsed,
		},
	})
	if l.Compat.Index != "" {
		s.compat = compat.New(compat.Options{Locks: s.locks, Index: l.Compat.Index, Type: l.Compat.Type, TTL: l.Compat.TTL.Std(),
			Refresh: s.refresh})
	}
	s.metrics.WatchLocks(s.locks.Held, func(class string) int { return s.locks.Waiting(state.Class(class)) })
	return nil
}

// lock answers a request for a lock. It reports false for others.
func (s *service) lock(x *proxy.Exchange, g *guard.Guard) bool {
	if s.locks == nil {
		return false
	}
	if !s.locks.Takes(x.Op().Path) {
		return s.compat != nil && s.bookLock(x, g)
	}
	if g.DryRun(x) {
		return true
	}
	op := x.Op()
	op.Kind = api.Lock // from here on it is ours: its errors and metrics, too
	body, err := x.Body(maxLockBody)
	if err != nil {
		x.Fail(err)
		return true
	}
	a, err := s.locks.Serve(x.Context(), &lockrouter.Request{Method: string(x.Head().Method), Path: op.Path, Query: op.Query, Body: body,
		Fields: x.Head().EndToEnd(nil)})
	s.answerLock(x, a, err)
	return true
}

// answerLock gives the client what was decided.
func (s *service) answerLock(x *proxy.Exchange, a *lockrouter.Answer, err error) {
	if errors.Is(err, lockrouter.ErrStore) {
		x.Fail(&proxy.Failure{Status: http.StatusServiceUnavailable, Type: lockrouter.TypeStore, Reason: err.Error()})
		return
	}
	if err != nil {
		x.Fail(err)
		return
	}
	if a.Status == http.StatusServiceUnavailable {
		s.metrics.Failed(lockrouter.TypeStore)
	}
	_ = x.AnswerOwn(a.Status, a.Fields, a.Body)
}

// bookLock answers a request that changes or reads the index of locks.compat. It reports false for others.
func (s *service) bookLock(x *proxy.Exchange, g *guard.Guard) bool {
	op := x.Op()
	concern := s.compat.Concerns(op)
	if concern == compat.Nothing {
		return false
	}
	if concern == compat.Everything {
		if g.DryRun(x) {
			return true
		}
		op.Kind = api.Lock
	}
	body, err := x.Body(maxLockBody)
	if err == nil {
		body, err = decoded(x.Head(), body)
	}
	switch {
	case err != nil && concern == compat.Everything:
		x.Fail(err)
		return true
	case err != nil: // too large to be looked into, or not what it says to be: the engine's matter
		return false
	}
	a, err := s.compat.Serve(x.Context(), &compat.Request{Method: string(x.Head().Method), Op: op, Body: body,
		Session: g.SessionName(x), Own: x.Head()})
	if err == nil && a == nil {
		return false
	}
	op.Kind = api.Lock
	s.answerLock(x, a, err)
	return true
}

// operateLocks answers the admin listener's requests for locks. path is that of a lock, or what is asked of all of them.
func (s *service) operateLocks(ctx context.Context, method string, path, query, body []byte) (status int, answer []byte, err error) {
	root := []byte(s.current.Load().Locks.Path)
	switch string(path) {
	case "", "/":
		path = root
	case "/_release":
		path = append(root, path...)
	}
	a, err := s.locks.Serve(ctx, &lockrouter.Request{Method: method, Path: path, Query: query, Body: body, Admin: true})
	if err != nil {
		return 0, nil, err
	}
	return a.Status, a.Body, nil
}

// decoded is the body of a request for locks without its content coding.
func decoded(h *wire.Head, body []byte) ([]byte, error) {
	body, err := coding.Decode(body, h.Get("content-encoding"), maxLockBody)
	switch {
	case errors.Is(err, coding.ErrTooLarge):
		return nil, proxy.ErrTooLarge
	case err != nil:
		return nil, &proxy.Failure{Status: 400, Type: "parse_exception", Reason: "the body can't be read: " + err.Error()}
	}
	return body, nil
}

// refresh asks the engine for the refresh that a client asks for.
func (s *service) refresh(ctx context.Context, q *compat.Request) (status int, body []byte, err error) {
	way := es.Way{Reads: true}
	if h, ok := q.Own.(*wire.Head); ok {
		way.Caller = callerOf(h.EndToEnd(nil))
	}
	index := es.Segment(s.current.Load().Locks.Compat.Index)
	a, err := es.Ask(ctx, s.nodes, esapi.IndicesRefreshRequest{Index: []string{index}}, way)
	return a.Status, a.Body, err
}

// found searches on behalf of the client that asked for locks: what it may not see it can't lock.
func (s *service) found(ctx context.Context, q *lockrouter.Request, index string, query []byte, most int) ([]string, error) {
	ids, err := (&es.Client{Upstream: s.nodes}).IDs(ctx, callerOf(q.Fields), index, query, most)
	var said *es.StatusError
	if !errors.As(err, &said) {
		return ids, err
	}
	f := &lockrouter.Failure{Status: said.Status, Type: "search_failed", Reason: err.Error()}
	if v := gjson.GetManyBytes(said.Body, "error.type", "error.reason"); v[0].Str != "" {
		f.Type, f.Reason = v[0].Str, v[1].Str
	}
	return nil, f
}

// callerOf is on whose behalf optimist asks: a client's fields without those that are about its own request's body and answer.
func callerOf(fields []wire.Field) (who es.Caller) {
	for _, f := range fields {
		if name := strings.ToLower(string(f.Name)); name != "host" && name != "expect" && !strings.HasPrefix(name, "content-") &&
			!strings.HasPrefix(name, "accept") {
			who.Fields = append(who.Fields, f)
		}
	}
	return who
}
