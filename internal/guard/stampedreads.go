package guard

// Reads whose documents are stamped: one, several by their ids, and the hits of a search.

import (
	"bytes"
	"cmp"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/etag"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/wire"
	"optimist/proxy"
)

// stampGet answers a read of one document that a rule stamps, and reports false for all others. A HEAD is asked as a GET: it tells the
// length that the GET's answer has.
func (g *Guard) stampGet(x *proxy.Exchange, rules *rule.Set) bool {
	op, l := x.Op(), of(x)
	st := g.stamperBehind(x, rules, l.decoded(op.Index), rule.Guard)
	if st == nil || partial(op.Query) {
		return false
	}
	c := g.who(x)
	ref, ok := l.ref(op)
	if !ok || !c.stampable(op) {
		return false
	}
	target, ok := documentTarget(op)
	if !ok {
		return false
	}
	s, asked := g.serving(x, c), g.sessions.Ask()
	p := place{asked: ref.Index, routing: ref.Routing, id: ref.ID, rule: st}
	s.describe(&p) // before the read: see stamped
	res, err := g.ask(x, "GET", target, op.Query, nil)
	if err != nil {
		s.failed(err, st)
		return true
	}
	defer res.Release()
	p.Item = es.ParseItem(res.Payload)
	ru := g.watcher(x).rule
	if whole := res.Status == 200 && p.Found && p.Source != nil; !whole {
		if op.Kind == api.Source {
			return false // what is missing is said in another way there
		}
		if res.Status == 404 && (p.Missing || noIndex(res.Payload)) && c.known && ru != nil && ru.Session {
			ref.Index = concrete(ref.Index, &p.Item)
			g.sessions.ReadAbsent(c.session, ref, s.epoch)
		}
		s.answer(res, res.Payload)
		return true
	}
	if ref.Index = concrete(ref.Index, &p.Item); !op.Head && p.Numbered && (st.FromStamp || c.known && ru != nil && ru.Session) {
		g.sessions.ReadAsked(c.session, ref, p.Revision, s.epoch, asked)
	}
	var more []wire.Field
	if p.Numbered && st.IfMatch {
		more = append(more, wire.Field{Name: etagName, Value: etag.Tag{Numbers: p.Numbers}.Append(nil)})
	}
	p.from = offset(res.Payload, p.Source)
	p.to = p.from + len(p.Source)
	s.stamp(&p, res.Payload)
	s.answer(res, s.shaped(res.Payload, &p), more...)
	return true
}

// shaped is the stamped answer to a read of one document in the form that was asked for.
func (s *serving) shaped(answer []byte, p *place) []byte {
	op := s.x.Op()
	if op.Kind != api.Source {
		return s.stamped(answer)
	}
	body := s.stamped(answer)
	source := body[p.from : p.to+len(body)-len(answer)]
	if v, there := api.Param(op.Query, "pretty"); there && (len(v) == 0 || string(v) == "true") {
		// Each of its lines stands two spaces further in than it does by itself. No string has an end of a line in it.
		return append(bytes.ReplaceAll(source, []byte("\n  "), []byte("\n")), '\n')
	}
	return bare(body, source)
}

// documentTarget is the path of the document whose bare _source a request asks for, or of the document itself.
func documentTarget(op *api.Op) ([]byte, bool) {
	if op.Kind != api.Source {
		return op.Path, true
	}
	return sourceTarget(op)
}

// stampMget answers a multi-get of documents that a rule may stamp, and reports false for all others. Which ones they are is read when the
// engine has answered.
func (g *Guard) stampMget(x *proxy.Exchange, rules *rule.Set) bool {
	op := x.Op()
	if partial(op.Query) || g.rules.Mode() < rule.Guard {
		return false
	}
	c := g.who(x)
	q, ok := g.questionOf(x)
	if !ok || !c.stampable(op) || g.namesNone(x, rules, &q) {
		return false
	}
	s := g.serving(x, c)
	res, err := g.askAlike(x, op.Query)
	if err != nil {
		s.failed(err, nil)
		return true
	}
	defer res.Release()
	answer := res.Payload
	if res.Status == 200 {
		s.documents(rules, &q, answer)
		answer = s.stamped(answer)
	}
	s.answer(res, answer)
	return true
}

// namesNone reports whether it can be seen at once that no document is asked for that a rule stamps: all of them are of an index in the
// path.
func (g *Guard) namesNone(x *proxy.Exchange, rules *rule.Set, q *question) bool {
	body, known := q.early()
	return known && len(x.Op().Index) > 0 && !bytes.Contains(body, []byte("_index")) && bytes.IndexByte(body, '\\') < 0 &&
		g.stamperBehind(x, rules, of(x).decoded(x.Op().Index), rule.Guard) == nil
}

// want is one document of a multi-get.
type want struct {
	place
	part bool // not all of it is asked for
}

// wanted reads which documents a multi-get asks for, in their order, up to one more than there should be.
func wanted(op *api.Op, body []byte, most int) ([]want, bool) {
	routing, ok := usualRouting(op)
	if !ok {
		return nil, false
	}
	usual := want{place: place{asked: decoded(op.Index), routing: routing}}
	var all []want
	eachWanted(body, func(d gjson.Result) bool {
		w := usual
		if !d.IsObject() {
			w.id = d.String()
		}
		d.ForEach(func(k, v gjson.Result) bool {
			switch k.String() {
			case "_id":
				w.id = v.String()
			case "_index":
				w.asked = v.String()
			case "routing", "_routing":
				w.routing = v.String()
			case "_source":
				w.part = w.part || v.Type != gjson.True
			case "stored_fields", "fields":
				w.part = true
			}
			return d.IsObject()
		})
		all = append(all, w)
		return len(all) <= most
	})
	return all, true
}

// eachWanted calls what for each document that the body of a multi-get asks for, an object of docs, or one of ids, until it returns false.
// The engines take both in one body, and answer in the order in which they stand there.
func eachWanted(body []byte, what func(gjson.Result) bool) {
	gjson.ParseBytes(body).ForEach(func(k, list gjson.Result) (more bool) {
		more = true
		if key := k.String(); key == "docs" || key == "ids" {
			list.ForEach(func(_, d gjson.Result) bool {
				more = what(d)
				return more
			})
		}
		return more
	})
}

// documents remembers and stamps the documents in the answer to a multi-get.
func (s *serving) documents(rules *rule.Set, q *question, answer []byte) {
	docs, few := documentsOf(answer)
	body, ok := q.text(s.g.maxBody)
	if !few || !ok {
		s.reason = outcome.ReasonTooLarge
		return
	}
	asked, ok := wanted(s.x.Op(), body, len(docs))
	if !ok || len(docs) != len(asked) {
		return
	}
	for i := range asked {
		if i > 0 && asked[i].asked == asked[i-1].asked {
			asked[i].rule = asked[i-1].rule // mostly
		} else {
			asked[i].rule = s.g.stamperBehind(s.x, rules, asked[i].asked, rule.Guard)
		}
	}
	for i, d := range docs {
		w := &asked[i]
		if w.part || d.Get("_id").String() != w.id {
			continue
		}
		w.Item = es.ParseItem(answer[d.Index : d.Index+len(d.Raw)])
		switch {
		case w.rule != nil && w.rule.FromStamp:
			s.remember(w)
		case s.client.known:
			s.g.sawItem(s.client, w.ref(), s.x.Head().Fields, d, s.epoch)
		}
		if w.rule == nil || !w.Found || w.Source == nil {
			continue
		}
		w.from = offset(answer, w.Source)
		w.to = w.from + len(w.Source)
		s.stamp(&w.place, answer)
	}
}

func (w *want) ref() doc.Ref {
	return doc.Ref{Index: concrete(w.asked, &w.Item), ID: w.id, Routing: w.routing}
}

// remember keeps the revision for whoever brings its stamp back, whether there is a session or not.
func (s *serving) remember(w *want) {
	switch {
	case w.Missing:
		s.g.sessions.ReadAbsent(s.client.session, w.ref(), s.epoch)
	case w.Found && w.Numbered && w.Source != nil:
		s.g.sessions.Read(s.client.session, w.ref(), w.Revision, s.epoch)
	}
}

// wholeSearch reports whether a search's body asks for the whole _source of its hits.
func wholeSearch(body []byte) bool {
	whole := true
	gjson.ParseBytes(body).ForEach(func(k, v gjson.Result) bool {
		switch k.String() {
		case "_source":
			whole = whole && v.Type == gjson.True
		case "stored_fields", "collapse": // with which some engines put the numbers into inner hits, too
			whole = false
		}
		return whole
	})
	return whole
}

// named is a document's index by the name in the request, if that names one, and by its own.
func named(asked, index string) rule.Asked {
	return rule.Asked{Index: cmp.Or(asked, index), Concrete: index}
}

// hits stamps the hits of a search. What stands below a hit, such as inner hits, stays as it is.
func (s *serving) hits(h *hits, answer []byte) {
	name := ""
	if single([]byte(h.asked.Index)) {
		name = h.asked.Index
	}
	gjson.GetBytes(answer, "hits.hits").ForEach(func(_, hit gjson.Result) bool {
		p := place{asked: name, hit: true, Item: es.ParseItem(answer[hit.Index : hit.Index+len(hit.Raw)])}
		if p.Source == nil || p.Index == nil {
			return true
		}
		if p.rule = s.g.stamper(s.x, h.rules, named(name, string(p.Index)), rule.Guard); p.rule == nil {
			return true
		}
		hit.ForEach(func(k, v gjson.Result) bool {
			switch k.Str {
			case "_id":
				p.id = v.String()
			case "_routing":
				p.routing = v.String()
			}
			return true
		})
		p.from = offset(answer, p.Source)
		p.to = p.from + len(p.Source)
		s.stamp(&p, answer)
		return true
	})
}
