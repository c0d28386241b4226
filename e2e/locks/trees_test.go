package locks_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"optimist/e2e/engine"
)

// TestNoLockOfATreeStarves has one lock near the root wait for many near the leaves, and one near the leaves for many near the root: those who
// come again and again go behind who waits.
func TestNoLockOfATreeStarves(t *testing.T) {
	eachEngine(t, 2, "", func(t *testing.T, e *engine.Engine, c []client) {
		const many = 8
		for name, paths := range map[string][2]string{"near the root": {"/a/b/%d/x/y", "/a"}, "near the leaves": {"/a", "/a/b/%d/x/y"}} {
			t.Run(name, func(t *testing.T) {
				tree := "/" + strings.ReplaceAll(name, " ", "-") + "/_lock/tree"
				path := func(i int, of string) string {
					if strings.Contains(of, "%d") {
						of = fmt.Sprintf(of, i)
					}
					return tree + of
				}
				var grants atomic.Int64
				var done atomic.Bool
				busy := make(chan struct{}) // closed when everybody is at it, and the engine has warmed up
				var wg sync.WaitGroup
				for i := range many {
					wg.Go(func() {
						for n := 0; !done.Load(); n++ {
							owner := fmt.Sprintf("many-%d-%d", i, n)
							got, err := c[i%2].try(t.Context(), "PUT", path(i, paths[0]), fmt.Sprintf(`{"owner":%q,"wait":"1m"}`, owner))
							if err != nil || got.status != 201 {
								t.Errorf("%v %d %s", err, got.status, got.body)
								return
							}
							if grants.Add(1) == 5*many {
								close(busy)
							}
							c[i%2].release(got.Lock, owner, got.Token)
						}
					})
				}
				<-busy
				before := grants.Load()
				one, err := c[0].try(t.Context(), "PUT", path(0, paths[1]), `{"owner":"one","wait":"1m"}`)
				passed := grants.Load() - before
				if err != nil || one.status != 201 {
					t.Errorf("%v %d %s", err, one.status, one.body)
				} else {
					c[1].release(one.Lock, "one", one.Token)
				}
				done.Store(true)
				wg.Wait()
				// Those who have it, those who stand before it, and what is given until the request has come to the document.
				if passed > 10*many {
					t.Errorf("%d locks were given while one was waited for", passed)
				}
				t.Logf("%d locks were given while one was waited for", passed)
			})
		}
	})
}

func TestATreeHoldsAsManyLocksAsItMay(t *testing.T) { fillTree(t, 200) }

func TestATreeHoldsTenThousandLocks(t *testing.T) {
	engine.Long(t)
	fillTree(t, 10_000)
}

func fillTree(t *testing.T, most int) {
	// All clients here are at one address, which leaves an eighth to others.
	eachEngine(t, 2, fmt.Sprint(", tree_size: ", (8*most+6)/7), func(t *testing.T, _ *engine.Engine, c []client) {
		const tree = "/fs/_lock/tree"
		path := func(i int) string { return fmt.Sprintf("%s/d%d/e%d/f%d", tree, i%10, i%100, i) }
		tokens := make([]int64, most)
		var next atomic.Int64
		var wg sync.WaitGroup
		for range min(most, 192) { // as many as go in one call, and those that come meanwhile
			wg.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= most {
						return
					}
					got, err := c[0].try(t.Context(), "PUT", path(i), fmt.Sprintf(`{"owner":"o%d","ttl":"1h","wait":"0"}`, i))
					if err != nil || got.status != 201 {
						t.Errorf("%v %d %s", err, got.status, got.body)
						return
					}
					tokens[i] = got.Token
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
		// One more is refused, whether it waits or not; what is there still works.
		c[0].do(429, "lock_tree_full", "PUT", tree+"/more", `{"owner":"more","wait":"0"}`)
		c[1].do(429, "lock_tree_full", "PUT", tree+"/more", `{"owner":"more","wait":"100ms"}`)
		c[0].do(409, "lock_held", "PUT", tree+"/d1", `{"owner":"other","wait":"0"}`)
		c[1].do(409, "lock_held", "PUT", path(most/2), `{"owner":"other","wait":"0"}`)
		c[0].do(200, "", "PUT", path(0), `{"owner":"o0","ttl":"2h"}`)
		c[1].do(200, "", "PUT", fmt.Sprintf("%s?renew&owner=o1&token=%d", path(1), tokens[1]), "")
		if list := c[0].do(200, "", "GET", "/_lock?prefix="+tree+"/d1/", ""); strings.Count(list.body, `"owner"`) != most/10 {
			t.Errorf("%d of %d are listed", strings.Count(list.body, `"owner"`), most/10)
		}
		c[1].release(path(2), "o2", tokens[2])
		c[0].do(201, "", "PUT", tree+"/more", `{"owner":"more","wait":"0"}`)
		c[0].do(429, "lock_tree_full", "PUT", path(2), `{"owner":"o2","wait":"0"}`)
	})
}
