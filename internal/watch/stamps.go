package watch

import (
	"optimist/internal/obs"
	"optimist/internal/wire"
)

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
