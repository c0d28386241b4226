package watch

import (
	"bytes"

	"optimist/internal/api"
	"optimist/internal/glob"
	"optimist/internal/uri"
)

// partParams are the query parameters by which a client says which part of a document it wants.
var partParams = [...]string{"_source", "_source_includes", "_source_excludes", "_source_include", "_source_exclude", "stored_fields"}

// formParams are those that give a document in another form, or, as source, hold a body that may ask for a part. With
// force_synthetic_source a document is made of its fields: lists are sorted, keys may stand elsewhere.
var formParams = [...]string{"filter_path", "format", "source", "force_synthetic_source", "_source_exclude_vectors"}

// Partial reports whether a read gives less than the document, or another form of it.
func Partial(query []byte) bool { return len(query) > 0 && (asksForPart(query) || asksForForm(query)) }

func asksForPart(query []byte) bool {
	for _, name := range partParams {
		if v, ok := uri.Param(query, name); ok && !(name == "_source" && string(v) == "true") {
			return true
		}
	}
	return false
}

func asksForForm(query []byte) bool {
	for _, name := range formParams {
		v, ok := uri.Param(query, name)
		switch {
		case !ok, name == "format" && string(v) == "json":
		case (name == "force_synthetic_source" || name == "_source_exclude_vectors") && string(v) == "false":
		default:
			return true
		}
	}
	return false
}

// hidesDocument reports whether the read of one document shows nothing of it.
func hidesDocument(op *api.Op) bool {
	v, _ := uri.Param(op.Query, "_source")
	_, stored := uri.Param(op.Query, "stored_fields")
	return op.Kind == api.Get && string(v) == "false" && !stored
}

// hidesRevision reports whether a partial read is so by its form alone: its client may see all of the document, but nothing here
// can tell.
func hidesRevision(query []byte) bool {
	if asksForPart(query) {
		return false
	}
	paths, ok := uri.Param(query, "filter_path")
	paths, err := uri.DecodeValue(nil, paths)
	if !ok || err != nil {
		return true
	}
	for path := range bytes.SplitSeq(paths, []byte(",")) {
		if len(path) > 0 && path[0] == '-' || glob.Match(string(path), "_source") || bytes.HasPrefix(path, []byte("_source.*")) {
			return true
		}
	}
	return false
}
