package guard

import (
	"bytes"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/internal/write"
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
	i := bytes.LastIndex(op.Path, []byte("/_source"))
	if i < 0 {
		return false
	}
	target := append([]byte(nil), op.Path[:i]...)
	if op.Typed {
		target = append(target, op.Path[i+len("/_source"):]...)
	} else {
		target = append(append(target, "/_doc"...), op.Path[i+len("/_source"):]...)
	}
	epoch := g.sessions.Epoch()
	res, ok := g.ask(x, target, op.Query, nil)
	if !ok {
		return false
	}
	defer res.Release()
	rev, ok := es.Revision(res.Payload)
	if res.Status != 200 || !ok || rev.Source == nil {
		return false
	}
	if ref, ok := of(x).ref(op); ok && c.known {
		ref.Index = gjson.GetBytes(res.Payload, "_index").String()
		g.sessions.Read(c.session, ref, rev, epoch)
	}
	fields := append(passable(res), wire.Field{Name: []byte("ETag"), Value: write.AppendETag(nil, rev.Numbers)})
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

// ask sends a client's read upstream in another form and collects the answer. ok is false where it failed: then the read is
// forwarded as the client put it, and fails or not by itself.
func (g *Guard) ask(x *proxy.Exchange, path, query, body []byte) (res *upstream.Response, ok bool) {
	target := append([]byte(nil), path...)
	if len(query) > 0 {
		target = append(append(target, '?'), query...)
	}
	r := &upstream.Request{Method: wire.MethodString(x.Head().Method), Target: target, Body: body, Repeatable: true}
	for _, f := range x.Head().EndToEnd(nil) {
		if !wire.EqualFold(f.Name, "accept-encoding") && !wire.EqualFold(f.Name, "content-length") && !wire.EqualFold(f.Name, "expect") {
			r.Fields = append(r.Fields, f)
		}
	}
	res, err := g.up.Do(x.Context(), r)
	return res, err == nil
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

// search watches a search where a rule asks for it: the hits' numbers are asked for upstream, and taken out of the answer again where
// the client didn't ask. Searches that give less than documents are left alone.
func (g *Guard) search(x *proxy.Exchange) bool {
	op := x.Op()
	if !g.rules.Rules().Takes(api.Search) || partial(op.Query) || len(op.Index) == 0 {
		return false
	}
	if w := g.watcher(x); g.rules.Effective(w.rule) != rule.Guard || !w.rule.Session {
		return false
	}
	c := g.who(x)
	_, pretty := api.Param(op.Query, "pretty")
	if !c.known || c.signed || c.bound || pretty {
		return false
	}
	body, err := x.Body(g.maxBody)
	if err != nil || !wholeHits(body) {
		return false
	}
	_, asked := api.Param(op.Query, "seq_no_primary_term")
	asked = asked || bytes.Contains(body, []byte("seq_no_primary_term"))
	query := append([]byte(nil), op.Query...)
	if !asked {
		if len(query) > 0 {
			query = append(query, '&')
		}
		query = append(query, "seq_no_primary_term=true"...)
	}
	epoch := g.sessions.Epoch()
	res, ok := g.ask(x, op.Path, query, body)
	if !ok {
		return false
	}
	defer res.Release()
	answer := res.Payload
	if res.Status == 200 {
		g.sawHits(c, answer, epoch)
		if !asked {
			answer = withoutNumbers(answer)
		}
	}
	_ = x.Answer(res.Status, passable(res), answer)
	return true
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
	for _, hit := range gjson.GetBytes(answer, "hits.hits").Array() {
		ref := doc.Ref{Index: hit.Get("_index").String(), ID: hit.Get("_id").String(), Routing: hit.Get("_routing").String()}
		if rev, ok := es.Revision([]byte(hit.Raw)); ok && rev.Source != nil {
			g.sessions.Read(c.session, ref, rev, epoch)
		}
	}
}

// withoutNumbers takes _seq_no and _primary_term out of the hits, every other byte kept.
func withoutNumbers(answer []byte) []byte {
	out := make([]byte, 0, len(answer))
	from := 0
	cut := func(key, value gjson.Result) {
		start, end := key.Index, value.Index+len(value.Raw)
		switch {
		case end < len(answer) && answer[end] == ',':
			end++
		case start > 0 && answer[start-1] == ',':
			start--
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
	return append(out, answer[from:]...)
}
