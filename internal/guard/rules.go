package guard

import (
	"optimist/internal/rule"
	"optimist/proxy"
)

// taker is the rule that takes a write, or nil. A rule takes it by the name that the request has, or by that of the index behind: where a
// rule could be in question by that alone, the engine is asked, once a minute for a name. The error says that it couldn't be, and that
// the write can't be let through, since a rule might have guarded it.
func (g *Guard) taker(x *proxy.Exchange) (*rule.Rule, error) {
	op, l, rules := x.Op(), of(x), g.rules.Rules()
	a := rule.Asked{Index: l.decoded(op.Index), Kind: op.Kind, Fields: x.Head().Fields}
	ru := rules.MatchRequest(&a)
	if !rules.Elsewhere(&a, ru) {
		return ru, nil
	}
	c := g.who(x)
	ix, err := g.catalog.Describe(x.Context(), c.asker(), a.Index, 0)
	if err != nil {
		if g.rules.Mode() != rule.Guard {
			return ru, nil // whatever takes it, it is forwarded as it is
		}
		return nil, err
	}
	a.Concrete, a.Stream = ix.Name, ix.DataStream
	return rules.MatchRequest(&a), nil
}

// watch is which rule watches a read, as far as that is known before the answer.
type watch struct {
	rule  *rule.Rule
	rules *rule.Set
	asked rule.Asked
	open  bool // the name may be an alias that another rule takes by its index, which the answer names
}

// watcher is the rule that watches a read. Nothing is asked for it, and nobody waits.
func (g *Guard) watcher(x *proxy.Exchange) watch {
	op, l := x.Op(), of(x)
	w := watch{rules: g.rules.Rules(), asked: rule.Asked{Index: l.decoded(op.Index), Kind: op.Kind, Fields: x.Head().Fields}}
	w.rule = w.rules.MatchRequest(&w.asked)
	if !w.rules.Elsewhere(&w.asked, w.rule) {
		return w
	}
	ix, ok := g.catalog.Known(g.who(x).session.Credentials(), w.asked.Index)
	if w.open = !ok; ok {
		w.asked.Concrete, w.asked.Stream = ix.Name, ix.DataStream
		w.rule = w.rules.MatchRequest(&w.asked)
	}
	return w
}

// of is the rule for a document of the answer, by the index that stands there.
func (w *watch) of(index []byte) *rule.Rule {
	if w.open && len(index) > 0 {
		w.asked.Concrete = string(index)
		w.rule, w.open = w.rules.MatchRequest(&w.asked), false
	}
	return w.rule
}
