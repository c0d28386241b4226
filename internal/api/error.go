package api

import (
	"bytes"
	"slices"
	"strconv"

	"optimist/internal/jsontext"
)

// maxReason bounds a reason, which may quote what a client has sent, in bytes. An answer has it twice, and escaped.
const maxReason = 16 << 10

// Error is an error as the engine answers it.
type Error struct {
	Status       int
	Type, Reason string // a very long reason is cut
	Index        string // the index whose document it is about; "" is left out
	Detail       []byte // a JSON object of further members; nil: none
}

// Append appends the body of the answer.
func (e *Error) Append(dst []byte) []byte {
	cause := append(make([]byte, 0, 200), `{"type":`...)
	cause = jsontext.AppendString(cause, e.Type)
	cause = jsontext.AppendString(append(cause, `,"reason":`...), e.Reason[:min(len(e.Reason), maxReason)])
	if e.Index != "" {
		cause = jsontext.AppendString(append(cause, `,"index":`...), e.Index)
	}
	return AppendError(dst, append(cause, '}'), e.Detail, e.Status)
}

// AppendError appends the body of an answer with an error. cause is the error as it stands below root_cause, and detail an object with
// further members of the error itself, or nil.
func AppendError(dst, cause, detail []byte, status int) []byte {
	dst = append(slices.Grow(dst, 2*len(cause)+len(detail)+60), `{"error":{"root_cause":[`...)
	dst = append(append(dst, cause...), ']')
	for _, object := range [][]byte{cause, detail} {
		if inner := members(object); len(inner) > 0 {
			dst = append(append(dst, ','), inner...)
		}
	}
	dst = append(dst, `},"status":`...)
	return append(strconv.AppendInt(dst, int64(status), 10), '}')
}

// members are what stands between the braces of an object; of anything else nothing.
func members(object []byte) []byte {
	if object = bytes.TrimSpace(object); len(object) < len("{}") || object[0] != '{' {
		return nil
	}
	return bytes.TrimSpace(object[1 : len(object)-1])
}
