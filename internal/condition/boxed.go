package condition

import (
	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Boxed is a comparison with null of what an expression takes by .? or [?…]. To CEL, that is a box with a value or without, and not the
// value: it is never null. The zero value is none.
type Boxed struct{ Value, Operator string }

// boxed is the first such comparison in an expression.
func boxed(checked *ast.AST) (found Boxed) {
	ast.PreOrderVisit(checked.Expr(), ast.NewExprVisitor(func(e ast.Expr) {
		if found.Value != "" || e.Kind() != ast.CallKind {
			return
		}
		operator, given := operators.FindReverse(e.AsCall().FunctionName())
		if !given || operator != "==" && operator != "!=" {
			return
		}
		args := e.AsCall().Args()
		for i, value := range args {
			if isNull(args[1-i]) && isBox(checked, value) {
				text, _ := cel.ExprToString(value, checked.SourceInfo()) // no error: the expression was parsed
				found = Boxed{text, operator}
			}
		}
	}))
	return found
}

// isBox reports whether the expression gives a box. CEL doesn't know that of an index into a document, which may be a map or a list.
func isBox(checked *ast.AST, e ast.Expr) bool {
	index := e.Kind() == ast.CallKind && e.AsCall().FunctionName() == operators.OptIndex
	return index || checked.GetType(e.ID()).TypeName() == cel.OptionalType(cel.DynType).TypeName()
}

func isNull(e ast.Expr) bool { return e.Kind() == ast.LiteralKind && e.AsLiteral() == types.NullValue }
