package app

import (
	"optimist/internal/learn"
)

// hot is what the admin listener tells of the documents with the most conflicts.
func (a *App) hot(top int) any { return a.learner.Hot(top, a.ruled) }

// suggestions are the suggested rules that the admin listener shows.
func (a *App) suggestions(index string) any {
	s := a.learner.Suggest(index, a.ruled)
	s.OwnRules = !a.current.Load().DefaultRules()
	return s
}

// ruled is what the rules in force say about a path of an index, which may have another name.
func (a *App) ruled(index, name, path string) learn.Ruled {
	r := a.rules.Rules().MatchAny(index, name)
	if r == nil {
		return learn.Ruled{}
	}
	rule, strategy := r.Merger.Ruled(path)
	return learn.Ruled{Rule: r.Name, Claims: !r.AnyIndex, Path: rule, Strategy: strategy.String()}
}
