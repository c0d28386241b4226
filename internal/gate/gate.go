// Package gate asks the locks whether a write may go, if a rule enforces them. It knows which locks protect the write's document,
// and makes the answer if they refuse the write.
//
// It decides nothing about locks, and sends nothing.
package gate

import (
	"context"
	"net/http"
	"slices"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/doc"
	"optimist/internal/fencing"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/wire"
)

// Locks know which clients may write a document that locks protect. It is safe for concurrent use.
type Locks interface {
	// Admit gives nil for a write that may go, else the answer to its client: 423 if another client has locked the document, 409 if the
	// write has the token of an ended lease, 503 if the locks can't be asked.
	//
	// The answer holds for the time of the call. The next holder may write the document before the admitted write arrives. So the write
	// has to go under the guard of a revision that was known before the call: then it conflicts.
	Admit(ctx context.Context, q *fencing.Question) *Refusal
}

// Refusal is the answer to a write that locks refuse.
type Refusal struct {
	Status int
	Fields []wire.Field // all of them, the Content-Type too
	Body   []byte
	Reason string // a token of the outcome: outcome.ReasonLocked and so on
}

// Gate asks locks. It is safe for concurrent use.
type Gate struct {
	Locks Locks // nil: nothing is locked
	Bases *base.Finder
}

// Applicant is a write that wants to go.
type Applicant struct {
	*base.Search
	Tokens fencing.Tokens // of the leases of the locks under which its client works
	Reason string         // why it can't be guarded at all; empty: it can
	AsPart bool           // it goes as an _update, of which the engine makes the document
}

// Enforces reports whether locks are enforced on the documents of a rule.
func (g *Gate) Enforces(r *rule.Rule) bool { return r.Locks != nil && g.Locks != nil }

// Glance is a Gate for what is looked at, and not written: it asks without doing anything about locks.
func (g *Gate) Glance(bases *base.Finder) *Gate {
	if g.Locks == nil {
		return g
	}
	return &Gate{Locks: glance{g.Locks}, Bases: bases}
}

// glance asks locks without doing anything about them.
type glance struct{ Locks }

// Admit implements Locks.
func (l glance) Admit(ctx context.Context, q *fencing.Question) *Refusal {
	q.Dry = true
	return l.Locks.Admit(ctx, q)
}

// Ask asks whether a write may go in place of cur. cur has no numbers where there is no document, and body is nil where none shall be. The
// answer is nil if the write may go.
func (g *Gate) Ask(ctx context.Context, w *Applicant, cur *doc.Revision, body []byte) (answer *respond.Answer, reason string) {
	l := w.Rule.Locks
	q := &fencing.Question{Indices: w.namesOfIndex(), ID: w.Doc.ID, Global: l.Global, Tokens: w.Tokens,
		NoIndex: w.Index.UUID == "" && w.Index.Unknown == ""}
	if l.ByID && q.ID != "" {
		q.Paths = append(q.Paths, q.ID)
	}
	if l.Field != nil {
		if why := g.whyPathUnknown(ctx, w, cur); why != "" {
			return w.Unguardable(why), outcome.ReasonUnguardable
		}
		for _, source := range [2][]byte{cur.Source, body} {
			paths, why := pathsAt(source, l.Field)
			if why != "" {
				return w.Unguardable(why), outcome.ReasonUnguardable
			}
			for _, path := range paths {
				if !slices.Contains(q.Paths, path) {
					q.Paths = append(q.Paths, path)
				}
			}
		}
	}
	refused := g.Locks.Admit(ctx, q)
	if refused == nil {
		return nil, ""
	}
	return respond.Own(refused.Status, refused.Fields, refused.Body), refused.Reason
}

// ReadsPath reports whether a field of a rule's documents says which locks protect them.
func ReadsPath(r *rule.Rule) bool { return r.Locks != nil && r.Locks.Field != nil }

// namesOfIndex are the names by which clients may have locked something of the write's index: the one that its own client uses, the
// index's own, that of the data stream that it backs, and the aliases, as far as they are known.
func (w *Applicant) namesOfIndex() []string {
	names := append(make([]string, 0, 3+len(w.Index.Aliases)), w.Name)
	for _, name := range [2]string{w.Doc.Index, w.Index.DataStream} {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for own, i := len(names), 0; i < len(w.Index.Aliases); i++ { // of which there may be thousands, each once
		if alias := w.Index.Aliases[i]; !slices.Contains(names[:own], alias) {
			names = append(names, alias)
		}
	}
	return names
}

// Hides reports whether a revision doesn't show where in the tree of locks its document is, because it has no source.
func Hides(r *rule.Rule, cur *doc.Revision) bool {
	return ReadsPath(r) && cur.Known() && cur.Source == nil
}

// whyPathUnknown is why nobody knows where in the tree of locks the document is, or "".
func (g *Gate) whyPathUnknown(ctx context.Context, w *Applicant, cur *doc.Revision) string {
	switch {
	case Hides(w.Rule, cur):
		return "its document can't be read, which says where in the tree of locks it is"
	case w.Pipeline, w.Index.Pipeline:
		return "an ingest pipeline may change its path, which says where in the tree of locks it is"
	case w.AsPart:
		return whyPathMayChange
	case w.Op.Kind == api.Create, w.Op.Kind == api.IndexAuto:
		return "" // nothing of it is stored
	}
	if whole, err := g.Bases.SeesWhole(ctx, w.Search); err != nil || !whole || w.Index.Partial || w.Index.Unknown != "" {
		return "these credentials don't show all of a document, and its path says where in the tree of locks it is"
	}
	return ""
}

// WhyUnguarded is why a write can't be guarded, for its client.
func (w *Applicant) WhyUnguarded() string {
	switch {
	case w.Reason != "":
		return "it can't be guarded (" + w.Reason + ")"
	case w.Op.Kind == api.Update && ReadsPath(w.Rule):
		return whyPathMayChange + ": send a doc or a PATCH"
	case w.Op.Kind == api.Update:
		return "only the engine can carry out this _update: send a doc or a PATCH, or if_seq_no and if_primary_term"
	case w.Outcome.Base == outcome.BaseExplicit:
		return "a version is no guard against a write that comes late: send if_seq_no and if_primary_term"
	case w.Outcome.Reason != "":
		return "it can't be guarded (" + w.Outcome.Reason + ")"
	}
	return "it can't be guarded: send if_seq_no and if_primary_term, or If-Match"
}

// TypeUnguardable is the type of the error of a write that isn't let through where locks are enforced.
const TypeUnguardable = "unguardable_write"

// Unguardable is the refusal of a write that can't be let through where locks are enforced, and why.
func (w *Applicant) Unguardable(why string) *respond.Answer {
	return respond.ErrorIn(w.Doc.Index, http.StatusBadRequest, TypeUnguardable,
		"rule ["+w.Rule.Name+"] enforces locks, and this write is not let through: "+why)
}
