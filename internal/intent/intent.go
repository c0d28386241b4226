// Package intent says what clients want of documents, as immutable values: an Intent turns a revision into the draft that
// replaces it.
//
// It does no I/O, and knows neither requests nor answers. The caller of Next decides whether the draft may be written, and under
// which guard: a draft may only ever replace the revision from which it was made.
package intent

import (
	"errors"
	"fmt"

	"optimist/internal/doc"
	"optimist/rewrite/merge"
)

// Intent is what a client wants of one document. Its methods are pure functions, and safe for concurrent use.
type Intent interface {
	// Next returns what shall stand in place of cur. The caller calls it again after each conflict, with a newer revision. If there is no
	// document, cur has neither numbers nor a source. In a write that several changes share, cur has a source and no numbers: it is the
	// draft of the change before. Errors are those of this package, and of packages merge and edit. After ErrUnread the caller calls again
	// with the source of the same revision. After other errors, a call with the same cur is of no use.
	Next(cur doc.Revision) (Draft, error)
	// Merges reports whether Next(cur) needs a base to join the client's change with changes that the client hasn't seen. The caller asks it
	// before Next. Draft.Merged reports afterwards whether there were such changes.
	Merges(cur doc.Revision) bool
	// Repeatable reports whether the intent may be applied to cur although tried, an earlier draft of it, may have been applied
	// before.
	Repeatable(tried *Draft, cur doc.Revision) bool
}

// Draft is what shall stand in place of a revision.
type Draft struct {
	Body      []byte // the document; nil for a delete
	Part      Part   // the part of Body that is sent, as the `doc` of an _update; nil: all of Body is sent
	Delete    bool
	Unchanged bool // the revision has this content already
	AsSent    bool // Body is what the client sent, in place of what the client has seen
	// From is the document to which an edit was applied, or into which a document was merged. Edited is the edit's result before a rule's
	// transform.
	From, Edited []byte
	// Made is what the client wanted in place of its base, if that was merged into From: a revision that the client hasn't seen. Nil: nothing
	// was merged.
	Made          []byte
	Overwrote     []string // JSON Pointers of others' values that the draft replaces
	OverwroteMore int      // how many there are beyond Overwrote
	Echo          bool     // a change that both sides seem to have made counts once: see merge.Result
	Untransformed bool     // the rule's transform couldn't be applied
}

// mergedDraft is the draft of a client that wanted made, after a merge into from.
func mergedDraft(r *merge.Result, made, from []byte) Draft {
	return Draft{Body: r.Doc, Unchanged: !r.Changed, From: from, Made: made,
		Overwrote: r.Overwritten, OverwroteMore: r.OverwrittenMore, Echo: r.Echo}
}

// Merged reports whether the draft takes the place of changes of others that its client hasn't seen.
func (d *Draft) Merged() bool { return d.Made != nil || len(d.Overwrote) > 0 }

var (
	// ErrUnread reports that cur's source is needed, and isn't there: only the revision's numbers are known.
	ErrUnread = errors.New("the revision has to be read first")
	// ErrUnmergeable reports that others have changed the document, and that the client's view isn't known.
	ErrUnmergeable = errors.New("the document changed since the revision that the write is based on")
	// ErrDeleted reports a document that was deleted since the client saw it.
	ErrDeleted = errors.New("the document was deleted since the revision that the write is based on")
	// ErrGone reports a delete of a document that isn't there any more.
	ErrGone = errors.New("the document is gone already")
	// ErrExists reports a document where the client asked for none.
	ErrExists = errors.New("there is a document")
)

// MovedError reports that the document isn't at the revision that the client's own guard names.
type MovedError struct{ Guard, Current doc.Numbers }

// Error is the engine's text for it.
func (e *MovedError) Error() string {
	reason := fmt.Sprintf("required seqNo [%d], primary term [%d]. ", e.Guard.SeqNo, e.Guard.PrimaryTerm)
	if !e.Current.Known() {
		return reason + "but no document was found"
	}
	return reason + fmt.Sprintf("current document has seqNo [%d] and primary term [%d]", e.Current.SeqNo, e.Current.PrimaryTerm)
}

// ApplyError reports an edit, or a rule's transform, that can't be applied to the document.
type ApplyError struct {
	What string // "the patch"
	Err  error
}

// Error names what can't be applied.
func (e *ApplyError) Error() string { return e.What + ": " + e.Err.Error() }

// Unwrap gives the cause.
func (e *ApplyError) Unwrap() error { return e.Err }

// absent reports whether cur is a document that isn't there.
func absent(cur doc.Revision) bool { return !cur.Known() && cur.Source == nil }

// unread reports whether cur's source is there, but not known.
func unread(cur doc.Revision) bool { return cur.Known() && cur.Source == nil }
