package lockrouter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/memory"
	"optimist/lockrouter/state"
)

// TestACrowdInATreeLeavesNothingBehind: more paths than places, readers, two classes, clients that leave and calls that get lost. Whoever
// waits for long enough is served, nobody has what excludes another's, and in the end nothing is kept of anybody.
func TestACrowdInATreeLeavesNothingBehind(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { treeCrowd(t, seed) }) })
	}
}

func treeCrowd(t *testing.T, seed uint64) {
	store := memory.New(nil)
	var routers []*lockrouter.Router
	for i := range uint64(2) {
		way := &flaky{Store: store, rand: rand.New(rand.NewPCG(seed, i))}
		routers = append(routers, router(t, way, lockrouter.Options{Patience: 100 * time.Millisecond, Bound: 4}))
	}
	var mu sync.Mutex
	inside := map[string]bool{} // paths that somebody counts on having for himself
	enter := func(path string, in bool) {
		mu.Lock()
		defer mu.Unlock()
		if in && inside[path] {
			t.Errorf("two have %s", path)
		}
		inside[path] = in
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var wg sync.WaitGroup
	for i := range 150 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(100+i)))
			for n := 0; ctx.Err() == nil; n++ {
				r, owner := routers[rng.IntN(2)], fmt.Sprintf("o%d-%d", i, n)
				path, mode := fmt.Sprintf("/fs/_lock/tree/%d/%d", rng.IntN(10), rng.IntN(8)), "exclusive"
				if rng.IntN(5) == 0 {
					path, mode = fmt.Sprintf("/fs/_lock/tree/%d", rng.IntN(10)), "shared"
				}
				priority := []string{"foreground", "background"}[rng.IntN(2)]
				limit := 30 * time.Second
				if rng.IntN(6) == 0 {
					limit = time.Duration(rng.IntN(300)) * time.Millisecond
				}
				asked := time.Now()
				asking, leave := context.WithTimeout(ctx, limit)
				got, err := request(asking, r, "PUT", path, fmt.Sprintf(`{"owner":%q,"ttl":"2s","wait":"20s","mode":%q,"priority":%q}`, owner, mode, priority))
				leave()
				if err != nil || got.status != 201 {
					if took := time.Since(asked); limit > time.Second && took > 15*time.Second {
						t.Errorf("%s by %s waited for %v: %+v %v", path, priority, took, got, err)
					}
					continue
				}
				if mode == "exclusive" {
					enter(path, true)
				}
				time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
				if mode == "exclusive" {
					enter(path, false)
				}
				_, _ = request(ctx, r, "DELETE", fmt.Sprintf("%s?owner=%s&token=%d", path, owner, got.token), "")
			}
		})
	}
	wg.Wait()
	time.Sleep(10 * time.Second)
	for i, r := range routers {
		if n, m := lockrouter.Lanes(r), r.Waiting(state.Foreground)+r.Waiting(state.Background); n+m+r.Held() > 0 {
			t.Errorf("router %d: %d lanes, %d wait, %d held", i, n, m, r.Held())
		}
	}
	docs, _ := store.Read(t.Context(), []string{"tree:fs"})
	now := time.Now().UnixMilli()
	for _, h := range docs[0].Holds {
		if h.Until > now {
			t.Errorf("still held: %+v", h)
		}
	}
	for _, e := range docs[0].Queue {
		if e.Until > now+1000 {
			t.Errorf("still in the queue: %+v", e)
		}
	}
}

// TestACrowdAtALockLeavesNothingBehind, where it goes from hand to hand, and comes back from those who have left.
func TestACrowdAtALockLeavesNothingBehind(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { synctest.Test(t, func(t *testing.T) { lockCrowd(t, seed) }) })
	}
}

func lockCrowd(t *testing.T, seed uint64) {
	store := memory.New(nil)
	var routers []*lockrouter.Router
	for i := range uint64(2) {
		way := &flaky{Store: store, rand: rand.New(rand.NewPCG(seed, i))}
		routers = append(routers, router(t, way, lockrouter.Options{Patience: 100 * time.Millisecond, Chain: 8, TTL: 3 * time.Second}))
	}
	w := &witness{t: t}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(seed, uint64(100+i)))
			for n := 0; ctx.Err() == nil; n++ {
				r, owner, limit := routers[rng.IntN(8)/7], fmt.Sprintf("o%d-%d", i, n), 20*time.Second
				if rng.IntN(4) == 0 {
					limit = time.Duration(rng.IntN(200)) * time.Millisecond
				}
				asked := time.Now()
				asking, leave := context.WithTimeout(ctx, limit)
				got, err := request(asking, r, "PUT", global, fmt.Sprintf(`{"owner":%q,"ttl":"3s","wait":"20s"}`, owner))
				leave()
				if err != nil || got.status != 201 {
					if took := time.Since(asked); limit > time.Second && took > 15*time.Second {
						t.Errorf("waited for %v: %+v %v", took, got, err)
					}
					continue
				}
				w.got(owner, got.token, asked.Add(time.Duration(got.waited+got.in)*time.Millisecond))
				time.Sleep(time.Duration(rng.IntN(8)) * time.Millisecond)
				w.gives(got.token)
				_, _ = request(ctx, r, "DELETE", fmt.Sprintf("%s?owner=%s&token=%d", global, owner, got.token), "")
			}
		})
	}
	wg.Wait()
	time.Sleep(10 * time.Second)
	for i, r := range routers {
		if n, m := lockrouter.Lanes(r), r.Waiting(state.Foreground); n+m+r.Held() > 0 {
			t.Errorf("router %d: %d lanes, %d wait, %d held", i, n, m, r.Held())
		}
	}
	began := time.Now()
	if last := take(t, routers[0], "last"); time.Since(began) > time.Second {
		t.Errorf("token %d after %v", last.token, time.Since(began))
	}
	t.Logf("%d grants", w.granted)
}
