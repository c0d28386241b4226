package embedded

import (
	"strconv"
	"strings"
	"time"

	"optimist/rewrite/tree"
)

// bound is one end of a range.
type bound struct {
	value   *node
	upper   bool
	include bool
}

func parseRange(name string, on *node, now time.Time) (query, *Error) {
	if on.kind != tree.Object {
		return nil, badRequest("parsing_exception", "[range] query malformed, no start_object after query name")
	}
	var bounds []bound
	for _, kid := range on.kids {
		switch kid.name {
		case "gt", "gte", "lt", "lte":
			if kid.kind != tree.Null {
				bounds = append(bounds, bound{dateBound(kid, now), kid.name[0] == 'l', len(kid.name) == 3})
			}
		case "boost", "format", "time_zone", "relation", "_name":
		default:
			return nil, badRequest("parsing_exception", "[range] query does not support [%s]", kid.name)
		}
	}
	return func(h *hit) bool {
		typ := typeOf(h.x, name)
		if name == "_seq_no" {
			return inRange("long", seqNoNode(h.rev.seqNo), bounds)
		}
		return h.any(name, func(v *node) bool { return inRange(typ, v, bounds) })
	}, nil
}

func seqNoNode(n int64) *node { return numberNode(strconv.AppendInt(nil, n, 10)) }

// dateBound evaluates now-1d and the like; anything else is left as it is.
func dateBound(n *node, now time.Time) *node {
	if !strings.HasPrefix(n.text(), "now") {
		return n
	}
	t, ok := shiftDate(now.UTC(), n.text())
	if !ok {
		return n
	}
	return textNode(t.Format(time.RFC3339Nano))
}

func inRange(typ string, v *node, bounds []bound) bool {
	for _, b := range bounds {
		c, ok := compareValues(typ, v, b.value)
		if b.upper {
			c = -c
		}
		if !ok || c < 0 || c == 0 && !b.include {
			return false
		}
	}
	return true
}

// compareValues orders two values of a field: numbers and dates by size, everything else by its bytes.
func compareValues(typ string, a, b *node) (int, bool) {
	switch typ {
	case "":
		return 0, false
	case "keyword", "text", "constant_keyword", "wildcard", "ip", "version", "boolean":
		return strings.Compare(a.text(), b.text()), true
	}
	return compareNumbers(magnitude(typ, a), magnitude(typ, b))
}
