package watch

import (
	"bytes"
	"errors"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/glob"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/internal/wire"
)

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
	query, hidden := inGet.revealed(op.Query)
	if query == nil || !wire.AcceptsJSON(rd.r.Fields()) {
		return false
	}
	rd.begin(true)
	if !rd.choice.open && !rd.remembers(rd.choice.rule) {
		return false
	}
	res, err := rd.ask(http.MethodGet, op.Path, query, nil)
	switch {
	case errors.Is(err, upstream.TooLarge):
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
	rd.answer(res, withoutMembers(res.Payload, hidden)) // what was remembered is no part of the answer any more
	return true
}

// shownAt is where an answer shows a document, and which members of the answer name the document and its revision.
type shownAt struct {
	path, open, end string
	revealing       []string
}

var (
	inGet  = shownAt{"", "", "", []string{"_index", "_version", "_seq_no", "_primary_term", "_routing", "found"}}
	inHits = shownAt{"hits.hits.", `{"hits":{"hits":[`, `]}}`, []string{"_index", "_id", "_version", "_seq_no", "_primary_term", "_routing"}}
)

// revealed is the query of a read with the revealing members in its filter_path. hidden are those that it hadn't let through before. The
// query is nil if its filter_path leaves something out by name, or isn't sure to let all of _source through.
func (at shownAt) revealed(query []byte) (with []byte, hidden []string) {
	raw, _ := uri.Param(query, "filter_path")
	paths, err := uri.DecodeValue(nil, raw)
	others := uri.Without(nil, query, "filter_path")
	if err != nil || Partial(others) || bytes.Contains(paths, []byte("-")) {
		return nil, nil
	}
	f := glob.ParseFilter(string(paths))
	shows := func(name string) bool {
		return bytes.Contains(f.Append(nil, []byte(at.open+`{"`+name+`":0}`+at.end)), []byte(name))
	}
	if f.Len() == 0 || !shows("_source") {
		return nil, nil
	}
	with = append(append(with, "filter_path="...), raw...)
	for _, name := range at.revealing {
		if !shows(name) {
			with, hidden = append(append(append(with, ','), at.path...), name...), append(hidden, name)
		}
	}
	if len(others) > 0 {
		with = append(append(with, '&'), others...)
	}
	return with, hidden
}
