package rule

import (
	"strings"

	"optimist/internal/api"
	"optimist/internal/config"
)

// kinds is a set of api.Kind.
type kinds uint32

// writes are what match.ops can name.
const writes = kinds(1<<api.Index | 1<<api.IndexAuto | 1<<api.Create | 1<<api.Update | 1<<api.Patch | 1<<api.Delete)

// What the words of match.ops and base.reads stand for.
var (
	kindsOfOp = map[config.Op]kinds{config.OpIndex: 1<<api.Index | 1<<api.IndexAuto, config.OpCreate: 1 << api.Create,
		config.OpUpdate: 1 << api.Update, config.OpPatch: 1 << api.Patch, config.OpDelete: 1 << api.Delete}
	kindsOfRead = map[config.Read]kinds{config.ReadGet: 1<<api.Get | 1<<api.Source, config.ReadMget: 1 << api.Mget,
		config.ReadSearch: 1<<api.Search | 1<<api.Scroll, config.ReadSearchByWriters: 1<<api.Search | 1<<api.Scroll}
)

func (k kinds) has(one api.Kind) bool { return k&(1<<one) != 0 }

// matcher is a rule's match block.
type matcher struct {
	in, out []pattern
	any     bool  // it names no index of its own
	kinds   kinds // writes that the rule takes, and reads that it watches
	headers []headerPattern
	users   []pattern
}

func newMatcher(c *config.Rule) matcher {
	m := matcher{any: c.Match.ByDefault()}
	m.conditions(&c.Match)
	for _, name := range c.Match.Index {
		if rest, out := strings.CutPrefix(name, "-"); out {
			m.out = append(m.out, pattern(rest))
		} else {
			m.in = append(m.in, pattern(name))
		}
	}
	for _, op := range c.Match.Ops {
		m.kinds |= kindsOfOp[op]
	}
	for _, read := range c.Base.Reads {
		m.kinds |= kindsOfRead[read]
	}
	return m
}

func (m *matcher) index(name string) bool { return !matchesAny(m.out, name) && matchesAny(m.in, name) }

// Set is a list of rules, compiled. It is immutable and may be shared.
type Set struct {
	rules []*Rule
	any   kinds // what any rule takes, so that most requests are answered without looking at names

	stamps bool  // some rule stamps documents
	locked *Rule // the first that enforces locks
	makes  bool  // some rule transforms them, or keeps writes that can't be placed
}

func (s *Set) add(r *Rule) {
	s.rules = append(s.rules, r)
	s.any |= r.match.kinds
	s.stamps = s.stamps || r.Stamp != ""
	if r.Locks != nil && s.locked == nil {
		s.locked = r
	}
	s.makes = s.makes || r.Locks != nil || r.Transform != nil || r.DeadLetters
}

// Match is the first rule that takes an operation on an index, or nil, by the name alone: see MatchRequest for rules that ask for more
// of a request. index is decoded. Writes are Index, IndexAuto, Create, Update, Patch, Delete (single or an item of a bulk); for the
// reads Get, Source, Mget, Search it is the first rule of that index that watches such reads. It doesn't allocate.
func (s *Set) Match(index string, kind api.Kind) *Rule {
	return s.MatchRequest(&Target{Index: index, Kind: kind})
}

// Makes reports whether any rule has something to do about a new document: it transforms that, or keeps it where it can't be written.
func (s *Set) Makes() bool { return s.makes }

// Enforces is the first rule that enforces locks, or nil.
func (s *Set) Enforces() *Rule { return s.locked }

// Takes reports whether any rule takes the kind at all, on whatever index: if not, bodies that name several indices
// (_mget, _search) needn't be looked at.
func (s *Set) Takes(kind api.Kind) bool { return s.any.has(kind) }

// All are the rules in their order. The slice isn't to be changed.
func (s *Set) All() []*Rule { return s.rules }
