package write

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"optimist/internal/api"
	"optimist/internal/glob"
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

// patch is a PATCH on its way. What it says is applied to the document as it is at each attempt, so it needs no base, and no session.
//
// What the session of its client knows afterwards: with `_source=true` the client was shown the document, as by a read. Else, in a
// session that names itself, what it had seen, with the patch applied to that: whoever patches a document of which it keeps a copy either
// patches the copy, too, or means to put the old values back, as it would without optimist; what others changed in between it hasn't
// seen either way. Where the patch doesn't fit what it had seen, that stays. In a session that is inferred nobody can tell whose copy it
// was: what its threads have read stays as it is.
//
// The answer carries the numbers of what was stored, as that of an _update does, and an ETag only if the client has seen all of that.
type patch struct {
	edit  edit
	media []byte // the Content-Type of the write

	incoming []byte       // what of the body a rule's steps may look at; nil: all of it
	upsert   bool         // a document that isn't there is made
	first    []byte       // of what: nil is {}, with the edit applied
	always   bool         // an edit that changes nothing is written, too
	retries  int          // the client's own bound; -1: it gave none
	asked    shown        // what of the document the answer shows
	said     bool         // the body says it, which counts more than the query
	filter   *glob.Filter // what the client wants of the answer; nil: all

	// What the last attempt was made from, and what the edit made of that, before the rule's transform.
	before, after []byte
	idle          bool // the edit changed nothing there
	unfit         bool // the document is none that can be looked into
}

// edit is what a patch does to a document.
type edit interface {
	// apply returns the document with the edit in it.
	apply(doc []byte, in *rewrite.Inputs) ([]byte, error)
	// same reports whether the edit has changed nothing.
	same(before, after []byte) bool
	// repeatable reports whether the edit may be applied again to what has it already, if its paths are as they were.
	repeatable() bool
}

// operations are those of RFC 6902.
type operations rewrite.Patch

func (o operations) apply(doc []byte, _ *rewrite.Inputs) ([]byte, error) {
	return rewrite.Patch(o).Apply(doc)
}
func (o operations) same(before, after []byte) bool { return equal(before, after) }
func (o operations) repeatable() bool               { return true }

// mergePatch is one of RFC 7396.
type mergePatch []byte

func (m mergePatch) apply(doc []byte, _ *rewrite.Inputs) ([]byte, error) {
	return rewrite.MergePatch(doc, m, rewrite.Limits{})
}
func (m mergePatch) same(before, after []byte) bool { return equal(before, after) }
func (m mergePatch) repeatable() bool               { return true }

// steps are operations as rules have them.
type steps struct{ t *rewrite.Transformer }

func (s steps) apply(doc []byte, in *rewrite.Inputs) ([]byte, error) { return s.t.Apply(doc, in) }
func (s steps) same(before, after []byte) bool                       { return equal(before, after) }
func (s steps) repeatable() bool                                     { return s.t.Repeatable() }

// patchParams are the query parameters of a PATCH that the engine's index request doesn't have.
var patchParams = []string{"upsert", "doc_as_upsert", "retry_on_conflict", "if_seq_no", "if_primary_term",
	"_source", "_source_includes", "_source_excludes", "filter_path"}

// readPatch reads the request as a PATCH. A refusal becomes its answer.
func (c *change) readPatch() {
	p := &patch{retries: -1}
	c.patch, c.json = p, true
	c.outcome.Kind = Guarded
	c.query = api.Without(nil, c.query, patchParams...)
	c.path = c.placeOf()
	p.media = mediaFor(field(c.req.Fields, "accept"))
	if !c.readable() || !c.readPatchQuery() {
		return
	}
	media, coded := contentOf(c.req.Fields)
	var err error
	switch {
	case coded:
		c.answer = unsupportedMedia("a body with a Content-Encoding other than gzip")
		return
	case media == mediaOperations:
		var ops rewrite.Patch
		ops, err = rewrite.ParsePatch(c.sent)
		p.edit, err = operations(ops), hinted(err)
	case media == mediaMerge:
		if firstByte(c.sent) != '{' {
			err = &rewrite.PatchError{Index: -1, Reason: "a merge patch that is no object would replace the document by what is none"}
			break
		}
		_, err = rewrite.MergePatch([]byte("{}"), c.sent, rewrite.Limits{})
		p.edit = mergePatch(c.sent)
	case media == mediaSteps:
		p.edit, err = readSteps(c.sent)
	default:
		c.answer = unsupportedMedia("[" + media + "]")
		return
	}
	if err != nil {
		c.answer = badPatch(err)
	}
}

// hinted says of an operation that only rules have what it would have to be sent as.
func hinted(err error) error {
	var e *rewrite.PatchError
	if errors.As(err, &e) {
		if a, unknown := rewrite.ParseAction(e.Op); unknown == nil && a > rewrite.OpTest {
			return fmt.Errorf("%w; %s has it", err, mediaSteps)
		}
	}
	return err
}

func readSteps(body []byte) (edit, error) {
	list, err := rewrite.ParseSteps(body, rewrite.Limits{})
	if err != nil {
		return nil, err
	}
	t, err := rewrite.NewTransformer(list, rewrite.Limits{})
	return steps{t}, err
}

// placeOf is the path that the document is written to.
func (c *change) placeOf() []byte {
	op := c.req.Op
	kind := op.Type
	if !op.Typed {
		kind = []byte("_doc")
	}
	path := append(append([]byte{'/'}, op.Index...), '/')
	return append(append(append(path, kind...), '/'), op.ID...)
}

// mediaFor is the Content-Type of a write whose answer is to be of the Accept's form: Elasticsearch wants both to ask for the same.
func mediaFor(accept []byte) []byte {
	if len(accept) > len(mediaEngine) && wire.EqualFold(accept[:len(mediaEngine)], mediaEngine) {
		first, _, _ := bytes.Cut(accept, []byte(","))
		return first
	}
	return jsonType.Value
}

// contentOf is the media type of a body, in lower case and without parameters; coded says that it isn't sent plainly.
func contentOf(fields []wire.Field) (media string, coded bool) {
	v, _, _ := bytes.Cut(field(fields, "content-type"), []byte(";"))
	return string(bytes.ToLower(bytes.TrimSpace(v))), field(fields, "content-encoding") != nil
}

// readable refuses a PATCH whose answer would have to be another than JSON: it is made here as often as by the engine.
func (c *change) readable() bool {
	v, said := api.Param(c.req.Op.Query, "format")
	if c.plain = jsonAnswer(c.req.Fields) && (!said || string(v) == "json"); c.plain {
		return true
	}
	c.answer = refuse(http.StatusNotAcceptable, "illegal_argument_exception", "a PATCH is answered in JSON")
	return false
}

// readPatchQuery reads the parameters of the query, which are those of _update, and upsert.
func (c *change) readPatchQuery() bool {
	p, q := c.patch, c.req.Op.Query
	for _, name := range [2]string{"upsert", "doc_as_upsert"} {
		v, said := api.Param(q, name)
		switch {
		case !said:
		case len(v) == 0, string(v) == "true":
			p.upsert = true
		case string(v) != "false":
			return c.illegal("Failed to parse value [%s] as only [true] or [false] are allowed.", v)
		}
	}
	if v, said := api.Param(q, "retry_on_conflict"); said {
		n, err := strconv.ParseInt(string(v), 10, 32)
		if err != nil || n < 0 {
			return c.illegal("Failed to parse int parameter [retry_on_conflict] with value [%s]", v)
		}
		p.retries = int(n)
	}
	if _, said := api.Param(q, "op_type"); said {
		return c.illegal("request [%s] contains unrecognized parameter: [op_type]", c.req.Op.Path)
	}
	if raw, said := api.Param(q, "filter_path"); said {
		v, err := api.DecodeValue(nil, raw)
		if err != nil {
			return c.illegal("the parameter [filter_path] can't be read: %s", err)
		}
		filter := glob.ParseFilter(string(v))
		if p.filter = &filter; filter.Len() > maxPatterns {
			return c.illegal("the parameter [filter_path] has more than %d patterns", maxPatterns)
		}
	}
	if !c.readShown() {
		return false
	}
	return c.readOwnGuard()
}

// readOwnGuard reads the client's own guard: if_seq_no and if_primary_term. Under it a PATCH is tried once.
func (c *change) readOwnGuard() bool {
	q := c.req.Op.Query
	n, said := given(q)
	if !said {
		return true
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
	case c.patch.upsert:
		reason = "compare and write operations can not be used with upsert"
	}
	if reason != "" {
		c.answer = refuse(http.StatusBadRequest, "action_request_validation_exception", "Validation Failed: 1: "+reason+";")
		return false
	}
	c.once, c.guard, c.outcome.Base, c.outcome.Reason = true, n, BaseExplicit, ReasonExplicit
	return true
}

// illegal makes a refusal the answer. It returns false.
func (c *change) illegal(format string, args ...any) bool {
	c.answer = refuse(http.StatusBadRequest, "illegal_argument_exception", fmt.Sprintf(format, args...))
	return false
}

// unsupportedMedia names what would have been understood, as RFC 5789 has it.
func unsupportedMedia(what string) *Answer {
	a := refuse(http.StatusUnsupportedMediaType, "media_type_header_exception", what+" is no patch: send "+acceptPatch)
	a.Fields = append(a.Fields, wire.Field{Name: []byte("Accept-Patch"), Value: []byte(acceptPatch)})
	return a
}
