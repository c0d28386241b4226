package watch

import (
	"bytes"
	"errors"
	"net/http"

	"optimist/internal/api"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/upstream"
	"optimist/internal/uri"
	"optimist/proxy"
)

// mget looks at a multi-get. What asks for parts of documents is left alone. Where a rule may stamp some of them, the answer is
// collected. Which documents they are is read when the engine has answered.
func (rd *Reading) mget() bool {
	op, who := rd.r.Op(), rd.r.Client()
	routing, ok := rd.r.Routing()
	stamps := rd.rules.Stamps() && rd.w.Rules.Mode() == rule.Guard && rd.r.Rewritable()
	watches := rd.rules.Takes(api.Mget) && who.Known
	if !ok || !stamps && !watches || Partial(op.Query) || who.Signed || who.Bound {
		return false
	}
	q := questionOf(rd.r, rd.w.MaxBody)
	if stamps = stamps && q.readable && !rd.stampsNone(&q); !stamps {
		if watches = watches && q.readable; watches {
			rd.forwardCopied(func(answer []byte) { rd.severalOf(&q, routing, answer, false) })
		}
		return watches
	}
	rd.begin(true)
	res, err := rd.askForAll(op.Query)
	if err != nil {
		rd.failed(err)
		return true
	}
	defer res.Release()
	if res.Status == http.StatusOK {
		rd.severalOf(&q, routing, res.Payload, true)
	}
	rd.answer(res, rd.stamps.into(res.Payload))
	return true
}

// stampsNone reports whether it can be seen at once that no document is asked for that a rule stamps: all of them are of an index
// in the path.
func (rd *Reading) stampsNone(q *question) bool {
	body, known := q.early()
	return known && rd.r.Index() != "" && !bytes.Contains(body, []byte("_index")) && bytes.IndexByte(body, '\\') < 0 &&
		rd.w.Stamper(rd.r, rd.r.Index(), rule.Guard) == nil
}

// forwardCopied forwards the read, and calls whole with an answer that is a success and can be read.
func (rd *Reading) forwardCopied(whole func(answer []byte)) {
	rd.begin(rd.r.Op().Kind == api.Mget)
	rd.copy.Whole = func() {
		if answer, ok := rd.copy.Body(); ok && rd.copy.Status == http.StatusOK {
			whole(answer)
		}
	}
	rd.r.Pass(proxy.ForwardOptions{OnHead: rd.copy.Head, Copy: rd.copy.Copy, Last: rd.copy.Last})
}

// severalOf remembers, and stamps if it may, the documents in the answer to a multi-get.
func (rd *Reading) severalOf(q *question, routing string, answer []byte, stamps bool) {
	text, ok := q.text(rd.w.MaxBody)
	documents, few := several(rd.r.Op(), routing, text, answer)
	if !ok || !few {
		rd.stamps.skip(outcome.ReasonTooLarge)
		return
	}
	var f rulesOf
	for i := range documents {
		d := &documents[i]
		if f.find(rd, d.asked, d.Index); stamps {
			d.stamper = f.stamper
		}
		d.watches = f.watches
		rd.remember(d)
		rd.stamp(d)
	}
}

// searchPlan is what is done with a search.
type searchPlan struct {
	question
	asked rule.Asked
	// watches has its hits remembered, stamps has them stamped.
	watches, stamps bool
	numbered        bool // the client asks for the numbers itself
}

// search remembers the hits of a search where a rule asks for it, and stamps them where one does: their numbers are asked for
// upstream, and taken out of the answer again where the client didn't ask. Searches that give less than documents are left alone;
// so are scrolls, whose later pages, which pass elsewhere, would have the numbers too.
func (rd *Reading) search() bool {
	op := rd.r.Op()
	f := searchPlan{asked: rule.Asked{Index: rd.r.Index(), Kind: api.Search, Fields: rd.r.Head().Fields}}
	if _, scroll := uri.Param(op.Query, "scroll"); scroll || Partial(op.Query) || !rd.plan(&f) {
		return rd.showHits()
	}
	if !rd.r.Rewritable() || !rd.r.Client().Known && !f.stamps {
		return false
	}
	f.question = questionOf(rd.r, rd.w.MaxBody)
	_, pretty := uri.Param(op.Query, "pretty") // hits whose bytes aren't those that are stored
	f.watches, f.stamps = f.watches && f.readable && !pretty, f.stamps && f.readable
	_, f.numbered = uri.Param(op.Query, "seq_no_primary_term")
	if text, known := f.early(); known {
		f.judge(text)
	}
	if !f.watches && !f.stamps {
		return rd.showHits()
	}
	rd.searchNumbered(&f)
	return true
}

// plan reports whether rules have hits of the search remembered or stamped.
func (rd *Reading) plan(f *searchPlan) bool {
	if rd.rules.Takes(api.Search) && f.asked.Index != "" {
		ru := rd.rules.MatchRequest(&f.asked)
		rd.choice.rule = ru
		f.watches = rd.w.Rules.Effective(ru) == rule.Guard && (ru.Session || ru.FromStamp)
	}
	if rd.rules.Stamps() && rd.w.Rules.Mode() == rule.Guard {
		f.stamps = rd.rules.MayStamp(&f.asked) || rd.w.Stamper(rd.r, f.asked.Index, rule.Guard) != nil
	}
	return f.watches || f.stamps
}

// judge decides by what a search asks for what is done with its hits.
func (f *searchPlan) judge(text []byte) {
	whole := wholeHits(text)
	f.watches, f.stamps = f.watches && whole, f.stamps && whole
	f.numbered = f.numbered || bytes.Contains(text, []byte("seq_no_primary_term"))
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
			answer = withoutNumbers(answer)
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
	asked := ""
	if api.OneIndex(f.asked.Index) {
		asked = f.asked.Index
	}
	var rules rulesOf
	for d := range hits(answer, asked) {
		d.watches = rd.choice.rule
		if f.stamps {
			rules.find(rd, asked, d.Index)
			d.stamper = rules.stamper
		}
		if f.watches {
			rd.remember(d)
		}
		rd.stamp(d)
	}
}

// showHits looks at the answer to a search that isn't watched, of a client that names its session: what it finds may be what the
// session writes from next. Nothing of the answer changes, and nothing waits for it.
func (rd *Reading) showHits() bool {
	who := rd.r.Client()
	if rd.w.Rules.Mode() == rule.Off || !who.Known || !who.Session.IsNamed() || who.Signed || who.Bound || asksForPart(rd.r.Op().Query) {
		return false
	}
	// Of what can't be read it isn't known that a part is asked for: it may be whole documents that the client is shown.
	q := questionOf(rd.r, rd.w.MaxBody)
	if text, known := q.early(); known && !wholeHits(text) {
		return false
	}
	rd.forwardCopied(func(answer []byte) {
		if text, ok := q.text(rd.w.MaxBody); ok && !wholeHits(text) {
			return
		}
		for d := range hits(answer, "") {
			unrouted := d.Ref
			unrouted.Routing = ""
			rd.w.Sessions.Shown(who.Session, unrouted, d.Source)
			if d.Ref.Routing != "" { // which an alias may have given
				rd.w.Sessions.Shown(who.Session, d.Ref, d.Source)
			}
		}
	})
	return true
}
