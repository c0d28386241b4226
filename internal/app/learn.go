package app

import (
	"slices"

	"optimist/internal/learn"
	"optimist/internal/rule"
)

// hot is what the admin listener tells of the documents with the most conflicts.
func (a *App) hot(top int) any { return a.learner.Hot(top, a.ruled) }

// suggestions are the suggested rules that the admin listener shows.
func (a *App) suggestions(index string) any {
	s := a.learner.Suggest(index, a.ruled)
	s.OwnRules = !a.current.Load().DefaultRules()
	return s
}

// ruled is what the rules in force say about a path of an index, which may have another name. Of the rules that take writes there, the one
// of the name by counts. Without one, it is the one that takes what the others leave.
func (a *App) ruled(index, name, by, path string) learn.Ruled {
	takers := a.rules.Rules().Takers(index, name)
	if len(takers) == 0 {
		return learn.Ruled{}
	}
	r := takers[len(takers)-1]
	if i := slices.IndexFunc(takers, func(r *rule.Rule) bool { return r.Name == by }); i >= 0 {
		r = takers[i]
	}
	decides, strategy := r.Merger.Ruled(path)
	return learn.Ruled{Rule: r.Name, Claims: !r.TakesRest(), Path: decides, Strategy: strategy.String()}
}
