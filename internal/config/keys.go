package config

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// keyOf is the file's key for a field of a struct. It is empty if the file has none.
func keyOf(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func fieldOf(t reflect.Type, name string) (reflect.StructField, bool) {
	for _, f := range reflect.VisibleFields(t) {
		if name != "" && keyOf(f) == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// keys are a struct's keys, as the file writes them, in their order.
func keys(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name := keyOf(f); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// withWord lists the keys that have name as one of their words: tls is listen_tls, or admin_tls. It is empty if there is none.
func withWord(name string, names []string) string {
	var longer []string
	for _, key := range names {
		if strings.Contains("_"+key+"_", "_"+name+"_") {
			longer = append(longer, strconv.Quote(key))
		}
	}
	return strings.Join(longer, " or ")
}

// sectionOf finds the section in which a key of that name stands, for keys that were written one level too high or too low. Of several
// sections the one directly below path counts. It is empty if there is none, or more than one elsewhere.
func sectionOf(name, path string) string {
	if strings.HasPrefix(name, "/") { // a JSON Pointer
		return "rules[].merge.paths"
	}
	var found []string
	searchKey(reflect.TypeFor[Config](), "", name, &found)
	if len(found) == 1 {
		return found[0]
	}
	here := inList.ReplaceAllString(localKey(path), "[]")
	below := slices.DeleteFunc(found, func(section string) bool { return section == "" || parent(section) != here })
	if len(below) == 1 {
		return below[0]
	}
	return ""
}

// inList is the place of an entry in its list.
var inList = regexp.MustCompile(`\[\d+\]`)

func searchKey(t reflect.Type, path, name string, found *[]string) {
	for _, f := range reflect.VisibleFields(t) {
		key := keyOf(f)
		if key == "" {
			continue
		}
		if key == name {
			*found = append(*found, path)
		}
		ft := f.Type
		if ft.Kind() == reflect.Slice && ft.Elem().Kind() == reflect.Struct {
			ft, key = ft.Elem(), key+"[]"
		}
		if ft.Kind() == reflect.Struct {
			searchKey(ft, join(path, key), name, found)
		}
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

// partOf is the part of a rule in which a key stands, such as a step of its transform: rules[0].transform[2].when → rules[0].transform[2].
func partOf(key string) string {
	rule := strings.Index(key, "].")
	if rule < 0 {
		return key
	}
	rule += len("].")
	if end := strings.IndexByte(key[rule:], '.'); end >= 0 {
		return key[:rule+end]
	}
	return key
}

// parent cuts the last step off a key's path: rules[0].base → rules[0] → rules → "".
func parent(key string) string {
	return key[:max(strings.LastIndexAny(key, ".["), 0)]
}
