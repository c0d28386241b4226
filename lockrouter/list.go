package lockrouter

import (
	"context"
	"net/http"
	"strconv"
	"strings"

	"optimist/internal/obs"
	"optimist/internal/unit"
	"optimist/lockrouter/state"
)

// How many lock documents a page of a list has: by default, and at most.
const (
	pageSize = 100
	maxPage  = 1000
)

// list lists the locks that are held: GET /_lock?owner=&prefix=&older_than=&size=&after=.
func (r *Router) list(ctx context.Context, q *Request) (*Answer, error) {
	now := r.Now()
	query, prefix, err := listQuery(q.Query, now)
	if err != nil {
		return nil, err
	}
	// The locks of a tree are in one document, which has the name of the root.
	query.Prefix = prefix
	if i := strings.Index(prefix, r.o.Path+"/tree/"); i >= 0 {
		query.Prefix = prefix[:i+len(r.o.Path+"/tree")]
	}
	page, err := r.o.Store.Find(ctx, query)
	if err != nil {
		return nil, err
	}
	locks := []Lease{}
	for _, d := range page.Docs {
		for i := range d.Holds {
			h := &d.Holds[i]
			l := leaseOf(d, h, now, q.Admin)
			if h.Until >= now && query.owns(h) && (query.Before == 0 || h.Since < query.Before) &&
				strings.HasPrefix(l.Lock, prefix) {
				waiting := d.Waiting(h.Path)
				l.Waiting = &waiting
				locks = append(locks, l)
			}
		}
	}
	body := map[string]any{"locks": locks}
	if page.Next != "" {
		body["next"] = page.Next
	}
	return reply(http.StatusOK, body), nil
}

// byOwner asks for the locks of an owner. With a star at the end, it asks for those of all owners whose names begin so.
func (q *Query) byOwner(owner string) {
	q.Owner, q.Owners = owner, ""
	if begin, ok := strings.CutSuffix(owner, "*"); ok {
		q.Owner, q.Owners = "", begin
	}
}

// owns reports whether a lease belongs to an owner that the query asks for.
func (q *Query) owns(h *state.Hold) bool {
	return (q.Owner == "" || h.Owner == q.Owner) && strings.HasPrefix(h.Owner, q.Owners)
}

// evict ends the leases on a lock in place of their holders. If the request names a token, it ends only that lease. Only the operator may
// do this.
func (r *Router) evict(ctx context.Context, t *target, a *parameters) (*Answer, error) {
	leases, err := r.leases(ctx, t)
	if err != nil {
		return nil, err
	}
	ended := []Lease{}
	for _, l := range leases {
		if l.near || a.token > 0 && l.Token != a.token {
			continue
		}
		switch err := r.own.Release(ctx, &Claim{Lock: t.asLock(), Owner: l.Owner, Token: l.Token}); {
		case isOver(err):
			continue // it has ended by itself
		case err != nil:
			return nil, err
		}
		r.o.Log.Warn("the operator has released a lease", obs.KeyLock, t.lock, obs.KeyOwner, l.Owner, obs.KeyToken, l.Token, obs.KeyNote, l.Note)
		l.Waiting = nil
		ended = append(ended, l)
	}
	switch {
	case len(ended) == 0 && a.token == 0:
		return nil, missing("nobody holds " + t.lock)
	case len(ended) == 0:
		return nil, missing("there is no such lease on " + t.lock)
	}
	return reply(http.StatusOK, r.say(map[string]any{"released": len(ended), "leases": ended})), nil
}

// listQuery reads which locks are to be listed. now is in milliseconds of the documents' clock. An empty size or older_than counts as
// missing.
func listQuery(raw []byte, now int64) (query *Query, prefix string, err error) {
	pairs, err := params(raw)
	if err != nil {
		return nil, "", err
	}
	query = &Query{Size: pageSize}
	for _, p := range pairs {
		switch {
		case p.Name == "prefix":
			prefix = p.Value
		case p.Value == "" && (p.Name == "older_than" || p.Name == "size"):
		default:
			if err := query.param(p.Name, p.Value, now); err != nil {
				return nil, "", err
			}
		}
	}
	return query, prefix, nil
}

// param reads a parameter of a list.
func (q *Query) param(name, value string, now int64) error {
	switch name {
	case "owner":
		if err := text("owner", value); err != nil {
			return err
		}
		q.byOwner(value)
	case "older_than":
		d, err := unit.ParseDuration(value)
		if err != nil {
			return badRequest("older_than: " + err.Error())
		}
		q.Before = now - d.Std().Milliseconds()
	case "size":
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxPage {
			return badRequest("size is a number from 1 to " + strconv.Itoa(maxPage))
		}
		q.Size = n
	case "after":
		q.After = value
	default:
		return unknownParameter(name)
	}
	return nil
}
