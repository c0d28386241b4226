package embedded

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is a refusal in the engine's own shape.
type Error struct {
	Status int
	Type   string
	Reason string
	// Plain errors have no root cause: `{"error":"reason","status":400}`.
	Plain bool

	index    *index // the index in which the error happened, for index_uuid, shard and index; nil: there is none
	name     string // a name that no index has; its index_uuid is "_na_"
	resource string // resource.type; resource.id is name
	cause    *Error // caused_by
	root     *Error // root_cause, if it isn't the error itself
	noStatus bool
	shard    bool     // the error happened in the index's shard
	messages []string // the messages of a validation
	failed   *index   // the index whose shard failed in a search
}

func (e *Error) Error() string { return e.Type + ": " + e.Reason }

// appendJSON appends the whole body of an error answer.
func (e *Error) appendJSON(dst []byte) []byte {
	dst = append(dst, `{"error":`...)
	if e.Plain {
		dst = appendString(dst, e.Reason)
		if e.noStatus {
			return append(dst, '}')
		}
	} else {
		dst = e.appendFull(dst)
	}
	dst = append(dst, `,"status":`...)
	return append(strconv.AppendInt(dst, int64(e.Status), 10), '}')
}

// appendFull appends the error with its root cause, without the status.
func (e *Error) appendFull(dst []byte) []byte {
	root := e
	if e.root != nil {
		root = e.root
	}
	dst = append(dst, `{"root_cause":[{`...)
	dst = root.appendFields(dst)
	dst = append(dst, `}],`...)
	return append(e.appendCause(e.appendFields(dst)), '}')
}

// appendItem appends the error as the items of _bulk and the failures of by-query have it: without a root cause.
func (e *Error) appendItem(dst []byte) []byte {
	return append(e.appendCause(e.appendFields(append(dst, '{'))), '}')
}

func (e *Error) appendCause(dst []byte) []byte {
	if e.cause == nil {
		return dst
	}
	dst = append(dst, `,"caused_by":{`...)
	return append(e.cause.appendCause(e.cause.appendFields(dst)), '}')
}

func (e *Error) appendFields(dst []byte) []byte {
	dst = appendString(append(dst, `"type":`...), e.Type)
	dst = appendString(append(dst, `,"reason":`...), e.Reason)
	if e.resource != "" {
		dst = appendString(append(dst, `,"resource.type":`...), e.resource)
		dst = appendString(append(dst, `,"resource.id":`...), e.name)
	}
	if e.failed != nil {
		dst = append(dst, `,"phase":"query","grouped":true,"failed_shards":[{"shard":0,"index":`...)
		dst = append(e.root.appendItem(append(appendString(dst, e.failed.name), `,"reason":`...)), `}]`...)
	}
	switch {
	case e.index != nil && e.shard:
		dst = appendString(append(dst, `,"index_uuid":`...), e.index.uuid)
		dst = appendString(append(dst, `,"shard":"0","index":`...), e.index.name)
	case e.index != nil:
		dst = appendString(append(dst, `,"index_uuid":`...), e.index.uuid)
		dst = appendString(append(dst, `,"index":`...), e.index.name)
	case e.name != "" && e.resource != "aliases":
		dst = appendString(append(dst, `,"index_uuid":"_na_","index":`...), e.name)
	}
	return dst
}

func badRequest(typ, format string, args ...any) *Error {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	return &Error{Status: 400, Type: typ, Reason: format}
}

func illegalArgument(format string, args ...any) *Error {
	return badRequest("illegal_argument_exception", format, args...)
}

func errBodyRequired() *Error { return badRequest("parse_exception", "request body is required") }

func errIndexNotFound(name string) *Error {
	return &Error{Status: 404, Type: "index_not_found_exception", Reason: "no such index [" + name + "]", name: name, resource: "index_or_alias"}
}

func errConflict(x *index, format string, args ...any) *Error {
	return &Error{Status: 409, Type: "version_conflict_engine_exception", Reason: fmt.Sprintf(format, args...), index: x, shard: true}
}

// unsupported refuses a feature that this engine doesn't have.
func unsupported(what string) *Error {
	return illegalArgument("%s are not supported by the embedded in-memory engine", what)
}

// invalid is a validation with one message.
func invalid(format string, args ...any) *Error {
	var v validation
	v.add(format, args...)
	return v.err()
}

// validation collects the messages of one request and renders them as the engine does.
type validation struct {
	messages []string
}

func (v *validation) add(format string, args ...any) {
	v.messages = append(v.messages, fmt.Sprintf(format, args...))
}

// addAll adds the messages of another validation.
func (v *validation) addAll(e *Error) {
	for _, m := range e.messages {
		v.add("%s", m)
	}
}

func (v *validation) err() *Error {
	if len(v.messages) == 0 {
		return nil
	}
	var reason strings.Builder // there may be millions of messages
	reason.WriteString("Validation Failed: ")
	for i, m := range v.messages {
		fmt.Fprintf(&reason, "%d: %s;", i+1, m)
	}
	e := badRequest("action_request_validation_exception", "%s", reason.String())
	e.messages = v.messages
	return e
}
