package watch

import (
	"cmp"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/client"
	"optimist/internal/rule"
)

// choose is which rule watches the read, as far as that is known before the answer. Nothing is asked for it, and nobody waits.
func (rd *Reading) choose() {
	c := &rd.choice
	c.target = rule.Target{Index: rd.r.Index(), Kind: rd.r.Op().Kind, Fields: rd.r.Head().Fields}
	c.rule = rd.rules.MatchRequest(&c.target)
	if !rd.rules.Elsewhere(&c.target, c.rule) {
		return
	}
	ix, known := rd.w.Catalog.Cached(rd.r.Client().Realm, c.target.Index)
	c.open = !known
	if known {
		c.target.Concrete, c.target.Stream = ix.Name, ix.DataStream
		c.rule = rd.rules.MatchRequest(&c.target)
	}
}

// decide is which rule it is after all, by the index that the answer names.
func (rd *Reading) decide(index []byte) {
	if c := &rd.choice; c.open && len(index) > 0 {
		c.target.Concrete, c.open = string(index), false
		c.target.Stream = rd.w.Catalog.Stream(rd.r.Client().Realm, c.target.Concrete)
		c.rule = rd.rules.MatchRequest(&c.target)
	}
}

// remembers reports whether a rule has reads remembered for the client's session.
func (rd *Reading) remembers(ru *rule.Rule) bool {
	return rd.w.Rules.Effective(ru) != rule.Off && ru.Session && rd.client.Known
}

// Stamper is the rule whose stamps the documents have that a write may bring back to an index, unless its mode is off; nil is none.
// Where only what is behind the name decides, the engine is asked, once a minute for an index, and once a second for an alias.
func (w *Watcher) Stamper(r *client.Request, index string) *rule.Rule {
	return w.stamperBy(r, index, rule.Observe, func(name string) (catalog.Index, bool) {
		ix, err := w.Catalog.Resolve(r.Context(), r.Asker(), name, 0)
		return ix, err == nil
	})
}

// stamper is the rule that stamps what the read finds in the index that it names. Its client doesn't wait for the engine as a write does.
func (rd *Reading) stamper() *rule.Rule {
	return rd.w.stamperBy(rd.r, rd.r.Index(), rule.Guard, rd.learn)
}

func (w *Watcher) stamperBy(r *client.Request, index string, least rule.Mode, ask func(string) (catalog.Index, bool)) *rule.Rule {
	rules := w.Rules.Rules()
	if !rules.Stamps() || w.Rules.Mode() < least {
		return nil
	}
	a := rule.Target{Index: index, Fields: r.Head().Fields}
	st := w.stamper(rules, &a, least)
	if st != nil || !rules.StampsElsewhere(&a) || !api.OneIndex(index) {
		return st
	}
	ix, known := ask(index)
	if !known || !ix.Exists() {
		return nil
	}
	a.Concrete, a.Stream = ix.Name, ix.DataStream
	return w.stamper(rules, &a, least)
}

func (w *Watcher) stamper(rules *rule.Set, a *rule.Target, least rule.Mode) *rule.Rule {
	if st := rules.Stamper(a); st != nil && w.Rules.Effective(st) >= least {
		return st
	}
	return nil
}

// rulesOf are the rules for one of several documents: the one that has the document remembered, and the one that stamps it. They are found
// by the name in the request, if that names one index, and by the index's own name.
type rulesOf struct {
	name, index      string
	watches, stamper *rule.Rule
}

// find finds the rules for the next document. Mostly they are those of the one before.
func (f *rulesOf) find(rd *Reading, name string, index []byte) {
	if f.name == name && f.index == string(index) && f.index != "" {
		return
	}
	f.name, f.index = name, string(index)
	a := rule.Target{Index: cmp.Or(name, f.index), Concrete: f.index, Kind: rd.r.Op().Kind, Fields: rd.r.Head().Fields}
	a.Stream = rd.w.Catalog.Stream(rd.r.Client().Realm, f.index)
	f.watches = rd.rules.MatchRequest(&a)
	f.stamper = rd.w.stamper(rd.rules, &a, rule.Guard)
}
