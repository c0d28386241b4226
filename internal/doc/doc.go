// Package doc holds the words that every layer shares: which document, which revision of it, and the errors that stand for a
// decision.
//
// It promises nothing about the origin of a revision, or whether the revision is still the current one.
package doc

import (
	"cmp"
	"errors"
	"strings"
)

// Ref names one document. It is comparable and can be a map key. Index and ID are decoded (no percent escapes);
// Routing is empty when the request gave none, which the engine takes as the ID.
type Ref struct {
	Index   string
	Routing string
	ID      string
}

// Clone copies a reference whose strings may be in a buffer that is used again. It allocates once.
func (r Ref) Clone() Ref {
	s := strings.Join([]string{r.Index, r.Routing, r.ID}, "")
	i, j := len(r.Index), len(r.Index)+len(r.Routing)
	return Ref{Index: s[:i], Routing: s[i:j], ID: s[j:]}
}

// Numbers are the engine's numbers of one revision, as in if_seq_no and if_primary_term. They are meaningful only
// within one incarnation of an index: an index that was deleted and made anew counts from 0 again and accepts old numbers.
// Primary terms start at 1, so the zero value is never a revision.
type Numbers struct {
	SeqNo       int64
	PrimaryTerm int64
}

// Known reports whether n are a revision's numbers rather than the zero value.
func (n Numbers) Known() bool { return n.PrimaryTerm > 0 }

// Compare says which of two revisions of one document is older: below 0 is n.
func (n Numbers) Compare(o Numbers) int {
	return cmp.Or(cmp.Compare(n.PrimaryTerm, o.PrimaryTerm), cmp.Compare(n.SeqNo, o.SeqNo))
}

// Revision is one state of a document. Source is immutable and may be shared: nobody may write to it. It is nil where
// only the numbers are known. Version is the engine's _version, 0 where unknown.
type Revision struct {
	Numbers
	Version int64
	Source  []byte
}

var (
	// ErrConflict reports that the document changed after it was read. Nothing was written.
	ErrConflict = errors.New("version conflict")

	// ErrMissing reports that there is no such document. Nothing was written.
	ErrMissing = errors.New("document missing")

	// ErrNotWritten reports that the engine couldn't be asked what had to be known before the write. Nothing was written.
	ErrNotWritten = errors.New("nothing was written")
)
