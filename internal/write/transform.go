package write

import (
	"bytes"
	"context"
	"errors"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/wire"
	"optimist/rewrite"
)

// transform is the rule's, if it is applied to this write: a PUT or a POST of a document, a create, a PATCH, an _update of a part (see
// transformUpdate). A delete has nothing to transform, and of a document that can't be read, or may not be changed, the outcome says that
// it wasn't.
//
// It is applied at every attempt to what would be written: to what was sent where that goes as it is, else to what the merge made of the
// current revision. A merge that changes nothing is not transformed: it stays the engine's noop. In a write of several changes it is
// applied for each of them in their order, to what the one before left.
//
// The client has seen what it sent, not what the transform made of that: its next change counts from what it sent, so that it undoes
// nothing of the transform's, and the numbers in its answer are those of its base. Of a write without a base there are none that would
// conflict: its answer carries the engine's, as where an ingest pipeline changes what is stored.
func (c *change) transform() *rewrite.Transformer {
	t := c.req.Rule.Transform
	if t == nil || c.untransformed {
		return nil
	}
	switch c.req.Op.Kind {
	case api.Index, api.IndexAuto, api.Create, api.Patch:
		return t
	case api.Update:
		if c.patch != nil {
			return t
		}
	}
	return nil
}

// transformed applies the rule's transform to what an attempt would write. current is the document before it, nil where there is none.
// What can't be read as JSON goes as it is, and that is said: the engine takes a little more than JSON, or refuses it.
func (c *change) transformed(r mergeResult, current []byte) mergeResult {
	t := c.transform()
	if t == nil || r.refusal != nil || !r.changed {
		return r
	}
	after, err := c.steps(t, r.doc, c.inputs(current))
	if err == nil {
		r.doc = after
		r.changed = current == nil || c.straightened || !bytes.Equal(after, current)
		c.outcome.Untransformed = false
		return r
	}
	if unreadable(err) && c.patch == nil {
		c.outcome.Untransformed = true
		return r
	}
	return mergeResult{refusal: c.unapplied("the transform of rule ["+c.req.Rule.Name+"]", err)}
}

// unreadable reports whether an error of a transform is that a document can't be looked into.
func unreadable(err error) bool {
	var syntax *rewrite.SyntaxError
	return errors.As(err, &syntax) || errors.Is(err, rewrite.ErrTooDeep)
}

// outgoing is the body of a write that goes without a merge: as it was sent, or what the rule's transform makes of that. A refusal is the
// change's answer.
func (c *change) outgoing() (body []byte, refusal *Answer) {
	if c.req.Rule.Transform == nil {
		return c.req.Body, nil
	}
	t := c.transform()
	if t == nil || !c.json || t.ReadsCurrent() && c.req.Op.Kind == api.Index && !c.only {
		c.outcome.Untransformed = c.req.Op.Kind != api.Delete
		return c.req.Body, nil
	}
	r := c.transformed(mergeResult{doc: c.req.Body, changed: true}, nil)
	return r.doc, r.refusal
}

// prepare finds out how the rule's transform goes with a write that is to be guarded, or, with pass, to be passed.
func (s *Service) prepare(ctx context.Context, c *change, pass bool) (bool, error) {
	if err := s.settleTransform(ctx, c); err != nil || !pass {
		return pass, err
	}
	return s.lookFirst(ctx, c)
}

// settleTransform finds out whether the rule's transform can be applied: not to a body that isn't JSON, nor, where it reads the stored
// document, without reading that as it is.
func (s *Service) settleTransform(ctx context.Context, c *change) error {
	t := c.transform()
	if t == nil {
		return nil
	}
	why := ""
	switch {
	case !c.json:
		why = ReasonFormat
	case !t.ReadsCurrent() || c.base.Kind == session.KindAbsent:
		return nil
	case c.index.Unknown != "":
		why = c.index.Unknown
	case c.index.Partial:
		why = ReasonSource
	case c.index.UUID != "":
		if whole, err := s.whole(ctx, c); err != nil {
			return cantAsk(err)
		} else if !whole {
			why = ReasonFiltered
		}
	}
	if why == "" {
		return nil
	}
	c.untransformed, c.outcome.Untransformed = true, true
	if c.outcome.Reason == "" {
		c.outcome.Reason = why
	}
	return nil
}

// lookFirst deals with a write that would be passed, where the rule's transform reads the stored document: that is fetched, and the write
// guarded by its numbers, or by the client's own. pass says that it is to be passed all the same, untransformed: no guard goes with a
// version of the client's own.
func (s *Service) lookFirst(ctx context.Context, c *change) (pass bool, err error) {
	t := c.transform()
	if t == nil || !t.ReadsCurrent() {
		return true, nil
	}
	n, said := explicit(c.req.Op.Query)
	switch {
	case said && !n.Known():
		return true, nil
	case said:
		c.once, c.guard = true, n
		c.query = api.Without(nil, c.query, "if_seq_no", "if_primary_term")
		return false, nil
	}
	return false, s.fetchBase(ctx, c)
}

// blind reports whether the change can't be made from a revision of which only the numbers are known, because the transform reads it.
func (c *change) blind(cur doc.Revision) bool {
	t := c.transform()
	return t != nil && cur.Known() && cur.Source == nil && t.ReadsCurrent()
}

// inputs are what steps can refer to. current is the document before this change, nil where there is none.
//
// What a PATCH of operations sends is no document: to steps it is as if nothing had been sent.
func (c *change) inputs(current []byte) *rewrite.Inputs {
	op := c.req.Op.Kind
	if op == api.IndexAuto {
		op = api.Index
	}
	in := &rewrite.Inputs{
		Incoming: c.sent, Current: current, Base: c.base.View,
		Index: c.name, ID: c.doc.ID, Routing: c.doc.Routing,
		Op: op.String(), Method: wire.MethodString(c.req.Method), User: rule.User(c.req.Fields),
		Header: c.header, Now: c.now(),
	}
	if c.patch != nil && c.patch.incoming != nil {
		in.Incoming = c.patch.incoming
	}
	if firstByte(in.Incoming) != '{' {
		in.Incoming = nil
	}
	return in
}

func (c *change) header(name string) (value []byte, ok bool) {
	v := field(c.req.Fields, name)
	return v, v != nil
}
