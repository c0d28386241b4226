package patch

// The media types of a PATCH. Plain application/json is none of them: an array would be one kind of patch, an object another, and
// the body of an _update a third.
const (
	MediaOperations = "application/json-patch+json"         // RFC 6902
	MediaMerge      = "application/merge-patch+json"        // RFC 7396
	MediaSteps      = "application/vnd.optimist-patch+json" // the operations of rules, without `when`
	mediaEngine     = "application/vnd.elasticsearch+json"  // begins what asks an Elasticsearch for the forms of an older one
	acceptPatch     = MediaOperations + ", " + MediaMerge + ", " + MediaSteps
)
