package embedded

import (
	"errors"
	"strings"
)

// checkDocument refuses what the engine's mapper refuses.
func checkDocument(x *index, w *write) *Error {
	n, rest, err := parseJSON(w.source)
	if errors.Is(err, errEmpty) {
		return parsingError("[0:0] failed to parse: document is empty", nil)
	}
	if err != nil {
		return badSyntax(err)
	}
	if n.kind != kindObject {
		return parsingError("Malformed content, must start with an object", nil)
	}
	if len(rest) > 0 {
		return illegalArgument("Malformed content, found extra data after parsing: %s", tokenName(rest))
	}
	return nil
}

func parsingError(reason string, cause *Error) *Error {
	e := badRequest("document_parsing_exception", "%s", reason)
	e.cause = cause
	return e
}

func badSyntax(err error) *Error {
	var s *syntaxError
	if !errors.As(err, &s) {
		return parsingError("failed to parse: "+err.Error(), nil)
	}
	typ := "x_content_parse_exception"
	if s.eof {
		typ = "x_content_e_o_f_exception"
	}
	where, _, _ := strings.Cut(s.msg, " ")
	return parsingError(where+" failed to parse: "+s.msg, &Error{Type: typ, Reason: s.msg})
}

// tokenName names what follows a document, as the engine's parser does.
func tokenName(rest []byte) string {
	switch c := rest[0]; {
	case c == '{':
		return "START_OBJECT"
	case c == '[':
		return "START_ARRAY"
	case c == '}':
		return "END_OBJECT"
	case c == ']':
		return "END_ARRAY"
	case c == '"':
		return "VALUE_STRING"
	default:
		return "VALUE"
	}
}
