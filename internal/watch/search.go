package watch

import (
	"errors"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/proxy"
)

// search remembers the hits of a search where a rule asks for it, and stamps them where one does: their numbers are asked for
// upstream, and taken out of the answer again where the client didn't ask. Searches that give less than documents are left alone.
func (rd *Reading) search() bool {
	op := rd.r.Op()
	f := searchPlan{target: rule.Target{Index: rd.r.Index(), Kind: api.Search, Fields: rd.r.Head().Fields}}
	if Partial(op.Query) || !rd.plan(&f) {
		return rd.showHits()
	}
	if !rd.r.Rewritable() || !rd.r.Client().Known && !f.stamps {
		return false
	}
	f.requestBody, f.size = requestBodyOf(rd.r, rd.w.MaxBody), defaultSize
	_, pretty := uri.Param(op.Query, "pretty") // hits whose bytes aren't those that are stored
	f.watches, f.stamps = f.watches && f.readable && !pretty, f.stamps && f.readable
	text, known := f.early()
	if known {
		f.judge(text)
	}
	f.judgeQuery(op.Query)
	switch _, scrolls := uri.Param(op.Query, "scroll"); {
	case f.stamps && !scrolls: // the pages of a scroll pass elsewhere, and would have no stamps
		rd.searchNumbered(&f)
	case f.watches && known && rd.mayWatch(&f) && budget.Of(rd.r.Context()).Take(2*largeHit) == nil:
		rd.watchHits(&f)
	default:
		return rd.showHits()
	}
	return true
}

// plan reports whether rules have hits of the search remembered or stamped.
func (rd *Reading) plan(f *searchPlan) bool {
	if rd.rules.Takes(api.Search) && rd.w.Rules.Mode() != rule.Off {
		f.watches = true // as far as the rules of its hits say so
	}
	if rd.rules.Stamps() && rd.w.Rules.Mode() == rule.Guard {
		f.stamps = rd.rules.MayStamp(&f.target) || rd.stamper() != nil
	}
	return f.watches || f.stamps
}

// searchNumbered sends the search upstream so that its hits have their numbers, and answers it.
func (rd *Reading) searchNumbered(f *searchPlan) {
	query := append([]byte(nil), rd.r.Op().Query...)
	if !f.numbered {
		if len(query) > 0 {
			query = append(query, '&')
		}
		query = append(query, "seq_no_primary_term=true"...)
	}
	rd.begin(false)
	res, err := rd.askForAll(query)
	switch {
	case errors.Is(err, upstream.ErrTooLarge) && !f.stamps:
		rd.forwardSearch()
		return
	case err != nil:
		rd.failed(err)
		return
	}
	defer res.Release()
	answer := res.Payload
	if res.Status == http.StatusOK {
		text, ok := f.text(rd.w.MaxBody)
		if !ok { // whether the client wants the numbers can't be told
			rd.forwardSearch()
			return
		}
		f.judge(text)
		rd.hitsOf(f, answer)
		if answer = rd.stamps.into(answer); !f.numbered {
			take := filter{hit: added{numbers: true}.without}
			answer = take.change(answer, true)
		}
	}
	rd.answer(res, answer)
}

// forwardSearch forwards the search as its client put it.
func (rd *Reading) forwardSearch() {
	if !rd.showHits() {
		rd.r.Pass(proxy.ForwardOptions{})
	}
}

// hitsOf remembers and stamps the hits of a search.
func (rd *Reading) hitsOf(f *searchPlan, answer []byte) {
	name := ""
	if api.OneIndex(f.target.Index) {
		name = f.target.Index
	}
	var rules rulesOf
	for d := range hits(answer, name) {
		rules.find(rd, name, d.Index)
		d.watches, d.stamper = rules.watches, rules.stamper
		if f.watches {
			rd.remember(d)
		} else if c := rd.r.Client(); c.Known && c.Session.IsNamed() {
			rd.show(d)
		}
		rd.stamp(d)
	}
}

// showHits looks at the answer to a search that isn't watched, of a client that names its session: what it finds may be what the
// session writes from next. Nothing of the answer changes, and nothing waits for it.
func (rd *Reading) showHits() bool {
	client := rd.r.Client()
	if rd.w.Rules.Mode() == rule.Off || !client.Known || !client.Session.IsNamed() || client.Signed || client.Bound ||
		asksForPart(rd.r.Op().Query) {
		return false
	}
	// Of what can't be read it isn't known that a part is asked for: it may be whole documents that the client is shown.
	q := requestBodyOf(rd.r, rd.w.MaxBody)
	if text, known := q.early(); known && !wholeHits(text) {
		return false
	}
	rd.forwardCopied(func(answer []byte) {
		if text, ok := q.text(rd.w.MaxBody); ok && !wholeHits(text) {
			return
		}
		for d := range hits(answer, "") {
			rd.show(d)
		}
	})
	return true
}

// show notes a hit of a search that isn't watched, of a client that names its session.
func (rd *Reading) show(d *Document) {
	sess, unrouted := rd.r.Client().Session, d.Ref
	unrouted.Routing = ""
	rd.w.Sessions.ReadUnnumbered(sess, unrouted, d.Source)
	if d.Ref.Routing != "" { // which an alias may have given
		rd.w.Sessions.ReadUnnumbered(sess, d.Ref, d.Source)
	}
}
