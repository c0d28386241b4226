package guard

import (
	"bytes"
	"cmp"
	"errors"
	"math/rand/v2"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/stamp"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// StampField is the field by which an answer says that something in it, which a rule stamps and which was asked for whole, has no stamp.
const StampField = "Optimist-Stamp"

// stamper is the rule whose stamps the documents of an index have, if its mode is least or more; nil is none.
func (g *Guard) stamper(x *proxy.Exchange, rules *rule.Set, a rule.Asked, least rule.Mode) *rule.Rule {
	a.Fields = x.Head().Fields
	st := rules.Stamper(&a)
	if st == nil || g.rules.Effective(st) < least {
		return nil
	}
	return st
}

// stamperBehind is stamper for a name that may be an alias. Where only that decides, the engine is asked, once a minute for a name.
func (g *Guard) stamperBehind(x *proxy.Exchange, rules *rule.Set, index string, least rule.Mode) *rule.Rule {
	a := rule.Asked{Index: index, Fields: x.Head().Fields}
	if st := g.stamper(x, rules, a, least); st != nil || g.rules.Mode() < least {
		return st
	}
	if !rules.StampsElsewhere(&a) || !single([]byte(index)) {
		return nil
	}
	c := g.who(x)
	ix, ok := g.writes.Describe(x.Context(), c.session, c.caller, index)
	if !ok {
		return nil
	}
	a.Concrete, a.Stream = ix.Name, ix.DataStream
	return g.stamper(x, rules, a, least)
}

// serving is a read whose answer is stamped. The answer is collected: a stamp goes where a document ends, and whatever the document has
// under the field itself has to go.
type serving struct {
	g      *Guard
	x      *proxy.Exchange
	client client
	epoch  session.Epoch // from before the read
	edits  []edit
	reason string     // why something that should have a stamp has none, "" if everything has
	rule   *rule.Rule // of the last such document
}

// edit replaces bytes of an answer.
type edit struct {
	from, to int
	with     []byte
}

// place is a document in an answer.
type place struct {
	asked    string // the index as the request named it, "" if it named more than one
	routing  string // that requests for the document need
	hit      bool   // of a search: its routing is its own, whatever the request's
	id       string
	rule     *rule.Rule
	from, to int // of its _source
	es.Item
}

func (g *Guard) serving(x *proxy.Exchange, c client) *serving {
	return &serving{g: g, x: x, client: c, epoch: g.sessions.Epoch()}
}

// stampable tells whether a client can be served stamps: what it signs can't be changed, so that its stamps would be stored.
func (c *client) stampable(op *api.Op) bool { return !c.signed && !c.bound && !signedQuery(op.Query) }

// describe tells which index it is that the document is in.
func (s *serving) describe(p *place) (ix es.Index, ok bool) {
	name := string(p.Index)
	if p.asked != "" {
		if ix, ok = s.g.writes.Describe(s.x.Context(), s.client.session, s.client.caller, p.asked); ok && (name == "" || ix.Name == name) {
			return ix, true
		}
	}
	if name == "" {
		return ix, false
	}
	ix, ok = s.g.writes.Describe(s.x.Context(), s.client.session, s.client.caller, name)
	return ix, ok && ix.Name == name
}

// stamp has the document stamped.
func (s *serving) stamp(p *place, answer []byte) {
	ix, known := s.describe(p)
	reason := ""
	switch {
	case !p.Numbered:
		reason = write.ReasonSeqNo
	case !known:
		reason = write.ReasonMetadata
	case int64(len(p.Source)) > s.g.maxBody-maxStamp:
		reason = write.ReasonTooLarge // nor could it be taken out of a write of it
	}
	if reason == "" {
		st := stamp.Stamp{Numbers: p.Numbers}
		if p.routing == "" && !p.hit {
			p.routing = ix.Routing
		}
		st.Document = stamp.DocumentOf(ix.UUID, p.routing, p.id)
		if p.rule.OnConflict == rule.ConflictMerge {
			st.Copy = stamp.IDOf(rand.Uint64()) //nolint:gosec // it has to differ from others, not to be hard to guess
		}
		source, ok := stamp.Put(make([]byte, 0, len(p.Source)+maxStamp), answer[p.from:p.to], p.rule.Stamp, st)
		if ok {
			s.edits = append(s.edits, edit{p.from, p.to, source})
			return
		}
		reason = write.ReasonFormat
	}
	s.reason, s.rule = reason, p.rule
}

// maxStamp is more than a stamp takes with its field.
const maxStamp = 256

// stamped is the answer with the stamps in it. Where an index was made anew since the read was sent, its documents' numbers are of another
// life than what has been learned of it since: then nothing is stamped.
func (s *serving) stamped(answer []byte) []byte {
	if len(s.edits) == 0 {
		return answer
	}
	if s.g.sessions.Epoch() != s.epoch {
		s.reason, s.rule = session.ReasonIndex.String(), nil
		return answer
	}
	size := len(answer)
	for _, e := range s.edits {
		size += len(e.with) - (e.to - e.from)
	}
	out, from := make([]byte, 0, size), 0
	for _, e := range s.edits {
		out = append(append(out, answer[from:e.from]...), e.with...)
		from = e.to
	}
	return append(out, answer[from:]...)
}

// answer gives the client the engine's answer with another body, and says what has no stamp.
func (s *serving) answer(res *upstream.Response, body []byte, more ...wire.Field) {
	fields := append(passable(res), more...)
	if s.reason != "" {
		fields = append(fields, s.g.unstamped(s.rule, s.reason))
	}
	_ = s.x.Answer(res.Status, fields, body)
}

// unstamped is the field that says so.
func (g *Guard) unstamped(ru *rule.Rule, reason string) wire.Field {
	name := ""
	if ru != nil {
		name = ru.Name
	}
	g.events.Unstamped(name, reason)
	return wire.Field{Name: []byte(StampField), Value: []byte("none;reason=" + reason)}
}

// failed deals with an answer that couldn't be collected. One that is too large is forwarded as it comes, without stamps, and said.
func (s *serving) failed(err error, ru *rule.Rule) {
	if !errors.Is(err, upstream.ErrTooLarge) {
		s.x.Fail(err)
		return
	}
	said := []wire.Field{s.g.unstamped(ru, write.ReasonTooLarge)}
	s.g.forward(s.x, proxy.ForwardOptions{OnHead: func(*wire.Head, []byte) []wire.Field { return said }})
}

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
		more = append(more, wire.Field{Name: etagName, Value: write.AppendETag(nil, p.Numbers)})
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

// concrete is the index that an answer names, else the one that was asked for.
func concrete(asked string, it *es.Item) string {
	if it.Index == nil || string(it.Index) == asked {
		return asked
	}
	return string(it.Index)
}

// offset is where part, which is cut out of whole, begins in it.
func offset(whole, part []byte) int { return cap(whole) - cap(part) }

// documentTarget is the path of the document whose bare _source a request asks for, or of the document itself.
func documentTarget(op *api.Op) ([]byte, bool) {
	if op.Kind != api.Source {
		return op.Path, true
	}
	return sourceTarget(op)
}

// stampMget answers a multi-get of documents that a rule stamps, and reports false for all others.
func (g *Guard) stampMget(x *proxy.Exchange, rules *rule.Set) bool {
	op := x.Op()
	if partial(op.Query) {
		return false
	}
	body, err := x.Body(g.maxBody)
	if err != nil || !doc.ValidJSON(body) {
		return false
	}
	asked, ok := wanted(op, body)
	if !ok {
		return false
	}
	stamps := false
	for i := range asked {
		if i > 0 && asked[i].asked == asked[i-1].asked {
			asked[i].rule = asked[i-1].rule // mostly
		} else {
			asked[i].rule = g.stamperBehind(x, rules, asked[i].asked, rule.Guard)
		}
		stamps = stamps || asked[i].rule != nil && !asked[i].part
	}
	c := g.who(x)
	if !stamps || !c.stampable(op) {
		return false
	}
	s := g.serving(x, c)
	res, err := g.ask(x, string(x.Head().Method), op.Path, op.Query, body)
	if err != nil {
		s.failed(err, nil)
		return true
	}
	defer res.Release()
	answer := res.Payload
	if res.Status == 200 {
		s.documents(asked, answer)
		answer = s.stamped(answer)
	}
	s.answer(res, answer)
	return true
}

// want is one document of a multi-get.
type want struct {
	place
	part bool // not all of it is asked for
}

// wanted reads which documents a multi-get asks for, in their order.
func wanted(op *api.Op, body []byte) ([]want, bool) {
	routing := ""
	if v, ok := api.Param(op.Query, "routing"); ok {
		b, err := api.DecodeValue(nil, v)
		if err != nil {
			return nil, false
		}
		routing = string(b)
	}
	usual := want{place: place{asked: decoded(op.Index), routing: routing}}
	var all []want
	eachWanted(body, func(d gjson.Result) {
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
	})
	return all, true
}

// eachWanted calls what for each document that the body of a multi-get asks for: an object of docs, or one of ids. The engines take both
// in one body, and answer in the order in which they stand there.
func eachWanted(body []byte, what func(gjson.Result)) {
	gjson.ParseBytes(body).ForEach(func(k, list gjson.Result) bool {
		if key := k.String(); key == "docs" || key == "ids" {
			list.ForEach(func(_, d gjson.Result) bool {
				what(d)
				return true
			})
		}
		return true
	})
}

// documents remembers and stamps the documents in the answer to a multi-get.
func (s *serving) documents(asked []want, answer []byte) {
	var docs []gjson.Result
	gjson.GetBytes(answer, "docs").ForEach(func(_, d gjson.Result) bool {
		docs = append(docs, d)
		return true
	})
	if len(docs) != len(asked) {
		return
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
	if len(bytes.TrimSpace(body)) == 0 {
		return true
	}
	if !doc.ValidJSON(body) {
		return false
	}
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
