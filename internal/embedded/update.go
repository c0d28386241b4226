package embedded

import (
	"bytes"
	"errors"

	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// update is one partial update.
type update struct {
	write
	doc, upsert *node
	script      *node
	docAsUpsert bool
	always      bool // detect_noop: false
	retries     int64
	answer      bool // the answer has the document after the update
	filter      *sourceFilter
}

func newUpdate(id string) update { return update{write: newWrite(actUpdate, id)} }

func (c *call) updateDoc() *Error {
	u := newUpdate(c.vars.id)
	refreshed := c.updateOptions(&u)
	if c.bad != nil {
		return c.bad
	}
	if len(c.req.Body) > 0 {
		n, rest, broken := parseJSON(c.req.Body)
		if broken != nil || len(rest) > 0 {
			return badBody(broken)
		}
		if err := u.read(n, c.req.Body); err != nil {
			return err
		}
	}
	if u.doc != nil || u.upsert != nil {
		if c.version(); c.bad != nil { // the engine takes it for the version of these, and then doesn't look at it
			return c.bad
		}
	}
	if err := u.validate(); err != nil {
		return err
	}
	x, err := c.indexOfRequest(&u.write)
	if err != nil {
		return err
	}
	o, result, err := c.update(x, &u)
	if err != nil {
		return err
	}
	if result == "created" {
		c.resp.Status = 201
		c.header("Location", location(x.name, &u.write))
	}
	if result == "noop" {
		c.out = appendNoop(append(c.out, '{'), x, o.rev)
	} else {
		c.out = appendResult(append(c.out, '{'), x, o.rev, result, refreshed)
	}
	c.out = append(u.appendAnswer(c.out, o.rev), '}')
	return nil
}

func badBody(err error) *Error {
	if err == nil {
		return badRequest("x_content_parse_exception", "request body must be a single object")
	}
	var s *syntaxError
	if errors.As(err, &s) && s.eof {
		return badRequest("x_content_e_o_f_exception", "%s", s.msg)
	}
	return badRequest("x_content_parse_exception", "%s", err.Error())
}

func (c *call) updateOptions(u *update) (refreshed bool) {
	refreshed = c.guards(&u.write)
	u.retries, u.docAsUpsert = c.integer("retry_on_conflict", 0), c.flag("doc_as_upsert", false)
	u.filter = c.sourceFilter()
	_, named := c.params.lookup("_source")
	u.answer = u.filter != nil || named
	return refreshed
}

// read takes the body of an update.
func (u *update) read(n *node, body []byte) *Error {
	c := checker{src: body}
	if n.kind != tree.Object {
		return badRequest("x_content_parse_exception", "%s [UpdateRequest] Expected START_OBJECT but was: %s", c.at(n), tokenName(n.raw))
	}
	for _, kid := range n.kids {
		switch kid.name {
		case "doc", "upsert":
			if kid.kind != tree.Object {
				return badRequest("x_content_parse_exception", "%s [UpdateRequest] %s doesn't support values of type: %s", c.at(kid), kid.name, tokenName(kid.raw))
			}
			if kid.name == "doc" {
				u.doc = kid
			} else {
				u.upsert = kid
			}
		case "script":
			u.script = kid
		case "doc_as_upsert":
			u.docAsUpsert = kid.isTrue()
		case "detect_noop":
			u.always = !kid.isTrue()
		case "_source":
			u.answer, u.filter = true, filterOf(kid)
		case "if_seq_no", "if_primary_term":
			v, err := parseNumber(kid.name, kid.text(), 64)
			if err != nil {
				return err
			}
			if kid.name == "if_seq_no" {
				u.ifSeqNo = v
			} else {
				u.ifTerm = v
			}
		case "scripted_upsert":
		default:
			return badRequest("x_content_parse_exception", "%s [UpdateRequest] unknown field [%s]%s", place(body, kid.nameStart), kid.name,
				suggestField(kid.name, "doc", "upsert", "script", "detect_noop", "doc_as_upsert", "scripted_upsert", "_source"))
		}
	}
	return nil
}

// validate applies the engine's rules for what may stand together in an update.
func (u *update) validate() *Error {
	var v validation
	if u.version != matchAny || u.versionType != versionInternal {
		return invalid("internal versioning can not be used for optimistic concurrency control. Please use `if_seq_no` and `if_primary_term` instead")
	}
	u.validateGuard(&v)
	if u.ifSeqNo != unassigned {
		if u.retries > 0 {
			v.add("compare and write operations can not be retried")
		}
		if u.docAsUpsert || u.upsert != nil {
			v.add("compare and write operations can not be used with upsert")
		}
	}
	u.validateID(&v)
	switch {
	case u.script == nil && u.doc == nil:
		v.add("script or doc is missing")
	case u.script != nil && u.doc != nil:
		v.add("can't provide both script and doc")
	}
	if u.doc == nil && u.docAsUpsert {
		v.add("doc must be specified if doc_as_upsert is enabled")
	}
	return v.err()
}

// update reads the document, merges, and writes the result under the guard of the revision that it read. After a conflict it tries again,
// as often as retry_on_conflict says.
func (e *Engine) update(x *index, u *update) (outcome, string, *Error) {
	for left := u.retries; ; left-- {
		o, result, err := e.updateOnce(x, u)
		if err == nil || err.Status != 409 || left <= 0 {
			return o, result, err
		}
	}
}

func (e *Engine) updateOnce(x *index, u *update) (outcome, string, *Error) {
	old := x.shard.get(u.id)
	w := newWrite(actIndex, u.id)
	w.routing = u.routing
	if old == nil {
		first := u.upsert
		if u.docAsUpsert {
			first = u.doc
		}
		if first == nil {
			return outcome{}, "", &Error{Status: 404, Type: "document_missing_exception", Reason: "[" + u.id + "]: document missing", index: x, shard: true}
		}
		if u.script != nil {
			return outcome{}, "", errNoScripts(u.script)
		}
		w.act, w.source = actCreate, compact(first)
		o, err := e.store(x, &w)
		return o, "created", err
	}
	if u.ifSeqNo != unassigned {
		guard := u.write
		guard.act = actIndex
		if err := guard.conflict(x, old, true); err != nil {
			return outcome{}, "", err
		}
	}
	if u.script != nil {
		return outcome{}, "", errNoScripts(u.script)
	}
	if old.source == nil {
		return outcome{}, "", &Error{Status: 400, Type: "document_source_missing_exception", Reason: "[" + u.id + "]: document source missing", index: x, shard: true}
	}
	merged, failed := edit.EngineMerge(old.source, u.doc.raw, limits)
	if failed != nil {
		return outcome{}, "", badSyntax(failed) // can't happen: both documents were parsed when they came
	}
	if bytes.Equal(merged, old.source) && !u.always {
		return outcome{old, true}, "noop", nil
	}
	w.source, w.ifSeqNo, w.ifTerm = rewritten(merged), old.seqNo, primaryTerm
	if old.routing != "" {
		w.routing = old.routing
	}
	o, err := e.store(x, &w)
	return o, "updated", err
}

// errNoScripts is what Elasticsearch answers without the language's module.
func errNoScripts(script *node) *Error {
	lang := "painless"
	if l := script.member("lang"); l != nil {
		lang = l.text()
	}
	e := illegalArgument("failed to execute script")
	e.cause = &Error{Type: "illegal_argument_exception", Reason: "script_lang not supported [" + lang + "]"}
	if id := script.member("id"); id != nil {
		e.cause = &Error{Type: "resource_not_found_exception", Reason: "unable to find script [" + id.text() + "] in cluster state"}
	}
	return e
}

func appendNoop(dst []byte, x *index, r *revision) []byte {
	dst = appendVersion(appendPlace(dst, x.name, r.id), r)
	dst = append(dst, `,"result":"noop","_shards":{"total":0,"successful":0,"failed":0}`...)
	return appendSeqNo(dst, r)
}

// appendAnswer appends the document after the update, if the request asks for it.
func (u *update) appendAnswer(dst []byte, r *revision) []byte {
	if !u.answer || u.filter.hidden() || r.source == nil {
		return dst
	}
	get := appendSeqNo(nil, r)
	dst = append(append(dst, `,"get":{`...), get[1:]...)
	return append(u.filter.append(append(dst, `,"found":true,"_source":`...), r.source), '}')
}
