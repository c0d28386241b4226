package rule

import (
	"fmt"
	"strings"

	"optimist/internal/api"
	"optimist/internal/config"
)

// kinds is a set of api.Kind.
type kinds uint32

// writes are what match.ops can name.
const writes = kinds(1<<api.Index | 1<<api.IndexAuto | 1<<api.Create | 1<<api.Update | 1<<api.Delete)

func kindsOf(list ...api.Kind) kinds {
	var k kinds
	for _, one := range list {
		k |= 1 << one
	}
	return k
}

func (k kinds) has(one api.Kind) bool { return k&(1<<one) != 0 }

// matcher is a rule's match block.
type matcher struct {
	in, out []pattern
	kinds   kinds // writes that the rule takes, and reads that it watches
}

func newMatcher(c *config.Rule) matcher {
	var m matcher
	for _, name := range c.Match.Index {
		if rest, out := strings.CutPrefix(name, "-"); out {
			m.out = append(m.out, pattern(rest))
		} else {
			m.in = append(m.in, pattern(name))
		}
	}
	for _, op := range c.Match.Ops {
		switch op {
		case config.OpIndex:
			m.kinds |= kindsOf(api.Index, api.IndexAuto)
		case config.OpCreate:
			m.kinds |= kindsOf(api.Create)
		case config.OpUpdate:
			m.kinds |= kindsOf(api.Update)
		case config.OpDelete:
			m.kinds |= kindsOf(api.Delete)
		}
	}
	for _, read := range c.Base.Reads {
		switch read {
		case config.ReadGet:
			m.kinds |= kindsOf(api.Get, api.Source)
		case config.ReadMget:
			m.kinds |= kindsOf(api.Mget)
		case config.ReadSearch:
			m.kinds |= kindsOf(api.Search)
		}
	}
	return m
}

func (m *matcher) index(name string) bool {
	for _, p := range m.out {
		if p.matches(name) {
			return false
		}
	}
	for _, p := range m.in {
		if p.matches(name) {
			return true
		}
	}
	return false
}

// Set is a list of rules, compiled. It is immutable and may be shared.
type Set struct {
	rules []*Rule
	any   kinds // what any rule takes, so that most requests are answered without looking at names
}

// Compile turns the configuration's rules into a Set. The configuration has checked them already; an error is an *Error about a
// merge block that the merger can't use.
func Compile(rules []config.Rule) (*Set, error) {
	s := &Set{rules: make([]*Rule, len(rules))}
	for i := range rules {
		r, err := compile(i, &rules[i])
		if err != nil {
			return nil, &Error{N: i, Name: rules[i].Name, Err: err}
		}
		s.rules[i] = r
		s.any |= r.match.kinds
	}
	return s, nil
}

// Error is a rule that can't be used.
type Error struct {
	N    int // the rule's place in the list, from 0
	Name string
	Err  error
}

func (e *Error) Error() string { return fmt.Sprintf("rule %s (rules[%d]): %v", e.Name, e.N, e.Err) }

// Unwrap is what is wrong with it.
func (e *Error) Unwrap() error { return e.Err }

// Match is the first rule that takes an operation on an index, or nil. index is decoded. Writes are Index, IndexAuto, Create,
// Update, Delete (single or an item of a bulk); for the reads Get, Source, Mget, Search it is the first rule of that index
// that watches such reads. It doesn't allocate.
func (s *Set) Match(index string, kind api.Kind) *Rule {
	if !s.any.has(kind) {
		return nil
	}
	for _, r := range s.rules {
		if r.match.kinds.has(kind) && r.match.index(index) {
			return r
		}
	}
	return nil
}

// Takes reports whether any rule takes the kind at all, on whatever index: if not, bodies that name several indices
// (_mget, _search) needn't be looked at.
func (s *Set) Takes(kind api.Kind) bool { return s.any.has(kind) }

// All are the rules in their order. The slice isn't to be changed.
func (s *Set) All() []*Rule { return s.rules }
