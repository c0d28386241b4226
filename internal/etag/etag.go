// Package etag is the entity tags that name revisions: in answers to reads and writes of a document, and in If-Match.
//
// It decides nothing: its callers find out whether a tag's revision is known, or current.
package etag

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strconv"

	"optimist/internal/doc"
	"optimist/internal/session"
	"optimist/internal/stamp"
	"optimist/internal/wire"
)

// Tag is an entity tag of optimist's: "<seq_no>-<primary_term>" stands for the revision of these numbers. If a write stored another
// document than the sent one, its answer has "<seq_no>-<primary_term>-<copy>": the numbers of the base, and a part that no other client
// knows. This tag stands for the sent body. A client that has read the base has its plain tag, and means the base.
type Tag struct {
	doc.Numbers
	Copy stamp.ID
}

// Append appends the tag, quoted.
func (t Tag) Append(dst []byte) []byte {
	dst = appendPlain(dst, t.Numbers)
	if t.Copy != 0 {
		dst = append(dst[:len(dst)-1], '-')
		dst = append(t.Copy.Append(dst), '"')
	}
	return dst
}

// OfCopy is a tag with these numbers that stands for something that nobody else was told.
func OfCopy(n doc.Numbers) Tag {
	return Tag{Numbers: n, Copy: stamp.IDOf(rand.Uint64())} //nolint:gosec // it has to differ from others, not to be hard to guess
}

// AsCopy is what the tag stands for.
func (t Tag) AsCopy() session.Copy {
	return session.Copy{Numbers: t.Numbers, Token: uint64(t.Copy), Served: t.Copy == 0}
}

// Parse reads a tag, weak or not: what stands between may have weakened it, by compressing the body.
func Parse(b []byte) (t Tag, ok bool) {
	b = bytes.TrimPrefix(bytes.Trim(b, " \t"), []byte("W/"))
	if t.Numbers, ok = parsePlain(b); ok {
		return t, true
	}
	i := bytes.LastIndexByte(b, '-')
	if i < 0 || b[len(b)-1] != '"' {
		return t, false
	}
	if t.Numbers, ok = parsePlain(append(b[:i:i], '"')); !ok {
		return t, false
	}
	t.Copy, ok = stamp.ParseID(b[i+1 : len(b)-1])
	return t, ok && t.Copy != 0
}

// ErrBad reports an If-Match that isn't * or one or more of the tags that optimist gives.
var ErrBad = errors.New(`If-Match must be *, or ETags as given with reads and writes of the document: "<seq_no>-<primary_term>"`)

// Match is what an If-Match asks for (RFC 9110, section 13.1.1).
type Match struct {
	Any  bool  // whatever is there
	Tag  Tag   // the only one, if More is nil
	More []Tag // all of them, where there are several
}

// ReadMatch reads a request's If-Match. found is false where it has none.
func ReadMatch(fields []wire.Field) (m Match, found bool, err error) {
	for i := range fields {
		f := &fields[i]
		if !wire.EqualFold(f.Name, "if-match") {
			continue
		}
		found = true
		for member := range bytes.SplitSeq(f.Value, []byte(",")) {
			member = bytes.Trim(member, " \t")
			t, ok := Parse(member)
			switch {
			case string(member) == "*":
				m.Any = true
			case ok && !m.Tag.Known():
				m.Tag = t
			case ok && m.More == nil:
				m.More = []Tag{m.Tag, t}
			case ok:
				m.More = append(m.More, t)
			case len(member) > 0:
				return m, true, ErrBad
			}
		}
	}
	if found && m.Any == m.Tag.Known() {
		return m, true, ErrBad
	}
	return m, found, nil
}

// appendPlain appends the entity tag that stands for a revision.
func appendPlain(dst []byte, n doc.Numbers) []byte {
	dst = append(dst, '"')
	dst = strconv.AppendInt(dst, n.SeqNo, 10)
	dst = append(dst, '-')
	dst = strconv.AppendInt(dst, n.PrimaryTerm, 10)
	return append(dst, '"')
}

// parsePlain reads what appendPlain writes.
func parsePlain(b []byte) (n doc.Numbers, ok bool) {
	b = bytes.TrimSpace(b)
	if len(b) < 5 || b[0] != '"' || b[len(b)-1] != '"' {
		return n, false
	}
	seq, term, found := bytes.Cut(b[1:len(b)-1], []byte("-"))
	if !found {
		return n, false
	}
	var err1, err2 error
	n.SeqNo, err1 = strconv.ParseInt(string(seq), 10, 64)
	n.PrimaryTerm, err2 = strconv.ParseInt(string(term), 10, 64)
	return n, err1 == nil && err2 == nil && n.SeqNo >= 0 && n.PrimaryTerm > 0
}
