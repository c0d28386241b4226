package write

import (
	"context"
	"errors"
	"net/http"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/fencing"
	"optimist/internal/jsontext"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/wire"
)

// Locks know who may write what locks protect. It is safe for concurrent use.
type Locks interface {
	// Admit gives nil for a write that may go, else the answer to its client: 423 for one to a document that somebody else has locked,
	// 409 for one with a token of a lease that has ended, 503 if that can't be told.
	//
	// What it says holds for the time of the call. Whoever gets the lock after that may have written the document before the write
	// that was admitted arrives. So a write has to go under the guard of a revision that was known before the call: then it is a
	// conflict.
	Admit(ctx context.Context, p *Protected) *LockRefusal
}

// Protected is a write of one document, as locks see it.
type Protected struct {
	Names  []string // of its index: its own, the one that the client used, and its aliases, each once
	ID     string   // of the document; empty: the engine makes it
	Paths  []string // where in the tree of its index the document is, and where it will be
	Global string   // a global lock that protects it; empty: none does
	Tokens fencing.Tokens
	Dry    bool // the write isn't made: who holds the locks is looked at, and nothing is done about it
}

// LockRefusal is the answer to a write that locks refuse.
type LockRefusal struct {
	Status int
	Fields []wire.Field
	Body   []byte
	Reason string // a token of the outcome: outcome.ReasonLocked and so on
}

// enforces reports whether locks are enforced on the change's document.
func (s *Service) enforces(c *change) bool { return c.req.Rule.Locks != nil && s.locks != nil }

// makesUpdates reports whether optimist itself makes a document of an _update with doc: what a transform, or locks, have to do with it
// they can't have with a part.
func (c *change) makesUpdates() bool { return c.req.Rule.Transform != nil || c.req.Rule.Locks != nil }

// admit asks the locks about the open changes, which go as one write. It comes after their guard is known, and right before they are
// sent. Changes that aren't admitted have their answer then. again says that the document has to be read first: without that nobody
// knows where in the tree it is.
func (a *attempt) admit(ctx context.Context, body []byte) (again bool) {
	first := a.open[0]
	if !a.s.enforces(first) {
		return false
	}
	if first.readsPath() && a.cur.Known() && a.cur.Source == nil {
		if a.source == read {
			a.bar(ctx, first.unguardable("its document can't be read, which says where in the tree of locks it is"), outcome.ReasonUnguardable)
			return false
		}
		a.source = unread
		return true
	}
	if first.draft.Delete {
		body = nil
	}
	if answer, reason := a.s.askLocks(ctx, first, a.cur.Source, body); answer != nil {
		a.bar(ctx, answer, reason)
	}
	return false
}

// bar gives the open changes the answer of the locks. Nothing is sent for them any more.
func (a *attempt) bar(ctx context.Context, answer *respond.Answer, reason string) {
	a.settleDoubt(ctx)
	a.batch.Forget()
	for _, c := range a.open {
		c.barred, c.outcome.Reason = true, reason
		if c.outcome.Kind = outcome.Guarded; c.attempts == 0 {
			c.outcome.Kind = outcome.Refused
		}
	}
	a.answerAll(func(*change) *respond.Answer { return answer.Clone() })
}

// askLocks asks whether a write may go in place of cur; either is nil where there is no document. The answer is nil if it may.
func (s *Service) askLocks(ctx context.Context, c *change, cur, body []byte) (answer *respond.Answer, reason string) {
	l := c.req.Rule.Locks
	p := &Protected{Names: c.namesOfIndex(), ID: c.Doc.ID, Global: l.Global, Tokens: c.req.Tokens}
	if l.ByID && p.ID != "" {
		p.Paths = append(p.Paths, p.ID)
	}
	if l.Field != nil {
		if why := s.whyPathUnknown(ctx, c); why != "" {
			return c.unguardable(why), outcome.ReasonUnguardable
		}
		for _, source := range [2][]byte{cur, body} {
			if path := textAt(source, l.Field); path != "" && (len(p.Paths) == 0 || p.Paths[0] != path) {
				p.Paths = append(p.Paths, path)
			}
		}
	}
	refused := s.locks.Admit(ctx, p)
	if refused == nil {
		return nil, ""
	}
	a := respond.Own(refused.Status, refused.Body)
	a.Fields = append(a.Fields, refused.Fields...)
	return a, refused.Reason
}

// namesOfIndex are the names by which clients may have locked something of the change's index: the one that its own client uses, the
// index's own, and its aliases, as far as they are known.
func (c *change) namesOfIndex() []string {
	names := append(make([]string, 0, 2+len(c.index.Aliases)), c.Name)
	if c.Doc.Index != c.Name {
		names = append(names, c.Doc.Index)
	}
	for _, alias := range c.index.Aliases {
		if alias != c.Name {
			names = append(names, alias)
		}
	}
	return names
}

// readsPath reports whether a field of the document says which locks protect it.
func (c *change) readsPath() bool { return c.req.Rule.Locks != nil && c.req.Rule.Locks.Field != nil }

// whyPathUnknown is why nobody knows where in the tree of locks the document is, or "".
func (s *Service) whyPathUnknown(ctx context.Context, c *change) string {
	switch {
	case c.Pipeline, c.index.Pipeline:
		return "an ingest pipeline may change its path, which says where in the tree of locks it is"
	case c.goesAsPart():
		return "only the engine can carry out this _update, and it may change the path, which says where in the tree of locks the document is"
	case c.req.Op.Kind == api.Create, c.req.Op.Kind == api.IndexAuto:
		return "" // nothing of it is stored
	}
	if whole, err := s.seesWhole(ctx, c); err != nil || !whole || c.index.Partial || c.index.Unknown != "" {
		return "these credentials don't show all of a document, and its path says where in the tree of locks it is"
	}
	return ""
}

// textAt is the text at a place in a document; empty if there is none.
func textAt(source []byte, at []string) string {
	value := source
	for _, name := range at {
		if !jsontext.LooksLikeObject(value) {
			return ""
		}
		found := []byte(nil)
		for m := jsontext.Scan(value); m.Next(); {
			if plain, ok := m.PlainName(); ok && plain == name {
				found = m.Text()
			}
		}
		if value = found; value == nil {
			return ""
		}
	}
	v := gjson.ParseBytes(value)
	if v.Type != gjson.String {
		return ""
	}
	return v.Str
}

// admitPassed asks the locks about a write that goes without a lane: one that the engine itself guards, because it makes a document or
// has the client's own sequence number. Any other is refused: nobody could tell it from one that comes late. It reports whether the
// write has its answer.
func (s *Service) admitPassed(ctx context.Context, c *change, body []byte) (answered bool, err error) {
	if !s.enforces(c) {
		return false, nil
	}
	if c.index.Name == "" { // a create has nothing else to ask for
		if err := s.locate(ctx, c); err != nil {
			return false, err
		}
	}
	n, own := api.OwnGuard(c.out.Query)
	var cur []byte
	switch kind := c.req.Op.Kind; {
	case kind == api.Create, kind == api.IndexAuto, c.OnlyNew && kind == api.Index, own && n.Known() && kind != api.Update:
	case own && n.Known() && !c.readsPath():
	default:
		c.refuseUnguardable(c.whyUnguarded())
		return true, nil
	}
	if c.readsPath() && own {
		rev, err := s.current(ctx, c)
		if err != nil && !errors.Is(err, doc.ErrMissing) {
			return false, err
		}
		cur = rev.Source
	}
	if c.req.Op.Kind == api.Delete {
		body = nil
	}
	return s.barAlone(ctx, c, cur, body), nil
}

// barAlone gives a change without a lane the answer of the locks, if they refuse it, and reports whether they do.
func (s *Service) barAlone(ctx context.Context, c *change, cur, body []byte) bool {
	answer, reason := s.askLocks(ctx, c, cur, body)
	if answer == nil {
		return false
	}
	c.answer, c.barred = answer, true
	c.outcome.Kind, c.outcome.Reason = outcome.Refused, reason
	return true
}

// whyUnguarded is why a write can't be guarded, for its client.
func (c *change) whyUnguarded() string {
	switch {
	case c.req.Reason != "":
		return "it can't be guarded (" + c.req.Reason + ")"
	case c.req.Op.Kind == api.Update:
		return "only the engine can carry out this _update: send a doc or a PATCH, or if_seq_no and if_primary_term"
	case c.outcome.Base == outcome.BaseExplicit:
		return "a version is no guard against a write that comes late: send if_seq_no and if_primary_term"
	case c.outcome.Reason != "":
		return "it can't be guarded (" + c.outcome.Reason + ")"
	}
	return "it can't be guarded: send if_seq_no and if_primary_term, or If-Match"
}

// refuseUnguardable answers a write that can't be let through where locks are enforced.
func (c *change) refuseUnguardable(why string) {
	c.answer, c.barred = c.unguardable(why), true
	c.outcome.Kind, c.outcome.Reason = outcome.Refused, outcome.ReasonUnguardable
}

// TypeUnguardable is the type of the error of a write that isn't let through where locks are enforced.
const TypeUnguardable = "unguardable_write"

func (c *change) unguardable(why string) *respond.Answer {
	return respond.ErrorIn(c.Doc.Index, http.StatusBadRequest, TypeUnguardable,
		"rule ["+c.req.Rule.Name+"] enforces locks, and this write is not let through: "+why)
}

// deleteAbsent deals with a delete whose client has seen no document. The engine would delete what came since, unguarded. It reports
// whether that has its answer: there still is none. Else the document that is there is the delete's base.
func (s *Service) deleteAbsent(ctx context.Context, c *change) (answered bool, err error) {
	base := c.outcome.Base
	if err := s.fetchBase(ctx, c); err != nil {
		return false, err
	}
	c.outcome.Base = base
	if c.base.Numbers.Known() {
		return false, nil
	}
	if s.enforces(c) && s.barAlone(ctx, c, nil, nil) {
		return true, nil
	}
	c.outcome.Kind = outcome.Guarded
	c.answer = c.filtered(respond.Written(s.named(c), doc.Revision{Version: 1}, respond.NotFound))
	return true, nil
}
