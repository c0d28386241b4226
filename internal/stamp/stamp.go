// Package stamp makes, reads, inserts and removes the field by which a document carries its revision. An application that writes
// back the whole document names its base without knowing.
//
// A stamp isn't signed. A client can invent one, and so name numbers for the guard. If this optimist has seen that revision with the
// same credentials, the revision becomes the base of the merge. The engine compares the numbers, and a client may send any
// numbers anyway. So a wrong, old or forged stamp causes a 409, or a merge from a revision that its client may read, and nothing
// else.
package stamp

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"optimist/internal/doc"
)

// Stamp is the value of the field. As text it is
//
//	<_seq_no>-<_primary_term>-<document>[-<copy>]
//
// with Document and Copy as ten digits each to the base of 32 (0-9, a-v): 7-1-4d0k2p9c7a-r81u3e5tq0.
type Stamp struct {
	doc.Numbers
	// Document is a short digest of which document it is, and of the incarnation of its index: see DocumentOf.
	Document ID
	// Copy tells the served copy from all others, also of the same revision; 0: it doesn't. So earlier writes from this copy can be told
	// from writes from another one.
	Copy ID
}

// ID is a number of IDBits bits.
type ID uint64

// IDBits are enough that two of the documents, or copies, which a client holds hardly ever have the same one.
const IDBits = 50

const (
	idMask   = 1<<IDBits - 1
	idDigits = IDBits / 5
	digits   = "0123456789abcdefghijklmnopqrstuv"
)

// IDOf makes an ID of a random number. It is never 0.
func IDOf(random uint64) ID { return ID(random&idMask | 1) }

// DocumentOf is the digest of a document: its id, the routing that its requests need (both decoded), and the unique identifier of its
// index; another index of the same name has another one.
func DocumentOf(uuid, routing, id string) ID {
	buf := make([]byte, 0, 160)
	for _, part := range [3]string{uuid, routing, id} {
		buf = binary.AppendUvarint(buf, uint64(len(part)))
		buf = append(buf, part...)
	}
	sum := sha256.Sum256(buf)
	return ID(binary.BigEndian.Uint64(sum[:8]) & idMask)
}

// Append appends the stamp as text.
func (s Stamp) Append(dst []byte) []byte {
	dst = strconv.AppendInt(dst, s.SeqNo, 10)
	dst = append(dst, '-')
	dst = strconv.AppendInt(dst, s.PrimaryTerm, 10)
	dst = append(dst, '-')
	dst = s.Document.Append(dst)
	if s.Copy != 0 {
		dst = append(dst, '-')
		dst = s.Copy.Append(dst)
	}
	return dst
}

// Append appends the ID's digits.
func (id ID) Append(dst []byte) []byte {
	for shift := IDBits - 5; shift >= 0; shift -= 5 {
		dst = append(dst, digits[id>>shift&31])
	}
	return dst
}

// Parse reads what Append writes, and nothing else.
func Parse(text []byte) (s Stamp, ok bool) {
	var term, document, rest []byte
	seq, rest := cut(text)
	term, rest = cut(rest)
	document, rest = cut(rest)
	var ok1, ok2, ok3 bool
	s.SeqNo, ok1 = number(seq)
	s.PrimaryTerm, ok2 = number(term)
	s.Document, ok3 = ParseID(document)
	if !ok1 || !ok2 || !ok3 || s.PrimaryTerm == 0 {
		return Stamp{}, false
	}
	if rest == nil {
		return s, true
	}
	if s.Copy, ok = ParseID(rest); !ok || s.Copy == 0 {
		return Stamp{}, false
	}
	return s, true
}

// cut takes what stands before the first dash; rest is nil where there is none.
func cut(b []byte) (first, rest []byte) {
	for i, c := range b {
		if c == '-' {
			return b[:i], b[i+1:]
		}
	}
	return b, nil
}

// number reads a number as the engine writes it: no sign, no zeros before it.
func number(b []byte) (int64, bool) {
	if len(b) == 0 || len(b) > 19 || b[0] == '0' && len(b) > 1 {
		return 0, false
	}
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(string(b), 10, 64)
	return n, err == nil
}

// ParseID reads an ID's digits.
func ParseID(b []byte) (id ID, ok bool) {
	if len(b) != idDigits {
		return 0, false
	}
	for _, c := range b {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'v':
			c -= 'a' - 10
		default:
			return 0, false
		}
		id = id<<5 | ID(c)
	}
	return id, true
}
