package doctor

import (
	"cmp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"optimist/internal/jsontext"
	"optimist/internal/rule"
)

// field is one that a rule puts into documents, or into answers.
type field struct {
	path []string
	of   string // the key of the rule
}

// refused says why every write of a rule fails in an index; "" if none of these causes is there. v is the engine's description.
func refused(r *rule.Rule, v gjson.Result) string {
	blocks := v.Get("settings.index.blocks")
	for _, block := range []string{"write", "read_only", "read_only_allow_delete"} {
		if blocks.Get(block).Bool() {
			return "index.blocks." + block
		}
	}
	if r.Mode != rule.Guard {
		return "" // the rule adds nothing
	}
	mappings := v.Get("mappings")
	if r.Stamp != "" {
		if _, kind, _ := mapped(mappings, []string{r.Stamp}); kind != "" && !takesText(kind) {
			return "base.stamp: " + r.Stamp + " is a field of the documents' own (" + kind + "), and a stamp is a text"
		}
	}
	for _, f := range addedFields(r) {
		switch there, kind, above := mapped(mappings, f.path); {
		case !there:
			return f.of + ": the mapping is `dynamic: strict`, and has no field " + strings.Join(f.path, ".")
		case above != "" && slices.Contains(values, kind):
			return f.of + ": " + above + " is mapped as " + kind + ", and has no field " + strings.Join(f.path, ".")
		case f.of == "write_id" && kind != "" && !takesText(kind):
			return "write_id: " + r.WriteID + " is mapped as " + kind + ", and marks are texts"
		}
	}
	return ""
}

// addedFields are those that a rule adds to every document.
func addedFields(r *rule.Rule) (list []field) {
	if r.WriteID != "" {
		list = append(list, field{[]string{r.WriteID}, "write_id"})
	}
	if r.Transform == nil {
		return list
	}
	for _, path := range r.Transform.Makes() {
		tokens, _ := jsontext.SplitPointer(path) // which was checked
		tokens = slices.DeleteFunc(tokens, func(t string) bool { return strings.Trim(t, "0123456789-") == "" })
		if len(tokens) > 0 {
			list = append(list, field{tokens, "transform"})
		}
	}
	return list
}

// mapped looks a field up in a mapping: whether it is there, or may be made by a write, and of which type it is; "" is unknown. If a field
// above it ends the way, the type is that field's, and above is its name.
func mapped(at gjson.Result, path []string) (there bool, kind, above string) {
	strict := false
	names := strings.Split(strings.Join(path, "."), ".")
	for i, name := range names {
		if d := at.Get("dynamic"); d.Exists() {
			strict = d.String() == "strict"
		}
		next := at.Get("properties").Map()[name]
		switch kind = cmp.Or(next.Get("type").Str, "object"); {
		case !next.Exists():
			return !strict, "", ""
		case next.Get("enabled").Raw == "false":
			return true, "", "" // it takes anything
		case kind != "object" && kind != "nested" && i < len(names)-1:
			return true, kind, strings.Join(names[:i+1], ".") // which holds whatever is below it
		}
		at = next
	}
	return true, kind, ""
}

// values are the types of fields that take no object.
var values = []string{"keyword", "text", "wildcard", "match_only_text", "constant_keyword", "long", "integer", "short", "byte", "double",
	"float", "half_float", "scaled_float", "unsigned_long", "date", "date_nanos", "boolean", "ip", "version", "binary"}

// takesText reports whether a field of a type takes any text.
func takesText(kind string) bool {
	return slices.Contains([]string{"keyword", "text", "wildcard", "match_only_text", "constant_keyword"}, kind)
}

// writesFailing is the finding about an index that refuses writes. Of an index that no rule names, nobody said that it gets any.
func writesFailing(name string, r *rule.Rule, why string) Index {
	level := Fail
	if r.AnyIndex && strings.HasPrefix(why, "index.blocks.") {
		level = Warn
	}
	return Index{Level: level, Name: name, Rule: r.Name, Does: "writes fail", Why: why}
}
