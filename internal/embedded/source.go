package embedded

import (
	"strings"

	"optimist/internal/glob"
	"optimist/rewrite/tree"
)

// sourceFilter says which part of a document is served. A nil filter serves all of it, byte for byte.
type sourceFilter struct {
	none               bool
	includes, excludes []string
}

func (f *sourceFilter) hidden() bool { return f != nil && f.none }

// sourceFilter reads _source, _source_includes and _source_excludes from the query; nil without any of them.
func (c *call) sourceFilter() *sourceFilter {
	f := &sourceFilter{includes: c.params.list("_source_includes"), excludes: c.params.list("_source_excludes")}
	if v, ok := c.params.lookup("_source"); ok {
		switch v {
		case "true":
		case "false":
			f.none = true
		default:
			f.includes = strings.Split(v, ",")
		}
	} else if _, ok := c.params.lookup("stored_fields"); ok {
		f.none = true
	}
	if !f.none && len(f.includes) == 0 && len(f.excludes) == 0 {
		return nil
	}
	return f
}

// filterOf reads a _source member of a body: true, false, a field, a list of fields, or includes and excludes.
func filterOf(n *node) *sourceFilter {
	switch {
	case n == nil || n.text() == "true":
		return nil
	case n.text() == "false":
		return &sourceFilter{none: true}
	case n.kind == tree.Object:
		return &sourceFilter{
			includes: append(n.member("includes").texts(), n.member("include").texts()...),
			excludes: append(n.member("excludes").texts(), n.member("exclude").texts()...),
		}
	}
	return &sourceFilter{includes: n.texts()}
}

// append appends the served part of a document. A filtered document is written again, as the engine does: without white space, and with
// decimals as doubles.
func (f *sourceFilter) append(dst, source []byte) []byte {
	if f == nil || len(f.includes) == 0 && len(f.excludes) == 0 {
		return append(dst, source...)
	}
	filter := glob.NewFields(f.includes, f.excludes)
	return append(dst, rewritten(filter.Append(nil, source))...)
}
