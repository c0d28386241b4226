// Package guard is what optimist does with a request at the door: it watches the reads that can become bases, hands the writes that
// a rule takes to package write, and lets everything else through.
//
// It holds no read up and changes no byte of one, but for the stamps that a rule asks for: an answer that may have some is collected
// first. It parses no body that isn't needed: a request that no rule takes costs it a look at the request line.
package guard

import (
	"log/slog"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// Guard decides about requests. It is safe for concurrent use; make it with New.
type Guard struct {
	rules    *rule.Switch
	up       es.Doer
	writes   *write.Service
	catalog  *catalog.Catalog
	sessions *session.Store
	identity Identity
	events   Events
	log      *slog.Logger
	maxBody  int64
}

// Options are what a Guard needs; all but Events and Log are required.
type Options struct {
	Rules    *rule.Switch
	Upstream es.Doer
	Writes   *write.Service
	Sessions *session.Store
	Identity Identity
	Events   Events
	Log      *slog.Logger
	// MaxBody is up to how many bytes of body a write is held to be guarded. Longer ones are passed, and said.
	MaxBody int64
}

// Events are told what happens, for metrics. Any may be nil.
type Events struct {
	// Observed is a write in observe mode: lost says that it overwrote a change that its client hadn't seen, would what guarding
	// would have done.
	Observed func(index string, lost bool, would outcome.Kind)
	// Passed is a write that a rule takes and that was let through unguarded, with the reason.
	Passed func(rule, reason string)
	// Untransformed is a request whose writes a rule takes that transforms, and that was passed without that.
	Untransformed func(rule string)
	// Unstamped is a read of a whole document that a rule stamps and that got no stamp, with the reason. The rule may be "".
	Unstamped func(rule, reason string)
}

// New makes a Guard.
func New(o Options) *Guard {
	if o.Events.Observed == nil {
		o.Events.Observed = func(string, bool, outcome.Kind) {}
	}
	if o.Events.Passed == nil {
		o.Events.Passed = func(string, string) {}
	}
	if o.Events.Untransformed == nil {
		o.Events.Untransformed = func(string) {}
	}
	if o.Events.Unstamped == nil {
		o.Events.Unstamped = func(string, string) {}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Rules.OnResume(o.Sessions.Resume)
	return &Guard{
		rules: o.Rules, up: o.Upstream, writes: o.Writes, catalog: o.Writes.Catalog(), sessions: o.Sessions, identity: o.Identity,
		events: o.Events, log: o.Log, maxBody: o.MaxBody,
	}
}

// Intercept is the door's hook. It reports false for requests that are to be forwarded as they are.
func (g *Guard) Intercept(x *proxy.Exchange) bool {
	op := x.Op()
	switch {
	case g.rehearse(x):
		return true
	case op.Kind == api.Other:
		return false
	case op.Kind == api.IndexAdmin:
		g.admin(x)
		return true
	case g.rules.Mode() == rule.Off, op.Fragment && op.Kind.Read():
		return false // of a read with a fragment it can't be told what it is of
	case op.Kind.Write():
		return g.write(x)
	case op.Kind == api.IndexAuto:
		return g.auto(x)
	case op.Kind == api.Get || op.Kind == api.Source:
		return g.get(x)
	case op.Kind == api.Mget:
		return g.mget(x)
	case op.Kind == api.Search:
		return g.search(x)
	case op.Kind == api.Bulk, op.Kind == api.UpdateByQuery, op.Kind == api.DeleteByQuery:
		return g.unguarded(x)
	}
	return false
}

// unguarded forwards requests that write many documents, and says that they aren't guarded: whoever counts on a rule must not have to
// guess.
func (g *Guard) unguarded(x *proxy.Exchange) bool {
	rules := g.rules.Rules()
	reason := outcome.ReasonBulk
	if x.Op().Kind != api.Bulk {
		reason = outcome.ReasonByQuery
	}
	ru := rules.MatchRequest(&rule.Asked{Index: decoded(x.Op().Index), Kind: api.Index, Fields: x.Head().Fields})
	if len(x.Op().Index) == 0 && len(rules.All()) > 0 {
		ru = rules.All()[0] // any of its items may be of an index that a rule takes
	}
	said := g.rules.Effective(ru) == rule.Guard
	if x.Op().Kind == api.Bulk && rules.Stamps() {
		switch done, read := g.unstampBulk(x, rules, ru); {
		case done:
			return true
		case !read:
			reason = outcome.ReasonTooLarge // a stamp that is in it is stored
		}
	}
	if !said || x.Op().Kind != api.Bulk {
		return said && g.passed(x, ru, reason)
	}
	g.bulk(x, g.saidPassed(x, ru, reason))
	return true
}

// bulkLimit is the size of a bulk's answer, in bytes, up to which it is looked at: some 20,000 items.
const bulkLimit = 4 << 20

// bulk forwards a bulk, and takes note of what it wrote.
func (g *Guard) bulk(x *proxy.Exchange, said wire.Field) {
	c, out := g.who(x), []wire.Field{said}
	if !c.known {
		g.forward(x, proxy.ForwardOptions{OnHead: func(*wire.Head, []byte) []wire.Field { return out }})
		return
	}
	tee, epoch := newCapture(bulkLimit), g.sessions.Epoch()
	tee.whole = func() { g.wrote(x.Op(), c, tee, epoch) }
	g.forward(x, proxy.ForwardOptions{Copy: tee.copy, Last: tee.end, OnHead: func(h *wire.Head, first []byte) []wire.Field {
		tee.head(h, first)
		return out
	}})
}

// wrote ends what a session knew of the documents that a bulk of its own has written or deleted, as far as the answer names them.
func (g *Guard) wrote(op *api.Op, c client, tee *capture, epoch session.Epoch) {
	answer, read := tee.body()
	routing, ok := usualRouting(op)
	if !read || !ok {
		return
	}
	gjson.GetBytes(answer, "items").ForEach(func(_, item gjson.Result) bool {
		item.ForEach(func(action, did gjson.Result) bool {
			result := did.Get("result").Str
			if result == "" || result == "noop" || result == "created" && did.Get("_version").Int() == 1 {
				return true // it was refused, or is new, so that nobody knew of it: most items of most bulks
			}
			ref := doc.Ref{Index: did.Get("_index").Str, ID: did.Get("_id").Str, Routing: routing}
			if result == "deleted" {
				g.sessions.ReadUnknown(c.session, ref) // nor is what it read of it a base for what comes after
				return true
			}
			left, ok := es.Revision([]byte(did.Raw))
			if !ok {
				left = doc.Revision{}
			}
			g.sessions.WroteElse(c.session, ref, left, action.Str != "update", epoch)
			return true
		})
		return true
	})
}

// single reports whether a name is that of one index, not a list, a pattern or an expression.
func single(name []byte) bool {
	for _, c := range name {
		if c == ',' || c == '*' || c == '<' || c == '?' {
			return false
		}
	}
	return len(name) > 0 && name[0] != '_' && name[0] != '-'
}

// decoded is the index that a request names, or "" if that can't be read.
func decoded(raw []byte) string {
	var buf [256]byte
	b, err := api.Decode(buf[:0], raw)
	if err != nil {
		return ""
	}
	return string(b)
}
