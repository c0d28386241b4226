package embedded

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"optimist/internal/uri"
)

// maxID is the longest id in bytes.
const maxID = 512

func (c *call) indexDoc() *Error {
	act := actIndex
	switch op, given := c.params.lookup("op_type"); {
	case given && strings.EqualFold(op, "index"):
	case !given && c.vars.id != "":
	case !given, strings.EqualFold(op, "create"):
		act = actCreate
	default:
		return illegalArgument("opType must be 'create' or 'index', found: [%s]", op)
	}
	return c.put(act)
}

func (c *call) createDoc() *Error { return c.put(actCreate) }

func (c *call) deleteDoc() *Error {
	w := newWrite(actDelete, c.vars.id)
	refreshed, err := c.writeOptions(&w)
	if err != nil {
		return err
	}
	x, err := c.indexOfDelete(c.vars.index, &w)
	if err != nil {
		return err
	}
	o, err := x.shard.apply(x, &w)
	if err != nil {
		return err
	}
	if !o.existed {
		c.resp.Status = 404
	}
	c.out = appendOutcome(c.out, x, &w, o, refreshed)
	return nil
}

// indexOfDelete finds a delete's index. A delete with an external version makes the index if there is none, because its number must be
// kept.
func (e *Engine) indexOfDelete(name string, w *write) (*index, *Error) {
	if w.versionType != versionInternal {
		return e.indexOfWrite(name, false, w)
	}
	name, err := e.dateMath(name)
	if err != nil {
		return nil, err
	}
	e.mu.RLock()
	x, a, err := e.lookup(name, true)
	e.mu.RUnlock()
	if x == nil && err == nil {
		err = errIndexNotFound(name)
	}
	if err != nil {
		return nil, err
	}
	return x, w.route(x, a)
}

// indexOfWrite finds or makes a write's index and settles its routing.
func (e *Engine) indexOfWrite(name string, needAlias bool, w *write) (*index, *Error) {
	x, a, err := e.target(name, needAlias)
	if err != nil {
		return nil, err
	}
	return x, w.route(x, a)
}

// indexOfRequest is indexOfWrite for the index in the path.
func (c *call) indexOfRequest(w *write) (*index, *Error) {
	needAlias := c.flag("require_alias", false)
	if c.bad != nil {
		return nil, c.bad
	}
	return c.indexOfWrite(c.vars.index, needAlias, w)
}

// route gives the write the routing of its alias. It refuses a write without routing if the mapping requires one.
func (w *write) route(x *index, a *alias) *Error {
	if a != nil && a.indexRouting != "" {
		if w.routing != "" && w.routing != a.indexRouting {
			return illegalArgument("Alias [%s] has index routing associated with it [%s], and was provided with routing value [%s], rejecting operation", x.name, a.indexRouting, w.routing)
		}
		w.routing = a.indexRouting
	}
	if w.routing == "" && x.copyMapping().routing {
		e := badRequest("routing_missing_exception", "routing is required for [%s]/[%s]", x.name, w.id)
		e.name = x.name
		return e
	}
	return nil
}

func (c *call) put(act action) *Error {
	if len(c.req.Body) == 0 {
		return errBodyRequired()
	}
	w := newWrite(act, c.vars.id)
	w.source = c.req.Body
	refreshed, err := c.writeOptions(&w)
	if err != nil {
		return err
	}
	if w.id == "" {
		c.nameNew(&w)
	}
	x, err := c.indexOfRequest(&w)
	if err != nil {
		return err
	}
	o, err := c.store(x, &w)
	if err != nil {
		return err
	}
	if !o.existed {
		c.resp.Status = 201
		c.header("Location", location(x.name, &w))
	}
	c.out = appendOutcome(c.out, x, &w, o, refreshed)
	return nil
}

// nameNew gives a write without an id a new one. As in the engine, its guard doesn't count: nobody else can have the id.
func (e *Engine) nameNew(w *write) {
	w.id, w.act = e.ids.next(), actCreate
	w.ifSeqNo, w.ifTerm = unassigned, 0
}

// store checks the document and applies the write.
func (e *Engine) store(x *index, w *write) (outcome, *Error) {
	if err := checkDocument(x, w); err != nil {
		return outcome{}, err
	}
	return x.shard.apply(x, w)
}

func location(index string, w *write) string {
	l := uri.AppendFormValue([]byte("/"), index)
	l = uri.AppendFormValue(append(l, "/_doc/"...), w.id)
	if w.routing != "" {
		l = uri.AppendFormValue(append(l, "?routing="...), w.routing)
	}
	return string(l)
}

// writeOptions reads the parameters of a single write. It reports whether the write forces a refresh.
func (c *call) writeOptions(w *write) (refreshed bool, err *Error) {
	refreshed = c.guards(w)
	w.version = c.version()
	c.wrong(noPipeline(c.params.get("pipeline")))
	if c.bad != nil {
		return false, c.bad
	}
	return refreshed, w.validate()
}

// guards reads the parameters that a write and an update have. It reports whether the write forces a refresh.
func (c *call) guards(w *write) (refreshed bool) {
	w.routing = c.params.get("routing")
	w.version, w.versionType = c.long("version", matchAny), c.versionType()
	w.ifSeqNo, w.ifTerm = c.long("if_seq_no", unassigned), c.long("if_primary_term", 0)
	if w.ifSeqNo < 0 && w.ifSeqNo != unassigned {
		c.wrong(illegalArgument("sequence numbers must be non negative. got [%d].", w.ifSeqNo))
	}
	if w.ifTerm < 0 {
		c.wrong(illegalArgument("primary term must be non negative. got [%d]", w.ifTerm))
	}
	return c.refresh()
}

// version is the version that the request asks for, by its parameter or by If-Match. To the engines, that isn't the header of RFC 9110.
func (c *call) version() int64 {
	if _, given := c.params.lookup("version"); given || c.req.IfMatch == "" {
		return c.long("version", matchAny)
	}
	v, err := strconv.ParseInt(c.req.IfMatch, 10, 64)
	if err != nil {
		c.wrong(badRequest("number_format_exception", `For input string: "%s"`, c.req.IfMatch))
	}
	return v
}

// noPipeline refuses a write that names a pipeline: there are none.
func noPipeline(name string) *Error {
	if name == "" || name == "_none" {
		return nil
	}
	return illegalArgument("pipeline with id [%s] does not exist", name)
}

// refresh reads the parameter refresh. It reports whether the request forces a refresh.
func (c *call) refresh() bool {
	v, given := c.params.lookup("refresh")
	if given && !slices.Contains([]string{"", "true", "false", "wait_for"}, v) {
		c.wrong(illegalArgument("Unknown value for refresh: [%s].", v))
	}
	return given && (v == "" || v == "true")
}

func (c *call) versionType() versionType {
	t, err := parseVersionType(c.params.get("version_type"))
	c.wrong(err)
	return t
}

func parseVersionType(s string) (versionType, *Error) {
	switch s {
	case "", "internal":
		return versionInternal, nil
	case "external", "external_gt":
		return versionExternal, nil
	case "external_gte":
		return versionExternalGTE, nil
	}
	return 0, illegalArgument("No version type match [%s]", s)
}

// validate applies the engine's rules for what may stand together in one write.
func (w *write) validate() *Error {
	var v validation
	external := w.versionType != versionInternal
	switch {
	case w.act != actCreate:
	case external:
		return invalid("create operations only support internal versioning. use index instead")
	case w.version != matchAny:
		return invalid("create operations do not support explicit versions. use index instead")
	case w.ifSeqNo != unassigned || w.ifTerm != 0:
		return invalid("create operations do not support compare and set. use index instead")
	}
	if w.id == "" && (external || w.version != matchAny) {
		v.add("an id must be provided if version type or value are set")
	}
	w.validateID(&v)
	w.validateGuard(&v)
	return v.err()
}

func (w *write) validateID(v *validation) {
	if len(w.id) > maxID {
		v.add("id [%s] is too long, must be no longer than %d bytes but was: %d", w.id, maxID, len(w.id))
	}
}

func (w *write) validateGuard(v *validation) {
	external := w.versionType != versionInternal
	switch {
	case external && w.version < 0:
		v.add("illegal version value [%d] for version type [%s]", w.version, w.versionType)
	case !external && w.version != matchAny:
		v.add("internal versioning can not be used for optimistic concurrency control. Please use `if_seq_no` and `if_primary_term` instead")
	}
	if w.ifSeqNo != unassigned && (external || w.version != matchAny) {
		v.add("compare and write operations can not use versioning")
	}
	switch {
	case w.ifTerm == 0 && w.ifSeqNo != unassigned:
		v.add("ifSeqNo is set, but primary term is [0]")
	case w.ifTerm != 0 && w.ifSeqNo == unassigned:
		v.add("ifSeqNo is unassigned, but primary term is [%d]", w.ifTerm)
	}
}

// appendOutcome appends the answer to a write.
func appendOutcome(dst []byte, x *index, w *write, o outcome, refreshed bool) []byte {
	return append(appendResult(append(dst, '{'), x, o.rev, resultOf(w, o), refreshed), '}')
}

// appendResult appends the members that every successful write answers.
func appendResult(dst []byte, x *index, r *revision, result string, refreshed bool) []byte {
	dst = slices.Grow(dst, 256)
	dst = fmt.Appendf(appendPlace(dst, x.name, r.id), `,"_version":%d,"result":"%s"`, r.version, result)
	if refreshed {
		dst = append(dst, `,"forced_refresh":true`...)
	}
	dst = fmt.Appendf(dst, `,"_shards":{"total":%d,"successful":1,"failed":0}`, 1+x.replicas())
	return appendSeqNo(dst, r)
}

// resultOf names what a write did.
func resultOf(w *write, o outcome) string {
	switch {
	case w.act == actDelete && o.existed:
		return "deleted"
	case w.act == actDelete:
		return "not_found"
	case o.existed:
		return "updated"
	}
	return "created"
}

// idSource makes ids for documents that come without one: unique, 20 characters, ascending as the engine's are.
type idSource struct{ n atomic.Uint64 }

func (s *idSource) next() string {
	var b [15]byte
	binary.BigEndian.PutUint64(b[:8], s.n.Add(1))
	_, _ = rand.Read(b[8:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
