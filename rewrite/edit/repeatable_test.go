package edit

import (
	"fmt"
	"strings"
	"testing"

	"optimist/rewrite/tree"
)

// A client sends as many steps with as long paths as it likes. Each was held against each other one, token by token.
func TestManyLongStepsAreNotHeldAgainstEachOther(t *testing.T) {
	for name, c := range map[string]struct {
		steps, depth int
		want         bool
	}{
		"a few":       {50, 5, true},
		"a rule's":    {100, 3, true},
		"many":        {MaxSteps, 1, false},
		"a few, long": {50, 90, false},
	} {
		var steps []Step
		for i := range c.steps {
			steps = append(steps, Step{Action: OpAdd, Path: strings.Repeat("/a", c.depth) + fmt.Sprintf("/%dx", i), Value: Value{Literal: []byte("1")}})
		}
		tr, err := NewTransformer(steps, tree.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if tr.Repeatable() != c.want {
			t.Errorf("%s: %v", name, tr.Repeatable())
		}
	}
}
