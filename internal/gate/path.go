package gate

import (
	"strings"

	"github.com/tidwall/gjson"

	"optimist/internal/jsontext"
)

// The bounds of what is read of a document's paths.
const (
	maxPaths   = 64
	maxNesting = 32 // of arrays and objects on the way to them
)

// The reasons why nobody can tell from a document where in the tree of locks it is.
const (
	whyNoText = "the field that says where in the tree of locks its document is has something other than texts"
	whyMany   = "its document has more than 64 paths, which say where in the tree of locks it is"
	whyNested = "the field that says where in the tree of locks its document is is nested too deep"

	whyPathMayChange = "only the engine can carry out this _update, and it may change the path, which says where in the tree of locks " +
		"the document is"
)

// places are what a document says of where it is.
type places struct {
	paths []string
	why   string // not empty: nobody can tell
}

// pathsAt are the texts of a field of a document; none if there is no such field, or only nulls and empty texts. They are found where an
// index finds them: in arrays, in the elements of arrays on the way, and under names with dots, which stand for objects in one another.
// why is not empty if nobody can tell what an index makes of it.
func pathsAt(source []byte, field []string) (paths []string, why string) {
	var p places
	if jsontext.LooksLikeObject(source) {
		p.below(source, strings.Join(field, "."), 0)
	}
	return p.paths, p.why
}

// below looks in an object, or in the elements of an array, for what is at the rest of the way.
func (p *places) below(value []byte, rest string, depth int) {
	array := jsontext.LooksLikeArray(value)
	switch {
	case !array && !jsontext.LooksLikeObject(value):
		return
	case depth > maxNesting:
		p.why = whyNested
		return
	}
	for m := jsontext.Scan(value); p.why == "" && m.Next(); {
		if array {
			p.below(m.Text(), rest, depth+1)
			continue
		}
		name, _ := m.PlainName()
		if name == rest {
			p.take(m.Text(), depth+1)
		} else if deeper, ok := strings.CutPrefix(rest, name+"."); ok {
			p.below(m.Text(), deeper, depth+1)
		}
	}
}

// take takes a value of the field: a text, or an array of texts.
func (p *places) take(value []byte, depth int) {
	switch {
	case jsontext.LooksLikeArray(value) && depth > maxNesting:
		p.why = whyNested
		return
	case jsontext.LooksLikeArray(value):
		for m := jsontext.Scan(value); p.why == "" && m.Next(); {
			p.take(m.Text(), depth+1)
		}
		return
	}
	v := gjson.ParseBytes(value)
	switch {
	case v.Type == gjson.Null, v.Type == gjson.String && v.Str == "":
	case v.Type != gjson.String:
		p.why = whyNoText
	case len(p.paths) == maxPaths:
		p.why = whyMany
	default:
		p.paths = append(p.paths, v.Str)
	}
}
