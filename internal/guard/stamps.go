package guard

import (
	"errors"
	"math/rand/v2"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/stamp"
	"optimist/internal/upstream"
	"optimist/internal/wire"
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
	ix, err := g.catalog.Describe(x.Context(), c.asker(), index, 0)
	if err != nil || !ix.Exists() {
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
func (s *serving) describe(p *place) (ix catalog.Index, ok bool) {
	name := string(p.Index)
	if p.asked != "" {
		if ix, err := s.g.catalog.Describe(s.x.Context(), s.client.asker(), p.asked, 0); err == nil && ix.Exists() &&
			(name == "" || ix.Name == name) {
			return ix, true
		}
	}
	if name == "" {
		return ix, false
	}
	ix, err := s.g.catalog.Describe(s.x.Context(), s.client.asker(), name, 0)
	return ix, err == nil && ix.Exists() && ix.Name == name
}

// stamp has the document stamped.
func (s *serving) stamp(p *place, answer []byte) {
	ix, known := s.describe(p)
	reason := ""
	switch {
	case !p.Numbered:
		reason = outcome.ReasonSeqNo
	case !known:
		reason = outcome.ReasonMetadata
	case int64(len(p.Source)) > s.g.maxBody-maxStamp:
		reason = outcome.ReasonTooLarge // nor could it be taken out of a write of it
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
		reason = outcome.ReasonFormat
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
	said := []wire.Field{s.g.unstamped(ru, outcome.ReasonTooLarge)}
	s.g.forward(s.x, proxy.ForwardOptions{OnHead: func(*wire.Head, []byte) []wire.Field { return said }})
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
