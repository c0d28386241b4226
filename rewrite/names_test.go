package rewrite

import (
	"optimist/rewrite/edit"
	"optimist/rewrite/merge"
	"optimist/rewrite/tree"
)

// The tests call what they test by these names.
type (
	Action        = edit.Action
	Condition     = edit.Condition
	ConflictError = merge.ConflictError
	Decision      = merge.Decision
	Inputs        = edit.Inputs
	Limits        = tree.Limits
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
	StepResult    = edit.StepResult
	Strategy      = merge.Strategy
	SyntaxError   = tree.SyntaxError
	TestError     = edit.TestError
	Transformer   = edit.Transformer
	TypeError     = edit.TypeError
	Value         = edit.Value
	Verdict       = merge.Verdict
)

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
	OpRefuse      = edit.OpRefuse

	FromLiteral  = edit.FromLiteral
	FromIncoming = edit.FromIncoming
	FromCurrent  = edit.FromCurrent
	FromBase     = edit.FromBase
	FromHeader   = edit.FromHeader
	FromID       = edit.FromID
	FromIndex    = edit.FromIndex
	FromUser     = edit.FromUser
	FromNow      = edit.FromNow

	MaxSteps     = edit.MaxSteps
	MaxPaths     = merge.MaxPaths
	MaxDecisions = merge.MaxDecisions
	DefaultDepth = tree.DefaultDepth
)

var (
	ErrNotObject = tree.ErrNotObject
	ErrTooDeep   = tree.ErrTooDeep
	ErrTooLarge  = tree.ErrTooLarge

	MergePatch     = edit.MergePatch
	NewMerger      = merge.New
	NewTransformer = edit.NewTransformer
	ParseAction    = edit.ParseAction
	ParseSource    = edit.ParseSource
	ParseSteps     = edit.ParseSteps
	ParseStrategy  = merge.ParseStrategy
	Repeatable     = merge.Repeatable
)

func Diff(a, b []byte) (Patch, error) { return edit.Diff(a, b, Limits{}) }

func ParsePatch(src []byte) (Patch, error) { return edit.ParsePatch(src, Limits{}) }
