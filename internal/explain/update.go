package explain

import (
	"net/http"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/intent"
	"optimist/internal/jsontext"
	"optimist/internal/respond"
	"optimist/internal/uri"
	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// update is what an _update of a part asks for.
type update struct {
	part   []byte
	first  []byte // is made where there is no document; nil: nothing is
	always bool   // what changes nothing is written, too
}

// readUpdate reads the body of an _update. ok is false where it is more than a part, or can't be read.
func readUpdate(body, query []byte) (u update, ok bool) {
	if !jsontext.Valid(body) {
		return u, false
	}
	in := gjson.ParseBytes(body)
	part, first := in.Get("doc"), in.Get("upsert")
	asUpsert := in.Get("doc_as_upsert").Bool()
	if v, given := uri.Param(query, "doc_as_upsert"); given {
		asUpsert = string(v) != "false"
	}
	if asUpsert {
		first = part
	}
	if u.part = []byte(part.Raw); first.Exists() {
		u.first = []byte(first.Raw)
	}
	u.always = in.Get("detect_noop").Type == gjson.False
	return u, part.IsObject() && !in.Get("script").Exists()
}

// answer is what the engine says to it, with the document at a revision. What it would leave is put into the account.
func (u *update) answer(p *Rehearsal) func(op *api.Op, n doc.Numbers, rev doc.Revision) *respond.Answer {
	return func(op *api.Op, n doc.Numbers, rev doc.Revision) *respond.Answer {
		d := p.Named()
		switch {
		case !rev.Known() && u.first == nil:
			return respond.ErrorIn(d.Index, http.StatusNotFound, "document_missing_exception", "["+d.ID+"]: document missing")
		case !rev.Known():
			p.Account.Document = Document(u.first)
			return p.answer(op, n, rev)
		case n.Known() && rev.Numbers != n:
			return respond.Conflict(d.Index, d.ID, (&intent.MovedError{Guard: n, Current: rev.Numbers}).Error())
		}
		after, err := edit.EngineMerge(rev.Source, u.part, tree.Limits{})
		if err != nil {
			return p.answer(op, n, rev)
		}
		p.Account.Document = Document(after)
		if string(after) == string(rev.Source) && !u.always {
			return respond.Written(d, rev, respond.Noop)
		}
		return p.answer(op, n, rev)
	}
}
