package lockrouter

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"optimist/internal/obs"
	"optimist/lockrouter/state"
)

// foundLease is the claim to a lease that a list has shown.
type foundLease struct {
	*Claim
	until int64 // when it ends, by the document's clock
}

// releaseAll releases leases of an owner: POST /_lock/_release. An owner has to name their tokens; the operator may release all.
func (r *Router) releaseAll(ctx context.Context, q *Request) (*Answer, error) {
	var want struct {
		Owner  string  `json:"owner"`
		Tokens []int64 `json:"tokens"` // a token that belongs to two locks is there twice
	}
	if err := strict(q.Body, &want); err != nil {
		return nil, err
	}
	switch {
	case want.Owner == "":
		return nil, badRequest("owner is missing")
	case (len(want.Tokens) == 0 || strings.HasSuffix(want.Owner, "*")) && !q.Admin:
		return nil, badRequest("tokens are missing: without them an owner's locks are released on the admin listener only")
	}
	if err := text("owner", want.Owner); err != nil {
		return nil, err
	}
	query := &Query{Owner: want.Owner, Size: maxPage}
	if q.Admin {
		query.byOwner(want.Owner)
	}
	tokens := make(map[int64]int, len(want.Tokens))
	for _, t := range want.Tokens {
		tokens[t]++
	}
	released, err := r.releaseFound(ctx, query, tokens, q.Admin)
	if err != nil {
		return nil, err
	}
	if q.Admin {
		r.o.Log.Warn("the operator has released an owner's leases", obs.KeyOwner, want.Owner, obs.KeyCount, len(released))
	}
	return reply(http.StatusOK, map[string]any{"released": len(released), "locks": released}), nil
}

// releaseFound releases the leases that a query finds, page by page. If the request names tokens, it first reads all pages, because two
// locks may have the same token. Clients commit what was written under the leases, and release no reserved locks; the operator does.
func (r *Router) releaseFound(ctx context.Context, query *Query, tokens map[int64]int, admin bool) (released []string, err error) {
	released = []string{}
	reserved := "/" + escapeSegment(r.o.Reserved) + r.o.Path + "/doc/"
	var named []foundLease
	for more := true; more; more = query.After != "" {
		page, err := r.o.Store.Find(ctx, query)
		if err != nil {
			return nil, err
		}
		query.After = page.Next
		var list []foundLease
		for _, d := range page.Docs {
			if !admin && r.o.Reserved != "" && strings.HasPrefix(d.Lock, reserved) {
				continue
			}
			if list, err = ownedLeases(list, d, query, tokens); err != nil {
				return nil, err
			}
		}
		if len(tokens) > 0 {
			named = append(named, list...)
		} else if released, err = r.releaseThese(ctx, list, released, false); err != nil {
			return nil, err
		}
	}
	if err := r.ambiguous(named, tokens); err != nil {
		return nil, err
	}
	return r.releaseThese(ctx, named, released, !admin && r.o.Undo != nil)
}

// ownedLeases adds an owner's leases in one document to a list. If the request names tokens, it adds only theirs.
func ownedLeases(list []foundLease, d *state.Doc, q *Query, tokens map[int64]int) ([]foundLease, error) {
	for i := range d.Holds {
		h := &d.Holds[i]
		if !q.owns(h) || len(tokens) > 0 && tokens[h.Token] == 0 {
			continue
		}
		t, err := targetOf(d, h.Path)
		if err != nil {
			return nil, err
		}
		list = append(list, foundLease{&Claim{Lock: t.asLock(), Owner: h.Owner, Token: h.Token}, h.Until})
	}
	return list, nil
}

// ambiguous refuses a token that belongs to more of the owner's leases than the request names it. Tokens are unique for one lock only, so
// the owner may still count on one of these leases.
func (r *Router) ambiguous(list []foundLease, tokens map[int64]int) error {
	now := r.Now()
	locks := map[int64][]string{}
	for _, l := range list {
		if l.until >= now {
			locks[l.Token] = append(locks[l.Token], l.Lock.Name)
		}
	}
	for t, paths := range locks {
		if len(paths) > tokens[t] {
			return &Failure{Status: http.StatusConflict, Type: TypeAmbiguous,
				Reason: "several of the owner's locks have the same token: release them by their paths, or name the token once for each of " +
					strings.Join(paths, ", ")}
		}
	}
	return nil
}

// releaseThese releases the leases of a list. With commits, what was written under them stays; else it is undone. The list may be out of
// date, so each release looks at the lock's document.
func (r *Router) releaseThese(ctx context.Context, list []foundLease, released []string, commits bool) ([]string, error) {
	if commits {
		if err := r.commitFound(ctx, list); err != nil {
			return nil, err
		}
	}
	k := r.own
	if commits {
		k = r.keeper
	}
	for _, l := range list {
		switch err := k.Release(ctx, l.Claim); {
		case err == nil:
			released = append(released, l.Lock.Name)
		case !errors.As(err, new(*Failure)): // else it has ended by itself, or its writes are being undone
			return nil, err
		}
	}
	return released, nil
}
