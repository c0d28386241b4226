package watch

import (
	"net/http"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/rule"
	"optimist/internal/uri"
	"optimist/proxy"
)

// search remembers the hits of a search where a rule asks for it, and stamps them where one does: their numbers are asked for
// upstream, and taken out of the answer again where the client didn't ask. Searches that give less than documents are left alone.
func (rd *Reading) search() bool {
	op := rd.r.Op()
	f := searchPlan{target: rule.Target{Index: rd.r.Index(), Kind: api.Search, Fields: rd.r.Head().Fields}, query: op.Query,
		more: added{numbers: true, version: true}}
	rd.plan(&f)
	if asksForPart(op.Query) || !rd.r.Rewritable() || !f.stamps && !rd.known() {
		return false
	}
	f.requestBody, f.size = requestBodyOf(rd.r, rd.w.MaxBody), defaultSize
	f.judgeForm()
	text, known := f.early()
	if known {
		f.judge(text)
	}
	f.judgeQuery()
	switch _, scrolls := uri.Param(op.Query, "scroll"); {
	case f.stamps && !scrolls: // the pages of a scroll pass elsewhere, and would have no stamps
		rd.searchNumbered(&f)
	case f.watches && known && rd.mayWatch(&f) && rd.findsWhole(&f, text) && budget.Of(rd.r.Context()).Take(2*largeHit) == nil:
		rd.watchHits(&f)
	default:
		rd.unread = !f.baseless && f.size != 0 && !partialHits(text)
		return false
	}
	return true
}

// plan decides whether rules have hits of the search remembered or stamped.
func (rd *Reading) plan(f *searchPlan) {
	if rd.rules.Takes(api.Search) && rd.w.Rules.Mode() != rule.Off {
		f.watches = true // as far as the rules of its hits say so
	}
	if rd.rules.Stamps() && rd.w.Rules.Mode() == rule.Guard {
		f.stamps = rd.rules.MayStamp(&f.target) || rd.stamper() != nil
	}
}

// searchNumbered sends the search upstream so that its hits have their numbers, and answers it.
func (rd *Reading) searchNumbered(f *searchPlan) {
	more := added{numbers: f.more.numbers}
	rd.begin(false)
	res, err := rd.askForAll(more.query(rd.r.Op().Query))
	if err != nil {
		rd.failed(err)
		return
	}
	defer res.Release()
	answer := res.Payload
	if res.Status == http.StatusOK {
		text, ok := f.text(rd.w.MaxBody)
		if !ok { // whether the client wants the numbers can't be told
			rd.unread = true
			if !rd.unwatched() {
				rd.r.Pass(proxy.ForwardOptions{})
			}
			return
		}
		f.judge(text)
		rd.many = f.showsMany()
		rd.hitsOf(f, answer)
		answer = rd.stamps.into(answer)
		if f.more.numbers {
			take := filter{hit: added{numbers: true}.without}
			answer = take.change(answer, true)
		}
	}
	rd.answer(res, answer)
}

// hitsOf remembers and stamps the hits of a search.
func (rd *Reading) hitsOf(f *searchPlan, answer []byte) {
	name := ""
	if api.OneIndex(f.target.Index) {
		name = f.target.Index
	}
	var rules rulesOf
	rest, unread := sources(answer), false
	for d := range hits(answer, name) {
		rules.find(rd, name, d.Index)
		d.watches, d.stamper = rules.watches, rules.stamper
		if f.watches {
			rd.remember(d)
		} else {
			rd.show(d)
			unread = unread || d.Source != nil
		}
		rd.stamp(d)
		rest -= d.sources()
	}
	rd.showRest(rest)
	if unread && !rd.named() {
		rd.showUnknown()
	}
}
