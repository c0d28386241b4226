package lockrouter

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"optimist/internal/obs"
	"optimist/lockrouter/state"
)

// Keeper gives out leases on single locks by another service than a Store, such as ZooKeeper. It can do less: see Ability. The methods are
// safe for concurrent use.
//
// There are three kinds of errors. A *Failure is the client's answer. An error that is, or wraps, ErrStore says that the operation may have
// been carried out or not. Any other error is the cause of the context's end. If an acquisition ends with an error, the Keeper gives its
// lease back as soon as it can.
type Keeper interface {
	// Acquire gives out a lease. If the owner has the lease already, it renews that, and makes it no shorter. It waits for the lock if
	// Claim.Wait says so.
	Acquire(ctx context.Context, c *Claim) (*Lease, error)
	// Renew renews the lease of Claim.Token. If it can't, it returns what Refuse returns.
	Renew(ctx context.Context, c *Claim) (*Lease, error)
	// Release ends the lease of Claim.Token. The last release of a lock may be repeated.
	Release(ctx context.Context, c *Claim) error
	// Look returns the lease on a lock, with its token and the number of waiters; nil: nobody has the lock.
	Look(ctx context.Context, lock Lock) (*Lease, error)
}

// leaser gives out leases as a Keeper does.
type leaser interface {
	Acquire(ctx context.Context, c *Claim) (*Lease, error)
	Renew(ctx context.Context, c *Claim) (*Lease, error)
	Release(ctx context.Context, c *Claim) error
}

// Ability is what a Keeper can do. The Router refuses whatever it can't.
type Ability struct {
	// Store is the Keeper's name in answers.
	Store string
	// BestEffort says that two owners may have a lock at the same time, if the store loses data (as memcached may).
	BestEffort bool
}

// Lock names a lock. ID is for stores: unique, printable, 512 bytes at most. Name is for people: the lock's path.
type Lock struct {
	ID, Name string

	t *target
}

// Claim is one request for a lock.
type Claim struct {
	Lock  Lock
	Owner string
	Note  string
	Class state.Class
	Token int64         // for Renew and Release; 0: the request named none
	TTL   time.Duration // 0: the default; in Renew: as before
	Wait  time.Duration // how long Acquire waits; 0: it tries once
	// Delay and Tries are for Keepers that wait by trying again. Delay is the time between two tries; 0: the Keeper's default. Tries is how
	// many tries follow the first one at most; negative: any number.
	Delay time.Duration
	Tries int

	mode   state.Mode
	client string
	undo   bool // if the lease ends without a release, what was written under it is undone
}

// giveBack releases a lease of which no client will learn.
func (r *Router) giveBack(ctx context.Context, k leaser, c *Claim) {
	back, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.o.Patience)
	defer cancel()
	if err := k.Release(back, c); err != nil {
		r.o.Log.Warn("a lease couldn't be released: it lasts until it ends, and no client has it", obs.KeyLock, c.Lock.Name,
			obs.KeyError, err)
	}
}

func (l *Lease) remaining() time.Duration { return time.Duration(l.ExpiresIn) * time.Millisecond }

// ttl is how long a new lease is.
func (c *Claim) ttl(r *Router) time.Duration { return cmp.Or(c.TTL, r.o.TTL) }

// unable refuses what only lock documents can do.
func (r *Router) unable(feature string) error {
	return &Failure{Status: http.StatusBadRequest, Type: TypeUnable,
		Reason: fmt.Sprintf("the store of the locks, %s, has no %s; the engine has (locks.store: engine)", r.o.Ability.Store, feature),
		Detail: map[string]any{"store": r.o.Ability.Store}}
}

// lacks refuses requests that the Keeper can't serve.
func (r *Router) lacks(wanted endpoint, t *target) error {
	switch {
	case r.o.Keeper == nil:
		return nil
	case wanted == manyDocs:
		return r.unable("locks of several documents at once")
	case wanted == listing:
		return r.unable("list of locks")
	case wanted == releasing:
		return r.unable("release of all that an owner has")
	case t != nil && t.kind == state.Tree:
		return r.unable("locks of trees")
	}
	return nil
}

// say adds to an answer which store the lock is in, and whether it is kept by best effort only.
func (r *Router) say(to map[string]any) map[string]any {
	if r.o.Keeper != nil {
		to["store"] = r.o.Ability.Store
		if r.o.Ability.BestEffort {
			to["best_effort"] = true
		}
	}
	return to
}

// HeldFailure is the failure of a request for a lock that isn't free. l is the lease of its holder, and is shown without its token; nil:
// the lock is free, but others wait for it. waited says that the request has waited. place is its place in the queue; 0: not known.
func HeldFailure(lock Lock, l *Lease, waited bool, place int64) *Failure {
	f := &Failure{Status: http.StatusConflict, Type: TypeHeld, Reason: "others come first for " + lock.Name, Retry: time.Second,
		Detail: map[string]any{"lock": lock.Name}}
	if place > 0 {
		f.Detail["queue"] = map[string]any{"place": place}
	}
	if l != nil {
		holder := *l
		holder.Token, holder.Lock = 0, cmp.Or(l.Lock, lock.Name) // in a tree the holder may have a lock of another path
		f.Detail["holder"] = holder
		f.Reason = fmt.Sprintf("%s is held by %s until %s", holder.Lock, l.Owner, l.ExpiresAt)
		f.Retry = time.Duration(l.ExpiresIn) * time.Millisecond
	}
	if waited {
		f.Type, f.Reason = TypeTimeout, "the wait ended before the lock was free: "+f.Reason
	}
	return f
}

// Refuse returns the failure of a renewal or release with another verdict than Renewed and Released. Nothing has changed.
func Refuse(lock Lock, v state.Verdict) error {
	switch v {
	case state.Expired:
		return &Failure{Status: http.StatusGone, Type: TypeExpired,
			Reason: "the lease of that token on " + lock.Name + " has ended, or there never was one"}
	case state.NotOwner:
		return &Failure{Status: http.StatusForbidden, Type: TypeNotOwner, Reason: lock.Name + " is held by another owner"}
	case state.NoToken:
		return badRequest("token is missing: say the one that was given with the lock, in the body or as ?token=")
	}
	return missing("there is no lease of that token on " + lock.Name)
}

// NewLease returns a lease that began at since, and lasts for remaining from now on.
func NewLease(owner, note string, token int64, since time.Time, remaining time.Duration) *Lease {
	ms := max(remaining.Milliseconds(), 0)
	return &Lease{Owner: owner, Note: note, Token: token, AcquiredAt: instant(since.UnixMilli()),
		ExpiresAt: instant(time.Now().UnixMilli() + ms), ExpiresIn: ms}
}

// claim turns a request into a Claim for a Keeper.
func (r *Router) claim(t *target, a *parameters, client string) *Claim {
	return &Claim{Lock: t.asLock(), Owner: a.Owner, Note: a.Note, Class: a.class, Token: a.token, TTL: a.ttl, Wait: r.patience(a),
		Delay: a.delay, Tries: a.tries, mode: a.mode, client: client, undo: a.Undo}
}

func (t *target) asLock() Lock { return Lock{ID: t.id, Name: t.lock, t: t} }
