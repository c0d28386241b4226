package rule

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"optimist/internal/condition"
	"optimist/internal/config"
)

// Lint finds what is probably not meant in rules that are each right by themselves: rules that can't be reached, because earlier ones
// take all that they would, or nothing at all, and conditions that take a field or a header for granted. It errs on the side of silence: an
// index that is taken by no single earlier pattern, but by several together, isn't found.
func Lint(c *config.Config) []config.Problem {
	if c.DefaultRules() {
		return nil
	}
	matchers := make([]matcher, len(c.Rules))
	for i := range c.Rules {
		matchers[i] = newMatcher(&c.Rules[i])
	}
	near := newNeighbours(matchers)
	var problems []config.Problem
	for i := range c.Rules {
		key := c.RuleKey(i)
		problems = append(problems, conditions(c, i)...)
		hidden := hiddenPatterns(c, matchers, near, i)
		if len(hidden) > 0 && len(hidden) == len(matchers[i].in) {
			problems = append(problems, c.Warn(key,
				"rule %s is never reached: rule %s above takes all its requests (the first rule that matches wins)", c.Rules[i].Name, hidden[0].by))
			continue
		}
		problems = append(problems, excluded(c, &matchers[i], i)...)
		for _, h := range hidden {
			if !covered(matchers[i].in[h.n], matchers[i].out) {
				problems = append(problems, c.Warn(key+indexKey(&c.Rules[i], h.n),
					"%q never gets here: rule %s above takes it", string(matchers[i].in[h.n]), h.by))
			}
		}
	}
	return problems
}

// hidden is a pattern that never takes anything, and the rule that takes all of it before.
type hidden struct {
	n  int // of the rule's patterns that take in
	by string
}

func hiddenPatterns(c *config.Config, matchers []matcher, near *neighbours, i int) []hidden {
	var found []hidden
	for n, p := range matchers[i].in {
		if by := coveredBy(matchers, near, i, p); by >= 0 {
			found = append(found, hidden{n, c.Rules[by].Name})
		}
	}
	return found
}

// excluded warns of patterns of which another one of the same rule excludes all.
func excluded(c *config.Config, m *matcher, i int) (problems []config.Problem) {
	for n, p := range m.in {
		if by := slices.IndexFunc(m.out, func(q pattern) bool { return q.covers(p) }); by >= 0 {
			problems = append(problems, c.Warn(c.RuleKey(i)+indexKey(&c.Rules[i], n), "%q takes nothing: %q excludes all of it", string(p),
				"-"+string(m.out[by])))
		}
	}
	return problems
}

// indexKey is the key, below the rule's, of a rule's n-th pattern that takes in.
func indexKey(r *config.Rule, n int) string {
	for i, name := range r.Match.Index {
		if strings.HasPrefix(name, "-") {
			continue
		}
		if n == 0 {
			return ".match.index[" + strconv.Itoa(i) + "]"
		}
		n--
	}
	return ".match.index"
}

// coveredBy is the first rule before i that takes every write to p's names that rule i would take, or -1. A rule that asks for headers
// or users hides nothing.
func coveredBy(matchers []matcher, near *neighbours, i int, p pattern) int {
	return near.firstBefore(i, p, func(j int) bool {
		return !matchers[j].conditional() && matchers[i].kinds&writes&^matchers[j].kinds == 0 && matchers[j].takesAll(p, matchers[i].out)
	})
}

// takesAll reports whether every name of p, but for those that except takes out, is taken by m.
func (m *matcher) takesAll(p pattern, except []pattern) bool {
	beyond := func(out pattern) bool { return out.meets(p) && !covered(out, except) }
	return !slices.ContainsFunc(m.out, beyond) && covered(p, m.in)
}

func covered(p pattern, by []pattern) bool {
	return slices.ContainsFunc(by, func(q pattern) bool { return q.covers(p) })
}

// conditions warns of conditions that take a field for granted, and of those that compare with null what can't be null. It says nothing of
// a field that a step before names: that may set the field, or ask for it.
func conditions(c *config.Config, i int) (problems []config.Problem) {
	steps := c.Rules[i].Transform
	for n := range steps {
		when := steps[n].When
		if when == "" {
			continue
		}
		program, err := condition.Compile(when)
		if err != nil {
			continue // FromConfig tells of it
		}
		key := c.RuleKey(i) + ".transform[" + strconv.Itoa(n) + "].when"
		if b := program.Boxed(); b.Value != "" {
			problems = append(problems, c.Warn(key, "%s itself is never null, whatever is there; write %s.orValue(null) %s null",
				b.Value, b.Value, b.Operator))
		}
		field := program.Unasked()
		document, name, _ := strings.Cut(field, ".")
		if rest, found := strings.CutPrefix(field, condition.Headers+"."); found {
			document, name = condition.Headers, rest
		}
		header := document == condition.Headers
		if field == "" || header && asksForHeader(&c.Rules[i].Match, name) || slices.ContainsFunc(steps[:n], func(s config.Step) bool {
			return strings.Contains(s.Path, name) || strings.Contains(s.When, name) || header && strings.Contains(strings.ToLower(s.When), name)
		}) {
			continue
		}
		ask := fmt.Sprintf("has(%s) && …, or write %s.?%s.orValue(…)", field, document, name)
		if header || !identifier.MatchString(name) {
			ask = fmt.Sprintf("%q in %s && …", name, document)
		}
		problems = append(problems, c.Warn(key, "if there is no %s, the client may get a 400; ask for it first, as in %s", field, ask))
	}
	return problems
}

// asksForHeader reports whether every request that m takes has the header.
func asksForHeader(m *config.Match, name string) bool {
	return slices.ContainsFunc(m.Headers, func(h config.HeaderPattern) bool { return strings.EqualFold(h.Name, name) })
}

// identifier is a name that may follow a dot in a condition, or several with dots between them.
var identifier = regexp.MustCompile(`^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)
