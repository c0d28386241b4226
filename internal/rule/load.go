package rule

import (
	"slices"

	"optimist/internal/config"
)

// Load reads a configuration and compiles its rules. The error is a config.Problems with all that is wrong with them, or the
// system's own.
func Load(name string, o config.Overrides) (*config.Config, *Set, error) {
	var rules *Set
	c, err := config.Load(name, o, func(c *config.Config) (problems config.Problems) {
		rules, problems = compileAll(c)
		return problems
	})
	return c, rules, err
}

// FromConfig compiles the rules of a configuration. The error is a config.Problems with all that is wrong with them, each with its place;
// what is suspicious, Lint tells.
func FromConfig(c *config.Config) (*Set, error) {
	s, problems := compileAll(c)
	if len(problems) > 0 {
		problems.Sort()
		return nil, problems
	}
	return s, nil
}

// compileAll compiles the rules that can be. The set has no others.
func compileAll(c *config.Config) (*Set, config.Problems) {
	var problems config.Problems
	s := &Set{}
	for i := range c.Rules {
		r, wrong := compile(i, &c.Rules[i])
		for _, w := range wrong {
			key := c.RuleKey(i) + "." + w.key
			if w.line > 0 {
				problems = append(problems, c.FailInside(key, config.Pos{Line: w.line, Column: w.column}, "%s", w.reason))
			} else {
				problems = append(problems, c.Fail(key, "%s", w.reason))
			}
		}
		if len(wrong) == 0 {
			s.add(r)
		}
	}
	return s, append(problems, claims(c)...)
}

// claims finds indices that two files claim. Whoever writes one file doesn't see the others, and which of two rules comes first would be
// a matter of file names. Rules that name no index claim none: they are for what is left, or for some clients or requests everywhere.
func claims(c *config.Config) config.Problems {
	var problems config.Problems
	matchers := make([]matcher, len(c.Rules))
	for i := range c.Rules {
		matchers[i] = newMatcher(&c.Rules[i])
	}
	files := c.FilesOfRules()
	if len(slices.Compact(slices.Clone(files))) <= 1 {
		return nil
	}
	near := newNeighbours(matchers)
	for j := range c.Rules {
		if c.Rules[j].Match.ByDefault() {
			continue
		}
		for _, i := range near.before(j, &matchers[j]) {
			if c.Rules[i].Match.ByDefault() || files[i] == files[j] {
				continue
			}
			if n, with, meet := matchers[j].clash(&matchers[i]); meet {
				problems = append(problems, c.Fail(c.RuleKey(j)+indexKey(&c.Rules[j], n),
					"%q is claimed twice: rule %s takes %q for the same operations, at %s", string(matchers[j].in[n]), c.Rules[i].Name,
					string(matchers[i].in[with]), c.Where(c.RuleKey(i)+indexKey(&c.Rules[i], with))))
			}
		}
	}
	return problems
}

// clash finds two patterns, m's n-th and o's with-th that take in, by which both take a write to the same name.
func (m *matcher) clash(o *matcher) (n, with int, meet bool) {
	if m.kinds&o.kinds&writes == 0 {
		return 0, 0, false
	}
	for n, p := range m.in {
		for with, q := range o.in {
			if p.meets(q) && !covered(p, o.out) && !covered(q, m.out) && !covered(p, m.out) && !covered(q, o.out) {
				return n, with, true
			}
		}
	}
	return 0, 0, false
}
