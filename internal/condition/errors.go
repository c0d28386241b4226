package condition

import (
	"fmt"
	"regexp"
	"strings"

	"cel.dev/cel-go/common"
)

// A CompileError reports an expression that can't be used, and where in it.
type CompileError struct {
	Line   int // from 1
	Column int // in characters, from 1
	Reason string
}

func (e *CompileError) Error() string {
	return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Reason)
}

func compileError(at common.Location, expr, reason string) *CompileError {
	if not.MatchString(expr) && strings.Contains(reason, "mismatched input") && strings.HasSuffix(reason, "expecting <EOF>") {
		reason += "; write ! for not"
	}
	// The parser has no place for what is wrong with the whole, as its length.
	return &CompileError{Line: max(at.Line(), 1), Column: max(at.Column(), 0) + 1, Reason: plainly(strings.TrimSpace(reason))}
}

// not is where a word stands for what is a sign in expressions. The parser takes it for a name, and minds what follows.
var not = regexp.MustCompile(`(^|[(&|] *)not `)

// plainly says what the parser means: it lists all that could stand in a place, and has no word for the end.
func plainly(reason string) string {
	reason, _, _ = strings.Cut(reason, " expecting {")
	if strings.HasSuffix(reason, "mismatched input '<EOF>'") {
		return "Syntax error: the expression ends before it is complete"
	}
	if m := unrecognized.FindStringSubmatch(reason); m != nil {
		return reason + "; " + asTyped(m[1])
	}
	for _, h := range hints {
		if strings.Contains(reason, h.in) && !strings.Contains(reason, "did you mean") {
			return reason + "; " + h.says
		}
	}
	return reason
}

// unrecognized is a sign beyond ASCII, which word processors and web pages put in the place of the one that was typed.
var unrecognized = regexp.MustCompile(`token recognition error at: '([^\x00-\x7f])`)

// asTyped says what to write for such a sign.
func asTyped(sign string) string {
	for _, t := range []struct{ signs, says string }{
		{"“”„‟«»‘’‚‛", `quotes are " or '`},
		{"–—−‐‑", "the minus is -"},
		{"≤", "write <="}, {"≥", "write >="}, {"≠", "write !="}, {"×", "write *"}, {"÷", "write /"},
		{"∧", "write &&"}, {"∨", "write ||"}, {"¬", "write !"},
	} {
		if strings.Contains(t.signs, sign) {
			return t.says
		}
	}
	return fmt.Sprintf("the character %U belongs in quotes", []rune(sign)[0])
}

// hints are for what people write who know another language, by what the parser says of it.
var hints = []struct{ in, says string }{
	{"token recognition error at: '=", "to compare write =="},
	{"mismatched input 'and'", "write && for and"},
	{"mismatched input 'or'", "write || for or"},
	{"mismatched input 'is'", "to compare write ==, as in x == null"},
	{"token recognition error at: '&", "write && for and"},
	{"token recognition error at: '|", "write || for or"},
	{`token recognition error at: '"`, "the quote isn't closed"},
	{"token recognition error at: ''", "the quote isn't closed"},
	{"extraneous input '?'", "for a value that may be missing write x.?name.orValue(other)"},
	{"extraneous input '>'", "write != for unequal"},
	{"undeclared reference to 'not'", "write ! for not"},
	{"undeclared reference to 'request", "of a request there are method, op, index, id, routing, user, time and headers"},
	{"undeclared reference to 'None'", "write null"},
	{"undeclared reference to 'now'", "the time is request.time"},
	{"undeclared reference to 'len", "the length is size(x)"},
	{"undeclared reference to 'double'", "numbers are compared exactly, without it"},
	{"undeclared reference to", "there are incoming, current, base, candidate and request"},
	{"invalid argument to has()", "has() asks for a field, as in has(candidate.stock)"},
	{"optional_type(", "what .? finds is compared as .orValue(other)"},
	{"applied to '(string, null)'", "a text is never null"},
	{"applied to '(string, int)'", "a text is compared with a text: put the number in quotes"},
}

// inPart is a reason that isn't as long as the text of a document that is repeated in it.
func inPart(reason string) string {
	const most = 300 // bytes
	if len(reason) <= most {
		return reason
	}
	return strings.ToValidUTF8(reason[:most], "") + "…"
}

// An EvalError reports an expression that is neither true nor false for the documents that it met.
type EvalError struct {
	Expr   string
	Reason string
}

func (e *EvalError) Error() string { return fmt.Sprintf("%s: %s", e.Expr, e.Reason) }
