package rule

import (
	"optimist/internal/api"
)

// Set is a list of rules, compiled. It is immutable and may be shared.
type Set struct {
	rules []*Rule
	any   kinds // what any rule takes, so that most requests are answered without looking at names

	stamps bool  // some rule stamps documents
	locked *Rule // the first that enforces locks
	makes  bool  // some rule transforms them, or keeps writes that can't be placed

	allSearches bool // some rule has all searches watched
}

func (s *Set) add(r *Rule) {
	s.rules = append(s.rules, r)
	s.any |= r.match.kinds
	s.stamps = s.stamps || r.Stamp != ""
	if r.Locks != nil && s.locked == nil {
		s.locked = r
	}
	s.makes = s.makes || r.Locks != nil || r.Transform != nil || r.DeadLetters
	s.allSearches = s.allSearches || r.AllSearches && r.Session && r.Mode != Off
}

// Match is the first rule that takes an operation on an index, or nil, by the name alone: see MatchRequest for rules that ask for more
// of a request. index is decoded. Writes are Index, IndexAuto, Create, Update, Patch, Delete (single or an item of a bulk); for the
// reads Get, Source, Mget, Search it is the first rule of that index that watches such reads. It doesn't allocate.
func (s *Set) Match(index string, kind api.Kind) *Rule {
	return s.MatchRequest(&Target{Index: index, Kind: kind})
}

// Makes reports whether any rule looks at new documents: to transform them, or to keep those that can't be written.
func (s *Set) Makes() bool { return s.makes }

// AllSearches reports whether some rule has all searches watched.
func (s *Set) AllSearches() bool { return s.allSearches }

// Enforces is the first rule that enforces locks, or nil.
func (s *Set) Enforces() *Rule { return s.locked }

// Takes reports whether any rule takes the kind at all, on whatever index: if not, bodies that name several indices
// (_mget, _search) needn't be looked at.
func (s *Set) Takes(kind api.Kind) bool { return s.any.has(kind) }

// All are the rules in their order. The slice isn't to be changed.
func (s *Set) All() []*Rule { return s.rules }

// MatchRequest is Match for a whole request. It allocates only for rules that ask for users, and for date expressions.
func (s *Set) MatchRequest(a *Target) *Rule {
	if !s.any.has(a.Kind) {
		return nil
	}
	index := stem(a.Index)
	for _, r := range s.rules {
		if r.match.kinds.has(a.Kind) && r.match.takes(index, a) && r.match.condition(a.Fields) {
			return r
		}
	}
	return nil
}

// MatchAny is the first rule that takes some writes to an index, of any client and with any headers. names are the index's own, or its
// data stream's, first, then all others that it has.
func (s *Set) MatchAny(names ...string) *Rule {
	for _, r := range s.rules {
		if r.takesSome(names) {
			return r
		}
	}
	return nil
}

// Takers are the rules that take writes to an index, up to the first one that takes all writes there. names are those of MatchAny.
func (s *Set) Takers(names ...string) (list []*Rule) {
	for _, r := range s.rules {
		if !r.takesSome(names) {
			continue
		}
		list = append(list, r)
		if !r.match.conditional() && r.match.kinds&writes == writes {
			break
		}
	}
	return list
}

// takesSome reports whether the rule takes some writes to an index, of any client and with any headers.
func (r *Rule) takesSome(names []string) bool {
	for i, name := range names {
		if i > 0 && (r.AnyIndex || matchesAny(r.match.out, names[0])) {
			break
		}
		if r.match.kinds&writes != 0 && r.match.index(name) {
			return true
		}
	}
	return false
}

// Elsewhere reports whether a rule before by (or any, where by is nil) could take the request by another name of its index than the one
// that it has: whether that is an alias is worth knowing. by is what MatchRequest answered for the same request without Concrete and
// Stream.
func (s *Set) Elsewhere(a *Target, by *Rule) bool {
	return s.any.has(a.Kind) && s.elsewhere(a, by, func(r *Rule) bool { return r.match.kinds.has(a.Kind) })
}

// elsewhere is Elsewhere for rules of which something holds.
func (s *Set) elsewhere(a *Target, by *Rule, holds func(r *Rule) bool) bool {
	index := stem(a.Index)
	for _, r := range s.rules {
		if r == by {
			return false
		}
		if holds(r) && !r.AnyIndex && !matchesAny(r.match.out, index) && r.match.condition(a.Fields) {
			return true
		}
	}
	return false
}
