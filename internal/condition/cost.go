package condition

import (
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/overloads"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
)

// longText is how many bytes of text a call may be given that costs no more than one with numbers.
const longText = 1 << 10

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
	case overloads.Contains, overloads.Matches, overloads.StartsWith, overloads.EndsWith, operators.In:
		return nil // whose costs grow with both
	case operators.Equals, operators.NotEquals, operators.Less, operators.LessEquals, operators.Greater, operators.GreaterEquals:
		if through = least; texts < 2 {
			through = 0
		}
	}
	const bytesOfOne = 200 // with 100 ns for a cost of 1
	cost := uint64(1 + through/bytesOfOne)
	return &cost
}
