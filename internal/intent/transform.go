package intent

import (
	"bytes"
	"errors"

	"optimist/internal/doc"
	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// Transformed is an intent under a rule with a transform. At every attempt, the transform is applied to the document that would be
// written: to the sent one if it goes as it is, else to the merge's result. A merge that changes nothing is not transformed: it stays the
// engine's noop.
type Transformed struct {
	Intent
	Rule        string // its name, for errors
	Transformer Transformer
	Source      InputSource
}

// Transformer is a rule's transform; a *edit.Transformer is one.
type Transformer interface {
	Apply(candidate []byte, in *edit.Inputs) ([]byte, error)
	// ReadsCurrent reports whether it reads the stored document.
	ReadsCurrent() bool
	// Repeatable reports whether it may be applied twice.
	Repeatable() bool
}

// InputSource knows what steps can refer to.
type InputSource interface {
	// Inputs are for a change of current, which is nil where there is no document.
	Inputs(current []byte) *edit.Inputs
}

// Next implements Intent.
func (t *Transformed) Next(cur doc.Revision) (Draft, error) {
	if unread(cur) && t.Transformer.ReadsCurrent() {
		return Draft{}, ErrUnread
	}
	d, err := t.Intent.Next(cur)
	if err != nil || d.Unchanged || d.Delete {
		return d, err
	}
	p, isPatch := t.Intent.(*Patch)
	after, err := t.Transformer.Apply(d.Body, t.Source.Inputs(cur.Source))
	switch {
	case err == nil:
	case Unreadable(err) && !isPatch:
		// It goes as it is, and that is said: the engine takes a little more than JSON, or refuses it.
		d.Untransformed = true
		return d, nil
	default:
		return Draft{}, &ApplyError{What: "rule [" + t.Rule + "]", Err: edit.InRule(err)}
	}
	switch {
	case isPatch && p.Idle(cur.Source, after): // the transform took back what the patch did
		d.Body, d.Unchanged = cur.Source, true
	case isPatch:
		d.Body = after
	default:
		d.Body, d.Unchanged = after, cur.Source != nil && !d.AsSent && bytes.Equal(after, cur.Source)
	}
	return d, nil
}

// Repeatable implements Intent.
func (t *Transformed) Repeatable(tried *Draft, cur doc.Revision) bool {
	return t.Transformer.Repeatable() && t.Intent.Repeatable(tried, cur)
}

// Unreadable reports whether an error is that a document can't be looked into.
func Unreadable(err error) bool {
	var syntax *tree.SyntaxError
	return errors.As(err, &syntax) || errors.Is(err, tree.ErrTooDeep)
}
