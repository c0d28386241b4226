package watch

import (
	"math/rand/v2"

	"optimist/internal/budget"
	"optimist/internal/catalog"
	"optimist/internal/obs"
	"optimist/internal/outcome"
	"optimist/internal/session"
	"optimist/internal/stamp"
	"optimist/internal/wire"
)

// maxStamp is more than a stamp takes with its field.
const maxStamp = 256

// stamp has the document stamped, if its rule asks for that.
func (rd *Reading) stamp(d *Document) {
	if d.stamper == nil || !d.whole {
		return
	}
	ix, known := rd.indexOf(d)
	switch {
	case !d.Numbered:
		rd.stamps.skip(outcome.ReasonSeqNo)
	case !known:
		rd.stamps.skip(outcome.ReasonMetadata)
	case int64(len(d.Source)) > rd.w.MaxBody-maxStamp: // it couldn't be taken out of a write of it
		rd.stamps.skip(outcome.ReasonTooLarge)
	case rd.w.Sessions.Dropped(rd.client.Session.Credentials(), d.Ref.Index, rd.epochOf(d.Ref.Index)):
		// the numbers are of an earlier incarnation of the index
		rd.stamps.skip(session.ReasonIndex.String())
	case !rd.put(d, &ix):
		rd.stamps.skip(outcome.ReasonFormat)
	}
}

// put puts the stamp into the document, if there is memory for it. It reports false where that is no JSON object.
func (rd *Reading) put(d *Document, ix *catalog.Index) bool {
	in := *ix
	if d.hit {
		in.Routing = ""
	}
	ref := in.Ref(d.Ref.Routing, d.Ref.ID)
	st := stamp.Stamp{Numbers: d.Numbers, Document: stamp.DocumentOf(ix.UUID, ref.Routing, ref.ID)}
	if !d.stamper.FailConflict {
		st.Copy = stamp.IDOf(rand.Uint64()) //nolint:gosec // it has to differ from others, not to be hard to guess
		if d.stale && d.stamper.FromStamp { // only a write from this copy has it as its base
			c := session.Copy{Numbers: d.Numbers, Token: uint64(st.Copy), Served: true}
			rd.w.Sessions.Read(rd.client.Session.Holding(c), ref, d.Revision, rd.epochOf(ref.Index))
		}
	}
	// Twice: in its edit, and in the answer that is put together.
	if budget.Of(rd.r.Context()).Take(2*int64(len(d.Source)+maxStamp)) != nil {
		rd.stamps.skip(outcome.ReasonTooLarge)
		return true
	}
	source, ok := stamp.Put(make([]byte, 0, len(d.Source)+maxStamp), d.Source, d.stamper.Stamp, st)
	if ok {
		rd.stamps.edits = append(rd.stamps.edits, edit{d.from, d.from + len(d.Source), source})
	}
	return ok
}

// indexOf tells which index it is that the document is in.
func (rd *Reading) indexOf(d *Document) (ix catalog.Index, known bool) {
	name := string(d.Index)
	if d.name != "" {
		ix, known = rd.learn(d.name)
		if known && ix.Exists() && (name == "" || ix.Name == name) {
			return ix, true
		}
	}
	if name == "" {
		return ix, false
	}
	ix, err := rd.w.Catalog.LearnFound(rd.r.Context(), rd.asker(), name)
	return ix, err == nil && ix.Exists() && ix.Name == name
}

// StampField is the field of an answer that says that a whole document in it has no stamp, although a rule stamps it.
const StampField = "Optimist-Stamp"

// stamps are those that go into an answer. Whatever a document has under the field itself goes.
type stamps struct {
	edits  []edit
	reason string // why a document that should have a stamp has none; "": all have one
}

// edit replaces bytes of an answer.
type edit struct {
	from, to int
	with     []byte
}

// skip notes that a document has no stamp, and why.
func (s *stamps) skip(reason string) { s.reason = reason }

// report adds what has no stamp to an answer's fields.
func (s *stamps) report(m *obs.Metrics, fields []wire.Field) []wire.Field {
	if s.reason == "" {
		return fields
	}
	m.Unstamped.Inc(s.reason)
	return append(fields, wire.Field{Name: []byte(StampField), Value: []byte("none;reason=" + s.reason)})
}

// into is the answer with the stamps in it.
func (s *stamps) into(answer []byte) []byte {
	if len(s.edits) == 0 {
		return answer
	}
	size := len(answer)
	for _, e := range s.edits {
		size += len(e.with) - (e.to - e.from)
	}
	out, from := make([]byte, 0, size), 0
	for _, e := range s.edits {
		out = append(append(out, answer[from:e.from]...), e.with...)
		from = e.to
	}
	return append(out, answer[from:]...)
}
