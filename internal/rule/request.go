package rule

import (
	"encoding/base64"
	"strings"

	"optimist/internal/api"
	"optimist/internal/config"
	"optimist/internal/glob"
	"optimist/internal/wire"
)

// Target is a request, as far as rules look at it. Index and Kind are needed; without Fields no rule takes it that asks for headers or
// users.
type Target struct {
	Index  string // as the request names it, decoded
	Kind   api.Kind
	Fields []wire.Field // of the request, all of them

	// Concrete and Stream are the index, and the data stream that it backs, which Index stands for; empty as long as that isn't known.
	// A rule that names one of them takes the request, too.
	Concrete, Stream string
}

// MatchRequest is Match for a whole request. It allocates only for rules that ask for users, and for date expressions.
func (s *Set) MatchRequest(a *Target) *Rule {
	if !s.any.has(a.Kind) {
		return nil
	}
	index := stem(a.Index)
	for _, r := range s.rules {
		if r.match.kinds.has(a.Kind) && r.match.takes(index, a) && r.match.condition(a.Fields) {
			return r
		}
	}
	return nil
}

// MatchAny is the first rule that takes some writes to an index, whoever sends them and with what headers. names are the index's own, or
// its data stream's, first, then all others that it has.
func (s *Set) MatchAny(names ...string) *Rule {
	for _, r := range s.rules {
		for i, name := range names {
			if i > 0 && (r.AnyIndex || matchesAny(r.match.out, names[0])) {
				break
			}
			if r.match.kinds&writes != 0 && r.match.index(name) {
				return r
			}
		}
	}
	return nil
}

// Elsewhere reports whether a rule before by (or any, where by is nil) could take the request by another name of its index than the one
// that it has: whether that is an alias is worth knowing. by is what MatchRequest answered for the same request without Concrete and
// Stream.
func (s *Set) Elsewhere(a *Target, by *Rule) bool {
	return s.any.has(a.Kind) && s.elsewhere(a, by, func(r *Rule) bool { return r.match.kinds.has(a.Kind) })
}

// elsewhere is Elsewhere for rules of which something holds.
func (s *Set) elsewhere(a *Target, by *Rule, holds func(r *Rule) bool) bool {
	index := stem(a.Index)
	for _, r := range s.rules {
		if r == by {
			return false
		}
		if holds(r) && !r.AnyIndex && !matchesAny(r.match.out, index) && r.match.condition(a.Fields) {
			return true
		}
	}
	return false
}

// takes tells by names. What a pattern takes out by the request's own name stays out, whatever that stands for. Rules that name no index
// go by the request's name alone.
func (m *matcher) takes(index string, a *Target) bool {
	switch {
	case matchesAny(m.out, index):
		return false
	case matchesAny(m.in, index):
		return true
	case m.any || a.Concrete == "" || matchesAny(m.out, a.Concrete) || a.Stream != "" && matchesAny(m.out, a.Stream):
		return false
	}
	return matchesAny(m.in, a.Concrete) || a.Stream != "" && matchesAny(m.in, a.Stream)
}

func matchesAny(list []pattern, name string) bool {
	for _, p := range list {
		if p.matches(name) {
			return true
		}
	}
	return false
}

// stem is the name of an index as patterns see it: of a date expression such as <logs-{now/d}>, what is certain, with a 0 for each date.
// Which index it stands for on a day only the engine tells.
func stem(index string) string {
	if len(index) < 2 || index[0] != '<' || index[len(index)-1] != '>' {
		return index
	}
	var b strings.Builder
	depth := 0
	for i := 1; i < len(index)-1; i++ {
		switch c := index[i]; {
		case c == '{':
			if depth++; depth == 1 {
				b.WriteByte('0')
			}
		case c == '}':
			depth = max(depth-1, 0)
		case depth > 0:
		case c == '\\' && i+1 < len(index)-1:
			i++
			b.WriteByte(index[i])
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// headerPattern is a condition on a header.
type headerPattern struct {
	name    string
	pattern pattern
}

// condition reports whether a request has the headers, and is of a user, that the rule asks for.
func (m *matcher) condition(fields []wire.Field) bool {
	for i := range m.headers {
		if !m.headers[i].in(fields) {
			return false
		}
	}
	if len(m.users) == 0 {
		return true
	}
	user := User(fields)
	for _, p := range m.users {
		if user != "" && p.glob(user) {
			return true
		}
	}
	return false
}

func (h *headerPattern) in(fields []wire.Field) bool {
	for i := range fields {
		if wire.EqualFold(fields[i].Name, h.name) && glob.Match(string(h.pattern), fields[i].Value) {
			return true
		}
	}
	return false
}

// conditional reports whether the rule takes only some of the requests to its indices.
func (m *matcher) conditional() bool { return len(m.headers) > 0 || len(m.users) > 0 }

// userFields name a request's user, the one that counts first. Authorization does where it has Basic credentials.
var userFields = [...]string{"es-security-runas-user", "opendistro_security_impersonate_as", "sg_impersonate_as", "authorization",
	"x-proxy-user", "x-forwarded-user"}

// User is the user that a request names, or "". Nobody has checked it: the engine does, where it looks at the same fields.
func User(fields []wire.Field) string {
	for _, name := range userFields {
		for i := range fields {
			if !wire.EqualFold(fields[i].Name, name) || len(fields[i].Value) == 0 {
				continue
			}
			if name != "authorization" {
				return string(fields[i].Value)
			}
			if user := basicUser(string(fields[i].Value)); user != "" {
				return user
			}
		}
	}
	return ""
}

// basicUser is the name in Basic credentials (RFC 7617).
func basicUser(value string) string {
	const scheme = "basic "
	if len(value) < len(scheme) || !strings.EqualFold(value[:len(scheme)], scheme) {
		return ""
	}
	plain, err := base64.StdEncoding.DecodeString(strings.TrimSpace(value[len(scheme):]))
	if err != nil {
		return ""
	}
	user, _, _ := strings.Cut(string(plain), ":")
	return user
}

// conditions reads match.headers and match.users.
func (m *matcher) conditions(c *config.Match) {
	for _, h := range c.Headers {
		m.headers = append(m.headers, headerPattern{strings.ToLower(h.Name), pattern(h.Pattern)})
	}
	for _, u := range c.Users {
		m.users = append(m.users, pattern(u))
	}
}
