package embedded

import (
	"cmp"
	"slices"
	"strings"

	"optimist/rewrite/tree"
)

// maxFields is the engines' default of index.mapping.total_fields.limit.
const maxFields = 1000

// field is one field of a mapping: an object with fields of its own, or a leaf with a type.
type field struct {
	name    string
	typ     string // "object", "long", …
	dynamic string // of an object: "", "true", "false", "strict", "runtime"
	skip    bool   // enabled: false; of the whole mapping, too
	rest    []raw  // further parameters, in their order
	multi   []*field
	props   []*field // sorted by name
}

// raw is a member that is kept as it was given.
type raw struct {
	name  string
	value []byte
}

// mapping holds the fields of an index's documents. The index's mapping lock guards it.
type mapping struct {
	top      []raw // dynamic, _meta, _source, …, in their order
	root     field
	fields   int
	source   *sourceFilter // of the mapping's _source
	routing  bool          // _routing.required
	dateless bool          // date_detection: false
}

func (f *field) find(name string) *field {
	if i, ok := slices.BinarySearchFunc(f.props, name, compareField); ok {
		return f.props[i]
	}
	return nil
}

func compareField(f *field, name string) int { return strings.Compare(f.name, name) }

func (f *field) isObject() bool { return f.typ == "object" || f.typ == "nested" }

func (m *mapping) add(parent *field, f *field) {
	i, _ := slices.BinarySearchFunc(parent.props, f.name, compareField)
	parent.props = slices.Insert(parent.props, i, f)
	m.fields += 1 + len(f.multi)
}

// at finds a field by its path with dots, multi-fields (name.keyword) included.
func (m *mapping) at(path string) *field {
	f := &m.root
	for path != "" {
		name, rest, _ := strings.Cut(path, ".")
		next := f.find(name)
		if i := slices.IndexFunc(f.multi, func(sub *field) bool { return sub.name == name }); next == nil && i >= 0 {
			next = f.multi[i]
		}
		if next == nil {
			return nil
		}
		f, path = next, rest
	}
	return f
}

// merge adds the members of a mapping that a request gives. After an error the mapping may be half changed, so the caller works on a copy.
func (m *mapping) merge(n *node) *Error {
	for _, kid := range n.kids {
		switch kid.name {
		case "properties":
			if err := m.mergeProps(&m.root, kid, ""); err != nil {
				return err
			}
		case "dynamic":
			m.root.dynamic = kid.text()
			m.keep(kid)
		case "enabled":
			m.root.skip = kid.text() == "false"
			m.keep(kid)
		case "date_detection":
			m.dateless = kid.text() == "false"
			m.keep(kid)
		case "_source":
			if err := m.mergeSource(kid); err != nil {
				return err
			}
			m.keep(kid)
		case "_routing":
			m.routing = kid.member("required").isTrue()
			m.keep(kid)
		case "_meta", "dynamic_templates", "numeric_detection", "dynamic_date_formats", "runtime", "_data_stream_timestamp", "_field_names", "_size":
			m.keep(kid)
		default:
			return mapperError("Root mapping definition has unsupported parameters:  [" + kid.name + " : " + kid.text() + "]")
		}
	}
	return nil
}

func mapperError(reason string) *Error {
	root := badRequest("mapper_parsing_exception", "%s", reason)
	e := badRequest("mapper_parsing_exception", "%s", "Failed to parse mapping: "+reason)
	e.root, e.cause = root, root
	return e
}

func (m *mapping) keep(n *node) {
	v := compact(n)
	for i := range m.top {
		if m.top[i].name == n.name {
			m.top[i].value = v
			return
		}
	}
	m.top = append(m.top, raw{n.name, v})
}

func (m *mapping) mergeSource(n *node) *Error {
	if mode := n.member("mode").text(); mode != "" && mode != "stored" {
		return unsupported("synthetic and disabled _source modes")
	}
	f := &sourceFilter{none: n.member("enabled").text() == "false", includes: n.member("includes").texts(), excludes: n.member("excludes").texts()}
	if f.none || len(f.includes) > 0 || len(f.excludes) > 0 {
		m.source = f
	}
	return nil
}

func (m *mapping) mergeProps(parent *field, props *node, prefix string) *Error {
	for _, def := range props.kids {
		path := prefix + def.name
		if def.kind != tree.Object {
			return mapperError("Expected map for property [fields] on field [" + path + "] but got a class java.lang.String")
		}
		typ := cmp.Or(def.member("type").text(), "object")
		old := parent.find(def.name)
		switch {
		case slices.Contains(refusedTypes, typ):
			return unsupported("fields of the type [" + typ + "]")
		case !slices.Contains(fieldTypes, typ):
			return mapperError("The mapper type [" + typ + "] declared on field [" + def.name + "] does not exist. It might have been created within " +
				"a future version or requires a plugin to be installed. Check the documentation.")
		case old != nil && old.typ != typ && (old.isObject() || typ == "object" || typ == "nested"):
			return illegalArgument("can't merge a non object mapping [%s] with an object mapping", path)
		case old != nil && old.typ != typ:
			return illegalArgument("mapper [%s] cannot be changed from type [%s] to [%s]", path, old.typ, typ)
		case old == nil:
			old = &field{name: def.name, typ: typ}
			m.add(parent, old)
		}
		if err := m.mergeField(old, def, path); err != nil {
			return err
		}
	}
	return nil
}

func (m *mapping) mergeField(f *field, def *node, path string) *Error {
	f.rest = nil
	for _, kid := range def.kids {
		switch kid.name {
		case "type":
		case "properties":
			if err := m.mergeProps(f, kid, path+"."); err != nil {
				return err
			}
		case "fields":
			f.multi = nil
			for _, inner := range kid.kids {
				sub := &field{name: inner.name, typ: inner.member("type").text()}
				if err := m.mergeField(sub, inner, path); err != nil {
					return err
				}
				f.multi = append(f.multi, sub)
			}
		default:
			if kid.name == "dynamic" {
				f.dynamic = kid.text()
			}
			f.skip = f.skip || kid.name == "enabled" && kid.text() == "false"
			f.rest = append(f.rest, raw{kid.name, compact(kid)})
		}
	}
	return nil
}

var fieldTypes = []string{"object", "nested", "long", "integer", "short", "byte", "double", "float", "half_float", "scaled_float", "unsigned_long",
	"keyword", "constant_keyword", "wildcard", "text", "match_only_text", "date", "date_nanos", "boolean", "binary", "ip", "flattened",
	"geo_point", "geo_shape", "point", "shape", "integer_range", "long_range", "float_range", "double_range", "date_range", "ip_range",
	"completion", "search_as_you_type", "token_count", "rank_feature", "rank_features", "dense_vector", "version"}

// refusedTypes are types of fields that aren't simply values of the document. As plain values they would give wrong results silently.
var refusedTypes = []string{"join", "alias", "percolator"}

// clone copies a mapping, so that a refused change leaves nothing behind.
func (m *mapping) clone() *mapping {
	c := *m
	c.top = slices.Clone(m.top)
	c.root = *m.root.clone()
	return &c
}

func (f *field) clone() *field {
	c := *f
	c.props = make([]*field, len(f.props))
	for i, p := range f.props {
		c.props[i] = p.clone()
	}
	return &c
}

// appendJSON appends the mapping as GET _mapping shows it.
func (m *mapping) appendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	for _, r := range m.top {
		dst = append(appendName(dst, r.name), r.value...)
	}
	return append(appendFields(dst, "properties", m.root.props), '}')
}

// appendFields appends the fields under a name; nothing if there are none.
func appendFields(dst []byte, under string, fields []*field) []byte {
	if len(fields) == 0 {
		return dst
	}
	dst = append(appendName(dst, under), '{')
	for _, f := range fields {
		dst = append(appendName(dst, f.name), '{')
		if f.typ != "object" || len(f.props) == 0 {
			dst = appendString(appendName(dst, "type"), f.typ)
		}
		for _, r := range f.rest {
			dst = append(appendName(dst, r.name), r.value...)
		}
		dst = append(appendFields(appendFields(dst, "fields", f.multi), "properties", f.props), '}')
	}
	return append(dst, '}')
}
