package rule

import (
	"errors"
	"strconv"

	"optimist/internal/condition"
	"optimist/internal/config"
	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// mistake is what makes a rule unusable, at a key of it.
type mistake struct {
	key          string // below the rule's, as in transform[0].when
	line, column int    // inside the key's text, from 1; 0 where the whole is meant
	reason       string
}

// compileTransform turns a transform block into what is carried out; without one it is nil. All mistakes are found, not the first alone.
func compileTransform(list []config.Step) (*edit.Transformer, []mistake) {
	if len(list) == 0 {
		return nil, nil
	}
	steps := make([]edit.Step, len(list))
	var found []mistake
	for i := range list {
		key := "transform[" + strconv.Itoa(i) + "]"
		step, wrong := compileStep(&list[i], key)
		steps[i], found = step, append(found, wrong...)
		if len(wrong) > 0 {
			continue
		}
		if _, err := edit.NewTransformer(steps[i:i+1], tree.Limits{}); err != nil {
			found = append(found, stepMistake(err, key))
		}
	}
	if len(found) > 0 {
		return nil, found
	}
	t, err := edit.NewTransformer(steps, tree.Limits{})
	if err != nil {
		return nil, []mistake{stepMistake(err, "transform")}
	}
	return t, nil
}

// stepMistake is what the transformer says of a step.
func stepMistake(err error, key string) mistake {
	var e *edit.StepError
	if !errors.As(err, &e) {
		return mistake{key: key, reason: err.Error()}
	}
	if e.Field != "" {
		key += "." + e.Field
	}
	return mistake{key: key, reason: "it " + e.Reason}
}

func compileStep(c *config.Step, key string) (s edit.Step, found []mistake) {
	var err error
	if s.Action, err = edit.ParseAction(string(c.Op)); err != nil {
		found = append(found, mistake{key: key + ".op", reason: err.Error()})
	}
	s.Path, s.From, s.Format, s.Message = c.Path, c.From, string(c.Format), c.Message
	if c.Value.IsSet {
		s.Value = edit.Value{Literal: c.Value.Literal, Path: c.Value.Path, Name: c.Value.Name}
		if c.Value.Source != "" {
			if s.Value.Source, err = edit.ParseSource(string(c.Value.Source)); err != nil {
				found = append(found, mistake{key: key + ".value", reason: err.Error()})
			}
		}
	}
	if c.When == "" {
		return s, found
	}
	program, err := condition.Compile(c.When)
	if err == nil {
		s.When = program
		return s, found
	}
	wrong := mistake{key: key + ".when", reason: err.Error()}
	var at *condition.CompileError
	if errors.As(err, &at) {
		wrong.line, wrong.column, wrong.reason = at.Line, at.Column, "the condition can't be used: "+at.Reason
	}
	return s, append(found, wrong)
}
