package condition

import (
	"slices"
	"strings"

	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// Headers is what expressions call the headers of a request.
const Headers = "request.headers"

// documents are the variables whose fields may be missing.
var documents = []string{"incoming", "current", "base", "candidate", Headers}

// unasked is the first field of a document, or the first header, that an expression takes, and for which it doesn't ask. It looks at fields
// at the top only. A question anywhere in the expression counts, wherever it stands.
func unasked(root ast.Expr) string {
	asked := map[string]bool{}
	var taken []string
	ast.PreOrderVisit(root, ast.NewExprVisitor(func(e ast.Expr) {
		field, asks := fieldOf(e)
		switch {
		case field == "":
		case asks:
			asked[field] = true
		default:
			taken = append(taken, field)
		}
	}))
	for _, field := range taken {
		if !asked[field] {
			return field
		}
	}
	return ""
}

// fieldOf is the field of a document that an expression names, or "", and whether it asks if the field is there.
func fieldOf(e ast.Expr) (field string, asks bool) {
	switch e.Kind() {
	case ast.SelectKind: // has(x.y) is one
		s := e.AsSelect()
		return nameOf(s.Operand(), s.FieldName()), s.IsTestOnly()
	case ast.CallKind:
		args := e.AsCall().Args()
		if len(args) != 2 {
			return "", false
		}
		switch e.AsCall().FunctionName() {
		case operators.Index:
			return nameOf(args[0], textOf(args[1])), false
		case operators.OptSelect, operators.OptIndex:
			return nameOf(args[0], textOf(args[1])), true
		case operators.In:
			return nameOf(args[1], textOf(args[0])), true
		}
	}
	return "", false
}

func nameOf(document ast.Expr, field string) string {
	if field == "" || document.Kind() != ast.IdentKind || !slices.Contains(documents, document.AsIdent()) {
		return ""
	}
	if document.AsIdent() == Headers {
		field = strings.ToLower(field) // upper and lower case are the same
	}
	return document.AsIdent() + "." + field
}

func textOf(e ast.Expr) string {
	if e.Kind() == ast.LiteralKind {
		if s, ok := e.AsLiteral().(types.String); ok {
			return string(s)
		}
	}
	return ""
}
