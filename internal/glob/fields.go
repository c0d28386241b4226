package glob

import (
	"strings"

	"github.com/tidwall/gjson"
)

// Fields are the fields of a document that an engine shows, as the filters of _source name them. Unlike in filter_path, a star in a pattern
// stands for dots, too, and lists lose the objects that the filter empties. Fields don't change: goroutines may share them.
type Fields struct{ includes, excludes fieldNames }

// NewFields returns what the names and patterns of includes name, everything without any, and of that what excludes don't name. Whatever is
// below a name is named by it, too. Empty names don't count.
func NewFields(includes, excludes []string) *Fields {
	return &Fields{includes: newFieldNames(includes), excludes: newFieldNames(excludes)}
}

// Append appends what is shown of a document. What is kept of it keeps its bytes.
func (s *Fields) Append(dst, source []byte) []byte {
	dst, _ = s.value(dst, gjson.ParseBytes(source), "", s.includes.none())
	return dst
}

// fieldNames are names of fields, and patterns.
type fieldNames struct {
	exact    map[string]bool
	patterns []string
}

func (f *fieldNames) none() bool { return len(f.exact)+len(f.patterns) == 0 }

func newFieldNames(list []string) fieldNames {
	f := fieldNames{exact: map[string]bool{}}
	for _, name := range list {
		if name == "" {
			continue
		}
		if strings.Contains(name, "*") {
			f.patterns = append(f.patterns, name, name+".*")
		} else {
			f.exact[name] = true
		}
	}
	return f
}

// name reports whether they name a field, or an object that the field is in.
func (f *fieldNames) name(path string) bool {
	if f.exact[path] {
		return true
	}
	for i := 0; i < len(path) && len(f.exact) > 0; i++ {
		if path[i] == '.' && f.exact[path[:i]] {
			return true
		}
	}
	for _, p := range f.patterns {
		if Match(p, path) {
			return true
		}
	}
	return false
}

// value appends what is shown of a value; in says that it is shown unless something takes it out. empty says that it has nothing left.
func (s *Fields) value(dst []byte, v gjson.Result, path string, in bool) (out []byte, empty bool) {
	switch {
	case in && s.excludes.none():
		return append(dst, v.Raw...), false
	case v.IsObject():
		return s.object(dst, v, path, in)
	case v.IsArray():
		return s.array(dst, v, path, in)
	}
	return append(dst, v.Raw...), !in
}

func (s *Fields) object(dst []byte, v gjson.Result, path string, in bool) (out []byte, empty bool) {
	dst, empty = append(dst, '{'), true
	v.ForEach(func(k, v gjson.Result) bool {
		at := k.String()
		if path != "" {
			at = path + "." + at
		}
		if s.excludes.name(at) {
			return true
		}
		named := in || s.includes.name(at)
		mark := len(dst)
		if !empty {
			dst = append(dst, ',')
		}
		dst = append(append(dst, k.Raw...), ':')
		var nothing bool
		if dst, nothing = s.value(dst, v, at, named); nothing && !named {
			dst = dst[:mark]
		} else {
			empty = false
		}
		return true
	})
	return append(dst, '}'), empty
}

func (s *Fields) array(dst []byte, v gjson.Result, path string, in bool) (out []byte, empty bool) {
	dst, empty = append(dst, '['), true
	v.ForEach(func(_, v gjson.Result) bool {
		mark := len(dst)
		if !empty {
			dst = append(dst, ',')
		}
		var nothing bool
		if dst, nothing = s.value(dst, v, path, in); nothing {
			dst = dst[:mark]
		} else {
			empty = false
		}
		return true
	})
	return append(dst, ']'), empty
}
