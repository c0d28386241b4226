// Package patch reads the bodies of PATCH, and of an _update with a `doc`, as intents.
//
// It does no I/O. A patch that it accepts may still fail on the document.
package patch

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"optimist/internal/api"
	"optimist/internal/budget"
	"optimist/internal/doc"
	"optimist/internal/glob"
	"optimist/internal/intent"
	"optimist/internal/jsontext"
	"optimist/internal/respond"
	"optimist/internal/uri"
	"optimist/internal/wire"
	"optimist/rewrite/edit"
	"optimist/rewrite/tree"
)

// Params are the query parameters of a PATCH that the engine's index request doesn't have.
var Params = []string{"upsert", "doc_as_upsert", "retry_on_conflict", "if_seq_no", "if_primary_term",
	"_source", "_source_includes", "_source_excludes", "filter_path"}

// Request is what a PATCH says, or an _update of a part. It is applied to the document as it is at each attempt, so it needs no
// base, and no session.
type Request struct {
	intent.Patch
	Media        []byte               // the Content-Type of the document that is written; nil: the client's
	Incoming     []byte               // what of the body a rule's steps may look at; nil: all of it
	Retries      int                  // the client's own bound; -1: it gave none
	Shows        respond.SourceFilter // what of the document the answer shows
	SourceInBody []byte               // the body says so by this, which counts more than the query
	Filter       *glob.Filter         // what the client wants of the answer; nil: all
	Room         tree.Room            // where memory for reading and applying it is taken from; nil: there is no limit
}

// Read reads a PATCH, in memory of the room, which may be nil. A refusal is its answer. Errors are those of package budget: there is no
// memory for it.
func Read(op *api.Op, fields []wire.Field, body []byte, room tree.Room) (p *Request, refusal *respond.Answer, err error) {
	p = &Request{Retries: -1, Media: mediaFor(wire.Value(fields, "accept")), Room: room}
	if !AnsweredInJSON(op, fields) {
		return p, respond.Error(http.StatusNotAcceptable, "illegal_argument_exception", "a PATCH is answered in JSON"), nil
	}
	if refusal := p.readQuery(op); refusal != nil {
		return p, refusal, nil
	}
	limits := tree.Limits{Room: room}
	if body == nil {
		body = []byte{} // to package tree nil is a document that isn't there
	}
	media, coded := contentOf(fields)
	switch {
	case coded:
		return p, unsupportedMedia("a body with a Content-Encoding other than gzip"), nil
	case media == MediaOperations:
		var ops edit.Patch
		ops, err = edit.ParsePatch(body, limits)
		p.Edit, err = intent.Operations(ops), withHint(err)
	case media == MediaMerge:
		if p.Edit, err = intent.MergePatch(body), tree.Check(body, limits); errors.Is(err, tree.ErrNotObject) {
			err = &edit.PatchError{Index: -1, Reason: "a merge patch that is no object would replace the document by a value that is no object"}
		}
	case media == MediaSteps:
		p.Edit, err = readSteps(body, limits)
	default:
		return p, unsupportedMedia("[" + media + "]"), nil
	}
	switch {
	case errors.Is(err, budget.ErrOverloaded), errors.Is(err, budget.ErrTooMuch):
		return p, nil, err
	case err != nil:
		return p, badPatch(err), nil
	}
	return p, nil, nil
}

// AnsweredInJSON reports whether the answer to a request is JSON. Another can't be made here, and a patch is answered here as
// often as by the engine.
func AnsweredInJSON(op *api.Op, fields []wire.Field) bool {
	v, given := uri.Param(op.Query, "format")
	return wire.AcceptsJSON(fields) && (!given || string(v) == "json")
}

// ReadUpdate reads an _update as a patch. ok is false where it is more than a part of a document, or not valid: the engine takes
// no key twice. A key with half a surrogate pair is the engine's, too: no pointer can name it. With onlyNew it may have a script, which
// isn't run where there is no document. A refusal is its answer. For what doesn't fit into the room ok is false.
func ReadUpdate(op *api.Op, fields []wire.Field, body []byte, onlyNew bool, room tree.Room) (p *Request, refusal *respond.Answer, ok bool) {
	if !wire.JSONBody(fields) || !jsontext.LooksLikeObject(body) || !AnsweredInJSON(op, fields) || intent.HasOddKeys(body, room) {
		return nil, nil, false
	}
	for _, name := range [...]string{"upsert", "version", "version_type", "op_type", "pipeline", "lang",
		"_source_include", "_source_exclude"} {
		if _, given := uri.Param(op.Query, name); given {
			return nil, nil, false
		}
	}
	p, ok = &Request{Retries: -1, Room: room}, true
	if wire.Value(fields, "content-type") == nil {
		p.Media = respond.JSON.Value
	}
	for s := jsontext.Scan(body); ok && s.Next(); {
		name, _ := s.PlainName()
		ok = p.member(name, slices.Clip(s.Text())) || onlyNew && p.scriptMember(name, s.Text())
	}
	if !ok || p.Edit == nil {
		return nil, nil, false
	}
	refusal = p.readQuery(op)
	if p.Upsert {
		p.Initial = p.Incoming // the doc counts more than an upsert
	}
	p.Upsert = p.Initial != nil
	return p, refusal, true
}

// member reads one member of an _update's body, of which it keeps the value.
func (p *Request) member(name string, value []byte) bool {
	object, yes := value[0] == '{', string(value) == "true"
	flag := yes || string(value) == "false"
	switch name {
	case "doc":
		alone := p.Edit == nil // and no script
		p.Edit, p.Incoming = intent.Part(value), value
		return object && alone
	case "upsert":
		p.Initial = value
		return object
	case "doc_as_upsert":
		p.Upsert = yes
		return flag
	case "detect_noop":
		p.WriteUnchanged = !yes
		return flag
	case "_source":
		var known bool
		p.Shows, known = respond.BodySourceFilter(gjson.ParseBytes(value))
		p.SourceInBody = value
		return known
	}
	return false
}

// scriptMember reads the members of an _update's body that concern its script, which isn't run where there is no document, unless
// it asks for that.
func (p *Request) scriptMember(name string, value []byte) bool {
	switch name {
	case "script":
		if p.Edit != nil {
			return false // no engine takes both
		}
		p.Edit, p.Incoming = intent.Part("{}"), []byte("{}")
		return true
	case "scripted_upsert":
		return string(value) == "false"
	}
	return false
}

// readQuery reads the parameters of the query, which are those of _update, and upsert.
func (p *Request) readQuery(op *api.Op) (refusal *respond.Answer) {
	q := op.Query
	for _, name := range [2]string{"upsert", "doc_as_upsert"} {
		v, given := uri.Param(q, name)
		switch {
		case !given:
		case len(v) == 0, string(v) == "true":
			p.Upsert = true
		case string(v) != "false":
			return Illegal("Failed to parse value [%s] as only [true] or [false] are allowed.", v)
		}
	}
	if v, given := uri.Param(q, "retry_on_conflict"); given {
		n, err := strconv.ParseInt(string(v), 10, 32)
		if err != nil || n < 0 {
			return Illegal("Failed to parse int parameter [retry_on_conflict] with value [%s]", v)
		}
		p.Retries = int(n)
	}
	if _, given := uri.Param(q, "op_type"); given {
		return Illegal("request [%s] contains unrecognized parameter: [op_type]", op.Path)
	}
	if raw, given := uri.Param(q, "filter_path"); given {
		v, err := uri.DecodeValue(nil, raw)
		if err != nil {
			return Illegal("the parameter [filter_path] can't be read: %s", err)
		}
		filter := glob.ParseFilter(string(v))
		p.Filter = &filter
		if filter.Len() > respond.MaxPatterns {
			return Illegal("the parameter [filter_path] has more than %d patterns", respond.MaxPatterns)
		}
	}
	if p.SourceInBody == nil {
		var err error
		if p.Shows, err = respond.ReadSourceFilter(q); err != nil {
			return Illegal("%s", err)
		}
	}
	return p.readGuard(q)
}

// readGuard reads the client's own guard: if_seq_no and if_primary_term. Under it a PATCH is tried once.
func (p *Request) readGuard(q []byte) (refusal *respond.Answer) {
	n, given := api.ReadGuard(q)
	if !given {
		return nil
	}
	_, version := uri.Param(q, "version")
	_, versionType := uri.Param(q, "version_type")
	reason := ""
	switch {
	case version || versionType:
		reason = "internal versioning can not be used for optimistic concurrency control. Please use `if_seq_no` and `if_primary_term` instead"
	case !n.Known() || n.SeqNo < 0:
		reason = "if_seq_no and if_primary_term must both be given, as the numbers of a revision"
	case p.Retries > 0:
		reason = "compare and write operations can not be retried"
	case p.Upsert:
		reason = "compare and write operations can not be used with upsert"
	}
	if reason != "" {
		return respond.Error(http.StatusBadRequest, "action_request_validation_exception", "Validation Failed: 1: "+reason+";")
	}
	p.Guard = n
	return nil
}

// Makes returns what a part makes of a document. A base of nil is an empty document: an upsert is no change of a document, because the
// engine applies the part, and not the upsert, where another client has made one.
func (p *Request) Makes(base []byte) ([]byte, error) {
	if base == nil {
		base = []byte("{}")
	}
	d, err := p.Edit.Apply(doc.Revision{Source: base}, &edit.Inputs{Room: p.Room})
	return d.Body, err
}

// Show puts what the client asked to see of the document into the answer, as an _update does.
func (p *Request) Show(a *respond.Answer, rev doc.Revision, source []byte) {
	if !p.Shows.Shows() || source == nil {
		return
	}
	b := fmt.Appendf(nil, `{"_seq_no":%d,"_primary_term":%d,"found":true,"_source":`, rev.SeqNo, rev.PrimaryTerm)
	b = append(p.Shows.Append(b, source), '}')
	if out, err := sjson.SetRawBytes(a.Body, "get", b); err == nil {
		a.Body = out
	}
}
