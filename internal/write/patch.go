package write

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"optimist/internal/api"
	"optimist/internal/doc"
	"optimist/internal/glob"
	"optimist/internal/intent"
	"optimist/internal/outcome"
	"optimist/internal/respond"
	"optimist/internal/wire"
	"optimist/rewrite"
)

// The media types of a PATCH. Plain application/json is none of them: an array would be one kind of patch, an object another, and
// the body of an _update a third.
const (
	mediaOperations = "application/json-patch+json"         // RFC 6902
	mediaMerge      = "application/merge-patch+json"        // RFC 7396
	mediaSteps      = "application/vnd.optimist-patch+json" // the operations of rules, without `when`
	mediaEngine     = "application/vnd.elasticsearch+json"  // begins what asks an Elasticsearch for the forms of an older one
	acceptPatch     = mediaOperations + ", " + mediaMerge + ", " + mediaSteps
)

// patch is what a PATCH says, or an _update that is made here. It is applied to the document as it is at each attempt, so it needs no base,
// and no session.
//
// What the session of its client knows afterwards: with `_source=true` the client was shown the document, as by a read. Else, in a session
// that names itself, it knows what the client had seen, with the patch applied to that: a client that patches a document of which it keeps a
// copy either patches the copy, too, or means to put the old values back, as it would without optimist; it hasn't seen what others changed
// in between either way. Where the patch doesn't fit what the client had seen, that stays. In an inferred session nobody can tell whose copy
// it was: what its threads have read stays as it is.
//
// The answer carries the numbers of what was stored, as that of an _update does, and an ETag only if the client has seen all of that.
type patch struct {
	intent.Patch
	incoming    []byte               // what of the body a rule's steps may look at; nil: all of it
	retries     int                  // the client's own bound; -1: it gave none
	shows       respond.SourceFilter // what of the document the answer shows
	showsByBody bool                 // the body says it, which counts more than the query
	filter      *glob.Filter         // what the client wants of the answer; nil: all
	unfit       bool                 // the patch can't be made here, and is left to the engine
}

// patchParams are the query parameters of a PATCH that the engine's index request doesn't have.
var patchParams = []string{"upsert", "doc_as_upsert", "retry_on_conflict", "if_seq_no", "if_primary_term",
	"_source", "_source_includes", "_source_excludes", "filter_path"}

// asPatch has the change written as a document that the patch has been applied to.
func (c *change) asPatch(p *patch) {
	c.patch, c.intent = p, p
	p.Source, p.New = c, c.onlyNew
	c.method, c.query = []byte(http.MethodPut), api.Without(nil, c.query, patchParams...)
	op := c.req.Op
	kind := op.Type
	if !op.Typed {
		kind = []byte("_doc")
	}
	c.path = bytes.Join([][]byte{nil, op.Index, kind, op.ID}, []byte("/"))
}

// readPatch reads the request as a PATCH. A refusal is its answer.
func (c *change) readPatch() (refusal *respond.Answer) {
	p := &patch{retries: -1}
	c.json, c.media = true, mediaFor(field(c.req.Fields, "accept"))
	c.asPatch(p)
	if c.otherThanJSON() {
		return respond.Error(http.StatusNotAcceptable, "illegal_argument_exception", "a PATCH is answered in JSON")
	}
	if refusal := c.readPatchQuery(); refusal != nil {
		return refusal
	}
	media, coded := contentOf(c.req.Fields)
	var err error
	switch {
	case coded:
		return unsupportedMedia("a body with a Content-Encoding other than gzip")
	case media == mediaOperations:
		var ops rewrite.Patch
		ops, err = rewrite.ParsePatch(c.sent)
		p.Edit, err = intent.Operations(ops), withHint(err)
	case media == mediaMerge:
		if firstByte(c.sent) != '{' {
			err = &rewrite.PatchError{Index: -1, Reason: "a merge patch that is no object would replace the document by what is none"}
			break
		}
		_, err = rewrite.MergePatch([]byte("{}"), c.sent, rewrite.Limits{})
		p.Edit = intent.MergePatch(c.sent)
	case media == mediaSteps:
		p.Edit, err = readSteps(c.sent)
	default:
		return unsupportedMedia("[" + media + "]")
	}
	if err != nil {
		return badPatch(err)
	}
	return nil
}

// withHint says of an operation that only rules have what it would have to be sent as.
func withHint(err error) error {
	var e *rewrite.PatchError
	if errors.As(err, &e) {
		if a, unknown := rewrite.ParseAction(e.Op); unknown == nil && a > rewrite.OpTest {
			return fmt.Errorf("%w; %s has it", err, mediaSteps)
		}
	}
	return err
}

func readSteps(body []byte) (intent.Edit, error) {
	list, err := rewrite.ParseSteps(body, rewrite.Limits{})
	if err != nil {
		return nil, err
	}
	t, err := rewrite.NewTransformer(list, rewrite.Limits{})
	return intent.Steps{Transformer: t}, err
}

// mediaFor is the Content-Type of a write whose answer is to be of the Accept's form: Elasticsearch wants both to ask for the same.
func mediaFor(accept []byte) []byte {
	if len(accept) > len(mediaEngine) && wire.EqualFold(accept[:len(mediaEngine)], mediaEngine) {
		first, _, _ := bytes.Cut(accept, []byte(","))
		return first
	}
	return respond.JSON.Value
}

// contentOf is the media type of a body, in lower case and without parameters; coded says that it isn't sent plainly.
func contentOf(fields []wire.Field) (media string, coded bool) {
	v, _, _ := bytes.Cut(field(fields, "content-type"), []byte(";"))
	return string(bytes.ToLower(bytes.TrimSpace(v))), field(fields, "content-encoding") != nil
}

// otherThanJSON reports whether the answer would have to be another than JSON, which can't be made here: it is made here as often as by the
// engine.
func (c *change) otherThanJSON() bool {
	v, given := api.Param(c.req.Op.Query, "format")
	c.plain = jsonAnswer(c.req.Fields) && (!given || string(v) == "json")
	return !c.plain
}

// readPatchQuery reads the parameters of the query, which are those of _update, and upsert.
func (c *change) readPatchQuery() (refusal *respond.Answer) {
	p, q := c.patch, c.req.Op.Query
	for _, name := range [2]string{"upsert", "doc_as_upsert"} {
		v, given := api.Param(q, name)
		switch {
		case !given:
		case len(v) == 0, string(v) == "true":
			p.Upsert = true
		case string(v) != "false":
			return illegal("Failed to parse value [%s] as only [true] or [false] are allowed.", v)
		}
	}
	if v, given := api.Param(q, "retry_on_conflict"); given {
		n, err := strconv.ParseInt(string(v), 10, 32)
		if err != nil || n < 0 {
			return illegal("Failed to parse int parameter [retry_on_conflict] with value [%s]", v)
		}
		p.retries = int(n)
	}
	if _, given := api.Param(q, "op_type"); given {
		return illegal("request [%s] contains unrecognized parameter: [op_type]", c.req.Op.Path)
	}
	if raw, given := api.Param(q, "filter_path"); given {
		v, err := api.DecodeValue(nil, raw)
		if err != nil {
			return illegal("the parameter [filter_path] can't be read: %s", err)
		}
		filter := glob.ParseFilter(string(v))
		if p.filter = &filter; filter.Len() > respond.MaxPatterns {
			return illegal("the parameter [filter_path] has more than %d patterns", respond.MaxPatterns)
		}
	}
	if !p.showsByBody {
		var err error
		if p.shows, err = respond.ReadSourceFilter(q); err != nil {
			return illegal("%s", err)
		}
	}
	return c.readPatchGuard()
}

// readPatchGuard reads the client's own guard: if_seq_no and if_primary_term. Under it a PATCH is tried once.
func (c *change) readPatchGuard() (refusal *respond.Answer) {
	q := c.req.Op.Query
	n, given := api.ReadGuard(q)
	if !given {
		return nil
	}
	_, version := api.Param(q, "version")
	_, versionType := api.Param(q, "version_type")
	reason := ""
	switch {
	case version || versionType:
		reason = "internal versioning can not be used for optimistic concurrency control. Please use `if_seq_no` and `if_primary_term` instead"
	case !n.Known() || n.SeqNo < 0:
		reason = "if_seq_no and if_primary_term must both be given, as the numbers of a revision"
	case c.patch.retries > 0:
		reason = "compare and write operations can not be retried"
	case c.patch.Upsert:
		reason = "compare and write operations can not be used with upsert"
	}
	if reason != "" {
		return respond.Error(http.StatusBadRequest, "action_request_validation_exception", "Validation Failed: 1: "+reason+";")
	}
	c.guardPatch(n)
	c.outcome.Base, c.outcome.Reason = outcome.BaseExplicit, outcome.ReasonExplicit
	return nil
}

// guardPatch has the patch made only in place of the revision n.
func (c *change) guardPatch(n doc.Numbers) { c.guard, c.patch.Guard = n, n }

func illegal(format string, args ...any) *respond.Answer {
	return respond.Error(http.StatusBadRequest, "illegal_argument_exception", fmt.Sprintf(format, args...))
}

// unsupportedMedia names what would have been understood, as RFC 5789 has it.
func unsupportedMedia(what string) *respond.Answer {
	a := respond.Error(http.StatusUnsupportedMediaType, "media_type_header_exception", what+" is no patch: send "+acceptPatch)
	a.Fields = append(a.Fields, wire.Field{Name: []byte("Accept-Patch"), Value: []byte(acceptPatch)})
	return a
}

// badPatch is the answer to a body that is no patch.
func badPatch(err error) *respond.Answer {
	var syntax *rewrite.SyntaxError
	if errors.As(err, &syntax) {
		return respond.Error(http.StatusBadRequest, "x_content_parse_exception", err.Error())
	}
	return respond.Error(http.StatusBadRequest, "parsing_exception", err.Error())
}
