package main

import (
	"time"

	"optimist/internal/api"
	"optimist/internal/config"
	"optimist/internal/es"
	"optimist/internal/guard"
	"optimist/internal/obs"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// intercept makes what takes writes and watches reads, and has it counted.
func (s *service) intercept(c *config.Config) func(*proxy.Exchange) bool {
	sessions := session.New(session.Options{
		MaxAge: c.Sessions.MaxAge.Std(), Memory: c.Sessions.Memory.Bytes(), Left: wire.PeerClosed,
	})
	s.metrics.WatchSessions(func() obs.Sessions { return sessionNumbers(sessions.Stats()) })
	writes := write.New(write.Options{
		Upstream: s.nodes, Engine: &es.Client{Upstream: s.nodes}, Sessions: sessions, Events: s.writeEvents(), Log: s.log,
		OwnAuth: c.Upstream.Auth != (config.Auth{}),
	})
	g := guard.New(guard.Options{
		Rules: s.sw, Upstream: s.nodes, Writes: writes, Sessions: sessions, Identity: identity(&c.Sessions), Log: s.log,
		MaxBody: c.Limits.MaxGuardedBody.Bytes(),
		Events: guard.Events{
			Observed: func(index string, lost bool, would outcome.Kind) { s.metrics.Observed(would.String(), index, lost) },
			Passed:   func(_, reason string) { s.metrics.Outcome(outcome.Passed.String(), reason) },

			Untransformed: s.metrics.Untransformed,
			Unstamped:     func(_, reason string) { s.metrics.Unstamped(reason) },
		},
	})
	return func(x *proxy.Exchange) bool {
		if s.lock(x, g) {
			return true
		}
		if !x.Op().Kind.Write() {
			return g.Intercept(x)
		}
		kind, begun := x.Op().Kind, time.Now()
		if kind == api.Update {
			s.countUnused(x)
		}
		taken := g.Intercept(x)
		if taken && x.Head().Get(guard.DryRunField) == nil { // a dry run is no write
			s.metrics.WriteTook(kind.String(), time.Since(begun))
		}
		return taken
	}
}

// countUnused counts an _update under a rule with strategies: the engine merges it itself, and doesn't know them.
func (s *service) countUnused(x *proxy.Exchange) {
	var buf [256]byte
	name, err := uri.Decode(buf[:0], x.Op().Index)
	if err != nil {
		return
	}
	a := rule.Asked{Index: string(name), Kind: api.Update, Fields: x.Head().Fields}
	if r := s.sw.Rules().MatchRequest(&a); r != nil && r.HasStrategies {
		s.metrics.StrategiesUnused(r.Name)
	}
}

// writeEvents turn what happens to writes into metrics.
func (s *service) writeEvents() write.Events {
	return write.Events{
		Conflict: s.metrics.Conflict,
		Fetch:    s.metrics.Fetched,
		Batch:    s.metrics.Batched,
		Unguard:  func(_, reason string) { s.metrics.Unguardable(reason) },
		Took: func(kind session.Kind, reason session.Reason) {
			if kind == session.KindLost {
				s.metrics.LostBase(reason.String())
			}
		},
		Done: func(rule string, o *outcome.Outcome, _ int) {
			s.metrics.Outcome(o.Kind.String(), o.Reason)
			s.metrics.Base(o.Base.String(), o.Ambiguous)
			s.metrics.Retried(rule, o.Attempts-1)
			if o.Untransformed {
				s.metrics.Untransformed(rule)
			}
			if o.Kind == outcome.Merged || o.Kind == outcome.Combined {
				s.metrics.Merged(rule, len(o.Overwrote)+o.More)
			}
		},
	}
}

// identity is how clients are told apart.
func identity(c *config.Sessions) guard.Identity {
	id := guard.Identity{Header: c.Header, Infer: c.Infer != config.InferNone, Address: c.Infer == config.InferCredentialsAndAddress}
	for _, p := range c.TrustedProxies {
		id.Trusted = append(id.Trusted, p.Prefix)
	}
	return id
}

// sessionNumbers are the store's counters as the metrics have them: what was found for a write, and what wasn't.
func sessionNumbers(t session.Stats) obs.Sessions {
	n := obs.Sessions{Evictions: t.Evicted, Bytes: t.Bytes, Entries: int64(t.Entries)}
	for kind, taken := range t.Taken {
		switch session.Kind(kind) {
		case session.KindNone, session.KindLost, session.KindGiven:
			n.Misses += taken
		default:
			n.Hits += taken
		}
	}
	return n
}
