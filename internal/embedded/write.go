package embedded

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
)

// maxID is the longest id in bytes.
const maxID = 512

func (c *call) indexDoc() *Error {
	act := actIndex
	switch op := c.params.get("op_type"); strings.ToLower(op) {
	case "", "index":
	case "create":
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
	x, err := c.existingForDelete(w.versionType)
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

// existingForDelete finds a delete's index. Only a delete with an external version makes one: its number must be kept.
func (c *call) existingForDelete(vt versionType) (*index, *Error) {
	if vt != versionInternal {
		return c.target(c.vars.index, false)
	}
	c.mu.RLock()
	x, err := c.lookup(c.vars.index, true)
	c.mu.RUnlock()
	if x == nil && err == nil {
		return nil, errIndexNotFound(c.vars.index)
	}
	return x, err
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
		w.id, w.autoID = c.ids.next(), true
		if w.versionType == versionInternal && w.ifSeqNo == unassigned {
			w.act = actCreate // nobody else can have the id
		}
	}
	needAlias, err := c.params.flag("require_alias", false)
	if err != nil {
		return err
	}
	x, err := c.target(c.vars.index, needAlias)
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

// store checks the document and applies the write.
func (e *Engine) store(x *index, w *write) (outcome, *Error) {
	if err := checkDocument(x, w); err != nil {
		return outcome{}, err
	}
	return x.shard.apply(x, w)
}

func location(index string, w *write) string {
	l := "/" + url.PathEscape(index) + "/_doc/" + url.PathEscape(w.id)
	if w.routing != "" {
		l += "?routing=" + url.QueryEscape(w.routing)
	}
	return l
}

// writeOptions reads the parameters of a single write. It reports whether the write forces a refresh.
func (c *call) writeOptions(w *write) (refreshed bool, err *Error) {
	w.routing = c.params.get("routing")
	if w.version, err = c.params.long("version", matchAny); err != nil {
		return false, err
	}
	if w.versionType, err = parseVersionType(c.params.get("version_type")); err != nil {
		return false, err
	}
	if w.ifSeqNo, err = c.params.long("if_seq_no", unassigned); err != nil {
		return false, err
	}
	if w.ifTerm, err = c.params.long("if_primary_term", 0); err != nil {
		return false, err
	}
	if p := c.params.get("pipeline"); p != "" && p != "_none" {
		return false, illegalArgument("pipeline with id [%s] does not exist", p)
	}
	if refreshed, err = c.refresh(); err != nil {
		return false, err
	}
	return refreshed, w.validate()
}

func (c *call) refresh() (forced bool, err *Error) {
	switch v := c.params.get("refresh"); v {
	case "true":
		return true, nil
	case "":
		_, given := c.params.lookup("refresh")
		return given, nil
	case "false", "wait_for":
		return false, nil
	default:
		return false, illegalArgument("Unknown value for refresh: [%s].", v)
	}
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
	if w.act == actCreate {
		if external {
			v.add("create operations only support internal versioning. use index instead")
			return v.err()
		}
		if w.version != matchAny {
			v.add("create operations do not support explicit versions. use index instead")
			return v.err()
		}
		if w.ifSeqNo != unassigned || w.ifTerm != 0 {
			v.add("create operations do not support compare and set. use index instead")
			return v.err()
		}
	}
	if w.id == "" && external {
		v.add("an id must be provided if version type or value are set")
	}
	if len(w.id) > maxID {
		v.add("id [%s] is too long, must be no longer than %d bytes but was: %d", w.id, maxID, len(w.id))
	}
	w.validateGuard(&v)
	return v.err()
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
	result := "created"
	switch {
	case w.act == actDelete && o.existed:
		result = "deleted"
	case w.act == actDelete:
		result = "not_found"
	case o.existed:
		result = "updated"
	}
	dst = appendString(append(dst, `{"_index":`...), x.name)
	dst = appendString(append(dst, `,"_id":`...), o.rev.id)
	dst = strconv.AppendInt(append(dst, `,"_version":`...), o.rev.version, 10)
	dst = append(append(append(dst, `,"result":"`...), result...), '"')
	if refreshed {
		dst = append(dst, `,"forced_refresh":true`...)
	}
	dst = strconv.AppendInt(append(dst, `,"_shards":{"total":`...), int64(1+x.replicas), 10)
	dst = strconv.AppendInt(append(dst, `,"successful":1,"failed":0},"_seq_no":`...), o.rev.seqNo, 10)
	return append(strconv.AppendInt(append(dst, `,"_primary_term":`...), primaryTerm, 10), '}')
}

// idSource makes ids for documents that come without one: unique, 20 characters, ascending as the engine's are.
type idSource struct{ n atomic.Uint64 }

func (s *idSource) next() string {
	var b [15]byte
	binary.BigEndian.PutUint64(b[:8], s.n.Add(1))
	_, _ = rand.Read(b[8:]) // never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}
