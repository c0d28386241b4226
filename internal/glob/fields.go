package glob

import "strings"

// Fields are the fields of a document that an engine shows, as the filters of _source name them. Unlike in filter_path, a star in a pattern
// stands for dots, too, and lists lose the objects that the filter empties. Fields don't change: goroutines may share them.
type Fields struct{ includes, excludes fieldNames }

// NewFields returns the fields that the names and patterns of includes name (all, if there are none), without those that excludes name. A
// name also names everything below it. Empty names don't count.
func NewFields(includes, excludes []string) *Fields {
	return &Fields{includes: newFieldNames(includes), excludes: newFieldNames(excludes)}
}

// Append appends the shown part of a document: see walk. If the paths of a document's fields are far longer than the document, it appends
// the whole.
func (f *Fields) Append(dst, source []byte) []byte {
	w := f.over(dst, source)
	return w.all(place{selected: f.includes.none()})
}

// Each member has a path of its own, which is held against all names. With long keys, and many members below them, the paths are as long as
// the product of the two: 10 GB for a document of 1 MB. pathsPerByte and freePaths are how long all paths may be.
const (
	pathsPerByte = 16
	freePaths    = 1 << 16
)

func (f *Fields) over(dst, source []byte) walk {
	return walk{rules: f, dst: dst, value: source, most: pathsPerByte*len(source) + freePaths}
}

func (f *Fields) whole(at place) bool { return at.selected && f.excludes.none() }

func (f *Fields) keepsEmptied() bool { return true }

func (f *Fields) below(name string, at place, steps *int) (to place, wanted bool) {
	*steps += len(at.path) + len(name)
	to = place{path: name}
	if at.path != "" {
		to.path = at.path + "." + name
	}
	to.selected = at.selected || f.includes.name(to.path)
	return to, !f.excludes.name(to.path)
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
