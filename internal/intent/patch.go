package intent

import (
	"bytes"
	"errors"

	"optimist/internal/doc"
	"optimist/internal/jsontext"
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
	"optimist/rewrite/tree"
)

// Edit is what a patch does to a document.
type Edit interface {
	// Apply returns the draft of the revision, whose source is known, with the edit in it.
	Apply(cur doc.Revision, in *edit.Inputs) (Draft, error)
	// Same reports whether the edit has changed nothing, as far as there is room, which may be nil, to find it out.
	Same(before, after []byte, room tree.Room) bool
	// Repeatable reports whether the edit may be applied again to what has it already, if its paths are as they were.
	Repeatable() bool
}

// Patch is an edit of the document as it is, so it needs no base.
type Patch struct {
	Edit           Edit
	Upsert         bool        // if there is no document, one is created
	Initial        []byte      // the document that Upsert creates; nil: {} with the edit applied
	WriteUnchanged bool        // an edit that changes nothing is written, too
	OnlyNew        bool        // if there is a document, that is an error
	Guard          doc.Numbers // the client's own; the zero value is none
	MissingError   error       // the error if there is no document, and none is created; nil: doc.ErrMissing
	Source         InputSource
}

// Next implements Intent. ErrMissing (of package doc) is a patch of a document that isn't there.
func (p *Patch) Next(cur doc.Revision) (Draft, error) {
	from := cur.Source
	switch there := !absent(cur); {
	case unread(cur):
		return Draft{}, ErrUnread
	case there && p.OnlyNew:
		return Draft{}, ErrExists
	case p.Guard.Known() && cur.Numbers != p.Guard && (there || p.Upsert):
		return Draft{}, &MovedError{Guard: p.Guard, Current: cur.Numbers}
	case !there && !p.Upsert && p.MissingError != nil:
		return Draft{}, p.MissingError
	case !there && !p.Upsert:
		return Draft{}, doc.ErrMissing
	case !there:
		if from = p.Initial; from == nil {
			from = []byte("{}")
		}
	}
	d := Draft{Body: from}
	if cur.Source != nil || p.Initial == nil {
		var err error
		d, err = p.Edit.Apply(doc.Revision{Numbers: cur.Numbers, Source: from}, p.Source.Inputs(cur.Source))
		if err == nil && !jsontext.LooksLikeObject(d.Body) {
			err = tree.ErrNotObject
		}
		if err != nil {
			return Draft{}, unapplied(err)
		}
	}
	d.From, d.Edited, d.Unchanged = cur.Source, d.Body, p.Idle(cur.Source, d.Body)
	return d, nil
}

// unapplied is the error of a patch that can't be applied.
func unapplied(err error) error {
	if errors.Is(err, ErrUnmergeable) {
		return err // it isn't the patch's fault
	}
	return &ApplyError{What: "the patch", Err: err}
}

// Idle reports whether the edit, with the rule's transform, has changed nothing, so that nothing is written.
func (p *Patch) Idle(before, after []byte) bool {
	return before != nil && !p.WriteUnchanged && p.Edit.Same(before, after, p.Source.Inputs(before).Room)
}

// Merges implements Intent: a patch needs no base. The base of a Rebased one is known to be good for a merge.
func (*Patch) Merges(doc.Revision) bool { return false }

// Repeatable implements Intent: all that the patch touches has to be as it was.
func (p *Patch) Repeatable(tried *Draft, cur doc.Revision) bool {
	if cur.Source == nil || !p.Edit.Repeatable() || tried.Edited == nil {
		return false
	}
	ok, err := merge.Repeatable(tried.From, tried.Edited, cur.Source)
	return ok && err == nil
}

// edited is the draft of an edit that means the document as it is: it replaces nothing that its client hasn't meant.
func edited(body []byte, err error) (Draft, error) { return Draft{Body: body}, err }

// Operations are those of RFC 6902.
type Operations edit.Patch

// Apply implements Edit.
func (o Operations) Apply(cur doc.Revision, in *edit.Inputs) (Draft, error) {
	return edited(edit.Patch(o).Apply(cur.Source, tree.Limits{Growth: in.Growth, Room: in.Room}))
}

// Same implements Edit.
func (o Operations) Same(before, after []byte, room tree.Room) bool {
	return Equal(before, after, room)
}

// Repeatable implements Edit.
func (o Operations) Repeatable() bool { return true }

// MergePatch is one of RFC 7396.
type MergePatch []byte

// Apply implements Edit.
func (m MergePatch) Apply(cur doc.Revision, in *edit.Inputs) (Draft, error) {
	return edited(edit.MergePatch(cur.Source, m, tree.Limits{Growth: in.Growth, Room: in.Room}))
}

// Same implements Edit.
func (m MergePatch) Same(before, after []byte, room tree.Room) bool {
	return Equal(before, after, room)
}

// Repeatable implements Edit.
func (m MergePatch) Repeatable() bool { return true }

// Steps are operations as rules have them.
type Steps struct{ Transformer *edit.Transformer }

// Apply implements Edit.
func (s Steps) Apply(cur doc.Revision, in *edit.Inputs) (Draft, error) {
	return edited(s.Transformer.Apply(cur.Source, in))
}

// Same implements Edit.
func (s Steps) Same(before, after []byte, room tree.Room) bool { return Equal(before, after, room) }

// Repeatable implements Edit.
func (s Steps) Repeatable() bool { return s.Transformer.Repeatable() }

// Equal reports whether two documents say the same, as far as there is room, which may be nil, to compare them.
func Equal(a, b []byte, room tree.Room) bool {
	if bytes.Equal(a, b) {
		return true
	}
	same, err := tree.Same(a, b, tree.Limits{Room: room})
	return same && err == nil
}
