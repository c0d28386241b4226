package rewrite

import (
	"fmt"
	"time"
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
	// Value of all actions but OpRemove, OpMove, OpCopy, OpNow and OpRemoveEmpty. A reference to what isn't there makes the
	// step do nothing, but for OpTest: that fails.
	Value Value
	// Format is how OpNow and FromNow write the time: "" as 2006-01-02T15:04:05.000Z, "epoch_millis" and "epoch_second" as
	// numbers.
	Format string
	// When decides whether the step is carried out; nil is always.
	When Condition
}

// A Condition decides whether a Step is carried out. It must be safe for concurrent use. An error ends the transform.
type Condition interface {
	Holds(in *Inputs) (bool, error)
	ReadsCurrent() bool   // the result depends on Inputs.Current
	ReadsBase() bool      // the result depends on Inputs.Base
	ReadsCandidate() bool // the result depends on Inputs.Candidate
}

// Inputs are what the steps of a transform can refer to. Nothing in it is changed, or kept.
type Inputs struct {
	Incoming []byte // what the client sent; nil is absent, as for the next two
	Current  []byte // the stored document, before this write
	Base     []byte // the document as the client saw it
	// Candidate is what would be stored so far: what the steps before made of it. Transformers set it, for conditions that read it.
	Candidate []byte
	Index     string
	ID        string
	Routing   string
	Op        string // index, create, update, delete, patch
	Method    string // of HTTP
	User      string // "" where the request doesn't say
	Header    func(name string) (value []byte, ok bool)
	Now       time.Time
}

// A Transformer is the compiled form of steps. It doesn't change, and may be used by several goroutines at once.
type Transformer struct {
	steps      []step
	limits     Limits
	repeatable bool
}

// NewTransformer checks and compiles steps. It keeps no reference to them but for their conditions.
//
// Errors: *StepError.
func NewTransformer(steps []Step, l Limits) (*Transformer, error) {
	if len(steps) > MaxSteps {
		return nil, tooManySteps()
	}
	t := &Transformer{steps: make([]step, len(steps)), limits: l.withDefaults()}
	for i := range steps {
		t.steps[i].Step = steps[i]
		if e := t.steps[i].compile(t.limits); e != nil {
			e.Step, e.Action, e.Path = i, steps[i].Action, steps[i].Path
			return nil, e
		}
	}
	t.repeatable = repeatable(t.steps)
	return t, nil
}

func tooManySteps() *StepError {
	return &StepError{Step: MaxSteps, Reason: fmt.Sprintf("is one more than the %d that a transform may have", MaxSteps)}
}

// Apply returns the candidate with all steps applied to it in their order, each to what those before it left, or, with an
// error, none of them. A nil candidate is an empty object. What no step touches keeps its bytes: where no step changes
// anything, the result is the candidate itself. The result is an object.
//
// Errors: *TestError, *TypeError, *StepError; *SyntaxError for the candidate, or for a document of in that is referred to;
// ErrNotObject for the candidate, or for the result; ErrTooDeep and ErrTooLarge for any of them, or for the work that the
// steps are.
func (t *Transformer) Apply(candidate []byte, in *Inputs) ([]byte, error) {
	if candidate == nil {
		candidate = []byte("{}")
	}
	a := newApplication(t, in)
	defer a.free()
	if err := a.read(candidate); err != nil {
		return nil, err
	}
	if a.root.v.kind != kindObject {
		return nil, ErrNotObject
	}
	for i := range t.steps {
		if err := a.carryOut(i); err != nil {
			return nil, err
		}
	}
	switch {
	case a.root.v.kind != kindObject:
		return nil, ErrNotObject
	case !a.changed:
		return candidate, nil
	}
	return a.render(), nil
}

// ReadsCurrent reports whether a value or a condition refers to the stored document.
func (t *Transformer) ReadsCurrent() bool { return t.any((*step).readsCurrent) }

// ReadsBase reports whether a value or a condition refers to the document as the client saw it.
func (t *Transformer) ReadsBase() bool {
	return t.any(func(s *step) bool { return s.Value.Source == FromBase || s.When != nil && s.When.ReadsBase() })
}

// Repeatable reports whether a document to which the steps were applied already can be given to them again: nothing counts
// twice, and nothing fails that didn't before. It is asked where it isn't known whether a write has happened. Increments, moves,
// and what is appended or inserted into an array count twice; steps that read the stored document, and most of those that
// touch the same value as another, are not trusted.
func (t *Transformer) Repeatable() bool { return t.repeatable }

func (t *Transformer) any(is func(*step) bool) bool {
	for i := range t.steps {
		if is(&t.steps[i]) {
			return true
		}
	}
	return false
}
