package write

import (
	"context"
	"errors"

	"optimist/internal/base"
	"optimist/internal/doc"
	"optimist/internal/outcome"
	"optimist/internal/respond"
)

// deleteNothing answers a delete with If-None-Match: *, which has nothing to delete. It only looks whether there is a document.
func (s *Service) deleteNothing(ctx context.Context, c *change) error {
	if err := s.bases.Locate(ctx, &c.Search); err != nil {
		return err
	}
	if c.InOthersStream() {
		return s.pass(ctx, c, outcome.ReasonDataStream)
	}
	c.Outcome.Kind = outcome.Guarded
	s.events.Fetch.Call(c.Rule.Name)
	rev, err := s.bases.Current(ctx, &c.Search)
	missing := errors.Is(err, doc.ErrMissing)
	switch {
	case err != nil && !missing && !rev.Known():
		return err
	case s.barAlone(ctx, c, &rev, nil):
	case errors.Is(err, base.ErrNoIndex):
		c.answer = respond.NoSuchIndex(c.Name, "")
	case missing:
		c.answer = s.notFound(c, neverThere)
	default:
		c.answer = respond.Exists(c.Doc.Index, c.Doc.ID, rev.Version)
		c.Outcome.Kind = outcome.Refused
	}
	return nil
}

// deleteUnseen deals with a delete by a client that has found no document. The delete is passed: the engine says not_found, or deletes a
// document that came since. Under enforced locks, and with a journal, nothing goes unguarded. Then a document that came since is the
// delete's base, and done is false.
func (s *Service) deleteUnseen(ctx context.Context, c *change) (done bool, err error) {
	if !s.gate.Enforces(c.Rule) && c.req.Journal == nil {
		return true, s.pass(ctx, c, c.Outcome.Reason)
	}
	kind := c.Outcome.Base
	if err := s.bases.FetchBase(ctx, &c.Search); err != nil {
		return false, err
	}
	c.Outcome.Base = kind
	if c.Base.Numbers.Known() {
		return false, nil
	}
	if !s.barAlone(ctx, c, &doc.Revision{}, nil) {
		c.Outcome.Kind, c.answer = outcome.Guarded, s.notFound(c, neverThere)
	}
	return true, nil
}

// neverThere is the revision that the engine names if it never had the document.
var neverThere = doc.Revision{Version: 1}

// notFound is the answer to a delete that finds no document. The engine names a revision in it.
func (s *Service) notFound(c *change, rev doc.Revision) *respond.Answer {
	return c.filtered(respond.Written(s.documentOf(c), rev, respond.NotFound))
}
