package lockrouter_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

func TestAPlaceInTheQueueIsToldFromOneOn(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		here, there := router(t, s, lockrouter.Options{}), router(t, s, lockrouter.Options{})
		take(t, here, "first")
		place := func(r *lockrouter.Router, typ, body string, want int) {
			t.Helper()
			if got := ask(t, r, 409, typ, "PUT", global, body); !strings.Contains(got.body, fmt.Sprintf(`"queue":{"place":%d}`, want)) {
				t.Errorf("%s, want place %d", got.body, want)
			}
		}
		place(here, lockrouter.TypeHeld, `{"owner":"x","wait":"0"}`, 1)
		place(here, lockrouter.TypeTimeout, `{"owner":"x","wait":"1s"}`, 1)
		var wg sync.WaitGroup
		wait := func(r *lockrouter.Router, owner string) {
			wg.Go(func() { ask(t, r, 409, lockrouter.TypeTimeout, "PUT", global, `{"owner":"`+owner+`","wait":"20s"}`) })
			time.Sleep(time.Second)
		}
		wait(here, "a")
		place(here, lockrouter.TypeTimeout, `{"owner":"x","wait":"1s"}`, 2)
		place(there, lockrouter.TypeTimeout, `{"owner":"x","wait":"1s"}`, 2)
		place(there, lockrouter.TypeHeld, `{"owner":"x","wait":"0"}`, 2)
		wait(there, "b")
		place(there, lockrouter.TypeTimeout, `{"owner":"x","wait":"1s"}`, 3)
		place(there, lockrouter.TypeTimeout, `{"owner":"x","wait":"1s","priority":"background"}`, 3)
		wg.Wait()
	})
}

// TestTheBackgroundIsServedBehindManyOfTheForeground has one of the background wait in a tree for what a hundred others, each for a path of
// its own, go before: more than stand in a document's queue at once.
func TestTheBackgroundIsServedBehindManyOfTheForeground(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{Bound: 20})
		const tree, others = "/fs/_lock/tree", 100
		first := ask(t, r, 201, "", "PUT", tree+"/a", `{"owner":"first"}`)
		var wg sync.WaitGroup
		var mu sync.Mutex
		passed, done := 0, false
		for i := range others {
			owner := fmt.Sprint("f", i)
			wg.Go(func() {
				for range 3 { // and they come back
					got := ask(t, r, 201, "", "PUT", fmt.Sprintf("%s/a/%d", tree, i), `{"owner":"`+owner+`","wait":"10m"}`)
					mu.Lock()
					if !done {
						passed++
					}
					mu.Unlock()
					time.Sleep(10 * time.Millisecond)
					ask(t, r, 200, "", "DELETE", fmt.Sprintf("%s?owner=%s&token=%d", got.lock, owner, got.token), "")
				}
			})
		}
		synctest.Wait()
		if n := r.Waiting(state.Foreground); n != others {
			t.Fatalf("%d wait", n)
		}
		wg.Go(func() {
			got := ask(t, r, 201, "", "PUT", tree+"/a", `{"owner":"b","wait":"10m","priority":"background"}`)
			mu.Lock()
			done = true
			mu.Unlock()
			ask(t, r, 200, "", "DELETE", fmt.Sprintf("%s?owner=b&token=%d", got.lock, got.token), "")
		})
		time.Sleep(time.Second)
		ask(t, r, 200, "", "DELETE", fmt.Sprintf("%s?owner=first&token=%d", tree+"/a", first.token), "")
		wg.Wait()
		// Those who came before it, and as many of those who came later as may.
		if most := others + 20; passed > most {
			t.Errorf("%d have passed, %d may", passed, most)
		}
		t.Logf("%d have passed", passed)
	})
}
