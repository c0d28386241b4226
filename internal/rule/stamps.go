package rule

import (
	"slices"
	"strings"

	"optimist/internal/api"
)

// Stamps reports whether any rule stamps documents: if not, nothing has to be looked at for it.
func (s *Set) Stamps() bool { return s.stamps }

// Stamper is the rule whose stamps the documents of an index have: the one that takes writes of whole documents, which bring them back,
// or nil where that stamps nothing. a.Kind is of no account.
func (s *Set) Stamper(a *Asked) *Rule {
	if !s.stamps {
		return nil
	}
	whole := *a
	for _, kind := range [...]api.Kind{api.Index, api.Create, api.Patch, api.Update} {
		whole.Kind = kind
		if r := s.MatchRequest(&whole); r != nil {
			if r.Stamp == "" {
				return nil
			}
			return r
		}
	}
	return nil
}

// MayStamp reports whether what a search names (decoded: a name, a list, a pattern, nothing at all) may have documents with stamps in it,
// as far as names tell: an alias is known by its own name only.
func (s *Set) MayStamp(a *Asked) bool {
	if !s.stamps {
		return false
	}
	for name := range strings.SplitSeq(a.Index, ",") {
		one := *a
		one.Index = name
		switch {
		case name == "" || name == "_all" || strings.HasPrefix(name, "-"):
			one.Index = "*"
			fallthrough
		case strings.Contains(name, "*"):
			if slices.ContainsFunc(s.rules, func(r *Rule) bool { return r.Stamp != "" && r.match.meets(pattern(one.Index)) }) {
				return true
			}
		case s.Stamper(&one) != nil:
			return true
		}
	}
	return false
}

// meets reports whether the rule takes some name that the pattern does. A pattern of a search reaches names with a leading dot, too,
// where the request asks for that.
func (m *matcher) meets(p pattern) bool {
	return slices.ContainsFunc(m.in, func(in pattern) bool { return globsMeet(string(in), string(p)) })
}
