package compat

import (
	"context"
	"net/http"

	"optimist/internal/api"
	"optimist/lockrouter"
)

// Serve answers a request that concerns the Compat. It returns nil if the body shows that the request is the engine's. An error is the
// context's cause, or lockrouter.ErrStore. It isn't known then whether the locks were acquired.
func (c *Compat) Serve(ctx context.Context, q *Request) (*lockrouter.Answer, error) {
	switch c.Concerns(q.Op) {
	case Nothing:
		return nil, nil
	case ByBody:
		if q.Op.Kind == api.Bulk {
			return c.elsewhere(q), nil
		}
		return c.scroll(ctx, q)
	}
	p, _ := c.place(q.Op)
	r := &reply{c: c, typed: p.typed}
	switch read := q.Method == http.MethodGet || q.Method == http.MethodHead; {
	case p.id != "" && p.endpoint == "_doc" && read, p.id != "" && p.endpoint == "_source" && read:
		return c.get(ctx, r, p.id, p.endpoint == "_source")
	case p.id != "":
		in, err := c.one(q, &p)
		if err != nil {
			return err.answer(), nil
		}
		return r.one(&c.run(ctx, q, []intent{*in})[0])
	}
	return c.all(ctx, q, r, p.endpoint)
}

// one reads a request for a single lock.
func (c *Compat) one(q *Request, p *place) (*intent, *failure) {
	write := q.Method == http.MethodPut || q.Method == http.MethodPost
	in := &intent{id: p.id}
	guard, err := guardOf(q.Op.Query)
	if err == nil {
		err = in.checkID()
	}
	switch {
	case err != nil:
	case p.endpoint == "_doc" && q.Method == http.MethodDelete:
		in.do, in.guard = remove, guard
	case guard != 0:
		err = badGuard()
	case p.endpoint == "_create" && write, p.endpoint == "_doc" && write && q.Op.Kind == api.Create:
		err = in.create(q.Body)
	case p.endpoint == "_update" && q.Method == http.MethodPost:
		err = in.update(q.Body)
	default:
		return nil, unsupported("a lock is created with _create, updated with one of the book's scripts, and deleted; this is " +
			q.Method + " " + string(q.Op.Path))
	}
	return in, err
}

// all answers a request for several locks.
func (c *Compat) all(ctx context.Context, q *Request, r *reply, endpoint string) (*lockrouter.Answer, error) {
	switch get, post := q.Method == http.MethodGet, q.Method == http.MethodPost; {
	case endpoint == "_bulk" && (post || q.Method == http.MethodPut):
		return c.bulk(ctx, q, r)
	case endpoint == "_search" && (get || post):
		return c.search(ctx, q, r)
	case endpoint == "_mget" && (get || post):
		return c.mget(ctx, q, r)
	case endpoint == "_refresh" && (get || post):
		return c.refresh(ctx, q)
	case endpoint == "_query" && q.Method == http.MethodDelete, endpoint == "_delete_by_query" && post:
		return c.deleteByQuery(ctx, q)
	}
	return unsupported("it isn't one of the Definitive Guide's requests: " + q.Method + " " + string(q.Op.Path)).answer(), nil
}

// refresh answers a _refresh. Searches for locks always see their present state, so nothing is refreshed for them. The engine may have
// documents of other types in an index of that name. If it has such an index, the answer is the engine's.
func (c *Compat) refresh(ctx context.Context, q *Request) (*lockrouter.Answer, error) {
	if c.o.Refresh != nil {
		status, body, err := c.o.Refresh(ctx, q)
		if err != nil {
			return nil, err
		}
		if status != http.StatusNotFound {
			return answer(status, body), nil
		}
	}
	return encode(http.StatusOK, object{"_shards": shards(1)}), nil
}
