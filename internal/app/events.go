package app

import (
	"errors"
	"time"

	"optimist/internal/obs"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/tenantheader"
	"optimist/internal/upstream"
	"optimist/internal/write"
	"optimist/rewrite/merge"
)

// writeEvents turn what happens to writes into metrics.
func (a *App) writeEvents() write.Events {
	return write.Events{
		Conflict:         func(rule string) { a.metrics.Conflicts.Inc(rule) },
		Fetch:            func(rule string) { a.metrics.Fetches.Inc(rule) },
		Batch:            a.metrics.Batched,
		Unguardable:      a.unguardable,
		StrategiesUnused: func(rule string) { a.metrics.StrategiesUnused.Inc(rule) },
		Marked: func(rule string, applied bool) {
			a.metrics.Marks.Inc(rule, map[bool]string{true: "applied", false: "not_applied"}[applied])
		},
		BaseChosen: func(kind session.Kind, reason session.Reason) {
			if kind == session.KindLost {
				a.metrics.LostBases.Inc(reason.String())
			}
		},
		Collision: a.learner.Observe, Blind: a.learner.Blind,
		Done: func(ru *rule.Rule, o *outcome.Outcome, _ int) {
			a.metrics.Outcomes.Inc(o.Kind.String(), o.Reason)
			a.metrics.Base(o.Base.String(), o.Ambiguous)
			a.metrics.Retries.Add(int64(o.Attempts-1), ru.Name)
			if o.Untransformed {
				a.metrics.Untransformed.Inc(ru.Name)
			}
			if o.Kind == outcome.Merged || o.Kind == outcome.Combined {
				a.metrics.Merged(ru.Name, undecided(ru, o))
			}
		},
	}
}

// undecided is how many values of other clients a write has overwritten, though its rule doesn't say that the sent value counts there.
func undecided(ru *rule.Rule, o *outcome.Outcome) int {
	n := o.More
	for _, path := range o.Overwrote {
		if decides, strategy := ru.Merger.Ruled(path); decides == "" || strategy != merge.Sent {
			n++
		}
	}
	return n
}

// unguardable counts an index that can't be guarded or merged. If optimist may not ask about it, the log tells how to change that.
func (a *App) unguardable(index, reason string) {
	a.metrics.Unguardable.Inc(reason)
	if reason != outcome.ReasonMetadata {
		return
	}
	if n, tell := a.denied.Count(); tell {
		a.log.Warn("the engine doesn't say what an index is, so conflicts there are answered with 409, or 504, and nothing is merged. "+
			"Probably the credentials of upstream.auth, or else those of the client, lack the privileges monitor and view_index_metadata",
			obs.KeyIndex, index, obs.KeyCount, n)
	}
}

// tenantHeaders says, once, which fields seem to choose a tenant though the configuration doesn't name them.
func (a *App) tenantHeaders() *tenantheader.Finder {
	f := tenantheader.New()
	f.Found = func(name string) {
		a.metrics.UnlistedFields.Inc()
		a.log.Warn("a header field that isn't configured seems to choose a tenant: by its values the same document has different "+
			"revisions. Clients that differ in it share sessions", obs.KeyField, name, obs.KeyAdd, "identity: {fields: ["+name+"]}")
	}
	return f
}

// sessionNumbers are the store's counters as the metrics have them: what was found for a write, and what wasn't.
func sessionNumbers(t session.Stats) obs.Sessions {
	n := obs.Sessions{Evictions: t.Evicted, Bytes: t.Bytes, Entries: int64(t.Entries)}
	for kind, taken := range t.Taken {
		switch session.Kind(kind) {
		case session.KindNone, session.KindLost, session.KindExplicit:
			n.Misses += taken
		default:
			n.Hits += taken
		}
	}
	return n
}

// upstreamHooks turn what happens to nodes into metrics and log lines.
func (a *App) upstreamHooks() upstream.Hooks {
	return upstream.Hooks{
		Dialed: func(node string, _ time.Duration, err error) {
			if err == nil {
				return
			}
			reason := upstream.Other
			var connect *upstream.ConnectError
			if errors.As(err, &connect) {
				reason = connect.Reason
			}
			a.metrics.DialsFailed.Inc(node, string(reason))
		},
		Waited: func(node string, _ time.Duration) { a.metrics.Waits.Inc(node) },
		Resent: func(*upstream.Error) { a.metrics.Resent.Inc() },
		Ejected: func(node string, err error) {
			a.metrics.Ejections.Inc(node)
			a.log.Warn("node left out", obs.KeyNode, node, obs.KeyError, err.Error())
			if s := a.writes.Load(); s != nil {
				s.IndicesChanged(session.Credentials{}) // the node that comes back may have lost its indices, and count from zero
			}
		},
		Returned: func(node string) { a.log.Info("node is back", obs.KeyNode, node) },
		Credentials: func(node string, refusal int) {
			a.greeted.Store(true) // before the log says so: whoever reads it may ask for readiness
			if refusal == 0 {
				a.log.Info("the engine accepts optimist's own credentials (upstream.auth) again", obs.KeyNode, node)
				return
			}
			a.log.Error("the engine refuses optimist's own credentials (upstream.auth): it can't be asked what can be merged",
				obs.KeyNode, node, obs.KeyStatus, refusal)
		},
	}
}
