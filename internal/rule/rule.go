// Package rule decides which rule takes a request, and holds what the rule says in a form that the hot path can use.
//
// It judges by the name in the request: it doesn't know what an alias stands for, or whether a name is a data stream. It carries
// out nothing of a rule.
package rule

import (
	"slices"
	"time"

	"optimist/internal/config"
	"optimist/internal/jsontext"
	"optimist/internal/rank"
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
)

// Unknown is what happens to a write without a base. Any value but the ones below forwards the write as it is.
type Unknown = config.Unknown

// The values of Unknown that do something.
const (
	UnknownFetch  = config.UnknownFetch  // the current revision is the base
	UnknownReject = config.UnknownReject // 428
)

// Bulk is what happens to items of a _bulk. Any value but the ones below guards them.
type Bulk = config.Bulk

// The values of Bulk that guard nothing.
const (
	BulkPass   = config.BulkPass   // they go as they are
	BulkRefuse = config.BulkRefuse // 400
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

	// AllSearches says that all searches are watched. Else those are of clients that write in the index.
	AllSearches bool

	// Stamp is the field for the revision. It is put into documents that are served, and removed from writes; "" is none.
	Stamp string

	Unknown         Unknown
	MergeExplicit   bool // base.explicit: a write's own guard names its base, and a conflict merges. Else its 409 is its answer
	RejectLost      bool // base.lost: a write whose base is gone gets a 409. Else it is forwarded unguarded
	FailAmbiguous   bool // base.ambiguous: a write for which several reads could be the base gets a 409. Else the closest one is
	RerunPipeline   bool // pipeline: a conflict merges though an ingest pipeline runs again
	FailConflict    bool // on_conflict: a stale write gets the engine's 409. Else it merges
	RecreateMissing bool // on_missing: a document that was deleted since it was read is written as it was sent. Else 409
	FailStaleDelete bool // on_delete_conflict: a stale delete gets a 409. Else it deletes, and the outcome names / as overwritten
	EngineUpdates   bool // update: the engine merges an _update with doc whose client has read the document. Else it is a change
	DeadLetters     bool // on_exhausted: a write that can't be placed becomes a dead letter. Else its client gets the error
	Background      bool // priority
	PassRejected    bool // rejected: the engine's 429 is the client's answer. Else the write waits and goes again
	Bulk            Bulk // what happens to items of a _bulk
	Rerun           bool // an _update_by_query may run again over documents that it has changed

	// WriteID is the field in which writes leave their marks; "" is none.
	WriteID string

	// Merger merges as the rule says. It is never nil.
	Merger *merge.Merger

	// Transform is applied to every document that the rule's writes leave; nil is nothing.
	Transform *edit.Transformer

	// HasStrategies says that the rule names merge strategies, which the engine's own _update doesn't follow.
	HasStrategies bool

	// Sums says that the rule adds up what clients do to some numbers.
	Sums bool

	// Keys are the names of members by which the rule tells entries of lists apart.
	Keys rank.Keys

	// Locks are those that protect the rule's documents; nil: none are enforced.
	Locks *Locks

	Retry           Retry
	RetryOnConflict int // added to _update; 0 adds nothing

	match matcher
}

// Sets implements merge.Setter: it reports whether the rule's transform sets the value at a path, whatever clients send.
func (r *Rule) Sets(path string) bool { return r.Transform != nil && r.Transform.Sets(path) }

// NeedsNoBase reports whether a part of a document means the same from any base: it only sets values, and may replace what others have
// written there. With on_conflict: fail, a base is needed to tell whether the part is stale. An ambiguous one can't tell, unless ambiguous
// bases are refused themselves. A nil base is the absent document.
func (r *Rule) NeedsNoBase(base, part []byte, ambiguous bool) bool {
	if r.FailConflict && (!ambiguous || r.FailAmbiguous) {
		return false
	}
	overrides, err := r.Merger.Overrides(base, part)
	return overrides && err == nil
}

// Locks say which locks protect the documents of a rule, beside each one's own.
type Locks struct {
	ByID   bool     // the document's id is its path in the tree of its index
	Field  []string // the field that holds that path, as the tokens of a JSON Pointer; nil: none does
	Global string   // the name of the global lock that protects all of them; "" is none
}

// newLocks are those that a rule enforces.
func newLocks(c *config.Rule) *Locks {
	if c.Locks != config.LocksEnforce {
		return nil
	}
	l := &Locks{ByID: c.LockPath == config.LockPathID, Global: c.LockGlobal}
	if c.LockPath != "" && !l.ByID {
		l.Field, _ = jsontext.SplitPointer(c.LockPath) // the configuration has been checked
	}
	return l
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
	transform, wrong := compileTransform(c.Transform)
	if err != nil {
		wrong = append(wrong, mistake{key: "merge", reason: err.Error()})
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	r := &Rule{
		Name:            c.Name,
		N:               n,
		Mode:            ModeOf(c.Mode),
		AnyIndex:        c.Match.ByDefault(),
		Unknown:         c.Base.Unknown,
		MergeExplicit:   c.Base.Explicit == config.ExplicitMerge,
		RejectLost:      c.Base.Lost == config.LostReject,
		FailAmbiguous:   c.Base.Ambiguous == config.AmbiguousFail,
		RerunPipeline:   c.Pipeline == config.PipelineRerun,
		FailConflict:    c.OnConflict == config.ConflictFail,
		RecreateMissing: c.OnMissing == config.MissingRecreate,
		FailStaleDelete: c.OnDeleteConflict == config.DeleteFail,
		EngineUpdates:   c.Update == config.UpdateEngine,
		Bulk:            c.Bulk,
		Rerun:           c.Rerun,
		WriteID:         c.WriteID,
		Locks:           newLocks(c),
		DeadLetters:     c.OnExhausted == config.ExhaustedDeadLetter,
		AllSearches:     slices.Contains(c.Base.Reads, config.ReadSearch),
		Merger:          merger,
		Transform:       transform,
		Stamp:           c.Base.Stamp,
		Background:      c.Priority == config.PriorityBackground,
		PassRejected:    c.Rejected == config.RejectedPass,
		HasStrategies:   len(c.Merge.Paths) > 0 || c.Merge.Default != config.MergeSent,
		Sums:            slices.ContainsFunc(c.Merge.Paths, func(p config.MergePath) bool { return p.Strategy == config.StrategySum }),
		Keys:            keysOf(c.Merge.Paths),
		RetryOnConflict: c.RetryOnConflict,
		Retry: Retry{
			MaxAttempts:  c.Retry.MaxAttempts,
			MaxElapsed:   c.Retry.MaxElapsed.Std(),
			BaseInterval: c.Retry.Backoff.BaseInterval.Std(),
			MaxInterval:  c.Retry.Backoff.MaxInterval.Std(),
		},
		match: newMatcher(c),
	}
	if r.Locks != nil && r.Unknown == config.UnknownPass {
		r.Unknown = config.UnknownFetch // a write that isn't guarded may come after one of the next holder
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

// keysOf returns the names of members by which strategies tell entries of lists apart.
func keysOf(paths config.MergePaths) rank.Keys {
	var names []string
	for _, p := range paths {
		if p.Strategy == config.StrategyByKey {
			names = append(names, p.Key)
		}
	}
	return rank.NewKeys(names)
}
