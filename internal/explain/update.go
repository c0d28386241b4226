package explain

import (
	"github.com/tidwall/gjson"

	"optimist/internal/jsontext"
	"optimist/internal/uri"
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
	u.part = []byte(part.Raw)
	if first.Exists() {
		u.first = []byte(first.Raw)
	}
	u.always = in.Get("detect_noop").Type == gjson.False
	return u, part.IsObject() && !in.Get("script").Exists()
}
