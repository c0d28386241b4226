package learn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"optimist/rewrite/merge"
)

// Rules returns the strategy of the rules in force for a path of an index. The index has its own name and perhaps another one. rule took
// the writes; it may be gone since.
type Rules func(index, name, rule, path string) Ruled

// Ruled is what the rules in force say about a path of an index.
type Ruled struct {
	Rule     string // that takes the writes; empty: none does
	Claims   bool   // and says which: it isn't for all that other rules leave
	Path     string // of the rule, if it has one that decides there
	Strategy string
}

// says reports whether the configuration has decided about the path.
func (r *Ruled) says() bool { return r.Path != "" || r.Strategy != merge.Sent.String() && r.Rule != "" }

// Suggestions are what the conflicts so far teach.
type Suggestions struct {
	Conflicts int                `json:"conflicts"`
	OwnRules  bool               `json:"own_rules"` // the configuration has rules, which a file of suggestions must not replace
	Indices   []IndexSuggestions `json:"indices"`
}

// IndexSuggestions are those for one index.
type IndexSuggestions struct {
	Index  string           `json:"index"`
	Rule   string           `json:"rule,omitempty"`   // that takes its writes now
	Claims bool             `json:"claims,omitempty"` // and says which: the paths belong into it
	Paths  []PathSuggestion `json:"paths"`
}

// PathSuggestion is what is known of a path, and the strategy that fits it.
type PathSuggestion struct {
	Path       string `json:"path"`
	Strategy   string `json:"strategy,omitempty"` // empty: nothing can be told
	Key        string `json:"key,omitempty"`      // of by_key
	Because    string `json:"because"`
	Configured string `json:"configured,omitempty"` // what the configuration says already
}

// enough is from how many conflicts on something is suggested.
const enough = 3

// The table from what two clients did to a path to what a rule says about it. The first line that fits decides; a share is in
// percent of the path's conflicts.
var table = []struct {
	strategy merge.Strategy
	times    func(*stats) int
	share    int
	unless   func(*stats) bool
	because  func(*stats) string
}{
	{merge.Max, func(s *stats) int { return s.later }, 90, nil,
		func(s *stats) string { return fmt.Sprintf("two clients made it a later time %d times", s.later) }},
	{merge.Sum, func(s *stats) int { return s.equal + s.steps }, 80, nil,
		func(s *stats) string {
			return fmt.Sprintf("two clients moved it from the same number: equally %d times, by small steps %d times; from %s to %s",
				s.equal, s.steps, text(s.span.low), text(s.span.high))
		}},
	{merge.Union, func(s *stats) int { return s.sets }, 90, func(s *stats) bool { return rare(s.setEdits, s.sets) },
		func(s *stats) string {
			return fmt.Sprintf("two clients changed a list without duplicates %d times: they took elements out, or added the same one, %d times",
				s.sets, s.setEdits)
		}},
	{merge.ByKey, func(s *stats) int { return s.keyed }, 100, func(s *stats) bool { return rare(s.bestKey().hits, s.keyed) },
		func(s *stats) string {
			return fmt.Sprintf("two clients changed a list of objects %d times, and %d elements in place; %s tells them apart",
				s.keyed, s.bestKey().hits, quote(s.bestKey().name))
		}},
}

// rare reports whether something happened in few of all cases. It may come from bases that were guessed wrongly.
func rare(n, all int) bool { return 4*n < all }

// suggest finds the strategy that fits, and why. Without one, why is what is known all the same; empty: nothing worth telling.
func (s *stats) suggest(path string) PathSuggestion {
	p := PathSuggestion{Path: path}
	for _, line := range table {
		if n := line.times(s); n >= enough && 100*n >= line.share*s.conflicts && (line.unless == nil || !line.unless(s)) {
			p.Strategy, p.Because = line.strategy.String(), line.because(s)
			if line.strategy == merge.ByKey {
				p.Key = s.bestKey().name
			}
			return p
		}
	}
	if s.overwritten > 0 {
		p.Because = counted(len(s.writers), "client")
		if len(s.writers) == maxNames {
			p.Because += " or more"
		}
		p.Because += " met another client's value " + counted(s.overwritten, "time")
	}
	return p
}

func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// bestKey is the field that is likeliest to be what tells elements apart: it stays when other fields change, and has the name of one.
func (s *stats) bestKey() key {
	if len(s.keys) == 0 {
		return key{}
	}
	return slices.MaxFunc(s.keys, func(a, b key) int {
		return cmp.Or(cmp.Compare(a.kept, b.kept), cmp.Compare(keyLike(a.name), keyLike(b.name)))
	})
}

// keyLike is how much a name is one that keys have.
func keyLike(name string) int {
	switch name = strings.ToLower(strings.TrimLeft(name, "_")); {
	case name == "id", name == "key", name == "uuid", name == "sku":
		return 2
	case strings.HasSuffix(name, "id"), name == "name", name == "code":
		return 1
	}
	return 0
}

// Suggest tells what the conflicts so far teach about an index, or, without a name, about all. rules tells what those in force say.
func (l *Learner) Suggest(only string, rules Rules) Suggestions {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := Suggestions{Conflicts: l.conflicts, Indices: []IndexSuggestions{}}
	places := slices.SortedFunc(l.indices.Keys(), func(a, b place) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.rule, b.rule))
	})
	for _, at := range places {
		if ix, _ := l.indices.Peek(at); (only == "" || only == at.index) && ix.paths.Len() > 0 {
			all.add(ix.suggest(at, rules), at.rule)
		}
	}
	return all
}

// add adds what was learnt of an index under the rule by. Its writes may have another rule since. If something was learnt under that rule,
// too, this alone counts.
func (s *Suggestions) add(one IndexSuggestions, by string) {
	if len(one.Paths) == 0 {
		return
	}
	known := slices.IndexFunc(s.Indices, func(other IndexSuggestions) bool { return other.Index == one.Index && other.Rule == one.Rule })
	switch {
	case known < 0:
		s.Indices = append(s.Indices, one)
	case one.Rule == by:
		s.Indices[known] = one
	}
}

func (ix *index) suggest(at place, rules Rules) IndexSuggestions {
	now := rules(at.index, ix.name, at.rule, "")
	all := IndexSuggestions{Index: at.index, Rule: now.Rule, Claims: now.Claims}
	paths := ix.paths.Keys()
	slices.Sort(paths)
	for _, path := range paths {
		s, _ := ix.paths.Peek(path)
		p := s.suggest(path)
		if p.Because == "" {
			continue
		}
		if now := rules(at.index, ix.name, at.rule, path); now.says() {
			p.Configured = "rule " + now.Rule + " says " + now.Strategy
		}
		all.Paths = append(all.Paths, p)
	}
	return all
}
