package intercept

import (
	"optimist/internal/api"
	"optimist/internal/bulk"
	"optimist/internal/catalog"
	"optimist/internal/outcome"
	"optimist/internal/rule"
)

// ruleOf is the rule that takes the item.
func (b *items) ruleOf(it *item) (*rule.Rule, error) {
	known := &it.named.rules[it.Kind]
	if known.known {
		return known.rule, nil
	}
	a := rule.Target{Index: it.Index, Kind: it.Kind, Fields: b.r.Head().Fields}
	ru, err := match(b.i.Rules.Rules(), &a, func() (catalog.Index, error) { return b.indexOf(it.named) })
	if err != nil {
		return nil, err
	}
	*known = ruled{ru, true}
	return ru, nil
}

// lookedAt is how many items are read before they are looked at.
const lookedAt = 64

// look goes through the items until it finds one that has to be dealt with here. It keeps none of them: most bulks have no such item, and
// are to be forwarded as they are. The error is bulk.ErrUnreadable.
func (b *items) look(reader *bulk.Reader) (found bool, left asIs, err error) {
	known := b.r.Client().Known
	left.untaken = true
	for more := true; more; b.forget() {
		err = b.read(reader, lookedAt)
		more = err == nil && len(b.all) == lookedAt
		for k := range b.all {
			it := &b.all[k]
			b.chooseFor(it)
			switch {
			case it.isOurs():
				b.forget()
				return true, asIs{}, nil
			case it.course == byRule:
				left.reason, left.untaken = outcome.ReasonBulk, false
			case it.rule != nil:
				left.untaken = false
			}
			if it.skipped != nil {
				left.skipped = it.skipped
			}
			if known {
				left.of = append(left.of, bulk.Name{Verb: it.Verb, Index: it.Index, ID: it.ID, Routing: it.Routing})
			}
		}
	}
	return false, left, err
}

// isOurs reports whether the item has to be dealt with here.
func (it *item) isOurs() bool { return it.course >= retrying || it.err != nil }

// choose finds out which items are guarded. Items of one document go one after the other if one of them is guarded: see queues.
func (b *items) choose() {
	for k := range b.all {
		it := &b.all[k]
		b.chooseFor(it)
		if it.err != nil {
			it.account.Kind = outcome.Refused
		}
	}
}

func (b *items) chooseFor(it *item) {
	if it.rule, it.err = b.ruleOf(it); it.err != nil {
		return
	}
	it.Elsewhere = it.Elsewhere && !b.pathIsIndex()
	if it.journal, it.err = b.journalOfItem(it); it.err != nil || it.journal != nil {
		if it.err == nil {
			b.forJournal(it)
		}
		return
	}
	switch {
	case b.i.Rules.Effective(it.rule) != rule.Guard:
		it.rule = nil
	case it.rule.Bulk == rule.BulkRefuse:
		it.err = b.refuse(it)
	case it.rule.Bulk == rule.BulkPass:
		it.skip()
		it.rule, it.course = nil, byRule
	case it.Odd && it.rule.Locks != nil:
		it.err = unguardable(it.rule, outcome.ReasonFormat)
	case it.Elsewhere && (it.rule.Transform != nil || it.rule.Unknown == rule.UnknownReject || it.rule.RejectLost):
		it.err = elsewhere(it)
	default:
		it.PassRejected = it.rule.PassRejected
		switch it.err = b.guardIfNeeded(it); {
		case it.err != nil:
		case it.course == guarded:
			it.named.guarded = true
		case !it.Elsewhere && it.wantsRetries():
			it.course = retrying
		}
	}
}

// skip notes that the item goes without its rule's transform. A delete has nothing to transform.
func (it *item) skip() {
	if it.rule.Transform != nil && it.Kind != api.Delete {
		it.skipped = it.rule
	}
}

// refuse is what an item gets whose rule refuses items of bulks. If the item goes to a data stream that the rule doesn't name, the rule
// leaves it alone.
func (b *items) refuse(it *item) error {
	if it.rule.AnyIndex {
		ix, err := b.indexOf(it.named)
		if err != nil {
			return err
		}
		if ix.DataStream != "" {
			it.rule = nil
			return nil
		}
	}
	return refusedBy(it.rule)
}

// refusedBy is what an item gets whose rule refuses items of bulks.
func refusedBy(ru *rule.Rule) error {
	return illegal("rule [" + ru.Name + "] refuses items of a bulk: write this document by a request of its own")
}

// elsewhere is what an item gets if its rule may refuse writes, or changes them, and nobody can tell which document it is.
func elsewhere(it *item) error {
	return illegal("the path names another index than the action, [" + it.Index + "], and there is no index of the path's name: rule [" +
		it.rule.Name + "] needs the action's index in the path, or none")
}

// pathIsIndex reports whether the path names an index. If it doesn't, it may be the prefix by which a gateway tells tenants apart. Then an
// item that names an index itself can't be told from another tenant's.
func (b *items) pathIsIndex() bool {
	ix, err := b.indexOf(b.nameOf(b.r.Index()))
	return err != nil || ix.UUID != "" // what can't be asked is guarded
}

// wantsRetries reports whether the item is an update that the engine is to try again after a conflict, as the rule says.
func (it *item) wantsRetries() bool {
	return it.rule != nil && it.Kind == api.Update && it.rule.RetryOnConflict > 0 && !it.Guarded && !it.Retries && !it.Odd
}

// guardIfNeeded has the item guarded if needsGuard says so.
func (b *items) guardIfNeeded(it *item) error {
	needs, err := b.needsGuard(it)
	if needs && err == nil {
		it.course = guarded
	}
	return err
}

// needsGuard reports whether there is anything to be done about an item: most items of most bulks are new documents, or are of clients
// that have read nothing.
func (b *items) needsGuard(it *item) (bool, error) {
	ru := it.rule
	switch {
	case it.Odd:
		it.skip()
		return false, nil
	case it.Token != "", ru.Locks != nil:
		return true, nil
	case it.Elsewhere:
		return false, nil
	case it.Kind != api.Delete && (ru.Transform != nil || b.stamps && b.i.watcher.Stamper(&b.r.Request, it.Index) != nil):
		return true, nil
	case it.Kind == api.IndexAuto:
		return false, nil
	case ru.WriteID != "" && (it.Kind == api.Index || it.Kind == api.Create):
		return true, nil // it leaves a mark
	case ru.DeadLetters, ru.Unknown == rule.UnknownFetch, ru.Unknown == rule.UnknownReject, ru.RejectLost, it.Guarded && ru.MergeExplicit:
		return true, nil
	case ru.HasStrategies && it.wantsRetries():
		return true, nil // it counts that they weren't used
	}
	return b.mayHaveBase(it)
}

// mayHaveBase reports whether the session may know a base for the item.
func (b *items) mayHaveBase(it *item) (bool, error) {
	c := b.r.Client()
	if !it.rule.Session || !c.Known {
		return false, nil
	}
	ix, err := b.indexOf(it.named)
	if err != nil {
		return false, err
	}
	if it.Kind == api.Create && c.Session.IsNamed() {
		return true, nil // it may write its next change from memory
	}
	ref := ix.Ref(it.Routing, it.ID)
	if b.i.Sessions.MayHaveBase(c.Session, ref) {
		return true, nil
	}
	for _, former := range ix.Former(ref) {
		if b.i.Sessions.MayHaveBase(c.Session, former) {
			return true, nil
		}
	}
	return false, nil
}
