package lockrouter_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// lockMany asks for the locks of many documents, for 10 minutes, while the store is away.
func lockMany(t *testing.T, r *lockrouter.Router, owner, index string, ids []string) {
	t.Helper()
	body, err := json.Marshal(map[string]any{"owner": owner, "ids": ids, "ttl": "10m", "wait": "0"})
	if err != nil {
		t.Fatal(err)
	}
	ask(t, r, 503, "lock_store_unavailable", "POST", "/"+index+"/_lock/docs", string(body))
}

func manyIDs(n int, more string) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i, more)
	}
	return ids
}

// TestARefusedRequestForManyLocksLeavesNothing: the store says that nothing was done, and so nothing is to be taken back.
func TestARefusedRequestForManyLocksLeavesNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		s.failing(func(*state.Call) (before, after error) { return lockrouter.NotDone(lockrouter.ErrStore), nil })
		for i := range 20 {
			lockMany(t, r, "job", fmt.Sprint("shop", i), manyIDs(500, ""))
		}
		if n, size := lockrouter.Doubts(r); n > 0 || size > 0 || lockrouter.Lanes(r) > 0 {
			t.Errorf("%d doubts of %d bytes, %d lanes", n, size, lockrouter.Lanes(r))
		}
		pass(time.Hour)
		if n := s.count(); n > 20 {
			t.Errorf("%d calls", n)
		}
	})
}

// TestWhatManyCallsMayHaveGotIsTakenBackTogether: while the store is away, that is one call in each pause. When it is back, they are free.
func TestWhatManyCallsMayHaveGotIsTakenBackTogether(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		acquires := func(c *state.Call) bool { return c.Ops[0].Do == state.Acquire }
		s.failing(func(c *state.Call) (before, after error) {
			if acquires(c) {
				return nil, lockrouter.ErrStore // the answer is lost
			}
			return lockrouter.NotDone(lockrouter.ErrStore), nil
		})
		for i := range 20 {
			lockMany(t, r, "job", fmt.Sprint("shop", i), manyIDs(500, ""))
			_, _ = request(t.Context(), r, "PUT", fmt.Sprint("/_lock/global/", i), `{"owner":"job","ttl":"10m","wait":"1s"}`)
			_, _ = request(t.Context(), r, "PUT", fmt.Sprint("/_lock/global/try", i), `{"owner":"job","ttl":"10m","wait":"0"}`)
		}
		if n, _ := lockrouter.Doubts(r); n == 0 {
			t.Fatal("nothing is in doubt")
		}
		before := s.count()
		const outage = 5 * time.Minute
		pass(outage)
		if n := s.count() - before; n > int(outage/(time.Second/2)) || lockrouter.Lanes(r) > 0 {
			t.Errorf("%d calls in %s, and %d lanes", n, outage, lockrouter.Lanes(r))
		}
		s.failing(nil)
		pass(5 * time.Second)
		if n, size := lockrouter.Doubts(r); n > 0 || size > 0 {
			t.Errorf("%d doubts of %d bytes are left", n, size)
		}
		for i := range 20 {
			body, _ := json.Marshal(map[string]any{"owner": "next", "ids": manyIDs(500, ""), "wait": "0"}) // strings always can be
			ask(t, r, 201, "", "POST", fmt.Sprintf("/shop%d/_lock/docs", i), string(body))
			ask(t, r, 201, "", "PUT", fmt.Sprint("/_lock/global/", i), `{"owner":"next","wait":"0"}`)
			ask(t, r, 201, "", "PUT", fmt.Sprint("/_lock/global/try", i), `{"owner":"next","wait":"0"}`)
		}
	})
}

// TestDoubtsAboutOneLockAreTakenBackTogether, those of any number of requests.
func TestDoubtsAboutOneLockAreTakenBackTogether(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		s.failing(func(*state.Call) (before, after error) { return nil, lockrouter.ErrStore })
		for i := range 200 {
			lockMany(t, r, fmt.Sprint(i), "shop", []string{"1"})
		}
		s.failing(nil)
		pass(5 * time.Second)
		if n, _ := lockrouter.Doubts(r); n > 0 {
			t.Errorf("%d are left", n)
		}
		ask(t, r, 201, "", "PUT", "/shop/_lock/doc/1", `{"owner":"next","wait":"0"}`)
	})
}

// TestDoubtsAreBounded: a lease that can't be given back ends by itself.
func TestDoubtsAreBounded(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		s.failing(func(*state.Call) (before, after error) { return lockrouter.ErrStore, nil })
		ids := manyIDs(250, strings.Repeat("x", 500))
		for i := range 100 {
			lockMany(t, r, "job", fmt.Sprint("shop", i), ids)
		}
		n, size := lockrouter.Doubts(r)
		if size > lockrouter.MaxDoubts || size < lockrouter.MaxDoubts/2 || n > 25_000*9/10 {
			t.Errorf("%d doubts of %d bytes", n, size)
		}
		pass(11 * time.Minute)
		if n, size = lockrouter.Doubts(r); n > 0 || size > 0 {
			t.Errorf("%d doubts of %d bytes are left", n, size)
		}
	})
}
