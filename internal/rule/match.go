package rule

import (
	"encoding/base64"
	"strings"

	"optimist/internal/api"
	"optimist/internal/config"
	"optimist/internal/glob"
	"optimist/internal/wire"
)

// kinds is a set of api.Kind.
type kinds uint32

// writes are what match.ops can name.
const writes = kinds(1<<api.Index | 1<<api.IndexAuto | 1<<api.Create | 1<<api.Update | 1<<api.Patch | 1<<api.Delete)

// What the words of match.ops and base.reads stand for.
var (
	kindsOfOp = map[config.Op]kinds{config.OpIndex: 1<<api.Index | 1<<api.IndexAuto, config.OpCreate: 1 << api.Create,
		config.OpUpdate: 1 << api.Update, config.OpPatch: 1 << api.Patch, config.OpDelete: 1 << api.Delete}
	kindsOfRead = map[config.Read]kinds{config.ReadGet: 1<<api.Get | 1<<api.Source, config.ReadMget: 1 << api.Mget,
		config.ReadSearch: 1<<api.Search | 1<<api.Scroll, config.ReadSearchByWriters: 1<<api.Search | 1<<api.Scroll}
)

func (k kinds) has(one api.Kind) bool { return k&(1<<one) != 0 }

// matcher is a rule's match block.
type matcher struct {
	in, out []pattern
	any     bool  // it names no index of its own
	kinds   kinds // writes that the rule takes, and reads that it watches
	headers []headerPattern
	users   []pattern
}

func newMatcher(c *config.Rule) matcher {
	m := matcher{any: c.Match.ByDefault()}
	m.conditions(&c.Match)
	for _, name := range c.Match.Index {
		if rest, out := strings.CutPrefix(name, "-"); out {
			m.out = append(m.out, pattern(rest))
		} else {
			m.in = append(m.in, pattern(name))
		}
	}
	for _, op := range c.Match.Ops {
		m.kinds |= kindsOfOp[op]
	}
	for _, read := range c.Base.Reads {
		m.kinds |= kindsOfRead[read]
	}
	return m
}

func (m *matcher) index(name string) bool { return !matchesAny(m.out, name) && matchesAny(m.in, name) }

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

// headerPattern is a condition on a header.
type headerPattern struct {
	name    string
	pattern pattern
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

// MayMeetStreams reports whether the rule names no index, and does more to writes than to guard them. Before it does, somebody has to find
// out whether the document goes to a data stream, which the rule leaves alone.
func (r *Rule) MayMeetStreams() bool {
	return r.AnyIndex && (r.Transform != nil || r.WriteID != "" || r.DeadLetters)
}

// TakesRest reports whether the rule is for whatever other rules leave: it names no index, no client and no operation.
func (r *Rule) TakesRest() bool {
	return r.AnyIndex && !r.match.conditional() && r.match.kinds&writes == writes
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

// User is the user that a request names, or "". It is unchecked: the engine checks it, if it looks at the same fields.
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

// userFields name a request's user, the one that counts first. Authorization does where it has Basic credentials.
var userFields = [...]string{"es-security-runas-user", "opendistro_security_impersonate_as", "sg_impersonate_as", "authorization",
	"x-proxy-user", "x-forwarded-user"}

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
