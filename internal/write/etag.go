package write

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"

	"optimist/internal/doc"
	"optimist/internal/outcome"
	"optimist/internal/session"
	"optimist/internal/stamp"
	"optimist/internal/wire"
)

// tag is an entity tag of optimist's: "<seq_no>-<primary_term>" stands for the revision of these numbers. The answer to a write of which
// something else was stored than was sent has "<seq_no>-<primary_term>-<copy>", with the numbers of the base and something that
// nobody else was told: it stands for what was sent. Whoever read the base meanwhile has its plain tag, and means the base.
type tag struct {
	doc.Numbers
	copy stamp.ID
}

// append appends the tag, quoted.
func (t tag) append(dst []byte) []byte {
	dst = AppendETag(dst, t.Numbers)
	if t.copy != 0 {
		dst = append(dst[:len(dst)-1], '-')
		dst = append(t.copy.Append(dst), '"')
	}
	return dst
}

// held is what the tag stands for.
func (t tag) held() session.Copy {
	return session.Copy{Numbers: t.Numbers, Token: uint64(t.copy), Served: t.copy == 0}
}

// parseTag reads a tag, weak or not: what stands between may have weakened it, by compressing the body.
func parseTag(b []byte) (t tag, ok bool) {
	b = bytes.TrimPrefix(bytes.Trim(b, " \t"), []byte("W/"))
	if t.Numbers, ok = ParseETag(b); ok {
		return t, true
	}
	i := bytes.LastIndexByte(b, '-')
	if i < 0 || b[len(b)-1] != '"' {
		return t, false
	}
	if t.Numbers, ok = ParseETag(append(b[:i:i], '"')); !ok {
		return t, false
	}
	t.copy, ok = stamp.ParseID(b[i+1 : len(b)-1])
	return t, ok && t.copy != 0
}

// match is what an If-Match asks for (RFC 9110, section 13.1.1).
type match struct {
	any  bool  // whatever is there
	tag  tag   // the only one, if more is nil
	more []tag // all of them, where there are several
}

// ifMatch reads the change's If-Match. found is false where it has none, or the rule doesn't look at it.
func (c *change) ifMatch() (m match, found bool, err error) {
	if !c.req.Rule.IfMatch {
		return m, false, nil
	}
	for i := range c.req.Fields {
		f := &c.req.Fields[i]
		if !wire.EqualFold(f.Name, "if-match") {
			continue
		}
		found = true
		for member := range bytes.SplitSeq(f.Value, []byte(",")) {
			member = bytes.Trim(member, " \t")
			t, ok := parseTag(member)
			switch {
			case string(member) == "*":
				m.any = true
			case ok && !m.tag.Known():
				m.tag = t
			case ok && m.more == nil:
				m.more = []tag{m.tag, t}
			case ok:
				m.more = append(m.more, t)
			case len(member) > 0:
				return m, true, ErrBadMatch
			}
		}
	}
	if found && m.any == m.tag.Known() {
		return m, true, ErrBadMatch
	}
	return m, found, nil
}

// takeMatch makes what If-Match names the base of the change.
func (s *Service) takeMatch(ctx context.Context, c *change, m match) (err error) {
	c.outcome.Base = outcome.BaseIfMatch
	if m.any || m.more != nil {
		return s.takeOneOf(ctx, c, m)
	}
	return s.takeCopy(ctx, c, m.tag.held())
}

// takeOneOf is for what names more than one revision: any at all, or one of a list. The current one is the base if it is among them.
// Otherwise it is the newest of those that the session knows, whose change is merged; or, where it knows none, the newest, whose guard the
// engine refuses.
func (s *Service) takeOneOf(ctx context.Context, c *change, m match) error {
	s.events.Fetch(c.req.Rule.Name)
	rev, err := s.current(ctx, c)
	switch {
	case errors.Is(err, doc.ErrMissing):
		return ErrNoMatch
	case err != nil && !rev.Known():
		return err
	}
	if m.any || slices.ContainsFunc(m.more, func(t tag) bool { return t.Numbers == rev.Numbers && t.copy == 0 }) {
		c.base = s.sessions.Witness(c.req.Session, c.doc.Ref)
		b := &c.base
		b.Kind, b.Numbers, b.Version, b.View, b.Stored = session.KindGiven, rev.Numbers, rev.Version, rev.Source, rev.Source
		return nil
	}
	slices.SortFunc(m.more, func(a, b tag) int { return cmp.Compare(b.SeqNo, a.SeqNo) })
	for _, t := range m.more {
		if err := s.takeCopy(ctx, c, t.held()); err != nil {
			return err
		}
		if c.base.View != nil {
			return nil
		}
		c.base.Release()
	}
	return s.takeCopy(ctx, c, m.more[0].held())
}

// tagFor is the tag for what the client has sent, where something else was stored: n are the numbers that its answer carries. A named
// session needs nothing that tells copies apart.
func (c *change) tagFor(n doc.Numbers) tag {
	t := tag{Numbers: n}
	if !c.req.Session.IsNamed() {
		t.copy = stamp.IDOf(rand.Uint64()) //nolint:gosec // it has to differ from others, not to be hard to guess
	}
	return t
}

// copyOf is the tag as the session has to know it, of a client that has shown that it uses tags.
func (c *change) copyOf(t tag) session.Copy {
	if t.copy == 0 || c.outcome.Base != outcome.BaseIfMatch {
		return session.Copy{}
	}
	return t.held()
}

// AppendETag appends the entity tag that stands for a revision.
func AppendETag(dst []byte, n doc.Numbers) []byte {
	dst = append(dst, '"')
	dst = strconv.AppendInt(dst, n.SeqNo, 10)
	dst = append(dst, '-')
	dst = strconv.AppendInt(dst, n.PrimaryTerm, 10)
	return append(dst, '"')
}

// ParseETag reads what AppendETag writes.
func ParseETag(b []byte) (n doc.Numbers, ok bool) {
	b = bytes.TrimSpace(b)
	if len(b) < 5 || b[0] != '"' || b[len(b)-1] != '"' {
		return n, false
	}
	seq, term, found := bytes.Cut(b[1:len(b)-1], []byte("-"))
	if !found {
		return n, false
	}
	var err1, err2 error
	n.SeqNo, err1 = strconv.ParseInt(string(seq), 10, 64)
	n.PrimaryTerm, err2 = strconv.ParseInt(string(term), 10, 64)
	return n, err1 == nil && err2 == nil && n.SeqNo >= 0 && n.PrimaryTerm > 0
}
