// Package rewrite computes what a write becomes, as pure functions on JSON bytes. The work is done below it: package tree reads
// documents, package diff finds the change between two, package merge replays it on a third, package edit applies patches and the steps of
// rules. None does I/O, and none knows the engine.
package rewrite

import (
	"optimist/rewrite/diff"
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
	"optimist/rewrite/tree"
)

//nolint:revive // these are the names that importers still use
type (
	Action        = edit.Action
	Condition     = edit.Condition
	ConflictError = merge.ConflictError
	Decision      = merge.Decision
	DiffOption    = edit.DiffOption
	Distance      = diff.Distance
	Inputs        = edit.Inputs
	Limits        = tree.Limits
	Measurer      = diff.Measurer
	Merger        = merge.Merger
	Operation     = edit.Operation
	Patch         = edit.Patch
	PatchError    = edit.PatchError
	PathRule      = merge.PathRule
	Result        = merge.Result
	RuleError     = merge.RuleError
	Source        = edit.Source
	Step          = edit.Step
	StepError     = edit.StepError
	StepTold      = edit.StepResult
	Strategy      = merge.Strategy
	SyntaxError   = tree.SyntaxError
	TestError     = edit.TestError
	Transformer   = edit.Transformer
	TypeError     = edit.TypeError
	Value         = edit.Value
	Verdict       = merge.Verdict
)

// The names that importers still use.
const (
	Sent    = merge.Sent
	Current = merge.Current
	Fail    = merge.Fail
	Sum     = merge.Sum
	Max     = merge.Max
	Min     = merge.Min
	Union   = merge.Union
	Append  = merge.Append
	ByKey   = merge.ByKey

	Kept        = merge.Kept
	Taken       = merge.Taken
	Agreed      = merge.Agreed
	Overwritten = merge.Overwritten
	Conflict    = merge.Conflict
	Calculated  = merge.Calculated
	Combined    = merge.Combined

	OpAdd         = edit.OpAdd
	OpRemove      = edit.OpRemove
	OpReplace     = edit.OpReplace
	OpMove        = edit.OpMove
	OpCopy        = edit.OpCopy
	OpTest        = edit.OpTest
	OpIncrement   = edit.OpIncrement
	OpAppend      = edit.OpAppend
	OpUnion       = edit.OpUnion
	OpMax         = edit.OpMax
	OpMin         = edit.OpMin
	OpDefault     = edit.OpDefault
	OpNow         = edit.OpNow
	OpMerge       = edit.OpMerge
	OpRemoveEmpty = edit.OpRemoveEmpty

	FromLiteral  = edit.FromLiteral
	FromIncoming = edit.FromIncoming
	FromCurrent  = edit.FromCurrent
	FromBase     = edit.FromBase
	FromHeader   = edit.FromHeader
	FromID       = edit.FromID
	FromIndex    = edit.FromIndex
	FromUser     = edit.FromUser
	FromNow      = edit.FromNow

	WithTests    = edit.WithTests
	MaxSteps     = edit.MaxSteps
	MaxPaths     = merge.MaxPaths
	MaxDecisions = merge.MaxDecisions
	DefaultDepth = tree.DefaultDepth
)

// The names that importers still use.
var (
	ErrNotObject = tree.ErrNotObject
	ErrTooDeep   = tree.ErrTooDeep
	ErrTooLarge  = tree.ErrTooLarge

	Actions        = edit.Actions
	Measure        = diff.Measure
	MeasureBelow   = diff.MeasureBelow
	MergePatch     = edit.MergePatch
	NewMeasurer    = diff.NewMeasurer
	NewMerger      = merge.New
	NewTransformer = edit.NewTransformer
	ParseAction    = edit.ParseAction
	ParseSource    = edit.ParseSource
	ParseSteps     = edit.ParseSteps
	ParseStrategy  = merge.ParseStrategy
	ParseValue     = edit.ParseValue
	Repeatable     = merge.Repeatable
)

// Diff is edit.Diff within the default limits.
func Diff(a, b []byte, opts ...DiffOption) (Patch, error) { return edit.Diff(a, b, Limits{}, opts...) }

// ParsePatch is edit.ParsePatch within the default limits.
func ParsePatch(src []byte) (Patch, error) { return edit.ParsePatch(src, Limits{}) }
