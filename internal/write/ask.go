package write

import (
	"context"
	"net/http"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/outbound"
	"optimist/internal/respond"
	"optimist/internal/uri"
)

// named is the document as the engine's answers name it.
func (s *Service) named(c *change) respond.Document {
	d := respond.Document{Index: c.Doc.Index, Type: c.Doc.Type, ID: c.Doc.ID}
	if d.Type == "" && s.engine.Typed() {
		d.Type = "_doc"
	}
	return d
}

// askMissing is the answer to a patch of a document that isn't there: the engine's own, to an _update of it, with an index's id
// and a shard's number that only the engine knows. It changes nothing. Where the document is there by now, or the engine can't
// say, the answer is made here.
func (s *Service) askMissing(ctx context.Context, c *change, noIndex bool) *respond.Answer {
	if noIndex && c.Op.Kind == api.Patch {
		return respond.NoSuchIndex(c.Name, "")
	}
	if res := s.askUpdate(ctx, c, nil, http.StatusNotFound); res != nil {
		if gjson.GetBytes(res.Body, "error.type").Str == "document_missing_exception" {
			return res
		}
		res.Release()
	}
	return respond.ErrorIn(c.Doc.Index, http.StatusNotFound, "document_missing_exception", "["+c.Doc.ID+"]: document missing")
}

// askNoop is the noop, with what of the document a patch is to show, of a client that wants its answer in a form of its own
// (filter_path, pretty, another format than JSON): the engine's to an update that changes nothing, under the guard of the
// revision. It is nil where the plain form is wanted, which is made here, and where the engine gives none now: the plain form is
// then better than no answer.
func (s *Service) askNoop(ctx context.Context, c *change, n doc.Numbers) *respond.Answer {
	form := uri.Only(nil, c.out.Query, "filter_path", "pretty", "format", "human")
	if len(form) == 0 && c.Plain {
		return nil
	}
	params := append(outbound.AppendGuard(nil, n), '&')
	params = append(params, form...)
	if p := c.patch; p != nil && p.Shows.Shows() {
		if p.ShowsByBody {
			params = append(params, "&_source=true"...)
		} else {
			params = append(append(params, '&'), uri.Only(nil, c.Op.Query, respond.SourceParams...)...)
		}
	}
	return s.askUpdate(ctx, c, params, http.StatusOK)
}

// askUpdate asks the engine for its answer to an update of the change's document that changes nothing; nil is one of another
// status than want.
func (s *Service) askUpdate(ctx context.Context, c *change, params []byte, want int) *respond.Answer {
	r := c.out.Update([]byte(`{"doc":{}}`), c.Caller.Params, params)
	r.Repeatable = want == http.StatusOK
	res, err := s.questions.exchange(ctx, r)
	if err != nil {
		return nil
	}
	if res.Status != want {
		res.Release()
		return nil
	}
	return respond.FromEngine(res)
}
