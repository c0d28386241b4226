package write

import (
	"bytes"
	"context"
	"time"

	"optimist/internal/api"
	"optimist/internal/catalog"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/patch"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/unit"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/rewrite"
)

// change is one client's write on its way. Each group of its fields is filled by one step, and only read by those after it.
type change struct {
	// What the request says: read.
	req      *Request
	doc      es.Document // index as it is written to, decoded id and routing
	name     string      // the index as the client named it, decoded
	sent     []byte      // the body; nil for a delete
	onlyNew  bool        // only where there is no document, by If-None-Match
	pipeline bool        // the request names an ingest pipeline
	deadline time.Time   // when the client's own timeout ends; zero if it gave none
	began    time.Time
	json     bool // the body is a JSON object
	plain    bool // the answer is JSON with its numbers

	// How it goes upstream: read, and for patches asPatch.
	method, media []byte         // media is the Content-Type in place of the client's; nil: the client's
	path, query   []byte         // undecoded; the query without any guard
	patch         *patch.Request // what a PATCH, or an _update that is made here, says; nil for all others

	// What it is made from: locate, chooseBase, plan.
	index         catalog.Index
	base          session.Base
	epoch         session.Epoch
	guard         doc.Numbers // the client's own, of a write that is made here and not passed
	untransformed bool        // the rule's transform can't be applied
	intent        intent.Intent
	document      intent.Document // room for the intent of most
	transformed   intent.Transformed
	shares        bool // may share a write with others: it can be merged, and that is known

	// What became of it so far: the attempt.
	attempts     int
	draft        intent.Draft // of the last attempt
	unpatchable  bool         // the patch turned out to be one that can't be made here
	maybeApplied bool         // a try may have been applied: a 409 proves nothing any more

	// What its client gets: settle.
	outcome outcome.Outcome
	answer  *respond.Answer
	err     error

	now func() time.Time
	// Room for the last try as it goes upstream, and for the attempt that this change leads.
	up     upstream.Request
	fields [10]wire.Field
	text   [128]byte
	lead   attempt
}

// read reads the request. The error is the client's to mend.
func (c *change) read(r *Request, now func() time.Time) error {
	*c = change{req: r, sent: r.Body, now: now, began: time.Now(), method: r.Method, path: r.Op.Path, query: r.Op.Query}
	if r.Op.Kind == api.Delete {
		c.sent = nil
	}
	var buf [256]byte
	for _, part := range [3]struct {
		raw  []byte
		into *string
	}{{r.Op.Index, &c.name}, {r.Op.ID, &c.doc.ID}, {r.Op.Type, &c.doc.Type}} {
		if part.into == &c.doc.Type && !r.Op.Typed {
			break
		}
		b, err := api.Decode(buf[:0], part.raw)
		if err != nil {
			return err
		}
		*part.into = string(b)
	}
	c.doc.Index = c.name
	c.plain = wire.AcceptsJSON(r.Fields)
	if err := c.readOnlyNew(); err != nil {
		return err
	}
	if err := c.readQuery(r.Op.Query); err != nil {
		return err
	}
	c.json = c.sent == nil && r.Op.Kind == api.Delete || wire.JSONBody(r.Fields) && doc.LooksLikeObject(c.sent)
	return nil
}

func (c *change) readQuery(q []byte) error {
	if len(q) == 0 {
		return nil
	}
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

// readOnlyNew finds out whether the change asks for no document, by If-None-Match: * (RFC 9110, section 13.1.2). A PUT becomes a create. A
// PATCH or an _update makes the document where it may (upsert), by a create, too, so that nobody can come in between; a DELETE finds nothing
// that it could delete. Where there is a document, all of them are the engine's 409 of a create.
//
// Other values of If-None-Match aren't looked at: the engine doesn't either. Together with a guard that asks for a document it can't be met;
// the engine itself says that of a PUT.
func (c *change) readOnlyNew() error {
	switch c.req.Op.Kind {
	case api.Index, api.Update, api.Patch, api.Delete:
	default:
		return nil
	}
	if !c.req.Rule.IfMatch || string(bytes.Trim(wire.Value(c.req.Fields, "if-none-match"), " \t")) != "*" {
		return nil
	}
	c.onlyNew = true
	_, guarded, _ := c.ifMatch()
	if !guarded && c.req.Op.Kind != api.Index {
		_, guarded = api.OwnGuard(c.req.Op.Query)
	}
	if guarded {
		return ErrContradiction
	}
	return nil
}

// leastPatience is how long a write waits for its turn at least, whatever its own timeout: the engine, too, takes a timeout of 0 only as
// "don't wait for shards", and writes.
const leastPatience = time.Second

// withTimeout bounds what the change waits for by the client's own timeout.
func (c *change) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if c.deadline.IsZero() {
		return ctx, func() {}
	}
	end := c.deadline
	if least := time.Now().Add(leastPatience); end.Before(least) {
		end = least
	}
	return context.WithDeadlineCause(ctx, end, ErrTimeout)
}

// Inputs implements intent.InputSource: what steps can refer to. What a PATCH of operations sends is no document: to steps it is as if
// nothing had been sent.
func (c *change) Inputs(current []byte) *rewrite.Inputs {
	op := c.req.Op.Kind
	if op == api.IndexAuto {
		op = api.Index
	}
	in := &rewrite.Inputs{
		Incoming: c.sent, Current: current, Base: c.base.View,
		Index: c.name, ID: c.doc.ID, Routing: c.doc.Routing,
		Op: op.String(), Method: wire.MethodString(c.req.Method), User: rule.User(c.req.Fields),
		Header: c.header, Now: c.now(),
	}
	if c.patch != nil && c.patch.Incoming != nil {
		in.Incoming = c.patch.Incoming
	}
	if !doc.LooksLikeObject(in.Incoming) {
		in.Incoming = nil
	}
	return in
}

func (c *change) header(name string) (value []byte, ok bool) {
	v := wire.Value(c.req.Fields, name)
	return v, v != nil
}
