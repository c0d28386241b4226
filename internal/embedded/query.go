package embedded

import (
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"optimist/rewrite/tree"
)

// hit is a document that a search looks at. Its source is parsed once, when a field of it is asked for.
type hit struct {
	x      *index
	rev    *revision
	parsed bool
	root   *node
	sort   []sortValue
}

// values returns the scalars at a path, through objects and arrays.
func (h *hit) values(path string) []*node {
	if !h.parsed {
		text := h.rev.source
		if h.rev.full != nil {
			text = h.rev.full
		}
		h.root, _, _ = parseJSON(text)
		h.parsed = true
	}
	return collect(nil, h.root, path)
}

// any reports whether something holds for a value of a field.
func (h *hit) any(name string, holds func(*node) bool) bool {
	return slices.ContainsFunc(h.values(plainField(h.x, name)), holds)
}

func collect(out []*node, n *node, path string) []*node {
	switch {
	case n.kind == tree.Array:
		for _, kid := range n.kids {
			out = collect(out, kid, path)
		}
	case path == "" && n.kind != tree.Object && n.kind != tree.Null:
		out = append(out, n)
	case n.kind == tree.Object && path != "":
		for _, kid := range n.kids {
			if path == kid.name {
				out = collect(out, kid, "")
			} else if rest, ok := strings.CutPrefix(path, kid.name+"."); ok {
				out = collect(out, kid, rest)
			}
		}
	}
	return out
}

// query decides whether a document is a hit.
type query func(h *hit) bool

func matchAll(*hit) bool { return true }

// parseQueryDSL compiles a query.
func parseQueryDSL(n *node, now time.Time) (query, *Error) {
	if n.kind != tree.Object || len(n.kids) == 0 {
		return nil, illegalArgument("query malformed, empty clause found")
	}
	if len(n.kids) > 1 {
		return nil, badRequest("parsing_exception", "[%s] malformed query, expected [END_OBJECT] but found [FIELD_NAME]", n.kids[0].name)
	}
	body := n.kids[0]
	switch body.name {
	case "match_all":
		return matchAll, nil
	case "match_none":
		return func(*hit) bool { return false }, nil
	case "ids":
		ids := body.member("values").texts()
		return func(h *hit) bool { return slices.Contains(ids, h.rev.id) }, nil
	case "bool":
		return parseBool(body, now)
	case "constant_score":
		if inner := body.member("filter"); inner != nil {
			return parseQueryDSL(inner, now)
		}
		return nil, badRequest("parsing_exception", "[constant_score] requires a 'filter' element")
	case "exists":
		return parseExists(body)
	case "term", "terms", "match", "prefix", "range":
		return parseField(body, now)
	}
	e := badRequest("parsing_exception", "unknown query [%s]", body.name)
	e.cause = &Error{Type: "named_object_not_found_exception", Reason: "the embedded in-memory engine has match_all, match_none, ids, term, terms, " +
		"match, prefix, range, exists, bool and constant_score"}
	return nil, e
}

func parseExists(body *node) (query, *Error) {
	name := body.member("field").text()
	if name == "" {
		return nil, illegalArgument("[exists] must be provided with a [field]")
	}
	return func(h *hit) bool { return len(h.values(plainField(h.x, name))) > 0 || hasBelow(h, name) }, nil
}

// hasBelow reports whether an object field has any scalar in it.
func hasBelow(h *hit, name string) bool {
	f := h.x.copyMapping().at(name)
	return f != nil && f.isObject() && slices.ContainsFunc(f.props, func(p *field) bool {
		return len(h.values(name+"."+p.name)) > 0 || hasBelow(h, name+"."+p.name)
	})
}

func parseBool(body *node, now time.Time) (query, *Error) {
	var must, should, not []query
	least := -1
	for _, kid := range body.kids {
		var into *[]query
		switch kid.name {
		case "must", "filter":
			into = &must
		case "should":
			into = &should
		case "must_not":
			into = &not
		case "minimum_should_match":
			n, err := strconv.Atoi(kid.text())
			if err != nil {
				return nil, unsupported("other forms of minimum_should_match than a number")
			}
			least = n
			continue
		case "boost", "_name", "adjust_pure_negative":
			continue
		default:
			return nil, badRequest("x_content_parse_exception", "[bool] unknown field [%s]", kid.name)
		}
		for _, clause := range kid.elements() {
			q, err := parseQueryDSL(clause, now)
			if err != nil {
				return nil, err
			}
			*into = append(*into, q)
		}
	}
	if least < 0 && len(must) == 0 && len(should) > 0 {
		least = 1
	}
	return boolQuery(must, should, not, least), nil
}

func boolQuery(must, should, not []query, least int) query {
	return func(h *hit) bool {
		holds := func(q query) bool { return q(h) }
		if slices.ContainsFunc(not, holds) || slices.ContainsFunc(must, func(q query) bool { return !q(h) }) {
			return false
		}
		n := 0
		for _, q := range should {
			if n < least && q(h) {
				n++
			}
		}
		return n >= least
	}
}

// parseField compiles a query on one field.
func parseField(body *node, now time.Time) (query, *Error) {
	var on *node
	for _, kid := range body.kids {
		if kid.name != "boost" && kid.name != "_name" {
			if on != nil {
				return nil, badRequest("parsing_exception", "[%s] query doesn't support multiple fields, found [%s] and [%s]", body.name, on.name, kid.name)
			}
			on = kid
		}
	}
	if on == nil {
		return nil, illegalArgument("No field specified for [%s] query", body.name)
	}
	name := on.name
	switch body.name {
	case "range":
		return parseRange(name, on, now)
	case "terms":
		if on.kind != tree.Array {
			return nil, badRequest("parsing_exception", "[terms] query does not support [%s]", name)
		}
		return termsQuery(name, on.kids), nil
	}
	value, all := on, false
	if on.kind == tree.Object {
		value = on.member("value")
		if body.name == "match" {
			value = on.member("query")
			all = strings.EqualFold(on.member("operator").text(), "and")
		}
		if value == nil {
			return nil, illegalArgument("value cannot be null")
		}
	}
	switch body.name {
	case "match":
		return matchQuery(name, value, all), nil
	case "prefix":
		want := value.text()
		return func(h *hit) bool { return h.any(name, func(v *node) bool { return strings.HasPrefix(v.text(), want) }) }, nil
	}
	return termsQuery(name, []*node{value}), nil
}

// plainField returns the field that a multi-field (name.keyword) has its values from.
func plainField(x *index, name string) string {
	i := strings.LastIndexByte(name, '.')
	if i < 0 {
		return name
	}
	if f := x.copyMapping().at(name[:i]); f != nil && !f.isObject() && len(f.multi) > 0 {
		return name[:i]
	}
	return name
}

// typeOf returns the type of a field in an index; "" if it has no such field.
func typeOf(x *index, name string) string {
	if f := x.copyMapping().at(name); f != nil {
		return f.typ
	}
	return ""
}

func termsQuery(name string, wanted []*node) query {
	return func(h *hit) bool {
		if name == "_id" {
			return slices.ContainsFunc(wanted, func(want *node) bool { return want.text() == h.rev.id })
		}
		typ := typeOf(h.x, name)
		return h.any(name, func(v *node) bool {
			return slices.ContainsFunc(wanted, func(want *node) bool { return sameTerm(typ, v, want) })
		})
	}
}

func sameTerm(typ string, v, want *node) bool {
	switch typ {
	case "":
		return false
	case "text", "match_only_text":
		return slices.Contains(analyze(v.text()), want.text())
	case "keyword", "constant_keyword", "wildcard", "boolean", "ip", "version", "flattened":
		return v.text() == want.text()
	}
	order, ok := compareNumbers(magnitude(typ, v), magnitude(typ, want))
	return ok && order == 0
}

// magnitude returns a value as the text of a number. A date becomes its milliseconds since 1970.
func magnitude(typ string, n *node) string {
	if typ == "date" || typ == "date_nanos" {
		if t, ok := parseDate(n.text()); ok {
			return strconv.FormatInt(t.UnixNano(), 10) + "e-6"
		}
	}
	return n.text()
}

var dateLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04", time.DateTime, time.DateOnly, "2006-01"}

func parseDate(s string) (time.Time, bool) {
	for _, layout := range dateLayouts {
		if t, err := time.Parse(layout, s); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// analyze splits a text into lower-case words.
func analyze(s string) []string {
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '\'' })
}

func matchQuery(name string, value *node, all bool) query {
	exact := termsQuery(name, []*node{value})
	words := analyze(value.text())
	return func(h *hit) bool {
		if typ := typeOf(h.x, name); typ != "text" && typ != "match_only_text" {
			return exact(h)
		}
		var have []string
		for _, v := range h.values(name) {
			have = append(have, analyze(v.text())...)
		}
		n := 0
		for _, w := range words {
			if slices.Contains(have, w) {
				n++
			}
		}
		return n > 0 && (!all || n == len(words))
	}
}
