package rule

// Pattern is the first of the rule's index patterns that takes one of the names (decoded), which are tried in their order: the request's
// own name, and the names for which it stands. It explains why the rule took a request; "" if no pattern does.
func (r *Rule) Pattern(names ...string) string {
	for _, name := range names {
		if name == "" {
			continue
		}
		for _, p := range r.match.in {
			if p.matches(stem(name)) {
				return string(p)
			}
		}
	}
	return ""
}

// OtherIndices is why most rules don't take a request.
const OtherIndices = "its indices are others"

// Skipped is a rule that didn't take a request, and why.
type Skipped struct {
	Rule *Rule
	Why  string
}

// Skipped are the rules that come before the one that took a request; all of them, where none did.
func (s *Set) Skipped(a *Target, taken *Rule) []Skipped {
	var list []Skipped
	for _, r := range s.rules {
		if r == taken {
			break
		}
		why := "its headers or users are others"
		switch m := &r.match; {
		case matchesAny(m.out, stem(a.Index)) || a.Concrete != "" && matchesAny(m.out, a.Concrete):
			why = "it leaves this index out"
		case !m.takes(stem(a.Index), a):
			why = OtherIndices
		case !m.kinds.has(a.Kind):
			why = "its operations are others"
		}
		list = append(list, Skipped{r, why})
	}
	return list
}
