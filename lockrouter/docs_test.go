package lockrouter_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

const docs = "/shop/_lock/docs"

func ids(from, to int) string {
	var list []string
	for i := from; i < to; i++ {
		list = append(list, fmt.Sprintf("%q", fmt.Sprintf("%05d", i)))
	}
	return "[" + strings.Join(list, ",") + "]"
}

func TestDocumentsAreLockedAllOrNone(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		one := ask(t, r, 201, "", "PUT", "/shop/_lock/doc/00700", `{"owner":"other","ttl":"1h"}`)
		got := ask(t, r, 409, lockrouter.TypeTimeout, "POST", docs, `{"owner":"job","wait":"3s","ids":`+ids(0, 1000)+`}`)
		if !strings.Contains(got.body, "/doc/00700") {
			t.Error(got.body)
		}
		ask(t, r, 409, lockrouter.TypeHeld, "POST", docs, `{"owner":"job","wait":"0","ids":`+ids(0, 1000)+`}`)
		if list := ask(t, r, 200, "", "GET", "/_lock?owner=job", ""); strings.Contains(list.body, "job") {
			t.Errorf("something is left: %s", list.body)
		}
		ask(t, r, 200, "", "DELETE", fmt.Sprintf("/shop/_lock/doc/00700?owner=other&token=%d", one.token), "")
		before := s.calls
		all := ask(t, r, 201, "", "POST", docs, `{"owner":"job","ttl":"10s","ids":`+ids(0, 1000)+`}`)
		if n := s.calls - before; n > 5 {
			t.Errorf("%d calls", n)
		}
		ask(t, r, 409, lockrouter.TypeHeld, "PUT", "/shop/_lock/doc/00999", `{"owner":"other","wait":"0"}`)
		ask(t, r, 200, "", "PUT", docs+"?renew", strings.Replace(all.body, `"owner":"job"`, `"owner":"job","ttl":"1m"`, 1))
		time.Sleep(30 * time.Second)
		ask(t, r, 409, lockrouter.TypeHeld, "PUT", "/shop/_lock/doc/00000", `{"owner":"other","wait":"0"}`)
		ask(t, r, 200, "", "DELETE", docs, all.body)
		ask(t, r, 200, "", "DELETE", docs, all.body)
		ask(t, r, 201, "", "PUT", "/shop/_lock/doc/00000", `{"owner":"other","wait":"0"}`)
	})
}

func TestLocksOfDocumentsNeverWaitInACircle(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		routers := []*lockrouter.Router{router(t, s, lockrouter.Options{}), router(t, s, lockrouter.Options{})}
		var wg sync.WaitGroup
		var mu sync.Mutex
		inside := map[int]string{}
		for n := range 12 {
			owner := fmt.Sprint("o", n)
			r := routers[n%2]
			wg.Go(func() {
				for round := range 5 {
					from := (n*7 + round*3) % 20
					all := ask(t, r, 201, "", "POST", docs, `{"owner":"`+owner+`","wait":"10m","ttl":"1s","ids":`+ids(from, from+12)+`}`)
					mu.Lock()
					for i := from; i < from+12; i++ {
						if who := inside[i]; who != "" {
							t.Errorf("%s and %s have %d at once", who, owner, i)
						}
						inside[i] = owner
					}
					mu.Unlock()
					time.Sleep(20 * time.Millisecond)
					mu.Lock()
					for i := from; i < from+12; i++ {
						delete(inside, i)
					}
					mu.Unlock()
					ask(t, r, 200, "", "DELETE", docs, all.body)
				}
			})
		}
		wg.Wait()
	})
}

func TestLocksThatAreHeldWhileOthersAreWaitedForStayAlive(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		last := ask(t, r, 201, "", "PUT", "/shop/_lock/doc/00009", `{"owner":"other","ttl":"1h"}`)
		got := make(chan reply, 1)
		go func() {
			got <- ask(t, r, 201, "", "POST", docs, `{"owner":"job","wait":"10m","ttl":"2s","ids":`+ids(0, 10)+`}`)
		}()
		time.Sleep(time.Minute)
		ask(t, r, 409, lockrouter.TypeHeld, "PUT", "/shop/_lock/doc/00000", `{"owner":"third","wait":"0"}`)
		ask(t, r, 200, "", "DELETE", fmt.Sprintf("/shop/_lock/doc/00009?owner=other&token=%d", last.token), "")
		all := <-got
		var results struct {
			Locks []struct{ Token int64 }
		}
		if err := json.Unmarshal([]byte(all.body), &results); err != nil || len(results.Locks) != 10 || all.waited < 59_000 || all.in != 2000 {
			t.Errorf("%v %s", err, all.body)
		}
		time.Sleep(1500 * time.Millisecond)
		ask(t, r, 200, "", "DELETE", docs, all.body)
	})
}

func TestAClientThatLeavesWhileItsDocumentsAreLockedKeepsNone(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		ask(t, r, 201, "", "PUT", "/shop/_lock/doc/00009", `{"owner":"other","ttl":"1h"}`)
		ctx, leave := context.WithTimeout(t.Context(), 5*time.Second)
		defer leave()
		if _, err := request(ctx, r, "POST", docs, `{"owner":"job","wait":"10m","ttl":"1h","ids":`+ids(0, 10)+`}`); err == nil {
			t.Error("it was answered")
		}
		synctest.Wait()
		ask(t, r, 201, "", "POST", docs, `{"owner":"next","wait":"1s","ids":`+ids(0, 9)+`}`)
		if n := r.Waiting(state.Foreground); n != 0 {
			t.Errorf("%d wait", n)
		}
	})
}

// TestAQueryThatFindsNothingLocksNothing: its answer can be sent back, as any other. There is no journal: the Undo would panic.
func TestAQueryThatFindsNothingLocksNothing(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		nothing := func(context.Context, *lockrouter.Request, string, []byte, int) ([]string, error) { return nil, nil }
		counted := 0
		events := lockrouter.Events{Acquired: func(_ state.Class, word string, _ time.Duration) {
			if word == "acquired" {
				counted++
			}
		}}
		r := router(t, s, lockrouter.Options{Search: nothing, Undo: struct{ lockrouter.Undo }{}, Events: events})
		for _, keys := range []string{``, `,"undo":true`, `,"fence":"touch"`} {
			a := ask(t, r, 201, "", "POST", docs, `{"owner":"job","ttl":"10s","query":{}`+keys+`}`)
			if !strings.Contains(a.body, `"locks":[]`) || a.in != 10_000 {
				t.Errorf("%s: %s", keys, a.body)
			}
			if again := ask(t, r, 200, "", "PUT", docs+"?renew&ttl=20s", a.body); !strings.Contains(again.body, `"locks":[]`) || again.in != 20_000 {
				t.Errorf("%s: %s", keys, again.body)
			}
			for _, c := range []struct{ method, target, want string }{
				{"DELETE", docs, `{"count":0,"released":true}`},
				{"POST", docs + "/_commit", `{"count":0,"released":true}`},
				{"POST", docs + "/_rollback", `{"count":0,"left":0,"released":true,"undone":true}`},
			} {
				if got := ask(t, r, 200, "", c.method, c.target, a.body); got.body != c.want {
					t.Errorf("%s %s: %s", c.method, c.target, got.body)
				}
			}
		}
		if counted != 3 {
			t.Errorf("%d requests are counted", counted)
		}
		for _, locks := range []string{``, `,"locks":null`} {
			ask(t, r, 400, lockrouter.TypeBad, "DELETE", docs, `{"owner":"job"`+locks+`}`)
		}
	})
}
