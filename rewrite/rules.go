package rewrite

import (
	"strconv"
	"strings"
)

// A ruleNode is a node of the tree of rule paths. The root is node 0, and no rule ends there.
type ruleNode struct {
	literal  []ruleEdge
	star     int32 // the node for `*`; 0 is none
	ends     bool  // a rule ends here
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
	nodes := make([]ruleNode, 1)
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
	tokens, reason = splitPointer(rule.Path)
	switch {
	case reason != "":
		return nil, reason
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

// splitPointer returns the unescaped tokens of a JSON Pointer, or why it is none.
func splitPointer(path string) (tokens []string, reason string) {
	if path == "" {
		return nil, ""
	}
	if path[0] != '/' {
		return nil, "is not a JSON Pointer: it must be empty or begin with a slash"
	}
	for i := range len(path) {
		if path[i] == '~' && (i+1 == len(path) || path[i+1] != '0' && path[i+1] != '1') {
			return nil, "is not a JSON Pointer: ~ must be followed by 0 or 1"
		}
	}
	tokens = strings.Split(path[1:], "/")
	for i, token := range tokens {
		tokens[i] = strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
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

// childOf is child for a key as it stands in a document.
func (n *ruleNode) childOf(key []byte, esc bool) int32 {
	for _, e := range n.literal {
		if !esc && e.token == string(key) || esc && sameText([]byte(e.token), false, key, esc) {
			return e.to
		}
	}
	return 0
}

// A scope is what the rules say about one value, and about those below it.
type scope struct {
	lo, hi  int32    // the rule nodes reached, in run.states, the most specific first
	rule    int32    // the one whose rule decides here; 0 is none
	inherit Strategy // what decides where no rule does
}

// strategy returns what decides at sc.
func (r *run) strategy(sc scope) Strategy {
	if sc.rule != 0 {
		return r.m.rules[sc.rule].strategy
	}
	return sc.inherit
}

// enter goes one step down. leave must be called with the scope that it was called with.
func (r *run) enter(sc scope, p place) scope {
	r.trail = append(r.trail, p)
	sub := scope{inherit: sc.inherit}
	if sc.rule != 0 {
		if s := r.m.rules[sc.rule].strategy; s.anyValue() {
			sub.inherit = s
		}
	}
	if sc.lo == sc.hi {
		return sub
	}
	sub.lo = int32(len(r.states))
	for _, at := range r.states[sc.lo:sc.hi] {
		n := &r.m.rules[at]
		if to := r.literal(n, p); to != 0 {
			r.states = append(r.states, to)
		}
		if n.star != 0 {
			r.states = append(r.states, n.star)
		}
	}
	sub.hi = int32(len(r.states))
	for _, at := range r.states[sub.lo:sub.hi] {
		if r.m.rules[at].ends {
			sub.rule = at
			break
		}
	}
	return sub
}

func (r *run) literal(n *ruleNode, p place) int32 {
	if len(n.literal) == 0 {
		return 0
	}
	if p.index == none {
		return n.childOf(p.t.keyText(p.node))
	}
	var buf [12]byte
	return n.childOf(strconv.AppendInt(buf[:0], int64(p.index), 10), false)
}

func (r *run) leave(sc scope) {
	r.trail = r.trail[:len(r.trail)-1]
	if sc.lo != sc.hi {
		r.states = r.states[:sc.hi]
	}
}
