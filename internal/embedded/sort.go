package embedded

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"optimist/rewrite/tree"
)

// sortKey is one criterion of a search's order.
type sortKey struct {
	field        string
	descending   bool
	missingFirst bool
	unmapped     string
}

// sortValue is what a hit has for a criterion: a value of the document, or none.
type sortValue struct {
	value *node
	typ   string
}

func parseSort(n *node) ([]sortKey, *Error) {
	var keys []sortKey
	for _, item := range n.elements() {
		if item.kind == tree.String {
			keys = append(keys, sortKey{field: item.text(), descending: item.text() == "_score"})
			continue
		}
		if item.kind != tree.Object {
			return nil, illegalArgument("malformed sort format, within the sort array, an object, or an actual string are allowed")
		}
		for _, kid := range item.kids {
			k, err := parseSortKey(kid)
			if err != nil {
				return nil, err
			}
			keys = append(keys, k)
		}
	}
	return keys, nil
}

func parseSortKey(n *node) (sortKey, *Error) {
	k := sortKey{field: n.name, descending: n.name == "_score"}
	order := n.text()
	if n.kind == tree.Object {
		order = ""
		for _, kid := range n.kids {
			switch kid.name {
			case "order":
				order = kid.text()
			case "missing":
				if k.missingFirst = kid.text() == "_first"; !k.missingFirst && kid.text() != "_last" {
					return k, unsupported("other values of [missing] than _first and _last in a sort")
				}
			case "unmapped_type":
				k.unmapped = kid.text()
			case "mode", "format", "numeric_type":
			default:
				return k, badRequest("x_content_parse_exception", "[field_sort] unknown field [%s]", kid.name)
			}
		}
	}
	switch strings.ToLower(order) {
	case "":
	case "asc":
		k.descending = false
	case "desc":
		k.descending = true
	default:
		return k, illegalArgument("No enum constant org.elasticsearch.search.sort.SortOrder.%s", strings.ToUpper(order))
	}
	return k, nil
}

// check refuses fields by which the index can't be sorted.
func (k *sortKey) check(x *index) *Error {
	switch k.field {
	case "_doc", "_score", "_id", "_seq_no":
		return nil
	}
	switch typ := typeOf(x, k.field); {
	case typ == "" && k.unmapped == "":
		return shardFailure(x, &Error{Type: "query_shard_exception", Reason: "No mapping found for [" + k.field + "] in order to sort on", index: x})
	case typ == "text":
		return shardFailure(x, &Error{Type: "illegal_argument_exception", Reason: "Fielddata is disabled on [" + k.field + "] in [" + x.name + "]. " +
			"Text fields are not optimised for operations that require per-document field data like aggregations and sorting, so these operations are " +
			"disabled by default. Please use a keyword field instead."})
	}
	return nil
}

func (k *sortKey) value(h *hit) sortValue {
	switch k.field {
	case "_doc", "_seq_no":
		return sortValue{seqNoNode(h.rev.seqNo), "long"}
	case "_score":
		return sortValue{numberNode([]byte("1.0")), "float"}
	case "_id":
		return sortValue{textNode(h.rev.id), "keyword"}
	}
	typ := cmp.Or(typeOf(h.x, k.field), k.unmapped)
	var best *node
	for _, v := range h.values(plainField(h.x, k.field)) {
		if best == nil {
			best = v
		} else if c, ok := compareValues(typ, v, best); ok && (c > 0) == k.descending && c != 0 {
			best = v
		}
	}
	return sortValue{best, typ}
}

func sortHits(hits []*hit, keys []sortKey) {
	for _, h := range hits {
		h.sort = make([]sortValue, len(keys))
		for i := range keys {
			h.sort[i] = keys[i].value(h)
		}
	}
	slices.SortStableFunc(hits, func(a, b *hit) int {
		for i := range keys {
			if c := keys[i].compare(a.sort[i], b.sort[i]); c != 0 {
				return c
			}
		}
		return 0
	})
}

func (k *sortKey) compare(a, b sortValue) int {
	if a.value == nil || b.value == nil {
		switch {
		case a.value == b.value:
			return 0
		case (a.value == nil) == k.missingFirst:
			return -1
		}
		return 1
	}
	c, _ := compareValues(a.typ, a.value, b.value)
	if k.descending {
		return -c
	}
	return c
}

// append appends the value as the answer shows it: dates in ms, a missing number as the largest or smallest there is.
func (v sortValue) append(dst []byte, k *sortKey) []byte {
	numeric := v.typ != "keyword" && v.typ != "ip" && v.typ != "version"
	if v.value == nil {
		last := k.missingFirst == k.descending
		switch {
		case !numeric:
			return append(dst, "null"...)
		case v.typ == "float" || v.typ == "double" || v.typ == "half_float" || v.typ == "scaled_float":
			if last {
				return append(dst, `"Infinity"`...)
			}
			return append(dst, `"-Infinity"`...)
		case last:
			return strconv.AppendInt(dst, math.MaxInt64, 10)
		}
		return strconv.AppendInt(dst, math.MinInt64, 10)
	}
	switch v.typ {
	case "date", "date_nanos":
		if t, ok := parseDate(v.value.text()); ok {
			return strconv.AppendInt(dst, t.UnixMilli(), 10)
		}
	case "boolean":
		if v.value.isTrue() {
			return append(dst, '1')
		}
		return append(dst, '0')
	case "float", "double", "half_float", "scaled_float":
		return appendDouble(dst, []byte(v.value.text()))
	}
	if numeric {
		return append(dst, v.value.text()...)
	}
	return appendString(dst, v.value.text())
}
