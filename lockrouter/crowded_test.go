package lockrouter_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// TestWhoHasGivenALockOnDoesntReenterIt: the lock was handed on while the store was away, the document doesn't know it yet, and more waits
// to be sent than goes into one call. A request of the old holder's must not be carried out before its release is.
func TestWhoHasGivenALockOnDoesntReenterIt(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{Chain: 4, Foreground: time.Minute, Patience: 20 * time.Second})
		a, b, c := start(t, r, "a"), start(t, r, "b"), start(t, r, "c")
		give(t, r, "a", (<-a).token) // b has it, and c is promised it
		second := <-b
		time.Sleep(20 * time.Millisecond)
		s.failing(func(*state.Call) (before, after error) { return lockrouter.ErrStore, nil })
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() { _, _ = request(t.Context(), r, "PUT", global, fmt.Sprintf(`{"owner":"t%d","wait":"0"}`, i)) })
		}
		synctest.Wait()
		wg.Go(func() {
			_, _ = request(t.Context(), r, "DELETE", fmt.Sprintf("%s?owner=b&token=%d", global, second.token), "")
		})
		third := <-c // and doesn't give it back
		wg.Go(func() {
			if again, err := request(t.Context(), r, "PUT", global, `{"owner":"b","wait":"5s"}`); err != nil || again.status != 409 {
				t.Errorf("%+v %v, and c has token %d", again, err, third.token)
			}
		})
		synctest.Wait()
		s.failing(nil)
		wg.Wait()
	})
}

// TestMorePathsThanPlacesAreAllServed: the document's queue has room for some paths only, and those who come back to them again and again
// must not keep the others out.
func TestMorePathsThanPlacesAreAllServed(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		s.took = 10 * time.Millisecond
		r := router(t, s, lockrouter.Options{})
		const tree = "/fs/_lock/tree"
		ctx, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for i := range 60 {
			for j := range 3 {
				owner := fmt.Sprintf("o%d-%d", i, j)
				wg.Go(func() {
					for ctx.Err() == nil {
						got, err := request(ctx, r, "PUT", fmt.Sprintf("%s/%d", tree, i), `{"owner":"`+owner+`","wait":"10m"}`)
						if err != nil {
							return
						}
						time.Sleep(100 * time.Millisecond)
						_, _ = request(ctx, r, "DELETE", fmt.Sprintf("%s?owner=%s&token=%d", got.lock, owner, got.token), "")
					}
				})
			}
		}
		time.Sleep(time.Second)
		for _, priority := range []string{"foreground", "background"} {
			began := time.Now()
			late, err := request(ctx, r, "PUT", tree+"/late", `{"owner":"late-`+priority+`","ttl":"1s","wait":"10s","priority":"`+priority+`"}`)
			if took := time.Since(began); err != nil || late.status != 201 || took > 3*time.Second {
				t.Errorf("%s: %v %+v after %v", priority, err, late, took)
			}
		}
		stop()
		wg.Wait()
	})
}

// TestNothingIsLeftOfALockThatNobodyWantsAnyMore: lanes are made for every lock that is asked for, and must go.
func TestNothingIsLeftOfALockThatNobodyWantsAnyMore(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		for i := range 20 {
			lock := fmt.Sprint("/_lock/global/", i)
			held := ask(t, r, 201, "", "PUT", lock, `{"owner":"a"}`)
			var wg sync.WaitGroup
			for j := range 3 {
				wg.Go(func() {
					ctx, leave := context.WithTimeout(t.Context(), time.Duration(1+i*j)*100*time.Microsecond)
					defer leave()
					_, _ = request(ctx, r, "PUT", lock, fmt.Sprintf(`{"owner":"w%d","wait":"%dms"}`, j, 1+i))
				})
			}
			wg.Wait()
			ask(t, r, 200, "", "DELETE", fmt.Sprintf("%s?owner=a&token=%d", lock, held.token), "")
		}
		time.Sleep(5 * time.Second)
		if n := lockrouter.Lanes(r); n != 0 {
			t.Errorf("%d lanes", n)
		}
	})
}
