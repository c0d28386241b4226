// Package mark makes, reads and inserts the marks that writes leave in a document: a field with the ids of the last writes, each
// with the revision that the write replaced. After a lost answer, optimist finds the write's mark, or the mark of another write
// that replaced the same revision.
//
// A missing mark proves nothing: the list is short, and writers that don't use optimist may drop marks.
package mark

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"math/rand/v2"
	"strconv"

	"github.com/tidwall/gjson"

	"optimist/internal/doc"
	"optimist/internal/stamp"
)

// Most is how many marks a document keeps: those of its last writes. They take about 30 bytes each.
const Most = 16

// Mark is what one write leaves. As text it is
//
//	<id>-<document>-<_seq_no>-<_primary_term>   in the place of that revision
//	<id>-<document>-new                         where there was no document
//	<id>-<document>                             in the place of whatever was there
//
// with id and document as ten digits each to the base of 32.
type Mark struct {
	ID stamp.ID
	// Document is the digest of the document, and of the incarnation of its index: a copy of a document holds marks, too, and its numbers are
	// another shard's. 0: not known.
	Document stamp.ID
	Over     doc.Numbers
	New      bool
}

// NewID makes an id that no other write has.
func NewID() stamp.ID { return stamp.IDOf(rand.Uint64()) } //nolint:gosec // it has to differ from others, not to be hard to guess

// IDOf is the id of the writes on behalf of a request that may be repeated, of which text is all that matters.
func IDOf(text string) stamp.ID {
	sum := sha256.Sum256([]byte(text))
	return stamp.IDOf(binary.BigEndian.Uint64(sum[:8]))
}

// append appends the mark as JSON.
func (m Mark) append(dst []byte) []byte {
	dst = m.ID.Append(append(dst, '"'))
	dst = m.Document.Append(append(dst, '-'))
	switch {
	case m.New:
		dst = append(dst, "-new"...)
	case m.Over.Known():
		dst = strconv.AppendInt(append(dst, '-'), m.Over.SeqNo, 10)
		dst = strconv.AppendInt(append(dst, '-'), m.Over.PrimaryTerm, 10)
	}
	return append(dst, '"')
}

// parse reads what append writes, without the quotes.
func parse(text []byte) (m Mark, ok bool) {
	parts := bytes.Split(text, []byte("-"))
	if len(parts) < 2 || len(parts) > 4 {
		return m, false
	}
	var ok1, ok2 bool
	m.ID, ok1 = stamp.ParseID(parts[0])
	m.Document, ok2 = stamp.ParseID(parts[1])
	if !ok1 || !ok2 || m.ID == 0 {
		return Mark{}, false
	}
	switch len(parts) {
	case 3:
		m.New = string(parts[2]) == "new"
		return m, m.New
	case 4:
		seq, err1 := strconv.ParseInt(string(parts[2]), 10, 64)
		term, err2 := strconv.ParseInt(string(parts[3]), 10, 64)
		m.Over = doc.Numbers{SeqNo: seq, PrimaryTerm: term}
		return m, err1 == nil && err2 == nil && seq >= 0 && m.Over.Known()
	}
	return m, true
}

// Trail is a document's marks, the newest last.
type Trail []Mark

// With is the trail that a write leaves after t. t stays as it is.
func (t Trail) With(m Mark) Trail {
	t = t[max(len(t)-Most+1, 0):]
	return append(append(make(Trail, 0, len(t)+1), t...), m)
}

// Find is where the first of the writes stands in the trail that has left a mark there, or -1.
func (t Trail) Find(writes []Mark) int {
	for _, w := range writes {
		for at, m := range t {
			if m.ID == w.ID {
				return at
			}
		}
	}
	return -1
}

// Excludes reports whether the trail proves that none of the writes was applied, nor can be any more: each was to take the place of a
// revision that another write has taken. A revision is replaced once.
func (t Trail) Excludes(writes []Mark) bool {
	for _, w := range writes {
		if w.Document == 0 || !w.Over.Known() || !t.replaced(w) {
			return false
		}
	}
	return t.Find(writes) < 0
}

func (t Trail) replaced(w Mark) bool {
	for _, m := range t {
		if m.Document == w.Document && m.Over == w.Over && m.ID != w.ID {
			return true
		}
	}
	return false
}

// Take takes the trail out of a document, a JSON object, with everything under the field. Every other byte stays as it is. A text that is
// no object stays unchanged; entries that are no marks are left out.
func Take(document []byte, field string) (rest []byte, t Trail) {
	rest, taken, ok := stamp.Take(document, field)
	if !ok || taken.Value == nil {
		return document, nil
	}
	gjson.ParseBytes(taken.Value).ForEach(func(_, v gjson.Result) bool {
		if m, ok := parse([]byte(v.Str)); ok && v.Type == gjson.String {
			t = append(t, m)
		}
		return true
	})
	return rest, t[max(len(t)-Most, 0):]
}

// Drop is text without what stands under the field in the objects that are members of these names. All other bytes stay as they are.
func Drop(text []byte, field string, names ...string) []byte {
	for _, name := range names {
		if rest, t, ok := stamp.TakeIn(text, name, field); ok && t.Value != nil {
			text = rest
		}
	}
	return text
}

// Put is the document with the trail as its last member; it replaces everything under the field. If the text is no JSON object, it stays
// as it is, and ok is false.
func Put(document []byte, field string, t Trail) (out []byte, ok bool) {
	value := append(make([]byte, 0, 2+48*len(t)), '[')
	for i, m := range t {
		if i > 0 {
			value = append(value, ',')
		}
		value = m.append(value)
	}
	return stamp.PutValue(nil, document, field, append(value, ']'))
}
