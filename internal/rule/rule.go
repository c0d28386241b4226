// Package rule decides which rule takes a request, and holds what the rule says in a form that the hot path can use.
//
// It judges by the name that stood in the request: it doesn't know what an alias stands for, or whether a name is a data
// stream. It doesn't do anything that a rule says.
package rule

import (
	"time"

	"optimist/internal/config"
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
)

// Explicit says what happens to a write that brings its own guard.
type Explicit uint8

// The values of base.explicit.
const (
	ExplicitPass  Explicit = iota // forwarded as it is; its 409 is its answer
	ExplicitMerge                 // the guard names the base; a conflict merges
)

// Unknown says what happens to a write without a base.
type Unknown uint8

// The values of base.unknown.
const (
	UnknownPass   Unknown = iota // forwarded as it is
	UnknownFetch                 // the current revision is the base
	UnknownReject                // 428
)

// Lost says what happens to a write whose base is gone.
type Lost uint8

// The values of base.lost.
const (
	LostPass   Lost = iota // forwarded unguarded, and said
	LostReject             // 409
)

// Ambiguous says what happens to a write for which several reads could be the base.
type Ambiguous uint8

// The values of base.ambiguous.
const (
	AmbiguousGuess Ambiguous = iota // the closest one, and said
	AmbiguousFail                   // 409
)

// Pipeline says what happens to conflicts in indices whose writes go through an ingest pipeline.
type Pipeline uint8

// The values of pipeline.
const (
	PipelineGuard Pipeline = iota // guarded, never merged
	PipelineRerun                 // merged, and the pipeline runs again
)

// OnConflict says what happens to a stale write.
type OnConflict uint8

// The values of on_conflict.
const (
	ConflictMerge OnConflict = iota
	ConflictFail             // the engine's 409 is the answer
)

// OnMissing says what happens to a write of a document that was deleted since it was read.
type OnMissing uint8

// The values of on_missing.
const (
	MissingFail     OnMissing = iota // 409
	MissingRecreate                  // what was sent is written
)

// OnDeleteConflict says what happens to a delete of a document that changed since it was read.
type OnDeleteConflict uint8

// The values of on_delete_conflict.
const (
	DeleteSent OnDeleteConflict = iota // deleted; the outcome names / as overwritten
	DeleteFail                         // 409
)

// Priority says who goes first in a lane.
type Priority uint8

// The priorities.
const (
	Foreground Priority = iota
	Background
)

// Rule is one rule of the configuration, compiled. It is immutable and may be shared.
type Rule struct {
	Name string
	N    int  // place among the rules, from 0
	Mode Mode // what the rule allows; Switch.Effective joins it with the mode of the whole

	// AnyIndex says that the rule names no index of its own (the built-in rule, or one without match.index). Such a rule
	// leaves data streams alone; only the engine can tell which those are.
	AnyIndex bool

	IfMatch   bool // bases may come from If-Match, and reads answer an ETag
	FromStamp bool // bases may come from the stamp
	Session   bool // bases may come from what the session read

	// Stamp is the field in which documents that are served have their revision, and which is taken out of what is written; "" is none.
	Stamp string

	Explicit         Explicit
	Unknown          Unknown
	Lost             Lost
	Ambiguous        Ambiguous
	Pipeline         Pipeline
	OnConflict       OnConflict
	OnMissing        OnMissing
	OnDeleteConflict OnDeleteConflict
	Priority         Priority

	// Merger merges as the rule says. It is never nil.
	Merger *merge.Merger

	// Transform is applied to every document that the rule's writes leave; nil is nothing. Steps are what it is made of, for telling.
	Transform *edit.Transformer
	Steps     []edit.Step

	// HasStrategies says that the rule names merge strategies, which the engine's own _update doesn't follow.
	HasStrategies bool

	Retry           Retry
	RetryOnConflict int // added to _update; 0 adds nothing

	match matcher
}

// Retry is a rule's policy of trying again.
type Retry struct {
	MaxAttempts  int           // writes sent, the first included; at least 1
	MaxElapsed   time.Duration // from the first try; nothing new is tried after it
	BaseInterval time.Duration // bound of the first pause; pauses are random below their bound
	MaxInterval  time.Duration // largest bound
}

// compile turns one block of the configuration into a Rule, or tells what is wrong with it.
func compile(n int, c *config.Rule) (*Rule, []mistake) {
	merger, err := newMerger(&c.Merge)
	transform, steps, wrong := compileTransform(c.Transform)
	if err != nil {
		wrong = append(wrong, mistake{key: "merge", reason: err.Error()})
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	r := &Rule{
		Name:             c.Name,
		N:                n,
		Mode:             ModeOf(c.Mode),
		AnyIndex:         c.Match.ByDefault(),
		Explicit:         pick(c.Base.Explicit, config.ExplicitMerge, ExplicitMerge),
		Lost:             pick(c.Base.Lost, config.LostReject, LostReject),
		Ambiguous:        pick(c.Base.Ambiguous, config.AmbiguousFail, AmbiguousFail),
		Pipeline:         pick(c.Pipeline, config.PipelineRerun, PipelineRerun),
		OnConflict:       pick(c.OnConflict, config.ConflictFail, ConflictFail),
		OnMissing:        pick(c.OnMissing, config.MissingRecreate, MissingRecreate),
		OnDeleteConflict: pick(c.OnDeleteConflict, config.DeleteFail, DeleteFail),
		Merger:           merger,
		Transform:        transform,
		Steps:            steps,
		Stamp:            c.Base.Stamp,
		Priority:         pick(c.Priority, config.PriorityBackground, Background),
		HasStrategies:    len(c.Merge.Paths) > 0 || c.Merge.Default != config.MergeSent,
		RetryOnConflict:  c.RetryOnConflict,
		Retry: Retry{
			MaxAttempts:  c.Retry.MaxAttempts,
			MaxElapsed:   c.Retry.MaxElapsed.Std(),
			BaseInterval: c.Retry.Backoff.BaseInterval.Std(),
			MaxInterval:  c.Retry.Backoff.MaxInterval.Std(),
		},
		match: newMatcher(c),
	}
	switch c.Base.Unknown {
	case config.UnknownFetch:
		r.Unknown = UnknownFetch
	case config.UnknownReject:
		r.Unknown = UnknownReject
	}
	for _, from := range c.Base.From {
		r.IfMatch = r.IfMatch || from == config.FromIfMatch
		r.FromStamp = r.FromStamp || from == config.FromStamp
		r.Session = r.Session || from == config.FromSession
	}
	return r, nil
}

// newMerger turns a merge block into what merges by it.
func newMerger(m *config.Merge) (*merge.Merger, error) {
	def, err := merge.ParseStrategy(string(m.Default))
	if err != nil {
		return nil, err
	}
	paths := make([]merge.PathRule, len(m.Paths))
	for i, p := range m.Paths {
		s, err := merge.ParseStrategy(string(p.Strategy))
		if err != nil {
			return nil, err
		}
		paths[i] = merge.PathRule{Path: p.Path, Strategy: s, Key: p.Key}
	}
	return merge.New(def, paths)
}

// pick is value if the configuration says word, else the enumeration's first.
func pick[W comparable, V any](said, word W, value V) V {
	if said == word {
		return value
	}
	var first V
	return first
}
