package guard

import (
	"bytes"
	"errors"
	"net/http"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/etag"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/proxy"
)

// source answers a read of a bare _source. Its answer has no numbers, so the document is asked for instead, and the client gets the
// bytes of its _source: the same that the engine would have sent, with an ETag. Whatever isn't a document found is asked for as the
// client put it.
func (g *Guard) source(x *proxy.Exchange, c client) bool {
	op := x.Op()
	if _, pretty := api.Param(op.Query, "pretty"); pretty {
		return false
	}
	target, ok := sourceTarget(op)
	if !ok {
		return false
	}
	epoch := g.sessions.Epoch()
	res, err := g.ask(x, wire.MethodString(x.Head().Method), target, op.Query, nil)
	switch {
	case errors.Is(err, upstream.ErrTooLarge):
		return false
	case err != nil:
		x.Fail(err) // asked again as the client put it, it might be answered, and nobody would know with which revision
		return true
	}
	defer res.Release()
	if res.Status >= 500 || res.Status == http.StatusTooManyRequests {
		_ = x.Answer(res.Status, passable(res), res.Payload)
		return true
	}
	rev, ok := es.Revision(res.Payload)
	if res.Status != 200 || !ok || rev.Source == nil {
		return false
	}
	if ref, ok := of(x).ref(op); ok && c.known && !wire.PeerLeft(x.Context()) {
		ref.Index = gjson.GetBytes(res.Payload, "_index").String()
		g.sessions.Read(c.session, ref, rev, epoch)
	}
	fields := append(passable(res), wire.Field{Name: []byte("ETag"), Value: etag.Tag{Numbers: rev.Numbers}.Append(nil)})
	_ = x.Answer(res.Status, fields, bare(res.Payload, rev.Source))
	return true
}

// bare is what a read of the bare _source answers: the document with the white space around it that it was stored with. It stands
// between the key's colon and the end of the answer to a get, whose last member it is.
func bare(answer, source []byte) []byte {
	at := bytes.LastIndex(answer, source)
	if at < 0 {
		return source
	}
	from, to := at, at+len(source)
	for from > 0 && space(answer[from-1]) {
		from--
	}
	for to < len(answer) && space(answer[to]) {
		to++
	}
	if from == 0 || answer[from-1] != ':' || to >= len(answer) || answer[to] != '}' {
		return source
	}
	return answer[from:to]
}

func space(c byte) bool { return c == ' ' || c == '\t' || c == '\r' || c == '\n' }

// sourceTarget is the path of the document whose bare _source is asked for.
func sourceTarget(op *api.Op) ([]byte, bool) {
	i := bytes.LastIndex(op.Path, []byte("/_source"))
	if i < 0 {
		return nil, false
	}
	target := append([]byte(nil), op.Path[:i]...)
	if op.Typed {
		return append(target, op.Path[i+len("/_source"):]...), true
	}
	return append(append(target, "/_doc"...), op.Path[i+len("/_source"):]...), true
}

// ask sends a client's read upstream in another form and collects the answer.
func (g *Guard) ask(x *proxy.Exchange, method string, path, query, body []byte) (*upstream.Response, error) {
	target := append([]byte(nil), path...)
	if len(query) > 0 {
		target = append(append(target, '?'), query...)
	}
	r := &upstream.Request{Method: method, Target: target, Body: body, Repeatable: true}
	for _, f := range x.Head().EndToEnd(nil) {
		if !wire.EqualFold(f.Name, "accept-encoding") && !wire.EqualFold(f.Name, "content-length") && !wire.EqualFold(f.Name, "expect") {
			r.Fields = append(r.Fields, f)
		}
	}
	return g.up.Do(x.Context(), r)
}

// askAlike sends a client's read of many documents upstream with another query, and collects the answer.
func (g *Guard) askAlike(x *proxy.Exchange, query []byte) (*upstream.Response, error) {
	body, err := x.Body(g.maxBody)
	if err != nil {
		return nil, err
	}
	return g.ask(x, wire.MethodString(x.Head().Method), x.Op().Path, query, body)
}

// passable are an answer's fields that go with a body of another length.
func passable(res *upstream.Response) []wire.Field {
	var out []wire.Field
	for _, f := range res.EndToEnd(nil) {
		if !wire.EqualFold(f.Name, "content-length") {
			out = append(out, f)
		}
	}
	return out
}

// search watches a search where a rule asks for it, and stamps its hits where one does: their numbers are asked for upstream, and taken
// out of the answer again where the client didn't ask. Searches that give less than documents are left alone; so are scrolls, whose later
// pages, which pass elsewhere, would have the numbers too.
func (g *Guard) search(x *proxy.Exchange) bool {
	op, rules := x.Op(), g.rules.Rules()
	if _, scroll := api.Param(op.Query, "scroll"); scroll || partial(op.Query) {
		return g.shown(x)
	}
	asked := rule.Asked{Index: of(x).decoded(op.Index), Kind: api.Search, Fields: x.Head().Fields}
	watched, stamped := g.watches(rules, &asked), false
	if rules.Stamps() && g.rules.Mode() == rule.Guard {
		stamped = rules.MayStamp(&asked) || g.stamperBehind(x, rules, asked.Index, rule.Guard) != nil
	}
	if !watched && !stamped {
		return g.shown(x)
	}
	c := g.who(x)
	if !c.stampable(op) || !c.known && !stamped {
		return false
	}
	q, ok := g.questionOf(x)
	_, pretty := api.Param(op.Query, "pretty")
	h := &hits{rules: rules, asked: asked, watched: ok && watched && (c.known || stamped) && !pretty, stamped: ok && stamped, q: q}
	_, h.numbered = api.Param(op.Query, "seq_no_primary_term")
	if early, known := q.early(); ok && known {
		h.judge(early)
	}
	if !h.watched && !h.stamped {
		return g.shown(x)
	}
	g.searched(x, c, h)
	return true
}

// judge decides by what a search asks for what is done with its hits.
func (h *hits) judge(body []byte) {
	h.watched = h.watched && wholeHits(body)
	h.stamped = h.stamped && wholeSearch(body)
	h.numbered = h.numbered || bytes.Contains(body, []byte("seq_no_primary_term"))
}

// shown looks at the answer to a search that isn't watched, of a client that names its session: what it finds may be what the session
// writes from next. Nothing of the answer changes, and nothing waits for it.
func (g *Guard) shown(x *proxy.Exchange) bool {
	op := x.Op()
	c := g.who(x)
	if g.rules.Mode() == rule.Off || !c.known || c.inferred || c.signed || c.bound {
		return false
	}
	for _, name := range partOnly {
		if v, ok := api.Param(op.Query, name); ok && string(v) != "true" {
			return false
		}
	}
	// Of what can't be read it isn't known that a part is asked for: it may be whole documents that the client is shown.
	q, readable := g.questionOf(x)
	if body, known := q.early(); readable && known && !wholeHits(body) {
		return false
	}
	tee := newCapture(watchLimit)
	tee.whole = func() {
		answer, ok := tee.body()
		if !ok || tee.status != 200 {
			return
		}
		if body, ok := q.text(g.maxBody); readable && ok && !wholeHits(body) {
			return
		}
		gjson.GetBytes(answer, "hits.hits").ForEach(func(_, hit gjson.Result) bool {
			ref := doc.Ref{Index: hit.Get("_index").String(), ID: hit.Get("_id").String()}
			source := hit.Get("_source")
			if !source.IsObject() || ref.Index == "" {
				return true
			}
			g.sessions.Shown(c.session, ref, []byte(source.Raw))
			if routing := hit.Get("_routing"); routing.Exists() { // which an alias may have given
				ref.Routing = routing.String()
				g.sessions.Shown(c.session, ref, []byte(source.Raw))
			}
			return true
		})
	}
	g.forward(x, proxy.ForwardOptions{OnHead: tee.head, Copy: tee.copy, Last: tee.end})
	return true
}

// watches reports whether a rule has the hits of a search remembered.
func (g *Guard) watches(rules *rule.Set, a *rule.Asked) bool {
	if !rules.Takes(api.Search) || a.Index == "" {
		return false
	}
	ru := rules.MatchRequest(a)
	return g.rules.Effective(ru) == rule.Guard && (ru.Session || ru.FromStamp)
}

// hits are what is done with those of a search.
type hits struct {
	rules            *rule.Set
	asked            rule.Asked
	watched, stamped bool
	numbered         bool // the client asks for the numbers itself
	q                question
}

// searched sends the search upstream, and answers it.
func (g *Guard) searched(x *proxy.Exchange, c client, h *hits) {
	op := x.Op()
	query := append([]byte(nil), op.Query...)
	if !h.numbered {
		if len(query) > 0 {
			query = append(query, '&')
		}
		query = append(query, "seq_no_primary_term=true"...)
	}
	s := g.serving(x, c)
	res, err := g.askAlike(x, query)
	switch {
	case err != nil && h.stamped:
		s.failed(err, nil)
		return
	case errors.Is(err, upstream.ErrTooLarge):
		if !g.shown(x) {
			g.forward(x, proxy.ForwardOptions{})
		}
		return
	case err != nil:
		x.Fail(err)
		return
	}
	defer res.Release()
	answer := res.Payload
	if res.Status == 200 {
		body, ok := h.q.text(g.maxBody)
		if !ok { // whether the client wants the numbers can't be told
			g.forward(x, proxy.ForwardOptions{})
			return
		}
		h.judge(body)
		if h.watched && !wire.PeerLeft(x.Context()) {
			g.sawHits(c, answer, s.epoch)
		}
		if h.stamped {
			s.hits(h, answer)
			answer = s.stamped(answer)
		}
		if !h.numbered {
			answer = withoutNumbers(answer)
		}
	}
	s.answer(res, answer)
}

// wholeHits reports whether a search's body asks for whole documents, as far as can be told without reading it as JSON: a word that
// might mean less is taken as meaning it.
func wholeHits(body []byte) bool {
	for _, word := range [...]string{`"_source"`, `stored_fields`, `\`, `collapse`} {
		if bytes.Contains(body, []byte(word)) {
			return false
		}
	}
	return true
}

// sawHits remembers the hits of a search.
func (g *Guard) sawHits(c client, answer []byte, epoch session.Epoch) {
	gjson.GetBytes(answer, "hits.hits").ForEach(func(_, hit gjson.Result) bool {
		ref := doc.Ref{Index: hit.Get("_index").String(), ID: hit.Get("_id").String(), Routing: hit.Get("_routing").String()}
		if rev, ok := es.Revision([]byte(hit.Raw)); ok && rev.Source != nil {
			g.sessions.Read(c.session, ref, rev, epoch)
		}
		return true
	})
}

// withoutNumbers takes _seq_no and _primary_term out of the hits, with the white space before them, every other byte kept.
func withoutNumbers(answer []byte) []byte {
	var out []byte
	from := 0
	cut := func(key, value gjson.Result) {
		start, end := key.Index, value.Index+len(value.Raw)
		for start > 0 && space(answer[start-1]) {
			start--
		}
		switch {
		case end < len(answer) && answer[end] == ',':
			end++
		case start > 0 && answer[start-1] == ',':
			start--
		}
		if out == nil {
			out = make([]byte, 0, len(answer))
		}
		out = append(out, answer[from:max(start, from)]...)
		from = end
	}
	gjson.GetBytes(answer, "hits.hits").ForEach(func(_, hit gjson.Result) bool {
		hit.ForEach(func(k, v gjson.Result) bool {
			if k.Str == "_seq_no" || k.Str == "_primary_term" {
				cut(k, v)
			}
			return true
		})
		return true
	})
	if out == nil {
		return answer
	}
	return append(out, answer[from:]...)
}
