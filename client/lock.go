package client

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"optimist/internal/timer"
)

// Lock is what is locked. Make it with Global, Document or Tree.
type Lock struct{ path string }

// Global is the lock of that name.
func Global(name string) Lock { return Lock{"/_lock/global/" + url.PathEscape(name)} }

// Document is the lock of one document.
func Document(index, id string) Lock {
	return Lock{"/" + url.PathEscape(index) + "/_lock/doc/" + url.PathEscape(id)}
}

// Tree is the lock of a path, "clinton/projects" for example, and of everything below it.
func Tree(index, path string) Lock {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return Lock{"/" + url.PathEscape(index) + "/_lock/tree/" + strings.Join(parts, "/")}
}

// LockOptions say how a lock is held. The zero value is good for most work.
type LockOptions struct {
	// Owner is the name of the holder. Another request with the same owner has the lock, too. Default: a new name for each call.
	Owner string
	// TTL is how long the lease is, in case that this process dies. It is renewed at a third of it. Default 30 s.
	TTL time.Duration
	// Wait is how long to wait for the lock while somebody else has it. Zero: as long as optimist is configured to have requests wait.
	// Negative: try once.
	Wait time.Duration
	// Background lets other requests for the lock go first.
	Background bool
	// Shared is for readers of a Tree: they don't exclude each other.
	Shared bool
	// Note is told to those that wait.
	Note string
	// Retries is how often the lock is asked for again while somebody else has it, Delay apart (default 100 ms). Then Wait doesn't count: no
	// request waits in the queue. It is for what has to be done between two tries, and for stores without a queue.
	Retries int
	Delay   time.Duration
	// Between is called before each of these tries, with its number from 1 on. Its error is DoInLock's. It may be nil.
	Between func(ctx context.Context, try int) error
}

const defaultDelay = 100 * time.Millisecond

const defaultTTL = 30 * time.Second

// ErrLeaseLost is in the chain of the error of work that lost its lock before it was done: this process was paused for too long, or
// couldn't reach optimist. It is also the cause of the end of the work's context.
var ErrLeaseLost = errors.New("the lease of the lock was lost while the work was under way")

// DoInLock takes the lock, calls fn, and releases the lock. It renews the lease meanwhile.
//
// The context of fn ends before the lease can: whoever works until then works alone. It carries the lease's token: see Token. An error of
// fn is DoInLock's. If the lock is still held by somebody else when the wait is over, the error is an *Error of type lock_held or
// lock_wait_timeout, and fn wasn't called. If the lease was lost before fn returned, ErrLeaseLost is in the chain.
func (c *Client) DoInLock(ctx context.Context, l Lock, o LockOptions, fn func(ctx context.Context) error) error {
	unique := o.Owner == ""
	if unique {
		o.Owner = name()
	}
	if o.TTL <= 0 {
		o.TTL = defaultTTL
	}
	h := &holding{c: c, lock: l, owner: o.Owner, ttl: o.TTL}
	if err := h.acquire(ctx, &o); err != nil {
		if unique && maySent(err) {
			h.disown(ctx)
		}
		return err
	}
	work, stop := context.WithCancelCause(context.WithValue(ctx, tokenKey{}, h.token))
	h.lost = func() { stop(ErrLeaseLost) }
	end := time.AfterFunc(time.Until(h.until), h.lost)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		h.renew(work, end)
	}()
	defer func() { // also when fn panics
		end.Stop()
		stop(nil)
		<-renewed
		h.release(ctx)
	}()
	err := fn(work)
	if errors.Is(context.Cause(work), ErrLeaseLost) && !errors.Is(err, ErrLeaseLost) {
		err = errors.Join(ErrLeaseLost, err)
	}
	return err
}

type tokenKey struct{}

// Token is the fencing token of the lock under which ctx's work is done. Pass it to the system that the work changes, and let that refuse
// each token below the highest that it has seen. ok is false outside of DoInLock.
func Token(ctx context.Context) (token int64, ok bool) {
	token, ok = ctx.Value(tokenKey{}).(int64)
	return token, ok
}

// holding is a lock that is held.
type holding struct {
	c     *Client
	lock  Lock
	owner string
	ttl   time.Duration
	token int64
	until time.Time // from then on the work can't count on it; by the clock that never goes back
	lost  func()
}

func (h *holding) acquire(ctx context.Context, o *LockOptions) error {
	q := url.Values{"owner": {h.owner}, "ttl": {milliseconds(h.ttl)}}
	switch {
	case o.Wait < 0, o.Retries > 0:
		q.Set("wait", "0")
	case o.Wait > 0:
		q.Set("wait", milliseconds(o.Wait))
	}
	if o.Note != "" {
		q.Set("note", o.Note)
	}
	if o.Background {
		q.Set("priority", "background")
	}
	if o.Shared {
		q.Set("mode", "shared")
	}
	err := h.ask(ctx, q)
	for try := 1; try <= o.Retries && isHeld(err); try++ {
		if err := between(ctx, o, try); err != nil {
			return err
		}
		err = h.ask(ctx, q)
	}
	return err
}

// isHeld reports whether somebody else has the lock.
func isHeld(err error) bool {
	var refused *Error
	return errors.As(err, &refused) && refused.Type == "lock_held"
}

// between waits for the next try, and calls what has to be done before it.
func between(ctx context.Context, o *LockOptions, try int) error {
	delay := o.Delay
	if delay <= 0 {
		delay = defaultDelay
	}
	if err := timer.Sleep(ctx, delay); err != nil {
		return err
	}
	if o.Between == nil {
		return nil
	}
	return o.Between(ctx, try)
}

// milliseconds is a duration as optimist reads it.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10) + "ms"
}

// ask acquires or renews. The lease counts from before the request, plus what it had to wait for.
func (h *holding) ask(ctx context.Context, q url.Values) error {
	sent := time.Now()
	a, err := h.c.ask(ctx, http.MethodPut, h.lock.path+"?"+q.Encode(), nil, nil)
	if err != nil {
		return err
	}
	if a.status != http.StatusOK && a.status != http.StatusCreated {
		return a.failure()
	}
	var lease struct {
		Token     int64
		ExpiresIn int64 `json:"expires_in_ms"`
		Waited    int64 `json:"waited_ms"`
	}
	if err := json.Unmarshal(a.body, &lease); err != nil || lease.Token == 0 {
		return a.failure() // that isn't optimist
	}
	// A store of locks may give less than was asked for.
	h.ttl = min(h.ttl, max(time.Duration(lease.ExpiresIn)*time.Millisecond, time.Millisecond))
	h.token, h.until = lease.Token, sent.Add(time.Duration(lease.Waited+lease.ExpiresIn)*time.Millisecond)
	return nil
}

// mine are the parameters of requests about the lease.
func (h *holding) mine() url.Values {
	return url.Values{"owner": {h.owner}, "token": {strconv.FormatInt(h.token, 10)}}
}

// renew extends the lease at a third of it, until ctx ends. A renewal that fails, or has no answer after as long, is tried again as long as
// the lease lasts.
func (h *holding) renew(ctx context.Context, end *time.Timer) {
	every := time.NewTicker(h.ttl / 3)
	defer every.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
		}
		q := h.mine()
		q.Set("renew", "")
		q.Set("ttl", milliseconds(h.ttl))
		err := h.retry(ctx, q)
		var refused *Error
		switch {
		case err == nil:
			if !end.Reset(time.Until(h.until)) {
				return // it has ended meanwhile
			}
		case errors.As(err, &refused) && (refused.Status == http.StatusForbidden || refused.Status == http.StatusNotFound ||
			refused.Status == http.StatusGone):
			h.lost()
			return
		}
	}
}

// retry is ask for one of several tries. It ends in time for the next: whoever got this one may never answer, while others do.
func (h *holding) retry(ctx context.Context, q url.Values) error {
	ctx, cancel := context.WithTimeout(ctx, h.ttl/3)
	defer cancel()
	return h.ask(ctx, q)
}

// releaseTimeout is how long a release may take. If it fails the lease ends by itself.
const releaseTimeout = 5 * time.Second

// disown releases a lock that may have been acquired by a request whose answer nobody heard: it may have been granted just when the caller
// gave up. Whoever asks as the same owner again is told the token.
func (h *holding) disown(ctx context.Context) {
	ask, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	if h.acquire(ask, &LockOptions{Wait: -1}) == nil {
		h.release(ctx)
	}
}

// release gives the lock back, also when the caller's context has ended.
func (h *holding) release(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	_, _ = h.c.ask(ctx, http.MethodDelete, h.lock.path+"?"+h.mine().Encode(), nil, nil)
}
