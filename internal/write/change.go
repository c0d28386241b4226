package write

import (
	"bytes"
	"context"
	"strconv"
	"time"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/unit"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// change is one client's write on its way: what was asked for, what is known, and, in the end, the answer.
type change struct {
	req   *Request
	doc   es.Document // concrete index, decoded id and routing
	name  string      // the index as the client named it, decoded
	query []byte      // the client's query without any guard
	sent  []byte      // the body; nil for a delete
	path  []byte      // where the write goes, undecoded
	patch *patch      // what a PATCH says; nil for all others

	only     bool // where there is no document, by If-None-Match
	noIndex  bool // there is no such index
	epoch    session.Epoch
	index    catalog.Index
	pipeline bool      // the request names an ingest pipeline
	deadline time.Time // when the client's own timeout ends; zero if it gave none
	began    time.Time
	json     bool // the body is a JSON object
	plain    bool // the answer is JSON with its numbers

	once  bool        // under the client's own guard: its conflict is its answer
	guard doc.Numbers // that guard, of a write that is made here and not passed

	untransformed bool // the rule's transform can't be applied
	straightened  bool // the last attempt was made from what was sent, not from a merge

	now   func() time.Time
	base  session.Base
	ready bool // may share a write with others: it can be merged, and that is known

	lost    bool // a try of this change may have been applied: a 409 proves nothing any more
	outcome Outcome
	answer  *Answer
	err     error

	// The last try as it goes upstream, and room for it; and the flight of the batch that this change leads.
	up     upstream.Request
	fields [10]wire.Field
	text   [128]byte
	flight flight
}

func (s *Service) newChange(r *Request) (*change, error) {
	c := &r.change
	*c = change{req: r, sent: r.Body, now: s.now, began: time.Now()}
	if r.Op.Kind == api.Delete {
		c.sent = nil
	}
	var buf [256]byte
	b, err := api.Decode(buf[:0], r.Op.Index)
	if err != nil {
		return nil, err
	}
	c.name = string(b)
	c.doc.Index = c.name
	if b, err = api.Decode(b[:0], r.Op.ID); err != nil {
		return nil, err
	}
	c.doc.ID = string(b)
	if r.Op.Typed {
		if b, err = api.Decode(b[:0], r.Op.Type); err != nil {
			return nil, err
		}
		c.doc.Type = string(b)
	}
	if err := c.readOnlyNew(); err != nil {
		return nil, err
	}
	c.query, c.path, c.plain, c.json = r.Op.Query, r.Op.Path, jsonAnswer(r.Fields), true
	if len(r.Op.Query) > 0 {
		if err := c.readQuery(r.Op.Query); err != nil {
			return nil, err
		}
	}
	switch {
	case r.Op.Kind == api.Patch:
		c.readPatch()
	case c.sent != nil || r.Op.Kind != api.Delete:
		c.json = jsonBody(r.Fields) && firstByte(c.sent) == '{'
	}
	return c, nil
}

func (c *change) readQuery(q []byte) error {
	if v, ok := api.Param(q, "routing"); ok {
		b, err := api.DecodeValue(nil, v)
		if err != nil {
			return err
		}
		c.doc.Routing = string(b)
	}
	if v, ok := api.Param(q, "pipeline"); ok && string(v) != "_none" {
		c.pipeline = true
	}
	if v, ok := api.Param(q, "timeout"); ok {
		// -1 is no bound; what else can't be read, the engine refuses.
		if d, err := unit.ParseDuration(string(v)); err == nil {
			c.deadline = time.Now().Add(d.Std())
		}
	}
	for _, name := range [2]string{"filter_path", "format"} {
		if _, ok := api.Param(q, name); ok {
			c.plain = false
		}
	}
	return nil
}

// jsonBody reports whether a body with these fields is JSON, by its Content-Type; content codings are read by nobody here.
func jsonBody(fields []wire.Field) bool {
	for i := range fields {
		if wire.EqualFold(fields[i].Name, "content-encoding") {
			return false
		}
		if wire.EqualFold(fields[i].Name, "content-type") {
			return jsonMedia(fields[i].Value)
		}
	}
	return true
}

// jsonMedia reports whether a media type is JSON, or the text that curl users send as JSON.
func jsonMedia(v []byte) bool {
	const usual, text = "application/json", "text/plain"
	if len(v) >= len(usual) && wire.EqualFold(v[:len(usual)], usual) || len(v) >= len(text) && wire.EqualFold(v[:len(text)], text) {
		return true
	}
	return bytes.Contains(bytes.ToLower(v), []byte("+json"))
}

// jsonAnswer reports whether the client asked for an answer in JSON, or didn't say.
func jsonAnswer(fields []wire.Field) bool {
	v := field(fields, "accept")
	return v == nil || bytes.Contains(v, []byte("json")) || bytes.Contains(v, []byte("*/*"))
}

func firstByte(b []byte) byte {
	for _, c := range b {
		switch c {
		case ' ', '\t', '\r', '\n':
		default:
			return c
		}
	}
	return 0
}

// share reports whether m may go in the same write as lead: both can be merged, and credentials, parameters, media type and rule are
// the same, and both are patches or neither is. It is asked with the lane locked.
//
// Patches share a write whatever their media types and their bounds on attempts: what is written is a document, as often as the leader
// may try. Who gave a bound of its own shares with those that gave the same.
func share(lead, m *change) bool {
	return lead.ready && m.ready && lead.req.Rule == m.req.Rule &&
		lead.req.Session.Credentials() == m.req.Session.Credentials() &&
		bytes.Equal(lead.query, m.query) && bytes.Equal(lead.path, m.path) && sharePatch(lead.patch, m.patch) &&
		(lead.patch != nil || bytes.Equal(field(lead.req.Fields, "content-type"), field(m.req.Fields, "content-type"))) &&
		bytes.Equal(field(lead.req.Fields, "accept"), field(m.req.Fields, "accept"))
}

func sharePatch(lead, m *patch) bool {
	if lead == nil || m == nil {
		return lead == m
	}
	return lead.retries == m.retries && bytes.Equal(lead.media, m.media) // of which one might be refused
}

// scope is what a guess is good for: the same credentials and parameters.
func (c *change) scope() string {
	cr := c.req.Session.Credentials()
	return string(cr[:]) + string(c.query)
}

// explicit reads the client's own guard: if_seq_no and if_primary_term, or version. found without numbers is a version. What says that
// there is none isn't found: the engine would write whatever is there.
func explicit(query []byte) (n doc.Numbers, found bool) {
	if n, found = given(query); found && !n.Known() {
		for _, p := range noGuard {
			v, said := api.Param(query, p.name)
			if v, err := api.DecodeValue(nil, v); said && (err != nil || string(v) != p.value) {
				return n, true
			}
		}
		return n, false
	}
	return n, found
}

// noGuard are the values that the parameters of a guard have where there is none: libraries send them.
var noGuard = [...]struct{ name, value string }{
	{"if_seq_no", "-2"}, {"if_primary_term", "0"}, {"version", "-3"}, {"version_type", "internal"},
}

// guardParams are the parameters of a guard.
var guardParams = []string{"if_seq_no", "if_primary_term", "version", "version_type"}

// given reads if_seq_no and if_primary_term; found says that these, or a version, are there.
func given(query []byte) (n doc.Numbers, found bool) {
	seq, ok1 := api.Param(query, "if_seq_no")
	term, ok2 := api.Param(query, "if_primary_term")
	_, version := api.Param(query, "version")
	_, versionType := api.Param(query, "version_type")
	if !ok1 && !ok2 && !version && !versionType {
		return n, false
	}
	s, err1 := strconv.ParseInt(string(seq), 10, 64)
	t, err2 := strconv.ParseInt(string(term), 10, 64)
	if err1 == nil && err2 == nil && !version {
		n = doc.Numbers{SeqNo: s, PrimaryTerm: t}
	}
	return n, true
}

// chooseBase finds what the change is based on. done says that the write is dealt with otherwise: it goes as it is.
func (s *Service) chooseBase(ctx context.Context, c *change) (pass bool, err error) {
	ru := c.req.Rule
	if n, found := explicit(c.req.Op.Query); found {
		return s.takeExplicit(ctx, c, n)
	}
	if _, said := given(c.query); said {
		c.query = api.Without(nil, c.query, guardParams...) // there is one now
	}
	m, matched, err := c.ifMatch()
	if err != nil {
		return false, err
	}
	carried, stamped := c.carried()
	switch {
	case matched:
		held, err := s.holding(ctx, c)
		if err != nil {
			return false, err
		}
		err = s.takeMatch(ctx, c, m)
		c.base.Join(held)
		return false, err
	case stamped:
		return false, s.takeStamp(ctx, c, carried)
	}
	if ru.Session && !c.req.Anonymous {
		if err := s.take(ctx, c); err != nil {
			return false, err
		}
	}
	s.events.Took(c.base.Kind, c.base.Reason)
	c.outcome.Base, c.outcome.Ambiguous = baseKind(c.base.Kind), c.base.Ambiguous
	if c.base.Ambiguous && ru.Ambiguous == rule.AmbiguousFail {
		return false, ErrAmbiguous
	}
	switch c.base.Kind {
	case session.KindNone, session.KindLost:
		return s.withoutBase(ctx, c)
	}
	return false, nil
}

// takeExplicit makes the revision the base that the client's own guard names. pass says that the write goes as it is: its 409 is its
// answer.
func (s *Service) takeExplicit(ctx context.Context, c *change, n doc.Numbers) (pass bool, err error) {
	ru := c.req.Rule
	held, err := s.holding(ctx, c)
	if err != nil {
		return false, err
	}
	c.outcome.Base = BaseExplicit
	if n.Known() && ru.Explicit == rule.ExplicitPass {
		c.base = s.sessions.TakeAt(c.req.Session, c.doc.Ref, n, c.sent) // without a wait: the engine decides
	} else if n.Known() {
		err = s.takeCopy(ctx, c, session.Copy{Numbers: n})
	} else if ru.Session && c.req.Session.IsNamed() {
		// An external version says nothing of what was read, but what the session has seen afterwards is this.
		err = s.take(ctx, c)
	}
	c.base.Join(held)
	if err != nil {
		return false, err
	}
	if ru.Explicit == rule.ExplicitPass || !n.Known() {
		c.outcome.Reason = ReasonExplicit
		return true, nil
	}
	c.query = api.Without(nil, c.query, "if_seq_no", "if_primary_term")
	return false, nil
}

// soon is how long a client waits at least: whether it has left isn't asked before.
const soon = time.Millisecond

// stillThere reports whether the change's client is, where it had to wait for the base that was just taken; if not, that is given back. Who
// left may have come again and gone on since: what it has written meanwhile would be the base of what it gave up, which would undo that.
func (c *change) stillThere(ctx context.Context) error {
	if time.Since(c.began) < soon || !wire.PeerLeft(ctx) {
		return nil
	}
	c.base.Release()
	return context.Canceled
}

// withoutBase does what the rule says of writes whose base isn't known. One that was known once is passed only where one that never
// was is passed, too.
func (s *Service) withoutBase(ctx context.Context, c *change) (pass bool, err error) {
	ru := c.req.Rule
	if c.base.Kind == session.KindLost {
		c.outcome.Reason = c.base.Reason.String()
		if ru.Lost == rule.LostReject {
			return false, ErrBaseLost
		}
	}
	if c.base.Reason == session.ReasonBlind {
		c.outcome.Reason = ReasonBlind
	}
	switch ru.Unknown {
	case rule.UnknownReject:
		return false, ErrPreconditionRequired
	case rule.UnknownFetch:
		return false, s.fetchBase(ctx, c)
	default:
		return true, nil
	}
}

func field(fields []wire.Field, name string) []byte {
	for i := range fields {
		if wire.EqualFold(fields[i].Name, name) {
			return fields[i].Value
		}
	}
	return nil
}

// request is the write as it goes upstream: the client's own, with the body and the guard put in. The fields that concern only
// optimist stay behind, and those that would keep the answer from being read.
func (c *change) request(body []byte, n doc.Numbers, create bool) *upstream.Request {
	r := &c.up
	*r = upstream.Request{Method: wire.MethodString(c.req.Method), Body: body, Fields: c.fields[:0]}
	r.Target = c.target(n, create)
	for _, f := range c.req.Fields {
		if !ours(f.Name) {
			r.Fields = append(r.Fields, f)
		}
	}
	if c.patch != nil {
		c.asPut(r)
	}
	return r
}

// target is the request target with the guard: the client's own bytes before it.
func (c *change) target(n doc.Numbers, create bool) []byte {
	path, query := c.path, c.query
	if create {
		query = api.Without(nil, query, "op_type") // it may say "index"; said twice, it would be the engine's choice
	}
	t := append(c.text[:0], path...)
	sep := byte('?')
	if len(query) > 0 {
		t = append(append(t, sep), query...)
		sep = '&'
	}
	switch {
	case create:
		t = append(append(t, sep), "op_type=create"...)
	case n.Known():
		t = append(append(t, sep), "if_seq_no="...)
		t = strconv.AppendInt(t, n.SeqNo, 10)
		t = append(t, "&if_primary_term="...)
		t = strconv.AppendInt(t, n.PrimaryTerm, 10)
	}
	return t
}

// ours reports whether a field is for optimist alone, or must not reach the engine with a write whose answer is read here.
func ours(name []byte) bool {
	switch {
	case wire.EqualFold(name, "if-match"), wire.EqualFold(name, "accept-encoding"), wire.EqualFold(name, "content-length"),
		wire.EqualFold(name, "expect"):
		return true
	}
	return len(name) > 9 && wire.EqualFold(name[:9], "optimist-")
}
