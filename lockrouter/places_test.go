package lockrouter_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

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

// TestItIsSeenAboutHowManyWait: the lock's document says how many, and isn't written for each of them.
func TestItIsSeenAboutHowManyWait(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		here, there := router(t, s, lockrouter.Options{}), router(t, s, lockrouter.Options{})
		ask(t, here, 201, "", "PUT", global, `{"owner":"first","ttl":"10m"}`)
		before := s.count()
		waiting := func(least, most int64) {
			t.Helper()
			time.Sleep(time.Second)
			got := ask(t, there, 200, "", "GET", global, "")
			if n := gjson.Get(got.body, "waiting").Int(); n < least || n > most {
				t.Errorf("%d wait, want %d to %d", n, least, most)
			}
			if held := ask(t, there, 409, lockrouter.TypeHeld, "PUT", global, `{"owner":"x","wait":"0"}`); gjson.Get(held.body,
				"error.queue.place").Int() <= least {
				t.Error(held.body)
			}
		}
		const all, stay = 64, 4
		var wg sync.WaitGroup
		for i := range all {
			wait := "30s"
			if i < stay {
				wait = "1m"
			}
			wg.Go(func() {
				ask(t, here, 409, lockrouter.TypeTimeout, "PUT", global, fmt.Sprintf(`{"owner":"o%d","wait":%q}`, i, wait))
			})
			time.Sleep(100 * time.Millisecond)
		}
		waiting(all/2, all)
		if n := s.count() - before; n > 20 {
			t.Errorf("%d calls for %d who wait", n, all)
		}
		time.Sleep(30 * time.Second)
		waiting(stay/2, 2*stay)
		wg.Wait()
	})
}

// TestThoseWithAPromiseAreNotCountedAsWaiting has another proxy's client hold the lock, and all promises made that there may be. Then only
// those with promises ask again, and the count that they write must be right: while it isn't, the proxy writes without a pause.
func TestThoseWithAPromiseAreNotCountedAsWaiting(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		const most = 6
		o := lockrouter.Options{Chain: most, Foreground: time.Minute}
		here, there := router(t, s, o), router(t, s, o)
		step := func() { time.Sleep(5 * time.Millisecond) }
		first := take(t, here, "first")
		second := start(t, here, "second")
		step()
		theirs := start(t, there, "theirs")
		step()
		start(t, here, "next")
		step()
		give(t, here, "first", first.token)
		give(t, here, "second", (<-second).token) // quickly, so that promises are made
		<-theirs
		join := func(n int) {
			for i := range n {
				start(t, here, fmt.Sprintf("w%d of %d", i, n))
			}
			time.Sleep(100 * time.Millisecond)
		}
		join(most)
		before := s.count()
		join(3)
		docs, err := s.Read(t.Context(), []string{"global:a"})
		if err != nil || len(docs[0].Chain) != most || len(docs[0].Queue) != 1 || docs[0].Queue[0].Count != 4 {
			t.Errorf("%+v %v", docs[0], err)
		}
		if n := s.count() - before; n > 2 {
			t.Errorf("%d calls", n)
		}
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
