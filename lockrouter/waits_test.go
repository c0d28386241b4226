package lockrouter_test

import (
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/share"
	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// One client waits as often as it can, for many locks and in many names. Others find a place all the same. Who finds none isn't kept.
func TestOneClientsWaitsLeaveOthersAPlace(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		const places = 32
		r := router(t, s, lockrouter.Options{MostWaiting: places})
		held := take(t, r, "holder")
		var wg sync.WaitGroup
		began := time.Now()
		var mu sync.Mutex
		tried, waited := 0, map[string]int{}
		wait := func(client, owner string) {
			wg.Go(func() {
				a := from(t, r, client, global, `{"owner":"`+owner+`","wait":"20s"}`)
				mu.Lock()
				defer mu.Unlock()
				switch since := time.Since(began); {
				case a.Status == 201: // the last one
				case a.Status == 409 && strings.Contains(string(a.Body), `"lock_held"`) && since < time.Second:
					tried++
				case a.Status == 409 && strings.Contains(string(a.Body), `"lock_wait_timeout"`) && since >= 20*time.Second:
					waited[client]++
				default:
					t.Errorf("%s after %v: %d %s", client, since, a.Status, a.Body)
				}
			})
			synctest.Wait()
		}
		for i := range 3 * places {
			wait("192.0.2.1", fmt.Sprint("o", i))
		}
		if n := r.Waiting(state.Foreground); n < places*3/4 || n > places*7/8 {
			t.Errorf("%d of %d places are one client's", n, places)
		}
		for _, client := range []string{"192.0.2.2", "192.0.2.3"} {
			wait(client, client)
		}
		wg.Wait()
		if waited["192.0.2.2"] != 1 || waited["192.0.2.3"] != 1 || tried != 3*places-waited["192.0.2.1"] {
			t.Errorf("waited: %v, tried: %d", waited, tried)
		}
		give(t, r, "holder", held.token)
		for range 2 * places { // no place is lost by waits that have ended
			again := take(t, r, "again")
			give(t, r, "again", again.token)
		}
		if n := r.Waiting(state.Foreground); n != 0 {
			t.Errorf("%d wait", n)
		}
		held = take(t, r, "holder")
		wait("192.0.2.1", "o")
		if n := r.Waiting(state.Foreground); n != 1 {
			t.Errorf("%d wait after all the others have ended", n)
		}
		give(t, r, "holder", held.token)
		wg.Wait()
	})
}

// The same with requests for the locks of several documents.
func TestOneClientsWaitsForDocumentsLeaveOthersAPlace(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		const places = 32
		r := router(t, s, lockrouter.Options{MostWaiting: places})
		ask(t, r, 201, "", "POST", docs, `{"owner":"holder","ids":["1"]}`)
		var wg sync.WaitGroup
		for i := range 2 * places {
			wg.Go(func() {
				_, err := r.Serve(t.Context(), &lockrouter.Request{Method: "POST", Path: []byte(docs),
					Client: share.Of(netip.MustParseAddr("192.0.2.1"), 1),
					Body:   fmt.Appendf(nil, `{"owner":"o%d","ids":["1","%d"],"wait":"20s"}`, i, i+2)})
				if err != nil {
					t.Error(err)
				}
			})
			time.Sleep(10 * time.Millisecond) // for the calls to the store
		}
		if n := r.Waiting(state.Foreground); n < places/2 || n > places*7/8 {
			t.Errorf("%d of %d places are one client's", n, places)
		}
		wg.Wait()
		if n := r.Waiting(state.Foreground); n != 0 {
			t.Errorf("%d wait", n)
		}
	})
}
