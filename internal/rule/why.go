package rule

// Pattern is the first of the rule's index patterns that takes a name (decoded), for whoever asks why the rule took a request; "" where
// none does.
func (r *Rule) Pattern(index string) string {
	if !r.match.index(index) {
		return ""
	}
	for _, p := range r.match.in {
		if p.matches(index) {
			return string(p)
		}
	}
	return ""
}
