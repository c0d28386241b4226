package config

import (
	"slices"
	"strconv"
	"strings"
)

// overlaps warns of paths that each are right and together aren't what they seem: of two that are met by the same value the more exact one
// counts, and below a number, or an element that is taken as a whole, there is nothing to have a strategy of its own.
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

// crosses warns of two paths of different strategies that take the same values, where no third one decides about them.
func (v *validator) crosses(p, q *MergePath, tree *pathTree, at string) {
	if q.Strategy == p.Strategy && q.Key == p.Key {
		return
	}
	if d := tree.deciding(common(pointerTokens(p.Path), pointerTokens(q.Path))); d != p && d != q {
		return // the third one says it
	}
	first, second := p, q
	if moreExact(q.Path, p.Path) {
		first, second = q, p
	}
	v.warn(at, "%q and %q, above, take the same values; there %s counts, whose first steps are more exact, and %s doesn't: "+
		"write down the path that you mean", p.Path, q.Path, first.Path, second.Path)
}

// below warns of a path under one whose values have nothing below them. rest is what follows.
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

// moreExact reports whether of two paths that take the same value p counts: it has a name where they first differ.
func moreExact(p, q string) bool {
	a, b := pointerTokens(p), pointerTokens(q)
	for i := range a {
		if a[i] != b[i] {
			return b[i] == "*"
		}
	}
	return false
}

// uses warns of what a rule says and its operations never ask for.
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

// touches warns of a step that settles what a strategy is there for, or that meets the stamp.
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

// settles reports whether the step leaves the same at its path, whatever was there.
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

// within reports whether a path is at another, or below it; a star above stands for each name.
func within(path, above []string) bool {
	for i, token := range above {
		if i == len(path) || token != "*" && token != path[i] {
			return false
		}
	}
	return true
}
