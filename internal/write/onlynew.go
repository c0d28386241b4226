package write

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
)

// If-None-Match: * asks that a change be made only where there is no document (RFC 9110, section 13.1.2). A PUT becomes a create. A PATCH
// or an _update makes the document where it may (upsert), by a create, too, so that nobody can come in between; a DELETE finds nothing
// that it could delete. Where there is a document, all of them are the engine's 409 of a create.

// readOnlyNew finds out whether the change asks for no document. Other values of If-None-Match aren't looked at: the engine doesn't
// either. Together with a guard that asks for a document it can't be met; the engine itself says that of a PUT.
func (c *change) readOnlyNew() error {
	switch c.req.Op.Kind {
	case api.Index, api.Update, api.Patch, api.Delete:
	default:
		return nil
	}
	if !c.req.Rule.IfMatch || string(bytes.Trim(field(c.req.Fields, "if-none-match"), " \t")) != "*" {
		return nil
	}
	c.only = true
	_, both, _ := c.ifMatch()
	if !both && c.req.Op.Kind != api.Index {
		_, both = explicit(c.req.Op.Query)
	}
	if both {
		return ErrContradiction
	}
	return nil
}

// exists is the engine's refusal to create a document that is there.
func (c *change) exists(version int64) *Answer {
	return conflict(c.doc, "document already exists (current version ["+strconv.FormatInt(version, 10)+"])")
}

// deleteNone answers a delete that asks for no document: there is nothing that it could delete, so that a look is enough.
func (s *Service) deleteNone(ctx context.Context, c *change) error {
	if err := s.describe(ctx, c); err != nil {
		return err
	}
	if c.index.DataStream != "" && c.req.Rule.AnyIndex {
		return s.pass(ctx, c, ReasonDataStream)
	}
	c.outcome.Kind = Guarded
	s.events.Fetch(c.req.Rule.Name)
	rev, err := s.current(ctx, c)
	switch {
	case errors.Is(err, doc.ErrMissing) && c.noIndex:
		c.answer = noSuchIndex(c.name, "")
	case errors.Is(err, doc.ErrMissing):
		c.answer = c.kept(notFound(s.shaped(c.doc), doc.Revision{Version: 1})) // as the engine says of what it never had
	case err != nil && !rev.Known():
		return err
	default:
		c.answer = c.exists(rev.Version)
	}
	return nil
}

// updateOnlyNew performs an _update that asks for no document: the engine would carry it out on the document of who is faster, so it is
// made here, as a patch is.
func (s *Service) updateOnlyNew(ctx context.Context, c *change) error {
	p := c.readPartial()
	if p == nil {
		c.outcome.Kind = Guarded
		c.answer = refuse(http.StatusBadRequest, "illegal_argument_exception", "["+c.doc.ID+"]: If-None-Match: * can't be kept with this "+
			"_update: it has to be JSON, with a doc or a script, and without scripted_upsert. A PUT with If-None-Match: * makes a document")
		return nil
	}
	c.patch, c.path, c.query = p, c.placeOf(), api.Without(nil, c.query, patchParams...)
	if c.readPatchQuery() {
		p.upserting()
	}
	return s.edits(ctx, c)
}

// unrun reads the members of an _update's body that concern its script, which isn't run where there is no document, unless it asks for
// that.
func (p *patch) unrun(name string, v gjson.Result) bool {
	switch name {
	case "script":
		if p.edit != nil {
			return false // no engine takes both
		}
		p.edit, p.incoming = partial("{}"), []byte("{}")
		return true
	case "scripted_upsert":
		return v.Type == gjson.False
	}
	return false
}
