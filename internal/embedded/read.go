package embedded

import "fmt"

func (c *call) getDoc() *Error {
	x, r, filter, err := c.find(c.version())
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
	x, r, filter, err := c.find(c.long("version", matchAny))
	if err != nil {
		return err
	}
	if filter.hidden() {
		return invalid("fetching source can not be disabled")
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

// find reads the other parameters of a read and finds the document, or nil.
func (c *call) find(version int64) (*index, *revision, *sourceFilter, *Error) {
	filter := c.sourceFilter()
	_, _ = c.versionType(), c.flag("realtime", true) // they have no effect here, but wrong values are refused
	if c.bad != nil {
		return nil, nil, nil, c.bad
	}
	x, r, err := c.look(&wanted{index: c.vars.index, id: c.vars.id, routing: c.params.get("routing"), version: version})
	return x, r, filter, err
}

// look finds a document; nil: there is none.
func (e *Engine) look(w *wanted) (*index, *revision, *Error) {
	x, err := e.single(w.index)
	if err != nil {
		return nil, nil, err
	}
	if err := (&write{id: w.id, routing: w.routing}).route(x, nil); err != nil {
		return nil, nil, err
	}
	r := x.shard.get(w.id)
	if r != nil && w.version != matchAny && w.version != r.version {
		return nil, nil, errConflict(x, "[%s]: version conflict, current version [%d] is different than the one provided [%d]", r.id, r.version, w.version)
	}
	return x, r, nil
}

// appendGet appends a document as a get answers it. r may be nil.
func appendGet(dst []byte, x *index, id string, r *revision, f *sourceFilter) []byte {
	dst = appendPlace(append(dst, '{'), x.name, id)
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
	return fmt.Appendf(dst, `,"_version":%d`, r.version)
}

func appendSeqNo(dst []byte, r *revision) []byte {
	return fmt.Appendf(dst, `,"_seq_no":%d,"_primary_term":%d`, r.seqNo, primaryTerm)
}
