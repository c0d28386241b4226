package intercept

import (
	"maps"
	"slices"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/rule"
)

// taker is the rule that takes a write, or nil. The error says that the engine couldn't be asked what the index is, and that the write
// can't be let through, since a rule might have guarded it.
func (i *Interceptor) taker(r *request) (*rule.Rule, error) {
	rules, a := i.Rules.Rules(), targetOf(r, r.Op().Kind)
	ru, err := match(rules, &a, i.resolver(r, a.Index))
	if err != nil && i.Rules.Mode() != rule.Guard {
		return rules.MatchRequest(&a), nil // whatever takes it, it is forwarded as it is
	}
	return ru, err
}

// targetOf is the request as rules look at it.
func targetOf(r *request, kind api.Kind) rule.Target {
	return rule.Target{Index: r.Index(), Kind: kind, Fields: r.Head().Fields}
}

// match is the rule that takes what a is. A rule takes it by the name that the request has, or by that of the index behind: where a rule
// could be in question by that alone, the engine is asked, once a minute for a name.
func match(rules *rule.Set, a *rule.Target, resolve func() (catalog.Index, error)) (*rule.Rule, error) {
	ru := rules.MatchRequest(a)
	if !rules.Elsewhere(a, ru) {
		return ru, nil
	}
	ix, err := resolve()
	if err != nil {
		return nil, err
	}
	a.Concrete, a.Stream = ix.Name, ix.DataStream
	return rules.MatchRequest(a), nil
}

func (i *Interceptor) resolver(r *request, name string) func() (catalog.Index, error) {
	return func() (catalog.Index, error) { return i.catalog.Resolve(r.Context(), r.Asker(), name, 0) }
}

// takers are what the rules in force say of a request that may write many documents.
type takers struct {
	rules []*rule.Rule // that guard any of these writes
	all   bool         // each of the writes has one
}

// add notes the rule that takes some of the writes; nil is none. may says that the request seldom has such writes: without a rule for
// them, rules may take all of it.
func (t *takers) add(i *Interceptor, ru *rule.Rule, may bool) {
	switch {
	case i.Rules.Effective(ru) != rule.Guard:
		t.all = t.all && may
	case !slices.Contains(t.rules, ru):
		t.rules = append(t.rules, ru)
	}
}

// enforcing is the first rule of them that enforces locks, or nil.
func (t *takers) enforcing() *rule.Rule {
	return t.first(func(ru *rule.Rule) bool { return ru.Locks != nil })
}

// spokesman is the one whose name and transform an outcome is told by; nil if there is none.
func (t *takers) spokesman() *rule.Rule {
	if ru := t.first(func(ru *rule.Rule) bool { return ru.Transform != nil }); ru != nil {
		return ru
	}
	return t.first(func(*rule.Rule) bool { return true })
}

func (t *takers) first(is func(*rule.Rule) bool) *rule.Rule {
	if k := slices.IndexFunc(t.rules, is); k >= 0 {
		return t.rules[k]
	}
	return nil
}

// guarding are all rules that guard writes now: those that may be meant where nobody knows what a request writes.
func (i *Interceptor) guarding() (t takers) {
	for _, ru := range i.Rules.Rules().All() {
		t.add(i, ru, false)
	}
	t.all = false
	return t
}

// written are the kinds of writes that a request for many documents may make. The script of a request by query may delete, too.
func written(k api.Kind) []api.Kind {
	switch k {
	case api.Bulk:
		return []api.Kind{api.Index, api.IndexAuto, api.Create, api.Update, api.Delete}
	case api.DeleteByQuery:
		return []api.Kind{api.Delete}
	case api.UpdateByQuery:
		return []api.Kind{api.Index, api.Update, api.Delete}
	}
	return []api.Kind{api.Index, api.Create, api.Delete}
}

// seldom reports whether a request of the kind r has writes of the kind w only if its script says so.
func seldom(r, w api.Kind) bool { return r == api.UpdateByQuery && w == api.Delete }

// takersOf are the rules that take writes to the index of a name (decoded).
func (i *Interceptor) takersOf(r *request, name string) (takers, error) {
	t := takers{all: true}
	for _, kind := range written(r.Op().Kind) {
		a := rule.Target{Index: name, Kind: kind, Fields: r.Head().Fields}
		ru, err := match(i.Rules.Rules(), &a, i.resolver(r, name))
		if err != nil {
			return t, err
		}
		t.add(i, ru, seldom(r.Op().Kind, kind))
	}
	return t, nil
}

// takersOfAny are the rules that take writes to any of the indices that an expression of a path names. It may name them by their aliases.
func (i *Interceptor) takersOfAny(r *request, raw []byte) (takers, error) {
	if name := api.Name(raw); api.OneIndex(name) {
		return i.takersOf(r, name)
	}
	expression := string(raw)
	if expression == "" {
		expression = "*"
	}
	listed, err := i.catalog.List(r.Context(), r.Asker(), expression)
	if err != nil {
		return takers{}, unasked(err)
	}
	rules, t := i.Rules.Rules(), takers{all: true}
	for _, index := range slices.Sorted(maps.Keys(listed)) {
		for _, kind := range written(r.Op().Kind) {
			a := rule.Target{Index: index, Kind: kind, Fields: r.Head().Fields}
			may := seldom(r.Op().Kind, kind)
			t.add(i, rules.MatchRequest(&a), may)
			for _, name := range slices.Sorted(maps.Keys(listed[index].Names)) {
				a.Index, a.Concrete = name, index
				if ru := rules.MatchRequest(&a); ru != nil && !ru.AnyIndex {
					t.add(i, ru, may)
				}
			}
		}
	}
	return t, nil
}
