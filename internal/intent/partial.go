package intent

import (
	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// Partial is the `doc` of an _update by a client that has seen the document: a change of the paths that it holds, and of nothing else.
type Partial struct {
	Base Base
	Part Part
	// Made is the document that the client has seen, with the part in it: nil if that isn't known. If the client has seen that there is
	// none, it is {} with the part in it.
	Made []byte
	// Initial is the document that is created if there is none; nil: none is created. It may differ from Made. Recreate says that it is
	// created also if the client has seen a document, which somebody has deleted since.
	Initial  []byte
	Recreate bool
	Merger   Merger
	Room     tree.Room // for applying the part; nil: there is no limit
}

// Next implements Intent. The draft's Part is what goes upstream, as the `doc` of an _update; without one, its Body is a document to be
// made. A part that changes nothing goes upstream, too: the engine knows best what it answers to that. ErrMissing (of package doc) is a
// document that isn't there.
func (p *Partial) Next(cur doc.Revision) (Draft, error) {
	switch {
	case absent(cur) && p.Initial == nil:
		return Draft{}, doc.ErrMissing
	case p.Base.is(cur) && absent(cur):
		return Draft{Body: p.Initial, AsSent: true}, nil
	case p.Base.is(cur):
		return Draft{Body: p.Made, Part: p.Part, AsSent: true}, nil
	case absent(cur) && !p.Recreate:
		return Draft{}, ErrDeleted
	case absent(cur):
		return Draft{Body: p.Initial}, nil
	case unread(cur):
		return Draft{}, ErrUnread
	case !p.Base.Known():
		return Draft{}, ErrUnmergeable
	}
	return p.replayed(cur.Source)
}

// replayed is the change from Base to Made in a newer document.
func (p *Partial) replayed(current []byte) (Draft, error) {
	r, err := p.Merger.Merge(p.Base.View, p.Made, current)
	if err != nil {
		return Draft{}, err
	}
	d := mergedDraft(&r, p.Made, current)
	d.Unchanged, d.Part = false, p.Part.of(r.Doc)
	d.Body, err = d.Part.in(current, &edit.Inputs{Room: p.Room})
	return d, err
}

// Merges implements Intent.
func (p *Partial) Merges(cur doc.Revision) bool { return !absent(cur) && !p.Base.is(cur) }

// Repeatable implements Intent. If the try would have created another document than the part alone makes, the part isn't repeated: in a
// document that the try has created, it would count besides the upsert.
func (p *Partial) Repeatable(tried *Draft, cur doc.Revision) bool {
	if !p.Base.Known() || cur.Source == nil || tried != nil && tried.Part == nil && !Equal(p.Initial, p.Made, p.Room) {
		return false
	}
	ok, err := p.Merger.Repeatable(p.Base.View, p.Made, cur.Source)
	return ok && err == nil
}

// of is the part with the values that a document has at the same paths.
func (p Part) of(doc []byte) Part {
	return project(nil, gjson.ParseBytes(p), gjson.ParseBytes(doc))
}

// project appends what from has of the members of part.
func project(dst []byte, part, from gjson.Result) []byte {
	members := map[string]gjson.Result{}
	from.ForEach(func(k, v gjson.Result) bool {
		members[k.String()] = v
		return true
	})
	dst = append(dst, '{')
	start := len(dst)
	part.ForEach(func(k, v gjson.Result) bool {
		value, there := members[k.String()]
		if !there {
			return true
		}
		if len(dst) > start {
			dst = append(dst, ',')
		}
		dst = append(append(dst, k.Raw...), ':')
		if v.IsObject() && value.IsObject() {
			dst = project(dst, v, value)
		} else {
			dst = append(dst, value.Raw...)
		}
		return true
	})
	return append(dst, '}')
}

// Stale is an edit that fits no document: others have changed the document, and the client's view isn't known.
type Stale struct{}

// Apply implements Edit. The error is ErrUnmergeable.
func (Stale) Apply(doc.Revision, *edit.Inputs) (Draft, error) { return Draft{}, ErrUnmergeable }

// Same implements Edit.
func (Stale) Same(before, after []byte, room tree.Room) bool { return Equal(before, after, room) }

// Repeatable implements Edit.
func (Stale) Repeatable() bool { return false }

// Rebased is a Partial as an edit of the document as it is: under a rule that transforms, the document is written whole.
type Rebased struct{ *Partial }

// Apply implements Edit.
func (r Rebased) Apply(cur doc.Revision, _ *edit.Inputs) (Draft, error) {
	d, err := r.Next(cur)
	d.Part = nil
	return d, err
}

// Same implements Edit.
func (r Rebased) Same(before, after []byte, room tree.Room) bool {
	return r.Part.Same(before, after, room)
}

// Repeatable implements Edit.
func (r Rebased) Repeatable() bool { return false }
