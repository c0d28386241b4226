package intercept

import (
	"bytes"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/bulk"
	"optimist/internal/fencing"
	"optimist/internal/jsontext"
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

// mayNameTokens reports whether the actions of a bulk may name tokens. Those of most bulks name none: that costs a look for a word, which
// JSON may spell with escapes.
func mayNameTokens(body []byte) bool {
	return bytes.Contains(body, []byte(fencing.Member)) || bytes.Contains(body, []byte(`\u00`))
}

// tokensAt is where an action names tokens, with one of the commas around: the engines refuse a whole bulk for that member. From is to if
// it names none. What can't be tokens stays, so that the engine says so.
func tokensAt(line []byte) (from, to int) {
	action := jsontext.Scan(line)
	if !action.Next() {
		return 0, 0
	}
	members := jsontext.Scan(action.Text())
	for before := -1; members.Next(); before = members.Comma {
		if !members.Named(fencing.Member) {
			continue
		}
		v := gjson.ParseBytes(members.Text())
		text := v.Raw
		if v.Type == gjson.String {
			text = v.Str
		}
		from, to = members.Key, members.End
		switch _, err := fencing.Tokens(nil).With([]byte(text)); {
		case err != nil:
			return 0, 0
		case members.Comma >= 0:
			to = members.Comma + 1
		case before >= 0:
			from = before
		}
		return action.Value + from, action.Value + to
	}
	return 0, 0
}
