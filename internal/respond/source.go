package respond

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"optimist/internal/glob"
	"optimist/internal/uri"
)

// MaxPatterns bounds the patterns of one parameter. Each is held against each field of a document, of which there may be a
// million.
const MaxPatterns = 100

// SourceFilter is what of a document an answer shows, as the parameters of _source ask for it. The zero value is nothing.
type SourceFilter struct {
	shows  bool
	fields *glob.Fields // nil: all of them
}

// SourceParams are the parameters that a SourceFilter is read from.
var SourceParams = []string{"_source", "_source_includes", "_source_excludes"}

// All is the filter that shows everything, or nothing.
func All(show bool) SourceFilter { return SourceFilter{shows: show} }

// ReadSourceFilter reads _source, _source_includes and _source_excludes of a query as the engine does: true, false, or a list of
// fields. The error is a text for the client.
func ReadSourceFilter(query []byte) (s SourceFilter, err error) {
	var includes, excludes []string
	for _, name := range SourceParams {
		raw, found := uri.Param(query, name)
		if !found {
			continue
		}
		v, err := uri.DecodeValue(nil, raw)
		if err != nil {
			return s, fmt.Errorf("the parameter [%s] can't be read: %w", name, err)
		}
		list := strings.Split(string(v), ",")
		if len(list) > MaxPatterns && strings.Count(string(v), "*") > MaxPatterns {
			return s, fmt.Errorf("the parameter [%s] has more than %d patterns", name, MaxPatterns)
		}
		s.shows = true
		switch word := string(v); {
		case word == "false" && name == "_source":
			return SourceFilter{}, nil
		case word == "" || word == "true" && name == "_source":
		case name == "_source_excludes":
			excludes = list
		default:
			includes = list
		}
	}
	if len(includes)+len(excludes) > 0 {
		s.fields = glob.NewFields(includes, excludes)
	}
	return s, nil
}

// BodySourceFilter reads the _source of a request's body as the engine does: true, false, a field, a list of fields, or an object that
// says what is in and what is out. ok is false for anything else, and for too many patterns.
func BodySourceFilter(v gjson.Result) (s SourceFilter, ok bool) {
	if v.IsBool() {
		return All(v.Bool()), true
	}
	var includes, excludes []string
	ok = true
	if v.IsObject() {
		v.ForEach(func(k, list gjson.Result) bool {
			switch k.String() {
			case "includes", "include":
				includes, ok = fieldsOf(includes, list)
			case "excludes", "exclude":
				excludes, ok = fieldsOf(excludes, list)
			case "exclude_vectors":
				ok = list.Type == gjson.False
			default:
				ok = false
			}
			return ok
		})
	} else {
		includes, ok = fieldsOf(nil, v)
	}
	s = All(ok)
	if ok && len(includes)+len(excludes) > 0 {
		s.fields = glob.NewFields(includes, excludes)
	}
	return s, ok && max(len(includes), len(excludes)) <= MaxPatterns
}

// fieldsOf appends the fields of a string or a list of strings.
func fieldsOf(fields []string, v gjson.Result) ([]string, bool) {
	for _, field := range v.Array() {
		if field.Type != gjson.String || field.Str == "" {
			return nil, false
		}
		fields = append(fields, field.Str)
	}
	return fields, v.IsArray() || v.Type == gjson.String
}

// Shows reports whether anything of a document may be shown.
func (s *SourceFilter) Shows() bool { return s.shows }

// Whole reports whether all of the document is shown.
func (s *SourceFilter) Whole() bool { return s.shows && s.fields == nil }

// Append appends the shown part of a document. The part keeps its bytes.
func (s *SourceFilter) Append(dst, source []byte) []byte {
	if s.fields == nil {
		return append(dst, source...)
	}
	return s.fields.Append(dst, source)
}

// Filtered is a body that is made here, without what the filter_path of a query doesn't select. One that can't be read selects everything.
func Filtered(query, body []byte) []byte {
	raw, given := uri.Param(query, "filter_path")
	v, err := uri.DecodeValue(nil, raw)
	if !given || len(v) == 0 || err != nil {
		return body
	}
	filter := glob.ParseFilter(string(v))
	return filter.Append(nil, body)
}
