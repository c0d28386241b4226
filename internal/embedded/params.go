package embedded

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"optimist/internal/spelling"
	"optimist/internal/uri"
)

// params are the decoded parameters of a query string, in their order. If a name is there twice, the last one counts.
type params []uri.Pair

func parseQuery(q string) (params, *Error) {
	pairs, err := uri.Pairs([]byte(q), uri.DecodeValue)
	if err != nil {
		return nil, &Error{Status: 400, Type: "bad_parameter_exception", Reason: "java.lang.IllegalArgumentException: " + err.Error(),
			cause: illegalArgument("%s", err)}
	}
	return pairs, nil
}

// unescape decodes a part of a path.
func unescape(s string) (string, *Error) {
	var room [64]byte
	b, err := uri.Decode(room[:0], []byte(s))
	if err != nil {
		return "", illegalArgument("%s", err)
	}
	return string(b), nil
}

func (p params) lookup(name string) (string, bool) {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i].Name == name {
			return p[i].Value, true
		}
	}
	return "", false
}

func (p params) get(name string) string { v, _ := p.lookup(name); return v }

// wrong notes a wrong parameter. The first one counts. Each handler looks at c.bad before it changes anything.
func (c *call) wrong(err *Error) {
	if c.bad == nil {
		c.bad = err
	}
}

// flag reads a boolean parameter: a name alone is true.
func (c *call) flag(name string, def bool) bool {
	switch v, ok := c.params.lookup(name); {
	case !ok:
		return def
	case v == "" || v == "true":
		return true
	case v != "false":
		c.wrong(illegalArgument("Failed to parse value [%s] as only [true] or [false] are allowed.", v))
	}
	return false
}

func (c *call) long(name string, def int64) int64 { return c.number(name, 64, def) }

func (c *call) integer(name string, def int64) int64 { return c.number(name, 32, def) }

func (c *call) number(name string, bits int, def int64) int64 {
	v, ok := c.params.lookup(name)
	if !ok {
		return def
	}
	n, err := parseNumber(name, v, bits)
	c.wrong(err)
	return n
}

// parseNumber reads a number of 32 or 64 bits that stands in a parameter or in a body.
func parseNumber(name, v string, bits int) (int64, *Error) {
	n, err := strconv.ParseInt(v, 10, bits)
	if err != nil {
		e := illegalArgument("Failed to parse %s parameter [%s] with value [%s]", map[int]string{32: "int", 64: "long"}[bits], name, v)
		e.cause = &Error{Type: "number_format_exception", Reason: "For input string: " + strconv.Quote(v)}
		return 0, e
	}
	return n, nil
}

// list splits a comma-separated parameter.
func (p params) list(name string) []string {
	v := p.get(name)
	if v == "" {
		return nil
	}
	return strings.Split(v, ",")
}

// answerParams are understood by every request.
var answerParams = []string{"pretty", "human", "error_trace", "filter_path", "format"}

// unknown refuses parameters that the endpoint doesn't know, as the engine does: a misspelt guard must not be ignored.
func (p params) unknown(path string, known []string) *Error {
	var bad []string
	for _, kv := range p {
		if !slices.Contains(known, kv.Name) && !slices.Contains(answerParams, kv.Name) && !slices.Contains(bad, kv.Name) {
			bad = append(bad, kv.Name)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	slices.Sort(bad)
	parts := make([]string, len(bad))
	for i, name := range bad {
		parts[i] = "[" + name + "]" + suggest(name, known)
	}
	plural := ""
	if len(bad) > 1 {
		plural = "s"
	}
	return illegalArgument("%s", fmt.Sprintf("request [%s] contains unrecognized parameter%s: %s", path, plural, strings.Join(parts, ", ")))
}

// suggest names the known parameters that are close to a misspelt one, the closest first.
func suggest(name string, known []string) string {
	likeness := func(k string) float64 { // 0 if half of the letters or more differ
		length := max(len(name), len(k))
		if edits, near := spelling.Within(name, k, (length-1)/2); near {
			return 1 - float64(edits)/float64(length)
		}
		return 0
	}
	near := slices.DeleteFunc(slices.Concat(known, answerParams), func(k string) bool { return likeness(k) == 0 })
	slices.SortStableFunc(near, func(a, b string) int {
		return cmp.Or(cmp.Compare(likeness(b), likeness(a)), strings.Compare(a, b))
	})
	switch len(near) {
	case 0:
		return ""
	case 1:
		return " -> did you mean [" + near[0] + "]?"
	}
	return " -> did you mean any of [" + strings.Join(near, ", ") + "]?"
}

// suggestField is suggest in the words of the engine's body parsers.
func suggestField(name string, known ...string) string {
	i := slices.IndexFunc(known, func(k string) bool {
		_, near := spelling.Within(name, k, 2)
		return near
	})
	if i < 0 {
		return ""
	}
	return " did you mean [" + known[i] + "]?"
}
