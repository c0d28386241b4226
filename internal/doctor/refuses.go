package doctor

import (
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
		if _, kind := mapped(mappings, []string{r.Stamp}); kind != "" && !takesText(kind) {
			return "base.stamp: " + r.Stamp + " is a field of the documents' own (" + kind + "), and a stamp is a text"
		}
	}
	for _, f := range addedFields(r) {
		switch there, kind := mapped(mappings, f.path); {
		case !there:
			return f.of + ": the mapping is `dynamic: strict`, and has no field " + strings.Join(f.path, ".")
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

// mapped looks a field up in a mapping: whether it is there, or may be made by a write, and of which type it is; "" is unknown.
func mapped(at gjson.Result, path []string) (there bool, kind string) {
	strict := false
	for _, token := range slices.Concat(path, []string{""}) {
		if d := at.Get("dynamic"); d.Exists() {
			strict = d.String() == "strict"
		}
		if token == "" {
			break
		}
		for name := range strings.SplitSeq(token, ".") {
			if kind = at.Get("type").Str; kind != "" && kind != "object" && kind != "nested" {
				return true, kind // which holds whatever is below it
			}
			next := at.Get("properties").Map()[name]
			if !next.Exists() {
				return !strict, ""
			}
			at = next
		}
	}
	return true, at.Get("type").Str
}

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
