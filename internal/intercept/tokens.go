package intercept

import (
	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/bulk"
	"optimist/internal/fencing"
	"optimist/internal/uri"
)

// takeTokens reads the tokens of the locks that a write names, and takes them out of its query, which no engine would take. It reports
// true where they are none: the client has been told. Signed requests are left as they are.
func (r *request) takeTokens() (refused bool) {
	r.tokens, r.journal = nil, nil
	op, h := r.Op(), r.Head()
	if !writes(op.Kind) {
		return false
	}
	_, inQuery := uri.Param(op.Query, fencing.Param)
	if inQuery && (op.Fragment || !r.Rewritable()) {
		return false
	}
	tokens, err := fencing.Read(h.Fields, op.Query)
	if err != nil {
		r.Fail(illegal(err.Error()))
		return true
	}
	r.tokens = tokens
	if inQuery {
		target := append([]byte(nil), op.Path...)
		h.Target = uri.WithParams(target, uri.Without(nil, op.Query, fencing.Param))
		types := api.TypesUnknown
		switch {
		case op.Typed:
			types = api.HasTypes
		case op.Ambiguous:
			types = api.NoTypes
		}
		api.Parse(h.Method, h.Target, op)
		op.Settle(h.Method, types)
	}
	return false
}

// writes reports whether a request of the kind writes documents.
func writes(k api.Kind) bool {
	switch k {
	case api.IndexAuto, api.Bulk, api.UpdateByQuery, api.DeleteByQuery, api.Reindex:
		return true
	}
	return k.Write()
}

// tokensOf are the tokens of an item of a bulk: those of the whole, and its own. Where it names its own they are a copy of all, in memory
// of the request's account: a short item under many tokens of the whole is large.
func (r *request) tokensOf(room *budget.Account, it *bulk.Item) (fencing.Tokens, error) {
	if it.Token == "" {
		return r.tokens, nil
	}
	tokens, err := r.tokens.With([]byte(it.Token))
	if err != nil {
		return nil, illegal(err.Error())
	}
	return tokens, room.Take(tokens.Bytes())
}
