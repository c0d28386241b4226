// Package edit changes documents by operations: JSON Patch (RFC 6902), merge patches (RFC 7396), the steps of rules, and the
// parts of documents that the engine's _update takes. Bytes that no operation touches stay as they are.
//
// It does no I/O, keeps no state and no reference to what it was given, and is safe for concurrent use.
//
// # Steps
//
// A Transformer applies Steps to a candidate, one after the other: the operations of RFC 6902, and those of rules. Steps say what
// the result shall be, so they accept more than a JSON Patch (Patch.Apply) does. If a JSON Patch is accepted, both do the same.
//
//   - Removing, moving or copying what isn't there does nothing, nor does a step whose value refers to what isn't there.
//     Only replace and test need a value at their path.
//   - What sets something makes the objects that are missing on the way to it, and an array where the next token is `-`.
//     Null counts as missing; anything else that is no object is a TypeError.
//   - `*` as a whole token is every element of an array, or every member of an object, as they are when the step comes to
//     them; a key that is literally `*` can't be named. Over nothing, or null, a step does nothing, and a test holds. Where
//     `*` is the last token, add and copy set what they would otherwise insert.
//   - A reference to a time is optimist's clock, not the engine's.
//
// A step that does not change a value leaves its bytes, and so does a path that it only goes through.
package edit

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"optimist/internal/jsontext"
	"optimist/rewrite/tree"
)

// MaxSteps bounds the steps of one Transformer.
const MaxSteps = 1000

// A Value is what a Step works with: a literal, or a reference that is looked up at every attempt.
type Value struct {
	Source  Source
	Literal []byte // one JSON value; of FromLiteral
	Path    string // JSON Pointer, without `*`; of FromIncoming, FromCurrent and FromBase. Empty is the whole document.
	Name    string // of FromHeader
}

// A Step is one operation of a transform.
type Step struct {
	Action Action
	// Path is a JSON Pointer (RFC 6901). `*` as a whole token stands for every element of an array or every member of an
	// object; a key that is literally `*` can't be named. `-` as the last token is the place behind the last element. Empty
	// is the whole document.
	Path string
	// From is the path of what OpMove and OpCopy take. A `*` in it stands for what the `*` at the same place of Path stands
	// for: up to its last `*` it must be like Path, which, of OpMove, has no more of them.
	From string
	// Value of all actions but OpRemove, OpMove, OpCopy, OpNow, OpRemoveEmpty and OpRefuse. A reference to what isn't there makes the
	// step do nothing, but for OpTest: that fails.
	Value Value
	// Message of OpRefuse says why the write is refused.
	Message string
	// Format is how OpNow and FromNow write the time: "" and "rfc3339" as 2006-01-02T15:04:05.000Z, "epoch_millis" and "epoch_second"
	// as numbers.
	Format string
	// When decides whether the step is carried out; nil is always.
	When Condition
}

// A Condition decides whether a Step is carried out. It must be safe for concurrent use. An error ends the transform.
type Condition interface {
	Holds(in *Inputs) (bool, error)
	ReadsCurrent() bool   // the result depends on Inputs.Current
	ReadsCandidate() bool // the result depends on Inputs.Candidate
}

// Inputs are what the steps of a transform can refer to. Nothing in it is changed, or kept.
type Inputs struct {
	Incoming []byte // what the client sent; nil is absent, as for the next two
	Current  []byte // the stored document, before this write
	Base     []byte // the document as the client saw it
	// Candidate is the document that would be stored so far, after the steps before. Transformers set it, for conditions that read it.
	Candidate []byte
	Index     string
	ID        string
	Routing   string
	Op        string // index, create, update, delete, patch
	Method    string // of HTTP
	User      string // "" where the request doesn't say
	Header    func(name string) (value []byte, ok bool)
	Now       time.Time
	// Growth is tree.Limits.Growth for this call. Zero: that of the Transformer's own limits.
	Growth int
	// Room is tree.Limits.Room for this call.
	Room tree.Room
}

// A Transformer is the compiled form of steps. It doesn't change, and may be used by several goroutines at once.
type Transformer struct {
	steps                    []step
	sets                     [][]string // the paths of what is set, whatever document is given
	limits                   tree.Limits
	readsCurrent, repeatable bool
}

// NewTransformer checks and compiles steps. It keeps no reference to them but for their conditions.
//
// Errors: *StepError.
func NewTransformer(steps []Step, l tree.Limits) (*Transformer, error) {
	if len(steps) > MaxSteps {
		return nil, tooManySteps()
	}
	t := &Transformer{steps: make([]step, len(steps)), limits: l}
	for i := range steps {
		t.steps[i].Step = steps[i]
		if e := t.steps[i].compile(l); e != nil {
			e.Step, e.Action, e.Path = i, steps[i].Action, steps[i].Path
			return nil, e
		}
		if t.steps[i].sets() {
			t.sets = append(t.sets, t.steps[i].path)
		}
		t.readsCurrent = t.readsCurrent || t.steps[i].readsCurrent()
	}
	t.repeatable = repeatable(t.steps)
	return t, nil
}

func tooManySteps() *StepError {
	return &StepError{Step: MaxSteps, Reason: fmt.Sprintf("is one more than the %d that a transform may have", MaxSteps)}
}

// Apply returns the candidate with all steps applied to it, one after the other, or, with an error, none of them. A nil candidate is an
// empty object. Bytes that no step touches stay: if no step changes anything, the result is the candidate itself. The result is an
// object.
//
// Errors: *TestError, *TypeError, *StepError; *SyntaxError for the candidate, or for a document of in to which a step refers;
// ErrNotObject for the candidate, or for the result; ErrTooDeep and ErrTooLarge for any of them, or for the work that the steps are.
func (t *Transformer) Apply(candidate []byte, in *Inputs) ([]byte, error) {
	return t.apply(candidate, in, func(*run, bool, error) {})
}

// apply is Apply with an observer, which is called after each step: held says that its condition did.
func (t *Transformer) apply(candidate []byte, in *Inputs, done func(r *run, held bool, err error)) ([]byte, error) {
	if candidate == nil {
		candidate = []byte("{}")
	}
	r, limits := newRun(in), t.limits
	defer r.end()
	if in.Growth > 0 {
		limits.Growth = in.Growth
	}
	if in.Room != nil {
		limits.Room = in.Room
	}
	if err := r.read(candidate, limits); err != nil {
		return nil, err
	}
	if r.root.node.kind != tree.Object {
		return nil, tree.ErrNotObject
	}
	for i := range t.steps {
		held, err := r.carryOut(i, &t.steps[i])
		err = r.bound(err)
		done(r, held, err)
		if err != nil {
			return nil, err
		}
	}
	switch {
	case r.root.node.kind != tree.Object:
		return nil, tree.ErrNotObject
	case r.short != nil:
		return nil, r.short
	case !r.changed:
		return candidate, nil
	}
	return r.render()
}

// A StepResult is what became of one step of a transform.
type StepResult struct {
	Step    *Step // the caller must not change it
	Held    bool  // its condition held, or it has none
	Changed bool  // it changed something
	Err     error // it failed, or its condition did; of steps after it there are no results
}

// Explain is Apply with what became of each step. It costs several times as much as Apply.
func (t *Transformer) Explain(candidate []byte, in *Inputs) ([]byte, []StepResult, error) {
	var results []StepResult
	var before []byte
	doc, err := t.apply(candidate, in, func(r *run, held bool, err error) {
		if before == nil {
			before = r.doc.Bytes()
		}
		res := StepResult{Step: &t.steps[len(results)].Step, Held: held, Err: err}
		var when *StepError
		if errors.As(err, &when) && when.Field == "when" {
			res.Err = when.Err
		} else if err == nil {
			after, _ := r.render()
			res.Changed, before = !bytes.Equal(before, after), after
		}
		results = append(results, res)
	})
	if last := len(results) - 1; last >= 0 && errors.Is(err, tree.ErrNotObject) {
		results[last].Err, results[last].Changed = err, false
	}
	return doc, results, err
}

// ReadsCurrent reports whether a value or a condition refers to the stored document.
func (t *Transformer) ReadsCurrent() bool { return t.readsCurrent }

// Sets reports whether a step sets the value at a JSON Pointer, or one around it, whatever document it is given.
func (t *Transformer) Sets(path string) bool {
	tokens, err := jsontext.SplitPointer(path)
	return err == nil && slices.ContainsFunc(t.sets, func(set []string) bool {
		return len(set) <= len(tokens) && slices.EqualFunc(set, tokens[:len(set)], func(a, b string) bool { return a == b || a == star })
	})
}

// SetsAny reports whether there is any such value.
func (t *Transformer) SetsAny() bool { return len(t.sets) > 0 }

// Makes are the paths, without `*`, at which there is a value in every document after the steps.
func (t *Transformer) Makes() (paths []string) {
	for i := range t.steps {
		s := &t.steps[i]
		known := s.Action == OpNow || actions[s.Action].value && s.Value.Source.isKnown()
		if s.When == nil && s.makes() && known && !slices.Contains(s.path, star) && !slices.ContainsFunc(t.steps[i+1:], s.isTakenBy) {
			paths = append(paths, s.Path)
		}
	}
	return paths
}

// Repeatable reports whether a document to which the steps were applied already can be given to them again: nothing counts
// twice, and nothing fails that didn't before. It is asked where it isn't known whether a write has happened. Increments, moves,
// and what is appended or inserted into an array count twice; steps that read the stored document, and most of those that
// touch the same value as another, are not trusted, nor are many hundreds of steps.
func (t *Transformer) Repeatable() bool { return t.repeatable }
