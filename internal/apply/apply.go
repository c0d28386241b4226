// Package apply applies a write's rule to what its client wants. It makes the intent, which merges as the rule says, and
// transforms the result.
//
// It does no I/O. The caller has chosen the rule and the base before.
package apply

import (
	"time"

	"optimist/internal/api"
	"optimist/internal/base"
	"optimist/internal/doc"
	"optimist/internal/intent"
	"optimist/internal/jsontext"
	"optimist/internal/patch"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/wire"
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
	"optimist/rewrite/tree"
)

// Observer looks on while documents are merged and transformed: the account of a dry run is written by one.
type Observer interface {
	Merger(*merge.Merger) intent.Merger
	Transformer(*edit.Transformer) intent.Transformer
}

// Means are the same for all writes.
type Means struct {
	Observer Observer         // nil: nobody looks
	Now      func() time.Time // the clock that rules see
	MaxBody  int              // how many bytes a patch, or a transform, may add to a document; zero: as many as package edit allows
}

// Maker makes the intent of a write, under its rule. It has room for one: the next one takes its place. One goroutine uses it at a time.
type Maker struct {
	*base.Search
	Means         *Means
	Method        []byte
	Patch         *patch.Request // what a PATCH, or an _update that is made here, says; nil for all others
	Untransformed bool           // the rule's transform can't be applied

	document    intent.Document
	transformed intent.Transformed
	inputs      edit.Inputs
}

// Document is what a client wants that sends a whole document, changed from the write's base.
func (w *Maker) Document(guard doc.Numbers) intent.Intent {
	w.document = intent.Document{Base: w.seen(), Sent: w.Sent, Guard: guard, Recreate: w.recreates(), Merger: w.merger()}
	return w.Transforming(&w.document)
}

// New is what a client wants that makes a document of these bytes, where there is none.
func (w *Maker) New(sent []byte) intent.Intent {
	w.document = intent.Document{Base: intent.Base{Absent: true}, Sent: sent, Merger: w.merger()}
	return w.Transforming(&w.document)
}

// Delete is what a client wants that deletes the document. There is nothing to merge, whatever the client has seen of it.
func (w *Maker) Delete() *intent.Delete {
	b := w.seen()
	b.Stored = true
	return &intent.Delete{Base: b, Stale: !w.Rule.FailStaleDelete}
}

// Partial is the intent of a client that sends a part. made is the document that the client has seen, with the part in it; nil: not
// known.
func (w *Maker) Partial(made []byte) *intent.Partial {
	return &intent.Partial{Base: w.seen(), Part: w.Part.Incoming, Made: made, Initial: w.Part.Initial, Recreate: w.recreates(),
		Merger: w.merger(), Room: w.Room}
}

// Transforming is an intent with the rule's transform applied to what it makes.
func (w *Maker) Transforming(in intent.Intent) intent.Intent {
	t := w.Transformer()
	if t == nil {
		return in
	}
	w.transformed = intent.Transformed{Intent: in, Rule: w.Rule.Name, Transformer: t, Source: w}
	if w.Means.Observer != nil {
		w.transformed.Transformer = w.Means.Observer.Transformer(t)
	}
	return &w.transformed
}

// recreates reports whether the write makes a document that isn't there any more. If the client has seen the document in another index, a
// document that is missing in this one wasn't necessarily deleted.
func (w *Maker) recreates() bool { return w.Rule.RecreateMissing || w.Moved }

// seen is the write's base as its intent knows it.
func (w *Maker) seen() intent.Base {
	b := &w.Base
	return intent.Base{Numbers: b.Numbers, View: b.View, Absent: b.Kind == session.KindAbsent, Stored: w.ViewIsStored(),
		Read: b.Kind == session.KindRead, Index: b}
}

// merger merges as the rule says, and with care where the base is a guess.
func (w *Maker) merger() intent.Merger {
	m := w.Rule.Merger
	if w.Base.Guessed {
		m = m.Guessing()
	}
	switch {
	case w.Part != nil: // a part names what it changes
		m = m.OfParts()
	case w.Base.Guessed && w.Base.Kind == session.KindAbsent:
		m = m.AfterCreation(w.Base.Made)
	}
	if len(w.Sent)+len(w.Base.View) > smallMerge {
		m = m.Within(tree.Limits{Room: w.Room})
	}
	if t := w.Transformer(); t != nil && t.SetsAny() {
		m = m.Before(t)
	}
	if w.Means.Observer != nil {
		return w.Means.Observer.Merger(m)
	}
	return m
}

// smallMerge is how many bytes what was seen and what was sent may have together, so that merging them takes as much memory as a request
// has anyway. What is stored now is about as large.
const smallMerge = 4 << 10

// Transformer is the rule's transform, if it is applied to this write: a PUT or a POST of a document, a create, a PATCH, an _update of a
// part that is made here. A delete has nothing to transform. If the document can't be read, or may not be changed, or is in a data stream
// that the rule doesn't name, the outcome says that it wasn't transformed.
//
// The client has seen the body that it sent, not the transform's result. So its next change counts from that body, and undoes nothing of
// the transform. The answer has the numbers of the client's base. A write without a base has no such numbers: its answer has the
// engine's, as if an ingest pipeline had changed the document.
func (w *Maker) Transformer() *edit.Transformer {
	t := w.Rule.Transform
	if t == nil || w.Untransformed || w.InOthersStream() {
		return nil
	}
	switch w.Op.Kind {
	case api.Index, api.IndexAuto, api.Create, api.Patch:
		return t
	case api.Update:
		if w.Patch != nil {
			return t
		}
	}
	return nil
}

// Inputs implements intent.InputSource: the documents that steps can refer to. The operations of a PATCH are no document: for steps,
// nothing was sent.
func (w *Maker) Inputs(current []byte) *edit.Inputs {
	op := w.Op.Kind
	if op == api.IndexAuto {
		op = api.Index
	}
	in := &w.inputs
	*in = edit.Inputs{
		Incoming: w.Sent, Current: current, Base: w.Base.View,
		Index: w.Name, ID: w.Doc.ID, Routing: w.Doc.Routing,
		Op: op.String(), Method: wire.MethodString(w.Method), User: rule.User(w.Fields),
		Header: w.header, Now: w.Means.Now(), Growth: w.Means.MaxBody, Room: w.Room,
	}
	if w.Patch != nil && w.Patch.Incoming != nil {
		in.Incoming = w.Patch.Incoming
	}
	if !jsontext.LooksLikeObject(in.Incoming) {
		in.Incoming = nil
	}
	return in
}

func (w *Maker) header(name string) (value []byte, ok bool) {
	v := wire.Value(w.Fields, name)
	return v, v != nil
}
