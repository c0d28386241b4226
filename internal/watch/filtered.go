package watch

import (
	"bytes"
	"errors"
	"net/http"
	"slices"
	"strings"

	"optimist/internal/api"
	"optimist/internal/glob"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
)

// revealing are the members of an answer to a get that say which document it shows, and in which revision.
var revealing = [...]string{"_index", "_version", "_seq_no", "_primary_term", "_routing", "found"}

// getPart looks at the read of a part of one document, or of another form of it.
func (rd *Reading) getPart(mode rule.Mode) bool {
	if rd.r.Op().Kind == api.Get && (mode == rule.Guard || rd.choice.open) && rd.getFiltered() {
		return true
	}
	return mode != rule.Off && rd.watchStatus()
}

// getFiltered answers a read of one document whose filter_path lets all of _source through. The engine is asked for the members that say
// what the document is, too. The client gets the engine's answer without those that it didn't ask for. It reports false, and has answered
// nothing, where the answer shows no document, or another filter_path is given.
func (rd *Reading) getFiltered() bool {
	op, d := rd.r.Op(), &rd.document
	query, added := revealed(op.Query)
	if query == nil || !wire.AcceptsJSON(rd.r.Fields()) {
		return false
	}
	if rd.begin(true); !rd.choice.open && !rd.remembers(rd.choice.rule) {
		return false
	}
	res, err := rd.ask(http.MethodGet, op.Path, query, nil)
	switch {
	case errors.Is(err, upstream.ErrTooLarge):
		return false
	case err != nil:
		rd.failed(err)
		return true
	}
	defer res.Release()
	d.readOne(res.Status, res.Payload)
	switch {
	case res.Status >= 500 || res.Status == http.StatusTooManyRequests: // an engine that has too much to do isn't asked again
		rd.answer(res, res.Payload)
		return true
	case !d.whole || !d.Numbered:
		rd.document = Document{Ref: d.Ref, name: d.name} // nothing of the answer, which ends here
		return false
	}
	rd.decide(d.Index)
	d.watches = rd.choice.rule
	rd.remember(d)
	rd.answer(res, withoutMembers(res.Payload, added)) // what was remembered is no part of the answer any more
	return true
}

// blanks are what the engines take off both ends of a path.
const blanks = "\t\n\v\f\r "

// revealed is the query of a read with the revealing members in its filter_path. added are those that it hadn't let through before. The
// query is nil if its filter_path leaves something out by name, or isn't sure to let all of _source through.
func revealed(query []byte) (with []byte, added []string) {
	raw, _ := uri.Param(query, "filter_path")
	paths, err := uri.DecodeValue(nil, raw)
	others := uri.Without(nil, query, "filter_path")
	if err != nil || Partial(others) {
		return nil, nil
	}
	shows := func(name string) bool {
		return slices.ContainsFunc(bytes.Split(paths, []byte(",")), func(path []byte) bool {
			return glob.Match(strings.Trim(string(path), blanks), name)
		})
	}
	if bytes.Contains(paths, []byte("-")) || !shows("_source") {
		return nil, nil
	}
	with = append(append(with, "filter_path="...), raw...)
	for _, name := range revealing {
		if !shows(name) {
			with, added = append(append(with, ','), name...), append(added, name)
		}
	}
	if len(others) > 0 {
		with = append(append(with, '&'), others...)
	}
	return with, added
}
