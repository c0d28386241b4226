package compat

import (
	"net/http"
	"time"

	"optimist/lockrouter"
)

// reply makes answers in the shapes that the engine would give.
type reply struct {
	c     *Compat
	typed bool
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
