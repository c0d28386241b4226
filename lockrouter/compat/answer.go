package compat

import (
	"net/http"
	"time"

	"optimist/lockrouter"
)

// reply makes answers in the engine's form.
type reply struct {
	c     *Compat
	typed bool
}

// status is the HTTP status of the answer to a write.
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

// document returns the members that the answer has for every document.
func (r *reply) document(id string) object {
	o := object{"_index": r.c.o.Index, "_id": id}
	if r.typed {
		o["_type"] = r.c.o.Type
	}
	return o
}

// body is the body of the answer to a write. Its _seq_no is the fencing token of the lease.
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

// one is the answer to a request for a single lock.
func (r *reply) one(res *result) (*lockrouter.Answer, error) {
	if res.err != nil {
		return nil, res.err
	}
	return encode(res.status(), r.body(res)), nil
}

// items is the answer to a bulk request. An item whose outcome isn't known has the status 503, as if its shard had failed.
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
