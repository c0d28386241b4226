package config

import "reflect"

// keys are a struct's keys, as the file writes them, in their order.
func keys(t reflect.Type) []string {
	var names []string
	for _, f := range reflect.VisibleFields(t) {
		if name := f.Tag.Get("json"); name != "" {
			names = append(names, name)
		}
	}
	return names
}

// sectionOf finds the section in which a key of that name stands, for keys that were written one level too high or too
// low. It is empty if there is none or more than one.
func sectionOf(name string) string {
	var found []string
	searchKey(reflect.TypeFor[Config](), "", name, &found)
	if len(found) == 1 {
		return found[0]
	}
	return ""
}

func searchKey(t reflect.Type, path, name string, found *[]string) {
	for _, f := range reflect.VisibleFields(t) {
		key := f.Tag.Get("json")
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
