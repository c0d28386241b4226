package main

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/config"
	"optimist/internal/es"
	"optimist/internal/guard"
	"optimist/lockrouter"
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
		Bound: l.Overtake, MostHeld: l.TreeSize, Search: s.found, Log: s.log,
		Events: lockrouter.Events{
			Acquired: func(class state.Class, outcome string, took time.Duration) {
				s.metrics.LockRequest(string(class), outcome, took)
			},
			Lapsed: s.metrics.LeasesLapsed,
		},
	})
	s.metrics.WatchLocks(s.locks.Held, func(class string) int { return s.locks.Waiting(state.Class(class)) })
	return nil
}

// lock answers a request for a lock. It reports false for others.
func (s *service) lock(x *proxy.Exchange, g *guard.Guard) bool {
	if s.locks == nil || !s.locks.Takes(x.Op().Path) {
		return false
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
	if err != nil {
		x.Fail(err)
		return true
	}
	if a.Status == http.StatusServiceUnavailable {
		s.metrics.Failed(lockrouter.TypeStore)
	}
	_ = x.AnswerOwn(a.Status, a.Fields, a.Body)
	return true
}

// found searches on behalf of the client that asked for locks: what it may not see it can't lock.
func (s *service) found(ctx context.Context, q *lockrouter.Request, index string, query []byte, most int) ([]string, error) {
	var who es.Caller
	for _, f := range q.Fields {
		if name := strings.ToLower(string(f.Name)); name != "host" && name != "expect" && !strings.HasPrefix(name, "content-") &&
			!strings.HasPrefix(name, "accept") {
			who.Fields = append(who.Fields, f)
		}
	}
	ids, err := (&es.Client{Upstream: s.nodes}).IDs(ctx, who, index, query, most)
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
