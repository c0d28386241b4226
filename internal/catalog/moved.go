package catalog

import (
	"cmp"
	"slices"
	"strings"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/session"
)

// An alias can be moved without optimist, and a name that was an index's can become an alias. The engine's answers show it: they name the
// index that the document is in. What a client has read by the name before the move is in another index than what it writes after it. So
// the catalog remembers for which indices a name has stood, longer than what it stands for.

// maxPast bounds how many indices are remembered for which a name stood before.
const maxPast = 4

// Found is Shown for a read, which also shows for which index the name stands if the engine wasn't asked yet. alone says that the name
// stands for no other index besides: a search may find documents of several.
func (c *Catalog) Found(asker Asker, name, index string, alone bool) {
	if index == "" {
		return
	}
	e, err := c.entryOf(asker, name)
	if err != nil {
		return
	}
	a := e.index.last.Load()
	switch {
	case a == nil:
		a = &answer[Index]{}
		if !e.index.last.CompareAndSwap(nil, a) {
			return // somebody has asked meanwhile
		}
	case a.value.Exists():
		c.shown(e, a, index)
		return
	}
	next := *a
	if next.value.found(index, alone) {
		e.index.last.CompareAndSwap(a, &next)
	}
}

// found notes that a read by the name found that index, before the engine was asked, and reports whether that is new.
func (ix *Index) found(index string, alone bool) bool {
	switch {
	case alone && len(ix.Before) > 0 && ix.Before[0] == index && !ix.oneOfMany:
		return false
	case !alone && (len(ix.Before) == maxPast || slices.Contains(ix.Before, index)):
		return false
	}
	ix.Before, ix.oneOfMany = past(ix.Before, strings.Clone(index)), !alone
	return true
}

// Shown notes that an answer to a request by the name (decoded) is of that index (concrete). If the name stood for another one alone, it
// has been moved: what is known of it is void, and the engine is asked before the next write.
func (c *Catalog) Shown(realm session.Credentials, name, index string) {
	if e, found := c.names.Get(nameKey{name, realm}); found && index != "" {
		c.shown(e, e.index.last.Load(), index)
	}
}

func (c *Catalog) shown(e *entry, a *answer[Index], index string) {
	if a != nil && a.value.Exists() && a.value.Name != index && !a.value.Shared && !a.value.Pipeline && a.value.DataStream == "" {
		c.void(e, a, strings.Clone(index))
	}
}

// Void has the engine asked what the name (decoded) stands for, before that is needed again: an answer doesn't fit what is known of it.
func (c *Catalog) Void(realm session.Credentials, name string) {
	if e, found := c.names.Get(nameKey{name, realm}); found {
		c.void(e, e.index.last.Load(), "")
	}
}

// void drops an answer, but for the indices that it named, and the one that was seen since, or "". Whoever has asked meanwhile has a
// younger answer.
func (c *Catalog) void(e *entry, a *answer[Index], seen string) {
	if a == nil {
		return
	}
	before := a.value.past()
	if seen != "" {
		before = past(before, seen)
	}
	if e.index.last.CompareAndSwap(a, &answer[Index]{value: Index{Before: before, backed: a.value.backs()}}) {
		e.several.Store(nil)
		e.whole.last.Store(nil)
	}
}

// emptied is an entry in which nothing is known but for which indices the name stood. Questions that are under way don't fill it.
func (e *entry) emptied() *entry {
	empty := newEntry()
	if a := e.index.last.Load(); a != nil {
		empty.index.last.Store(&answer[Index]{value: Index{Before: a.value.past(), oneOfMany: a.value.oneOfMany,
			backed: a.value.backs()}})
	}
	return empty
}

// Former returns the document ref in each of the indices for which the name stood before, the latest last.
func (ix *Index) Former(ref doc.Ref) (former []doc.Ref) {
	if !ix.Exists() {
		return nil
	}
	for _, ref.Index = range slices.Backward(ix.Before) {
		former = append(former, ref)
	}
	return former
}

// past is the indices for which the name has stood up to now, the latest first.
func (ix *Index) past() []string {
	if ix.Exists() {
		return past(ix.Before, ix.Name)
	}
	return ix.Before
}

// backs is the data stream that the index backs, by the last answer of the engine; empty: none is known.
func (ix *Index) backs() string { return cmp.Or(ix.DataStream, ix.backed) }

// past is before, with the latest index in front.
func past(before []string, latest string) []string {
	all := append(make([]string, 0, maxPast), latest)
	for _, index := range before {
		if index != latest && len(all) < maxPast {
			all = append(all, index)
		}
	}
	return all
}

// pastOf is the indices for which the name stood before it stood for ix. last is the last answer, or nil.
func pastOf(last *answer[Index], ix *es.Index) []string {
	switch {
	case last == nil, last.value.oneOfMany && ix.Shared: // the index that was found may still be one of the name's
		return nil
	case last.value.Exists() && last.value.Name == ix.Name:
		return last.value.Before
	}
	return slices.DeleteFunc(slices.Clone(last.value.past()), func(index string) bool { return index == ix.Name })
}
