package compat

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"optimist/internal/wire"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

type object = map[string]any

// reply makes answers in the shapes that the engine would give.
type reply struct {
	c     *Compat
	typed bool
}

// failure is an error as the engine would tell it.
type failure struct {
	status int
	typ    string
	reason string
	cause  object // caused_by
}

func unsupported(reason string) *failure {
	return &failure{http.StatusBadRequest, "illegal_argument_exception", "the documents of this index are locks: " + reason, nil}
}

func malformed(reason string) *failure {
	return &failure{http.StatusBadRequest, "parse_exception", reason, nil}
}

// conflict is what a create gets where the document is there already.
func conflict(in *intent, why string) *failure {
	return &failure{http.StatusConflict, "version_conflict_engine_exception", "[" + in.id + "]: version conflict, " + why, nil}
}

// refusal is what is told where a lock isn't to be had: for a create the conflict, for a script its failed assertion.
func refusal(in *intent, h *state.Hold, why string) *failure {
	if in.do == create {
		return conflict(in, "document already exists (current version [1]): "+why)
	}
	cause := object{"type": lockrouter.TypeHeld, "reason": "[" + in.id + "]: " + why}
	if h != nil {
		cause["expires_at"] = instant(h.Until)
	}
	return &failure{http.StatusBadRequest, "illegal_argument_exception", "failed to execute script", object{"type": "script_exception",
		"reason": "runtime error", "script": in.script, "lang": "painless", "caused_by": cause}}
}

func holderText(h *state.Hold) string {
	return fmt.Sprintf("held by [%s] until %s", h.Owner, instant(h.Until))
}

func instant(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// object is the error within an answer.
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
	b, err := json.Marshal(body)
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

// status is that of a write.
func (r *result) status() int {
	switch {
	case r.fail != nil:
		return r.fail.status
	case r.word == "created":
		return http.StatusCreated
	case r.word == "not_found":
		return http.StatusNotFound
	}
	return http.StatusOK
}

// document begins what is told of one.
func (r *reply) document(id string) object {
	o := object{"_index": r.c.o.Index, "_id": id}
	if r.typed {
		o["_type"] = r.c.o.Type
	}
	return o
}

// body is what is told of a write. The fencing token of the lease is its _seq_no.
func (r *reply) body(res *result) object {
	if res.fail != nil {
		return object{"error": res.fail.object(), "status": res.fail.status}
	}
	o := r.document(res.in.id)
	o["result"], o["_version"], o["_seq_no"], o["_primary_term"] = res.word, res.version, res.token, 1
	o["_shards"] = shards(1)
	if res.word == "noop" {
		o["_shards"] = shards(0)
	}
	return o
}

func (r *reply) one(res *result) (*lockrouter.Answer, error) {
	if res.err != nil {
		return nil, res.err
	}
	return encode(res.status(), r.body(res)), nil
}

// items is the answer to a bulk request. What isn't known fails as the engine's shards do.
func (r *reply) items(list []result, took time.Duration) *lockrouter.Answer {
	items := make([]object, len(list))
	failed := false
	for i := range list {
		res := &list[i]
		if res.err != nil {
			res.fail = &failure{http.StatusServiceUnavailable, lockrouter.TypeStore, res.err.Error(), nil}
		}
		var o object
		if res.fail != nil {
			failed = true
			o = r.document(res.in.id)
			e := res.fail.object()
			delete(e, "root_cause")
			o["error"] = e
		} else {
			o = r.body(res)
		}
		o["status"] = res.status()
		items[i] = object{names[res.in.do]: o}
	}
	return encode(http.StatusOK, object{"took": took.Milliseconds(), "errors": failed, "items": items})
}
