package config

import (
	"reflect"
	"strings"
)

// nearest is the candidate that was probably meant by word, or "": at most a third of the letters wrong, left out,
// doubled or swapped; one more where the beginning is right, because endings are what one remembers worst.
func nearest(word string, candidates []string) string {
	best, bestDistance := "", len(word)
	for _, c := range candidates {
		allowed := max(1, len(word)/3)
		if len(c) > 3 && strings.HasPrefix(strings.ToLower(word), c[:4]) {
			allowed++
		}
		if d := distance(strings.ToLower(word), c); d <= allowed && d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance is the number of edits between two words, swapped neighbours counting once (optimal string alignment).
func distance(a, b string) int {
	prev2, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(b)]
}

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
