package api

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

// Error is an error as the engine answers it.
type Error struct {
	Status       int
	Type, Reason string
	Index        string // the index whose document it is about; "" is left out
	Detail       []byte // a JSON object of further members; nil: none
}

// Append appends the body of the answer.
func (e *Error) Append(dst []byte) []byte {
	cause := append(make([]byte, 0, 200), `"type":`...)
	cause = gjson.AppendJSONString(cause, e.Type)
	cause = gjson.AppendJSONString(append(cause, `,"reason":`...), e.Reason)
	if e.Index != "" {
		cause = gjson.AppendJSONString(append(cause, `,"index":`...), e.Index)
	}
	dst = append(slices.Grow(dst, 2*len(cause)+len(e.Detail)+60), `{"error":{"root_cause":[{`...)
	dst = append(append(dst, cause...), `}],`...)
	dst = append(dst, cause...)
	if len(e.Detail) > len("{}") {
		dst = append(append(dst, ','), e.Detail[1:len(e.Detail)-1]...)
	}
	dst = append(dst, `},"status":`...)
	return append(strconv.AppendInt(dst, int64(e.Status), 10), '}')
}
