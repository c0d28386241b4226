package compat

import (
	"net/http"
	"time"

	"optimist/internal/jsontext"
	"optimist/internal/wire"
	"optimist/lockrouter"
)

type object = map[string]any

// failure is an error in the engine's form.
type failure struct {
	status int
	typ    string
	reason string
	cause  object // caused_by
}

// unsupported refuses a request that means nothing for a lock.
func unsupported(reason string) *failure {
	return &failure{http.StatusBadRequest, "illegal_argument_exception", "the documents of this index are locks: " + reason, nil}
}

// malformed refuses a request that can't be read.
func malformed(reason string) *failure {
	return &failure{http.StatusBadRequest, "parse_exception", reason, nil}
}

// object is the member error of the answer.
func (f *failure) object() object {
	cause := object{"type": f.typ, "reason": f.reason}
	e := object{"type": f.typ, "reason": f.reason, "root_cause": []object{cause}}
	if f.cause != nil {
		e["caused_by"] = f.cause
	}
	return e
}

func (f *failure) answer() *lockrouter.Answer {
	return encode(f.status, object{"error": f.object(), "status": f.status})
}

func encode(status int, body any) *lockrouter.Answer {
	b, err := jsontext.Marshal(body)
	if err != nil {
		b = []byte("{}") // only strings, numbers and JSON that was read are ever passed
	}
	return answer(status, b)
}

func answer(status int, body []byte) *lockrouter.Answer {
	return &lockrouter.Answer{Status: status, Body: body,
		Fields: []wire.Field{{Name: []byte("content-type"), Value: []byte("application/json; charset=UTF-8")}}}
}

func shards(successful int) object {
	return object{"total": successful, "successful": successful, "failed": 0}
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
