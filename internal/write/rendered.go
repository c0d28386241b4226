package write

import (
	"bytes"
	"context"
	"net/http"
	"strconv"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/glob"
)

// rendered is the noop, with what of the document a patch is to show, of a client that wants its answer in a form of its own (filter_path,
// pretty, another format than JSON): the engine's to an update that changes nothing, under the guard of the revision. It is nil where the
// plain form is wanted, which is made here, and where the engine gives none now: the plain form is then better than no answer.
func (s *Service) rendered(ctx context.Context, c *change, n doc.Numbers) *Answer {
	form := api.Only(nil, c.query, "filter_path", "pretty", "format", "human")
	if len(form) == 0 && c.plain || c.req.account != nil {
		return nil
	}
	if p := c.patch; p != nil && p.said && p.asked.asked {
		form = append(form, "&_source=true"...)
	} else if p != nil && !p.said && p.asked.asked {
		form = append(append(form, '&'), api.Only(nil, c.req.Op.Query, shownParams...)...)
	}
	r := c.request([]byte(`{"doc":{}}`), doc.Numbers{}, false)
	r.Method, r.Repeatable = http.MethodPost, true
	r.Target = c.updateTarget()
	sep := byte('?')
	if bytes.IndexByte(r.Target, sep) >= 0 {
		sep = '&'
	}
	r.Target = strconv.AppendInt(append(append(r.Target, sep), "if_seq_no="...), n.SeqNo, 10)
	r.Target = strconv.AppendInt(append(r.Target, "&if_primary_term="...), n.PrimaryTerm, 10)
	if len(form) > 0 {
		r.Target = append(append(r.Target, '&'), form...)
	}
	res, err := s.exchange(ctx, r)
	switch {
	case err != nil:
		return nil
	case res.Status != http.StatusOK:
		res.Release()
		return nil
	}
	return passOn(res)
}

// kept takes out of an answer that is made here what the client's filter_path doesn't want.
func (c *change) kept(a *Answer) *Answer {
	raw, said := api.Param(c.query, "filter_path")
	if v, err := api.DecodeValue(nil, raw); said && len(v) > 0 && err == nil {
		filter := glob.ParseFilter(string(v))
		a.Body = filter.Append(nil, a.Body)
	}
	return a
}
