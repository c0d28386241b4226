package merge

import (
	"strconv"

	"optimist/internal/jsontext"
	"optimist/rewrite/tree"
)

// A ruleNode is a node of the tree of rule paths. The root is node 0: it has the default strategy, and no rule's path ends there.
type ruleNode struct {
	literal  []ruleEdge
	star     int32 // the node for `*`; 0 is none
	ends     bool  // a rule's path ends here
	strategy Strategy
	key      string // of ByKey
	path     string // as the rule has it
}

type ruleEdge struct {
	token string
	to    int32
}

// compileRules checks the rules and builds their tree.
func compileRules(def Strategy, rules []PathRule) ([]ruleNode, error) {
	if !def.anyValue() {
		return nil, &RuleError{Reason: "must be sent, current or fail, not " + def.String()}
	}
	nodes := []ruleNode{{strategy: def}}
	for _, rule := range rules {
		tokens, reason := checkRule(rule)
		if reason != "" {
			return nil, &RuleError{rule.Path, reason}
		}
		at := int32(0)
		for _, token := range tokens {
			next := nodes[at].child(token)
			if next == 0 {
				next = int32(len(nodes))
				nodes = append(nodes, ruleNode{})
				nodes[at].connect(token, next)
			}
			at = next
		}
		if nodes[at].ends {
			return nil, &RuleError{rule.Path, "is given twice"}
		}
		n := &nodes[at]
		n.ends, n.strategy, n.key, n.path = true, rule.Strategy, rule.Key, rule.Path
	}
	return nodes, nil
}

func checkRule(rule PathRule) (tokens []string, reason string) {
	tokens, err := jsontext.SplitPointer(rule.Path)
	switch {
	case err != nil:
		return nil, err.Error()
	case len(tokens) == 0:
		return nil, "is the whole document: set the default instead"
	case int(rule.Strategy) >= len(strategyNames):
		return nil, "has an unknown strategy"
	case rule.Strategy == ByKey && rule.Key == "":
		return nil, "by_key needs the name of the field that tells elements apart"
	case rule.Strategy != ByKey && rule.Key != "":
		return nil, "has a key, which only by_key uses"
	}
	return tokens, ""
}

func (n *ruleNode) child(token string) int32 {
	if token == "*" {
		return n.star
	}
	for _, e := range n.literal {
		if e.token == token {
			return e.to
		}
	}
	return 0
}

func (n *ruleNode) connect(token string, to int32) {
	if token == "*" {
		n.star = to
		return
	}
	n.literal = append(n.literal, ruleEdge{token, to})
}

// at returns the node for a place of a document by its literal token.
func (n *ruleNode) at(p tree.Place) int32 {
	for _, e := range n.literal {
		if p.Member.Exists() && p.Member.KeyIs(e.token) || !p.Member.Exists() && e.token == strconv.Itoa(p.Index) {
			return e.to
		}
	}
	return 0
}

// A scope is what the rules say about one value, and about those below it.
type scope struct {
	lo, hi int32 // the rule nodes reached, in scopes.states, the most specific first
	rule   int32 // the one that decides here; 0 is none
	// Where no rule decides, a strategy is inherited: from a rule above, or, by 0, the default.
	from    int32
	inherit Strategy
}

// scopes are the rules on the way to the value at hand, which the trail leads to.
type scopes struct {
	rules  []ruleNode
	trail  tree.Trail
	states []int32 // of scopes
}

func (s *scopes) root() scope {
	sc := scope{inherit: s.rules[0].strategy}
	if len(s.rules) > 1 {
		s.states = append(s.states, 0)
		sc.hi = 1
	}
	return sc
}

// strategy returns what decides at sc.
func (s *scopes) strategy(sc scope) Strategy {
	if sc.rule != 0 {
		return s.rules[sc.rule].strategy
	}
	return sc.inherit
}

// decisive returns the rule that strategy follows; it is the root for the default.
func (s *scopes) decisive(sc scope) *ruleNode {
	if sc.rule != 0 {
		return &s.rules[sc.rule]
	}
	return &s.rules[sc.from]
}

// unfit takes away the rule at sc, whose strategy can't be applied to what is there: it decides like Fail, about what is below, too.
func (sc *scope) unfit() {
	if sc.inherit != Fail {
		sc.inherit, sc.from = Fail, sc.rule
	}
	sc.rule = 0
}

// enter goes one step down. leave must be called with the scope that it was called with.
func (s *scopes) enter(sc scope, p tree.Place) scope {
	s.trail = append(s.trail, p)
	return s.below(sc, func(n *ruleNode) int32 { return n.at(p) })
}

// below is the scope one step below sc. literal returns a node's child for that step, if a rule names the step.
func (s *scopes) below(sc scope, literal func(n *ruleNode) int32) scope {
	sub := scope{inherit: sc.inherit, from: sc.from}
	if st := s.strategy(sc); sc.rule != 0 && st.anyValue() {
		sub.inherit, sub.from = st, sc.rule
	}
	if sc.lo == sc.hi {
		return sub
	}
	sub.lo = int32(len(s.states))
	for _, at := range s.states[sc.lo:sc.hi] {
		n := &s.rules[at]
		for _, to := range [...]int32{literal(n), n.star} {
			if to != 0 {
				s.states = append(s.states, to)
			}
		}
	}
	sub.hi = int32(len(s.states))
	for _, at := range s.states[sub.lo:sub.hi] {
		if s.rules[at].ends {
			sub.rule = at
			break
		}
	}
	return sub
}

func (s *scopes) leave(sc scope) {
	s.trail = s.trail[:len(s.trail)-1]
	if sc.lo != sc.hi {
		s.states = s.states[:sc.hi]
	}
}

// Ruled tells what decides about a value that both sides changed: the path of the rule, "" for the default, and its strategy. In path, a
// JSON Pointer, `*` stands for any key or element, which only a rule with `*` there is about.
func (m *Merger) Ruled(path string) (rule string, st Strategy) {
	tokens, err := jsontext.SplitPointer(path)
	if err != nil {
		return "", m.rules[0].strategy
	}
	s := scopes{rules: m.rules}
	sc := s.root()
	for _, token := range tokens {
		sc = s.below(sc, func(n *ruleNode) int32 { return n.child(token) })
	}
	n := s.decisive(sc)
	return n.path, n.strategy
}
