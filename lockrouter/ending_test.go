package lockrouter_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/memory"
)

// TestAProxyThatEndsKeepsNoLockThatNobodyKnowsOf: it was granted while the proxy ended, and gave up who waited for it.
func TestAProxyThatEndsKeepsNoLockThatNobodyKnowsOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		ending := lockrouter.New(lockrouter.Options{Store: &busy{store, 50 * time.Millisecond}, Foreground: time.Minute})
		go func() { _, _ = request(t.Context(), ending, "DELETE", global, `{"owner":"x","token":1}`) }() // it makes the first call itself
		synctest.Wait()
		done := make(chan struct{})
		go func() {
			defer close(done)
			if got, err := request(t.Context(), ending, "PUT", global, `{"owner":"a","ttl":"1h"}`); err != nil || got.status != 503 {
				t.Errorf("%+v %v", got, err)
			}
		}()
		time.Sleep(60 * time.Millisecond)
		ending.Drain()
		ending.Close()
		<-done
		take(t, router(t, store, lockrouter.Options{}), "b")
	})
}

// TestAProxyEndsThoughItsStoreIsAway, after a second at the most.
func TestAProxyEndsThoughItsStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ending := lockrouter.New(lockrouter.Options{Store: &busy{memory.New(nil), time.Hour}})
		ctx, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		_, _ = request(ctx, ending, "PUT", global, `{"owner":"a","wait":"0"}`)
		began := time.Now()
		ending.Close()
		if took := time.Since(began); took > time.Second {
			t.Errorf("took %v", took)
		}
		time.Sleep(2 * time.Hour) // the engine carries it out all the same
	})
}

// TestPromisesAreTakenBackWhereOthersKeepAsking: a lock that is kept for long, and asked for without a pause by those who don't wait.
func TestPromisesAreTakenBackWhereOthersKeepAsking(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		s.took = 10 * time.Millisecond
		r := router(t, s, lockrouter.Options{Chain: 4})
		a, b, _ := start(t, r, "a"), start(t, r, "b"), start(t, r, "c")
		give(t, r, "a", (<-a).token)
		<-b
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 4 {
			wg.Go(func() {
				for ctx.Err() == nil {
					_, _ = request(ctx, r, "PUT", global, fmt.Sprintf(`{"owner":"t%d","wait":"0"}`, i))
				}
			})
		}
		time.Sleep(time.Second)
		if docs, _ := s.Read(t.Context(), []string{"global:a"}); len(docs[0].Chain) != 0 {
			t.Errorf("still promised: %+v", docs[0].Chain)
		}
		stop()
		wg.Wait()
	})
}

// TestAShortLeaseIsntPromised: it would have ended before its proxy knows that it has begun, where somebody else has released the lock.
func TestAShortLeaseIsntPromised(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		lapsed := 0
		o := lockrouter.Options{Chain: 4, Events: lockrouter.Events{Lapsed: func(n int, _ bool) { lapsed += n }}}
		here, there := router(t, s, o), router(t, s, o)
		short := func(owner, ttl string) <-chan reply {
			got := make(chan reply, 1)
			go func() {
				a, _ := request(t.Context(), here, "PUT", global, `{"owner":"`+owner+`","wait":"1m","ttl":"`+ttl+`"}`)
				got <- a
			}()
			synctest.Wait()
			return got
		}
		a, b, c := short("a", "30s"), short("b", "30s"), short("c", "300ms")
		give(t, here, "a", (<-a).token)
		second := <-b
		time.Sleep(280 * time.Millisecond)
		give(t, there, "b", second.token)
		give(t, here, "c", (<-c).token)
		if lapsed > 0 {
			t.Errorf("%d have lapsed, and nobody had them", lapsed)
		}
	})
}
