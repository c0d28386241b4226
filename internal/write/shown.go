package write

import (
	"strings"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/glob"
)

// shown is what of a document an answer shows, as the parameters of _source ask for it. The zero value is nothing.
type shown struct {
	asked              bool
	includes, excludes fieldNames
}

// maxPatterns bounds the patterns of one parameter. Each is held against each field of a document, of which there may be a million, and the
// engine, which bounds them by the length of a request's first line, isn't asked about those of a PATCH.
const maxPatterns = 100

// fieldNames are names of fields, and patterns in which a star is any text, dots too. Whatever is below one of them is named by it, too.
type fieldNames struct {
	exact    map[string]bool
	patterns []string
}

func (f *fieldNames) none() bool { return len(f.exact)+len(f.patterns) == 0 }

func newFieldNames(list string) fieldNames {
	f := fieldNames{exact: map[string]bool{}}
	for name := range strings.SplitSeq(list, ",") {
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
		if glob.Match(p, path) {
			return true
		}
	}
	return false
}

// shownParams are the parameters that it is read from.
var shownParams = []string{"_source", "_source_includes", "_source_excludes"}

// whole reports whether all of the document is shown.
func (s *shown) whole() bool { return s.asked && s.includes.none() && s.excludes.none() }

// readShown reads _source, _source_includes and _source_excludes as the engine does: true, false, or a list of fields.
func (c *change) readShown() bool {
	if c.patch.said {
		return true
	}
	s, none := &c.patch.asked, false
	for _, p := range [3]struct {
		name string
		list *fieldNames
	}{{"_source", &s.includes}, {"_source_includes", &s.includes}, {"_source_excludes", &s.excludes}} {
		raw, said := api.Param(c.req.Op.Query, p.name)
		if !said {
			continue
		}
		v, err := api.DecodeValue(nil, raw)
		if err != nil {
			return c.illegal("the parameter [%s] can't be read: %s", p.name, err)
		}
		s.asked = true
		switch word := string(v); {
		case word == "false" && p.name == "_source":
			none = true
		case word == "" || word == "true" && p.name == "_source":
		default:
			if *p.list = newFieldNames(word); len(p.list.patterns) > 2*maxPatterns {
				return c.illegal("the parameter [%s] has more than %d patterns", p.name, maxPatterns)
			}
		}
	}
	if none {
		*s = shown{}
	}
	return true
}

// of appends what is shown of a document. What is kept of it keeps its bytes.
func (s *shown) of(dst, source []byte) []byte {
	if s.whole() {
		return append(dst, source...)
	}
	dst, _ = s.value(dst, gjson.ParseBytes(source), "", s.includes.none())
	return dst
}

// value appends what is shown of a value; in says that it is shown unless something takes it out. empty says that it has nothing left.
func (s *shown) value(dst []byte, v gjson.Result, path string, in bool) (out []byte, empty bool) {
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

func (s *shown) object(dst []byte, v gjson.Result, path string, in bool) (out []byte, empty bool) {
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

func (s *shown) array(dst []byte, v gjson.Result, path string, in bool) (out []byte, empty bool) {
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
