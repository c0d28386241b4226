package rewrite

import (
	"bytes"
	"errors"
)

// A StepTold is what became of one step of a transform.
type StepTold struct {
	Step    *Step // the caller must not change it
	Held    bool  // its condition held, or it has none
	Changed bool  // it changed something
	Err     error // it failed; steps after it aren't told
}

// Explain is Apply with what became of each step. It costs several times as much as Apply.
func (t *Transformer) Explain(candidate []byte, in *Inputs) ([]byte, []StepTold, error) {
	if candidate == nil {
		candidate = []byte("{}")
	}
	told := make([]StepTold, 0, len(t.steps))
	for i, doc := 0, candidate; i < len(t.steps); i++ {
		s := StepTold{Step: &t.steps[i].Step, Held: true}
		if s.Step.When != nil {
			here := *in
			here.Candidate = doc
			s.Held, s.Err = s.Step.When.Holds(&here)
		}
		var after []byte
		if s.Held && s.Err == nil {
			one := Transformer{steps: t.steps[i : i+1], limits: t.limits}
			if after, s.Err = one.Apply(doc, in); s.Err == nil {
				s.Changed, doc = !bytes.Equal(after, doc), after
			}
			renumber(s.Err, i)
		}
		told = append(told, s)
		if s.Err != nil {
			break
		}
	}
	// What counts is the transform as a whole: it has bounds, and documents that only a later step makes an object again.
	doc, err := t.Apply(candidate, in)
	if last := len(told) - 1; last >= 0 && err == nil && errors.Is(told[last].Err, ErrNotObject) {
		told = told[:last]
	}
	return doc, told, err
}

// renumber gives an error about the only step its place among all.
func renumber(err error, i int) {
	var test *TestError
	var kind *TypeError
	var other *StepError
	switch {
	case errors.As(err, &test):
		test.Index = i
	case errors.As(err, &kind):
		kind.Step = i
	case errors.As(err, &other):
		other.Step = i
	}
}
