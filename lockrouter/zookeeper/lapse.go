package zookeeper

import (
	"context"
	"maps"
	"time"

	"optimist/lockrouter"
)

// ownLease is a lease that this proxy ends, if nobody renews it. A renewal without an answer may have been made or not: then there are two
// ends.
type ownLease struct {
	lock  lockrouter.Lock
	ends  map[int64]time.Time // by holder.Until
	timer *time.Timer
}

// first is the earliest of the ends.
func (h *ownLease) first() time.Time {
	var first time.Time
	for _, at := range h.ends {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	return first
}

// keep has a lease end after its time from now on, and gives that time in ms by the clock. kept says that it was written.
func (k *Keeper) keep(path string, lock lockrouter.Lock, l *holder) (until int64) {
	now := time.Now()
	ttl := time.Duration(l.TTL) * time.Millisecond
	until = now.Add(ttl).UnixMilli()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return until
	}
	h := k.watched(path, lock)
	h.ends[until] = now.Add(ttl)
	h.timer.Reset(time.Until(h.first()))
	return until
}

// watched is the watch over a lease. It begins if there is none. k.mu is held.
func (k *Keeper) watched(path string, lock lockrouter.Lock) *ownLease {
	h := k.leases[path]
	if h == nil {
		h = &ownLease{lock: lock, ends: map[int64]time.Time{}}
		h.timer = time.AfterFunc(time.Hour, func() { k.lapse(path, h) }) // the caller sets the time
		k.leases[path] = h
	}
	return h
}

// kept forgets all ends of a lease but one. If the answer came after that end, nobody may watch over the lease any more: then the watch
// begins anew, and ends the lease.
func (k *Keeper) kept(path string, lock lockrouter.Lock, until int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return
	}
	h := k.watched(path, lock)
	at, known := h.ends[until]
	if !known {
		at = time.UnixMilli(until)
	}
	h.ends = map[int64]time.Time{until: at}
	h.timer.Reset(time.Until(at))
}

// forget ends the watch over a lease that has ended.
func (k *Keeper) forget(path string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h := k.leases[path]; h != nil {
		h.timer.Stop()
		delete(k.leases, path)
	}
}

// lapse ends a lease that nobody has renewed. If there is no connection, it tries until there is one, or another session.
func (k *Keeper) lapse(path string, h *ownLease) {
	k.mu.Lock()
	if k.closed || k.leases[path] != h {
		k.mu.Unlock()
		return
	}
	k.wg.Add(1)
	k.mu.Unlock()
	defer k.wg.Done()
	again := time.Duration(0)
	err := k.attempt(k.over, func(ctx context.Context) (err error) {
		again, err = k.end(ctx, path, h)
		return err
	})
	k.settle(path, h, again, err)
}

// settle has the watch over a lease go on after a look at it, or ends it. A renewal that came during the look has its own end: without a
// watch over that, the lock would last as long as this proxy.
func (k *Keeper) settle(path string, h *ownLease, again time.Duration, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.leases[path] != h || k.closed {
		return
	}
	over := func(_ int64, at time.Time) bool { return !at.After(time.Now()) }
	switch {
	case err != nil:
		again = k.o.RetryDelay
	case again == 0:
		if maps.DeleteFunc(h.ends, over); len(h.ends) == 0 {
			delete(k.leases, path)
			return
		}
	}
	for until, at := range h.ends {
		if left := time.Until(at); !over(until, at) && (again == 0 || left < again) {
			again = left
		}
	}
	h.timer.Reset(again)
}

// end frees a lock, if its lease is over. again is when it will be, if it isn't; 0 if it isn't this proxy's to end any more.
func (k *Keeper) end(ctx context.Context, path string, h *ownLease) (again time.Duration, err error) {
	v, err := k.look(ctx, h.lock)
	if err != nil {
		return 0, err
	}
	_, at, err := k.session.read(ctx, path)
	now := v.holder()
	if err != nil || at == nil || now == nil || v.parent+"/"+now.Node != path || at.EphemeralOwner != k.session.id() {
		return 0, err
	}
	if left := k.left(h, now); left > 0 {
		return left, nil
	}
	if err = k.free(ctx, v, false); err == nil {
		k.o.Lapsed.Call(1, false)
	}
	return 0, err
}

// left is how long a lease goes on. Of two renewals at once, one may have forgotten the other's end (kept): then the lease begins anew
// here, because a lease whose end is nobody's would last as long as this proxy.
func (k *Keeper) left(h *ownLease, now *holder) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	if h.ends[now.Until].IsZero() {
		h.ends[now.Until] = time.Now().Add(time.Duration(now.TTL) * time.Millisecond)
	}
	return time.Until(h.ends[now.Until])
}
