package guard

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/rule"
	"optimist/internal/stamp"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// unstamping is how stamps are taken out of what is written.
type unstamping struct {
	field string
	// strict says that the field is the rule's, whatever stands in it: what isn't a stamp is refused, for it would neither be stored nor
	// name a base. Otherwise only stamps are taken out.
	strict bool
}

// takeOut takes the stamp out of a write, before anybody else looks at it.
func (g *Guard) takeOut(x *proxy.Exchange, ru *rule.Rule, r *write.Request) error {
	rules := g.rules.Rules()
	if !rules.Stamps() {
		return nil
	}
	u := unstamping{field: ru.Stamp, strict: ru.Stamp != "" && g.rules.Effective(ru) == rule.Guard}
	if ru.Stamp == "" {
		st := g.stamperBehind(x, rules, of(x).decoded(r.Op.Index), rule.Observe)
		if st == nil {
			return nil
		}
		u.field = st.Stamp
	}
	if r.Op.Kind == api.Update || r.Op.Kind == api.Patch {
		r.Fields = without(r.Fields, "accept-encoding") // the answer may show the document
	}
	body, t, err := u.write(r.Op, r.Body, r.Fields)
	if err != nil {
		return err
	}
	r.Body = body
	if s, _, ok := t.Stamp(); ok && u.strict {
		r.Stamp = s
	}
	return nil
}

// write takes the stamp out of the body of a write of one document.
func (u *unstamping) write(op *api.Op, body []byte, fields []wire.Field) (rest []byte, t stamp.Taken, err error) {
	switch op.Kind {
	case api.Index, api.IndexAuto, api.Create:
		return u.taken(body)(stamp.Take(body, u.field))
	case api.Update:
		rest, more, err := u.taken(body)(stamp.TakeIn(body, "upsert", u.field))
		if err != nil {
			return body, more, err
		}
		return u.taken(rest)(stamp.TakeIn(rest, "doc", u.field))
	case api.Patch:
		return u.patch(body, fields)
	}
	return body, t, nil
}

// taken judges what was taken out of a body.
func (u *unstamping) taken(body []byte) func(rest []byte, t stamp.Taken, ok bool) ([]byte, stamp.Taken, error) {
	return func(rest []byte, t stamp.Taken, ok bool) ([]byte, stamp.Taken, error) {
		_, found, is := t.Stamp()
		switch {
		case !ok: // no JSON object: whoever reads it is to say so
			return body, stamp.Taken{}, nil
		case found && !is && u.strict:
			return nil, t, u.refused()
		case !is && !u.strict:
			return body, stamp.Taken{}, nil
		}
		return rest, t, nil
	}
}

func (u *unstamping) refused() error {
	return &proxy.Failure{Status: 400, Type: "illegal_argument_exception", Reason: "[" + u.field + "] is for the stamp that a document was " +
		"served with, and isn't stored: send it as it was served, or leave it out, or null"}
}

// patch looks at the body of a PATCH. A merge patch may be a whole document, with its stamp; an operation on the field is refused: the
// document that it is applied to doesn't have it.
func (u *unstamping) patch(body []byte, fields []wire.Field) (rest []byte, t stamp.Taken, err error) {
	if media := wire.Value(fields, "content-type"); bytes.HasPrefix(bytes.ToLower(media), []byte("application/merge-patch+json")) {
		return u.taken(body)(stamp.Take(body, u.field))
	}
	if !u.strict || !doc.ValidJSON(body) {
		return body, t, nil
	}
	gjson.ParseBytes(body).ForEach(func(_, op gjson.Result) bool {
		op.ForEach(func(k, v gjson.Result) bool {
			switch k.String() {
			case "path", "from":
				if u.names(v.String()) {
					err = u.refused()
				}
			case "value":
				if _, inside, ok := stamp.Take([]byte(v.Raw), u.field); ok && inside.Value != nil && op.Get("path").String() == "" {
					err = u.refused()
				}
			}
			return err == nil
		})
		return err == nil
	})
	return body, t, err
}

// names reports whether a JSON Pointer (RFC 6901) leads to the field, or into it.
func (u *unstamping) names(pointer string) bool {
	rest, ok := strings.CutPrefix(pointer, "/")
	first, _, _ := strings.Cut(rest, "/")
	return ok && strings.ReplaceAll(strings.ReplaceAll(first, "~1", "/"), "~0", "~") == u.field
}

func without(fields []wire.Field, name string) []wire.Field {
	for i := range fields {
		if wire.EqualFold(fields[i].Name, name) {
			return without(append(fields[:i:i], fields[i+1:]...), name)
		}
	}
	return fields
}

// freed is the body of a write of one document that is otherwise forwarded as it is, without the stamp that is in it, and the fields to
// send it with: what clients were served while documents were stamped must not be stored by them after. ok is false where there is none.
func (g *Guard) freed(x *proxy.Exchange) (body []byte, fields []wire.Field, ok bool, err error) {
	rules, op := g.rules.Rules(), x.Op()
	if !rules.Stamps() {
		return nil, nil, false, nil
	}
	st := g.stamperBehind(x, rules, of(x).decoded(op.Index), rule.Observe)
	if c := g.who(x); st == nil || !c.stampable(op) {
		return nil, nil, false, nil
	}
	if body, err = x.Body(g.maxBody); err == nil {
		body, fields, err = g.plain(body, x.Head().EndToEnd(nil))
	}
	if err != nil {
		return nil, nil, false, nil //nolint:nilerr // the request is forwarded as it is: what is wrong with it shows there
	}
	u := unstamping{field: st.Stamp, strict: op.Kind == api.IndexAuto && g.rules.Effective(st) == rule.Guard}
	rest, _, err := u.write(op, body, fields)
	return rest, fields, len(rest) != len(body) && err == nil, err
}

// unstamp forwards a write without the stamp that is in it. It reports false, and has answered nothing, where there is none.
func (g *Guard) unstamp(x *proxy.Exchange) bool {
	body, fields, ok, err := g.freed(x)
	if err != nil {
		x.Fail(err)
		return true
	}
	return ok && g.instead(x, body, fields, nil)
}

// instead sends the client's request with another body, and gives it the answer; seen is shown that before.
func (g *Guard) instead(x *proxy.Exchange, body []byte, fields []wire.Field, seen func(*upstream.Response) []wire.Field) bool {
	res, err := g.send(x.Context(), x, body, fields)
	if err != nil {
		x.Fail(err)
		return true
	}
	defer res.Release()
	out := passable(res)
	if seen != nil {
		out = append(out, seen(res)...)
	}
	_ = x.Answer(res.Status, out, res.Payload)
	return true
}

// send sends the client's request with another body and collects the answer.
func (g *Guard) send(ctx context.Context, x *proxy.Exchange, body []byte, fields []wire.Field) (*upstream.Response, error) {
	r := &upstream.Request{Method: wire.MethodString(x.Head().Method), Target: x.Head().Target, Body: body}
	r.Fields = without(without(fields, "content-length"), "expect")
	return g.up.Do(ctx, r)
}

// unstampBulk forwards a bulk without the stamps that are in its documents. done is false, and nothing is answered, where there are none;
// read is false where it couldn't be looked at for its size.
func (g *Guard) unstampBulk(x *proxy.Exchange, rules *rule.Set, ru *rule.Rule) (done, read bool) {
	if c := g.who(x); !c.stampable(x.Op()) {
		return false, true
	}
	body, err := x.Body(g.maxBody)
	var fields []wire.Field
	if err == nil {
		body, fields, err = g.plain(body, x.Head().EndToEnd(nil))
	}
	if err != nil {
		return false, !errors.Is(err, proxy.ErrTooLarge)
	}
	body, ok := g.freedBulk(x, rules, body)
	if !ok {
		return false, true
	}
	epoch := g.sessions.Epoch()
	return g.instead(x, body, fields, func(res *upstream.Response) []wire.Field {
		if g.rules.Effective(ru) != rule.Guard {
			return nil
		}
		if c := g.who(x); c.known {
			tee := newCapture(bulkLimit)
			tee.head(&res.Head, nil)
			tee.copy(res.Payload)
			g.wrote(x.Op(), c, tee, epoch)
		}
		return []wire.Field{g.saidPassed(x, ru, outcome.ReasonBulk)}
	}), true
}

// freedBulk is a bulk without the stamps that are in its documents. Its lines stay as they are but for these; from what can't be read
// on, all of it does.
func (g *Guard) freedBulk(x *proxy.Exchange, rules *rule.Set, body []byte) (out []byte, ok bool) {
	usual := decoded(x.Op().Index)
	fields := map[string]*unstamping{}
	from := 0
	for rest := body; len(rest) > 0; {
		line, after := nextLine(rest)
		rest = after
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		kind, index, ok := bulkAction(line, usual)
		if !ok {
			break
		}
		if kind == api.Delete {
			continue
		}
		line, after = nextLine(rest)
		at := len(body) - len(rest)
		rest = after
		u, known := fields[index]
		if !known {
			if st := g.stamperBehind(x, rules, index, rule.Observe); st != nil {
				u = &unstamping{field: st.Stamp}
			}
			fields[index] = u
		}
		if u == nil {
			continue
		}
		document, _, _ := u.write(&api.Op{Kind: kind}, line, nil)
		if len(document) != len(line) {
			out = append(append(out, body[from:at]...), document...)
			from = at + len(line)
		}
	}
	if from == 0 {
		return body, false
	}
	return append(out, body[from:]...), true
}

// nextLine is what stands before the first end of a line, without that, and what comes behind it.
func nextLine(b []byte) (line, rest []byte) {
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		return b[:i], b[i+1:]
	}
	return b, nil
}

// bulkAction reads an action's line: what is done, and the index that it is done in.
func bulkAction(line []byte, usual string) (kind api.Kind, index string, ok bool) {
	if !doc.ValidJSON(line) {
		return kind, "", false
	}
	index = usual
	gjson.ParseBytes(line).ForEach(func(k, v gjson.Result) bool {
		switch k.String() {
		case "index":
			kind = api.Index
		case "create":
			kind = api.Create
		case "update":
			kind = api.Update
		case "delete":
			kind = api.Delete
		}
		v.ForEach(func(k, v gjson.Result) bool {
			if k.String() == "_index" {
				index = v.String()
			}
			return true
		})
		return false
	})
	return kind, index, kind != api.Other
}

// stampShown stamps the document that the answer to a write of a part of it shows.
func (g *Guard) stampShown(s *serving, ru *rule.Rule, r *write.Request, a *respond.Answer) {
	if a.Status >= 300 || !showsWhole(r) {
		return
	}
	ref, ok := of(s.x).ref(r.Op)
	get := gjson.GetBytes(a.Body, "get")
	if !ok || !get.IsObject() || get.Index == 0 {
		return
	}
	p := place{asked: ref.Index, routing: ref.Routing, id: ref.ID, rule: ru, Item: es.ParseItem(a.Body[get.Index : get.Index+len(get.Raw)])}
	if !p.Found || p.Source == nil {
		return
	}
	p.Index = []byte(gjson.GetBytes(a.Body, "_index").String())
	if ru.FromStamp && p.Numbered && (r.Op.Kind != api.Patch || !ru.Session) { // of a PATCH the session knows already
		ref.Index = concrete(ref.Index, &p.Item)
		g.sessions.Read(s.client.session, ref, p.Revision, s.epoch)
	}
	p.from = offset(a.Body, p.Source)
	p.to = p.from + len(p.Source)
	s.stamp(&p, a.Body)
	a.Body = s.stamped(a.Body)
	if s.reason != "" {
		a.Fields = append(a.Fields, g.unstamped(s.rule, s.reason))
	}
}

// showsWhole reports whether a write asks for the whole document in its answer.
func showsWhole(r *write.Request) bool {
	if partial(r.Op.Query) {
		return false
	}
	if _, ok := api.Param(r.Op.Query, "_source"); ok {
		return true
	}
	return r.Op.Kind == api.Update && gjson.GetBytes(r.Body, "_source").Type == gjson.True
}
