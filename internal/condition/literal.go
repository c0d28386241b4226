package condition

import (
	"math"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/types"
)

// checkLiterals refuses decimals that the parser has made inexact, or that would not be compared exactly.
func checkLiterals(a *ast.AST, src string) error {
	text := []rune(src)
	var found *CompileError
	ast.PreOrderVisit(a.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.LiteralKind || found != nil {
			return
		}
		f, ok := e.AsLiteral().(types.Double)
		if !ok {
			return
		}
		reason := ""
		const whole = 1 << 53
		switch at, ok := a.SourceInfo().GetOffsetRange(e.ID()); {
		case math.Trunc(float64(f)) == float64(f) && math.Abs(float64(f)) >= whole && math.Abs(float64(f)) < 1<<64:
			reason = "write a whole number of this size without a decimal point or exponent"
		case ok && significant(text, int(at.Start)) > doubleDigits:
			reason = "has more than 15 digits, and could not be compared exactly"
		}
		if reason != "" {
			found = compileError(a.SourceInfo().GetStartLocation(e.ID()), "", reason)
		}
	}))
	if found != nil {
		return found
	}
	return nil
}

// significant returns the number of significant digits of the decimal that begins at an offset.
func significant(text []rune, at int) int {
	var digits strings.Builder
	for _, r := range text[min(at, len(text)):] {
		if r == '.' || r == '-' && digits.Len() == 0 {
			continue
		}
		if r < '0' || r > '9' {
			break
		}
		digits.WriteRune(r)
	}
	return len(strings.Trim(digits.String(), "0"))
}
