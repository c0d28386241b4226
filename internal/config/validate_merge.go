package config

import (
	"slices"
	"strconv"
	"strings"
)

// overlaps warns of paths of which one takes effect away from the other. If two paths take the same value, only the more exact one counts.
// And a path has no effect below a path whose values have no parts: below a number, or below elements that merge as a whole.
func (v *validator) overlaps(m *Merge, tree *pathTree, key string) {
	for i := range m.Paths {
		p := &m.Paths[i]
		at, tokens := key+".paths."+p.Path, pointerTokens(p.Path)
		for n := 1; n < len(tokens); n++ {
			if above := tree.deciding(tokens[:n]); above != nil {
				v.below(above, tokens[n:], at)
			}
		}
		for _, j := range tree.crossing(i) {
			v.crosses(p, &m.Paths[j], tree, at)
		}
	}
}

// crosses warns of two paths of different strategies that take the same values, unless a third path decides about these values.
func (v *validator) crosses(p, q *MergePath, tree *pathTree, at string) {
	if q.Strategy == p.Strategy && q.Key == p.Key {
		return
	}
	if d := tree.deciding(common(pointerTokens(p.Path), pointerTokens(q.Path))); d != p && d != q {
		return // the third path decides
	}
	first, second := p, q
	if moreExact(q.Path, p.Path) {
		first, second = q, p
	}
	v.warn(at, "%q and %q, above, take the same values; there %s counts, whose first steps are more exact, and %s doesn't: "+
		"write down the path that you mean", p.Path, q.Path, first.Path, second.Path)
}

// below warns of a path that goes on below another one, above, whose values have no parts with strategies. rest is how the path goes on.
func (v *validator) below(above *MergePath, rest []string, at string) {
	switch above.Strategy {
	case StrategySum, StrategyMax, StrategyMin:
		v.warn(at, "it is never reached: with %s, %s is a number or a text, which has nothing below it", above.Strategy, above.Path)
	case StrategyUnion, StrategyAppend:
		v.warn(at, "it is never reached: %s takes the elements of %s as a whole; {by_key: FIELD} merges them one by one",
			above.Strategy, above.Path)
	case StrategyByKey:
		_, err := strconv.Atoi(rest[0])
		switch {
		case err == nil:
			v.warn(at, "the elements of %s are identified by %s, not by their places: write * for %s", above.Path, above.Key, rest[0])
		case len(rest) == 2 && rest[1] == above.Key:
			v.warn(at, "it is never reached: elements of %s are the same if their %s is", above.Path, above.Key)
		}
	}
}

// moreExact reports whether p counts, and not q, for a value that both take: p has a name at the first step at which they differ.
func moreExact(p, q string) bool {
	a, b := pointerTokens(p), pointerTokens(q)
	for i := range a {
		if a[i] != b[i] {
			return b[i] == "*"
		}
	}
	return false
}

// uses warns of keys of a rule that have no effect: none of the rule's operations asks for them.
func (v *validator) uses(r *Rule, key string) {
	_, named := v.cfg.at[key+".match.ops"]
	ops := r.Match.Ops
	updates, merges := slices.Contains(ops, OpUpdate), r.Update == UpdateMerge
	switch {
	case !named || len(r.Merge.Paths) == 0:
	case !slices.Contains(ops, OpIndex) && !(updates && merges):
		v.warn(key+".merge.paths", "strategies have no effect without index or update in match.ops: only documents and their parts are merged "+
			"(with update: engine the engine merges _update itself; a PATCH is applied to the stored document)")
	case updates && !merges:
		v.warn(key+".merge.paths", "strategies don't apply to _update, which match.ops names: "+
			"with update: engine the engine merges such requests itself")
	}
	if len(r.Transform) > 0 && !slices.ContainsFunc(ops, func(op Op) bool { return op != OpDelete }) && len(ops) > 0 {
		v.warn(key+".transform", "it has no effect: match.ops has delete only, which leaves no document")
	}
	for i := range r.Transform {
		v.touches(r, &r.Transform[i], key, key+".transform["+strconv.Itoa(i)+"]")
	}
	for _, p := range r.Merge.Paths {
		at := key + ".merge.paths." + p.Path
		switch {
		case r.Base.Stamp != "" && atField(p.Path, r.Base.Stamp):
			v.warn(at, "it has no effect: base.stamp names the field %s, which is never merged", r.Base.Stamp)
		case r.WriteID != "" && atField(p.Path, r.WriteID):
			v.warn(at, "it has no effect: write_id names the field %s, in which optimist keeps its own marks", r.WriteID)
		}
	}
}

// touches warns of a step that sets a value for which there is a strategy, and of one that works on the stamp.
func (v *validator) touches(r *Rule, s *Step, key, at string) {
	if r.Base.Stamp != "" && (atField(s.Path, r.Base.Stamp) || s.Op.takesFrom() && atField(s.From, r.Base.Stamp)) {
		v.warn(at, "it works on the field of base.stamp, %s, which is removed from documents before steps run", r.Base.Stamp)
	}
	if !s.settles() {
		return
	}
	for _, p := range r.Merge.Paths {
		sub := key + ".merge.paths." + p.Path
		if !within(pointerTokens(p.Path), pointerTokens(s.Path)) {
			continue
		}
		if p.Strategy == StrategyFail {
			v.warn(at, "it sets %s in every write; but with merge.paths (line %d) two different values there are a 409 before that",
				p.Path, v.cfg.at[sub].Line)
		} else {
			v.warn(sub, "it has no effect: transform (line %d) sets the value after the merge anyway", v.cfg.at[at].Line)
		}
	}
}

// settles reports whether the step makes the value at its path the same in every write, whatever was there before.
func (s *Step) settles() bool {
	if s.When != "" || checkPointer(s.Path) != nil || strings.HasSuffix(s.Path, "/-") {
		return false
	}
	last := s.Path[strings.LastIndexByte(s.Path, '/')+1:]
	if _, err := strconv.Atoi(last); err == nil {
		return false // it may insert an element
	}
	switch s.Op {
	case ActionRemove, ActionNow:
		return true
	case ActionAdd, ActionReplace:
		return s.Value.Source != SourceIncoming && s.Value.Source != SourceCurrent
	}
	return false
}

// atField reports whether a path is at a field at the top of documents, or below it.
func atField(path, field string) bool {
	return path == "/"+field || strings.HasPrefix(path, "/"+field+"/")
}

// within reports whether a path is the path above, or goes on below it. A star of above stands for each name.
func within(path, above []string) bool {
	for i, token := range above {
		if i == len(path) || token != "*" && token != path[i] {
			return false
		}
	}
	return true
}
