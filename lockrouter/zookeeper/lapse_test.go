package zookeeper

import (
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
)

// TestARenewalDuringALookAtTheLeaseIsWatched: the lease had moved to another proxy's session. While this proxy looks whether it has to end
// it, a renewal brings it back. If nobody watches over the end of that, the lock of a holder that dies lasts as long as this proxy.
func TestARenewalDuringALookAtTheLeaseIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path, ttl = "/optimist/a/A-1", time.Minute
		looks := make(chan time.Time, 10)
		k := &Keeper{leases: map[string]*ownLease{}}
		old := time.Now().Add(time.Second)
		h := &ownLease{ends: map[int64]time.Time{old.UnixMilli(): old}}
		h.timer = time.AfterFunc(time.Second, func() { looks <- time.Now() })
		k.leases[path] = h
		<-looks // the look begins
		until := k.keep(path, lockrouter.Lock{}, &holder{TTL: ttl.Milliseconds()})
		renewed := time.Now()
		<-looks // of keep: the old end is still known
		k.settle(path, h, 0, nil)
		k.kept(path, lockrouter.Lock{}, until)
		if at := <-looks; at.Before(renewed.Add(ttl)) {
			t.Errorf("the next look is %s after the renewal; want %s", at.Sub(renewed), ttl)
		}
		if k.settle(path, h, 0, nil); len(k.leases) > 0 {
			t.Error("a lease that has ended is still watched")
		}
	})
}

// watching is a Keeper with the watch over one lease, whose end tells looks.
func watching(path string, ends ...time.Time) (k *Keeper, h *ownLease, looks chan time.Time) {
	k, looks = &Keeper{leases: map[string]*ownLease{}}, make(chan time.Time, 10)
	h = &ownLease{ends: map[int64]time.Time{}}
	h.timer = time.AfterFunc(time.Hour, func() { looks <- time.Now() })
	for _, at := range ends {
		h.ends[at.UnixMilli()] = at
	}
	k.leases[path] = h
	return k, h, looks
}

// TestTheLaterOfTwoRenewalsIsWatched: both are under way at once. The first one's answer makes the proxy forget all other ends.
func TestTheLaterOfTwoRenewalsIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/optimist/a/A-1"
		k, h, _ := watching(path, time.Now().Add(time.Second))
		defer h.timer.Stop()
		first := k.keep(path, lockrouter.Lock{}, &holder{TTL: 30_000})
		time.Sleep(time.Second / 2)
		second := k.keep(path, lockrouter.Lock{}, &holder{TTL: 30_000})
		k.kept(path, lockrouter.Lock{}, first)
		k.kept(path, lockrouter.Lock{}, second)
		if len(h.ends) != 1 || h.ends[second].IsZero() {
			t.Errorf("the ends are %v; want %d", h.ends, second)
		}
	})
}

// TestALeaseWhoseRenewalHasNoAnswerEnds: its end was forgotten when another renewal was answered. It ends a ttl after the look that finds it.
func TestALeaseWhoseRenewalHasNoAnswerEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, h, _ := watching("/optimist/a/A-1", time.Now().Add(time.Second))
		defer h.timer.Stop()
		now := &holder{TTL: 30_000, Until: time.Now().Add(20 * time.Second).UnixMilli()}
		if left := k.left(h, now); left != 30*time.Second {
			t.Error(left)
		}
		time.Sleep(30 * time.Second)
		if left := k.left(h, now); left > 0 {
			t.Errorf("%s later, %s is left", 30*time.Second, left)
		}
	})
}

// TestARenewalWithALateAnswerIsWatched: the lease was another proxy's when its end came here, so that the watch ended.
func TestARenewalWithALateAnswerIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/optimist/a/A-1"
		k, h, _ := watching(path)
		k.settle(path, h, 0, nil)
		if len(k.leases) > 0 {
			t.Fatal("it is still watched")
		}
		until := time.Now().Add(time.Second)
		k.kept(path, lockrouter.Lock{}, until.UnixMilli())
		if h = k.leases[path]; h == nil || !h.first().Equal(until) {
			t.Errorf("%+v", h)
		}
		k.forget(path)
	})
}

// TestAShorterRenewalDuringALookIsWatched: the look has found the longer lease, which it would wait for.
func TestAShorterRenewalDuringALookIsWatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const path = "/optimist/a/A-1"
		began := time.Now()
		k, h, looks := watching(path)
		until := k.keep(path, lockrouter.Lock{}, &holder{TTL: 1000})
		k.kept(path, lockrouter.Lock{}, until)
		k.settle(path, h, 20*time.Minute, nil)
		if at := <-looks; at.Sub(began) != time.Second {
			t.Errorf("the next look is after %s", at.Sub(began))
		}
	})
}
