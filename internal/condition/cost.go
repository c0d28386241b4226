package condition

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
	"cel.dev/cel-go/interpreter"
)

// lengths are the costs of calls with long texts. CEL's own count the characters of both whenever two are compared, which takes longer than
// to compare them, and take the size of a text, conversions, and what stands in the place of CEL's operators here for next to nothing: so a
// text of some megabytes, looked at once for each element of a list, would keep a processor busy for minutes.
type lengths struct{}

// CallCost is what it takes to go through the bytes that a call goes through; nil leaves it to CEL.
func (lengths) CallCost(function, _ string, args []ref.Val, _ ref.Val) *uint64 {
	texts, total, least := 0, 0, 0
	for _, arg := range args {
		if s, ok := arg.(types.String); ok {
			if texts++; texts == 1 || len(s) < least {
				least = len(s)
			}
			total += len(s)
		}
	}
	if total <= longText {
		return nil
	}
	through := total
	switch function {
	case overloads.Contains, overloads.Matches, overloads.StartsWith, overloads.EndsWith:
		return nil // whose costs grow with both
	case operators.In:
		return membership(args)
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		through = least
		if texts < 2 {
			through = 0
		}
	}
	cost := uint64(1 + through/bytesOfOne)
	return &cost
}

// bytesOfOne is how many bytes a cost of 1 goes through, with 100 ns for it.
const bytesOfOne = 200

// membership is the cost of looking for a long text. In a list it is compared with those that are as long. A map takes a sum of it, which
// is made five times as fast as a comparison of two. What is in a document has a meter, and CEL takes a list's size.
func membership(args []ref.Val) *uint64 {
	text, ok := args[0].(types.String)
	if !ok {
		return nil
	}
	cost := uint64(1)
	switch in := args[1].(type) {
	case *array, *object:
		return nil
	case traits.Lister:
		for it := in.Iterator(); it.HasNext() == types.True; cost++ {
			if s, ok := it.Next().(types.String); ok && len(s) == len(text) {
				cost += uint64(len(s) / bytesOfOne)
			}
		}
	default:
		cost += uint64(len(text) / (5 * bytesOfOne))
	}
	return &cost
}

// shortened gives a text that is looked for in a list of constants no more bytes than it takes to tell it from all of them: such a list is
// a set, for which CEL sums up all of the text, and takes nothing.
func shortened(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
	call, ok := i.(interpreter.InterpretableCall)
	if !ok || call.OverloadID() != overloads.InList {
		return i, nil
	}
	args := call.Args()
	constant, ok := args[1].(interpreter.InterpretableConst)
	if !ok {
		return i, nil
	}
	list, ok := constant.Value().(traits.Lister)
	if !ok {
		return i, nil
	}
	most := longText
	for it := list.Iterator(); it.HasNext() == types.True; {
		if s, ok := it.Next().(types.String); ok {
			most = max(most, len(s))
		}
	}
	args = []interpreter.InterpretableV2{&beginning{args[0], most + 1}, constant}
	in := func(args ...ref.Val) ref.Val { return list.Contains(args[0]) }
	return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), args, in), nil
}

// beginning is what a text begins with, and any other value as it is.
type beginning struct {
	interpreter.InterpretableV2
	most int // bytes
}

// Exec implements interpreter.InterpretableV2.
func (b *beginning) Exec(frame *interpreter.ExecutionFrame) ref.Val {
	v := b.InterpretableV2.Exec(frame)
	if s, ok := v.(types.String); ok && len(s) > b.most {
		return s[:b.most]
	}
	return v
}

// Eval implements interpreter.Interpretable.
func (b *beginning) Eval(vars interpreter.Activation) ref.Val {
	return interpreter.EvalActivation(vars, b.Exec)
}
