package patch

import (
	"bytes"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/es"
	"optimist/internal/intent"
	"optimist/internal/jsontext"
	"optimist/internal/respond"
	"optimist/internal/uri"
)

// UpdateBody is the body of an _update with another part: the client's own body, except for the part, and without keys that engines
// refuse together with a guard. If the document is to be created, the body creates first only if there is none, and changes nothing
// otherwise.
func (p *Request) UpdateBody(op *api.Op, body []byte, part intent.Part, first []byte) []byte {
	_, upserts := uri.Param(op.Query, "doc_as_upsert")
	if first == nil && !upserts && p.Initial == nil && bytes.Equal(part, p.Incoming) {
		return body
	}
	out := []byte(`{"doc":`)
	if first == nil {
		out = append(out, part...)
	} else {
		out = append(append(out, `{},"upsert":`...), first...)
	}
	gjson.ParseBytes(body).ForEach(func(k, v gjson.Result) bool {
		switch name := k.String(); {
		case name == "doc", name == "upsert", name == "doc_as_upsert", name == "detect_noop" && first != nil:
		default:
			out = append(append(append(append(out, ','), k.Raw...), ':'), v.Raw...)
		}
		return true
	})
	return append(out, '}')
}

// Upserts reports whether an _update makes the document where there is none, as far as its body can be read.
func Upserts(op *api.Op, body []byte) bool {
	_, upserts := uri.Param(op.Query, "doc_as_upsert")
	for s := jsontext.Scan(body); !upserts && s.IsObject() && s.Next(); {
		upserts = s.Named("upsert") || s.Named("doc_as_upsert") && gjson.ParseBytes(s.Text()).Bool()
	}
	return upserts
}

// RunsScript reports whether the body of an _update, which is JSON, has a script: run twice, it may count twice. A body that can't be
// read may have one.
func RunsScript(body []byte) bool {
	s := jsontext.Scan(body)
	for s.Next() {
		if s.Named("script") {
			return true
		}
	}
	return !s.Whole()
}

// Shows reports whether the answer to an _update is to show a part of the document, and whether all of it. The body wins over the query.
func Shows(op *api.Op, body []byte) (shows, all bool) {
	_, filtered := uri.Param(op.Query, "filter_path")
	switch own := es.Member(body, "_source"); {
	case own != nil:
		f, ok := respond.BodySourceFilter(gjson.ParseBytes(own))
		return f.Shows() || !ok, f.Whole() && !filtered && ok
	default:
		f, err := respond.ReadSourceFilter(op.Query)
		return f.Shows() || err != nil, f.Whole() && !filtered && err == nil
	}
}
