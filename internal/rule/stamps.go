package rule

import (
	"slices"
	"strings"

	"optimist/internal/api"
	"optimist/internal/glob"
)

// Stamps reports whether any rule stamps documents: if not, nothing has to be looked at for it.
func (s *Set) Stamps() bool { return s.stamps }

// Stamper is the rule whose stamps the documents of an index have: the one that takes writes of whole documents, which bring them back,
// or nil where that stamps nothing. a.Kind is of no account.
func (s *Set) Stamper(a *Target) *Rule {
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

// StampsElsewhere reports whether documents of the index may have stamps after all by another name of their index than the one in the
// request, which has none by that: whether it is an alias is worth knowing then.
func (s *Set) StampsElsewhere(a *Target) bool {
	if !s.stamps {
		return false
	}
	whole := *a
	whole.Kind = api.Index
	return s.elsewhere(a, s.MatchRequest(&whole), func(r *Rule) bool { return r.Stamp != "" })
}

// MayStamp reports whether what a search names (decoded: a name, a list, a pattern, nothing at all) may have documents with stamps in it,
// as far as names tell. Whether one name is an alias, StampsElsewhere tells to ask.
func (s *Set) MayStamp(a *Target) bool {
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
	return slices.ContainsFunc(m.in, func(in pattern) bool { return glob.Meet(string(in), string(p)) })
}
