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
		k.kept(path, until)
		if at := <-looks; at.Before(renewed.Add(ttl)) {
			t.Errorf("the next look is %s after the renewal; want %s", at.Sub(renewed), ttl)
		}
		if k.settle(path, h, 0, nil); len(k.leases) > 0 {
			t.Error("a lease that has ended is still watched")
		}
	})
}
