package embedded

import (
	"strconv"
)

func (c *call) getDoc() *Error {
	x, r, filter, err := c.find()
	if err != nil {
		return err
	}
	if r == nil {
		c.resp.Status = 404
	}
	c.out = appendGet(c.out, x, c.vars.id, r, filter)
	return nil
}

func (c *call) getSource() *Error {
	x, r, filter, err := c.find()
	if err != nil {
		return err
	}
	if filter.hidden() {
		var v validation
		v.add("fetching source can not be disabled")
		return v.err()
	}
	if r == nil || r.source == nil {
		what := "Document"
		if r != nil {
			what = "Source"
		}
		return &Error{Status: 404, Type: "resource_not_found_exception", Reason: what + " not found [" + x.name + "]/[" + c.vars.id + "]"}
	}
	c.out, c.whole = filter.append(c.out, r.source), true
	return nil
}

// find reads the parameters of a read and finds the document, or nil.
func (c *call) find() (*index, *revision, *sourceFilter, *Error) {
	filter, version := c.sourceFilter(), c.long("version", matchAny)
	_, _ = c.versionType(), c.flag("realtime", true) // they make no difference here, but must be right
	if c.bad != nil {
		return nil, nil, nil, c.bad
	}
	x, err := c.single(c.vars.index)
	if err != nil {
		return nil, nil, nil, err
	}
	if x.copyMapping().routing && c.params.get("routing") == "" {
		w := write{id: c.vars.id}
		return nil, nil, nil, w.route(x, nil)
	}
	r := x.shard.get(c.vars.id)
	if r != nil && version != matchAny && version != r.version {
		return nil, nil, nil, errConflict(x, "[%s]: version conflict, current version [%d] is different than the one provided [%d]", r.id, r.version, version)
	}
	return x, r, filter, nil
}

// appendGet appends a document as a get answers it. r may be nil.
func appendGet(dst []byte, x *index, id string, r *revision, f *sourceFilter) []byte {
	dst = appendString(append(dst, `{"_index":`...), x.name)
	dst = appendString(append(dst, `,"_id":`...), id)
	if r == nil {
		return append(dst, `,"found":false}`...)
	}
	dst = appendNumbers(dst, r)
	if r.routing != "" {
		dst = appendString(append(dst, `,"_routing":`...), r.routing)
	}
	dst = append(dst, `,"found":true`...)
	if f.hidden() || r.source == nil {
		return append(dst, '}')
	}
	return append(f.append(append(dst, `,"_source":`...), r.source), '}')
}

func appendNumbers(dst []byte, r *revision) []byte { return appendSeqNo(appendVersion(dst, r), r) }

func appendVersion(dst []byte, r *revision) []byte {
	return strconv.AppendInt(append(dst, `,"_version":`...), r.version, 10)
}

func appendSeqNo(dst []byte, r *revision) []byte {
	dst = strconv.AppendInt(append(dst, `,"_seq_no":`...), r.seqNo, 10)
	return strconv.AppendInt(append(dst, `,"_primary_term":`...), primaryTerm, 10)
}
