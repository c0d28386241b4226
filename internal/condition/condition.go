// Package condition compiles the `when` of a rule's steps: expressions of the Common Expression Language (CEL) over the request
// and the documents of a write. It does not promise that an expression is cheap, only that it ends: a cost limit stops it.
//
// # Variables
//
//   - request.method, .op, .index, .id, .routing, .user are strings; request.time is a timestamp, by optimist's clock;
//     request.headers is a map from names, in any case, to values, of which it can be asked which it has but not how many.
//   - incoming, current, base and candidate (what would be stored so far) are documents: maps, lists, strings, numbers, booleans
//     and null. A document that is absent is null: `current == null`. A key that a document does not have is an error, unless
//     one asks: `has(current.x)`, or `current.?x.orValue(0)`.
//
// # Numbers
//
// Numbers are exact, whatever their size, and compare by value: 1, 1.0 and 10e-1 are equal. What is written without a decimal point
// and exponent is an int, or, above the largest int, a uint. Calculations with decimals are exact, too; a quotient that has no
// end within 1000 digits is an error, as is a number with more digits than that. Only division tells int from decimal: 7/2 is 3,
// 7/2.0 is 3.5. No number becomes a float64 that has not at most 15 significant digits, which a float64 holds.
package condition

import (
	"fmt"
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"

	"optimist/rewrite/edit"
)

// costLimit bounds one evaluation. A comparison or a step into a document costs 1, a comparison of strings a tenth of their
// length (of long ones less, see lengths): 100,000 is a list of some 20,000 objects of each of which one field is looked at, and
// some 10 ms.
const costLimit = 100_000

// A Program is a compiled expression. It doesn't change, and may be used by several goroutines at once. It is a
// edit.Condition.
type Program struct {
	source      string
	program     cel.Program
	readCurrent bool
	readResult  bool
	unasked     string
	boxed       Boxed
}

var _ edit.Condition = (*Program)(nil)

// Compile checks an expression, whose result must be a bool.
//
// Errors: *CompileError.
func Compile(expr string) (*Program, error) {
	env, err := environment()
	if err != nil {
		return nil, fmt.Errorf("the environment of conditions: %w", err)
	}
	checked, issues := env.Compile(expr)
	if err := issues.Err(); err != nil {
		first := issues.Errors()[0]
		return nil, compileError(first.Location, expr, first.Message)
	}
	if is := resultOf(checked); is != "" {
		return nil, &CompileError{Line: 1, Column: 1, Reason: "must be true or false, and " + is}
	}
	if err := checkLiterals(checked.NativeRep(), expr); err != nil {
		return nil, err
	}
	program, err := env.Program(checked, cel.CostLimit(costLimit), cel.CostTracking(lengths{}), cel.EvalOptions(cel.OptOptimize),
		cel.CustomDecoratorV2(shortened))
	if err != nil {
		return nil, &CompileError{Line: 1, Column: 1, Reason: err.Error()}
	}
	p := &Program{source: expr, program: program, unasked: unasked(checked.NativeRep().Expr()), boxed: boxed(checked.NativeRep())}
	ast.PreOrderVisit(checked.NativeRep().Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() == ast.IdentKind {
			p.readCurrent = p.readCurrent || e.AsIdent() == "current"
			p.readResult = p.readResult || e.AsIdent() == "candidate"
		}
	}))
	return p, nil
}

// calculations are the operators that give a number, or what has no bool either.
var calculations = []string{operators.Add, operators.Subtract, operators.Multiply, operators.Divide}

// resultOf says what an expression is, if that can't be a bool.
func resultOf(checked *cel.Ast) string {
	t, root := checked.OutputType(), checked.NativeRep().Expr()
	switch t.Kind() {
	case types.BoolKind:
		return ""
	case types.DynKind:
		if root.Kind() == ast.CallKind && slices.Contains(calculations, root.AsCall().FunctionName()) {
			return "is a number"
		}
		return ""
	case types.IntKind, types.UintKind, types.DoubleKind:
		return "is a number"
	case types.NullTypeKind:
		return "is null"
	case types.ListKind:
		return "is a list"
	case types.MapKind:
		return "is a map"
	}
	if t.IsExactType(cel.OptionalType(cel.DynType)) {
		return "may be nothing: say what then, with orValue"
	}
	return "is a " + cel.FormatCELType(t)
}

// Holds evaluates the expression.
//
// Errors: *EvalError.
func (p *Program) Holds(in *edit.Inputs) (bool, error) {
	out, _, err := p.program.Eval(newActivation(in))
	if err != nil {
		return false, &EvalError{Expr: p.source, Reason: inPart(err.Error())}
	}
	holds, ok := out.Value().(bool)
	if !ok {
		return false, &EvalError{Expr: p.source, Reason: "is " + out.Type().TypeName() + ", not true or false"}
	}
	return holds, nil
}

// ReadsCurrent reports whether the expression refers to the stored document.
func (p *Program) ReadsCurrent() bool { return p.readCurrent }

// ReadsCandidate reports whether the expression refers to what would be stored so far.
func (p *Program) ReadsCandidate() bool { return p.readResult }

// Unasked is a field that the expression takes for granted, as candidate.stock, or a header, as request.headers.X-Job, or "": an expression
// about a document without the field, or a request without the header, is neither true nor false.
func (p *Program) Unasked() string { return p.unasked }

// Boxed is a comparison in the expression that is always false, or always true.
func (p *Program) Boxed() Boxed { return p.boxed }

// String is the expression.
func (p *Program) String() string { return p.source }
