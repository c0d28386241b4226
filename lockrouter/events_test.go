package lockrouter_test

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/state"
)

// TestContentionIsCountedOnceARequest: by those who wait behind somebody, by those who only try, and by nobody else.
func TestContentionIsCountedOnceARequest(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		met := map[state.Class]int{}
		r := router(t, s, lockrouter.Options{Events: lockrouter.Events{Contended: func(c state.Class) { met[c]++ }}})
		a := take(t, r, "a")
		ask(t, r, 200, "", "PUT", global, `{"owner":"a"}`)
		ask(t, r, 409, "lock_held", "PUT", global, `{"owner":"b","wait":"0","priority":"background"}`)
		ask(t, r, 409, "lock_wait_timeout", "PUT", global, `{"owner":"b","wait":"1s","priority":"background"}`)
		ask(t, r, 201, "", "PUT", "/shop/_lock/doc/1", `{"owner":"a"}`)
		ask(t, r, 409, "lock_held", "POST", "/shop/_lock/docs", `{"owner":"b","ids":["0","1"],"wait":"0"}`)
		for i := range 3 {
			go func() {
				next, err := request(t.Context(), r, "PUT", global, fmt.Sprintf(`{"owner":"%d","wait":"1m"}`, i))
				if err != nil || next.status != 201 {
					t.Errorf("%v %+v", err, next)
				}
				give(t, r, fmt.Sprint(i), next.token)
			}()
		}
		synctest.Wait()
		give(t, r, "a", a.token)
		time.Sleep(time.Second) // in the bubble
		if met[state.Background] != 2 || met[state.Foreground] != 4 {
			t.Errorf("met %v", met)
		}
	})
}

// TestLapsesAndTakeOversAreTold: also those that a request for several documents finds.
func TestLapsesAndTakeOversAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		var log bytes.Buffer
		lapsed := map[bool]int{}
		r := router(t, s, lockrouter.Options{Log: slog.New(slog.NewTextHandler(&log, nil)),
			Events: lockrouter.Events{Lapsed: func(n int, taken bool) { lapsed[taken] += n }}})
		ask(t, r, 201, "", "PUT", global, `{"owner":"a","ttl":"1s","note":"the nightly job"}`)
		ask(t, r, 201, "", "PUT", global, `{"owner":"b","ttl":"1s","wait":"10s"}`)
		time.Sleep(2 * time.Second) // in the bubble
		ask(t, r, 201, "", "PUT", global, `{"owner":"b","ttl":"1s"}`)
		ask(t, r, 201, "", "POST", "/shop/_lock/docs", `{"owner":"c","ids":["1","2"],"ttl":"1s"}`)
		time.Sleep(2 * time.Second)
		ask(t, r, 201, "", "POST", "/shop/_lock/docs", `{"owner":"d","ids":["1","2"]}`)
		if lapsed[true] != 3 || lapsed[false] != 1 {
			t.Errorf("lapsed %v", lapsed)
		}
		for _, want := range []string{
			`msg="a lease has lapsed, and another owner has taken over" lock=/_lock/global/a owner=a token=`, `note="the nightly job" by=b`,
			`msg="a lease has lapsed" lock=/_lock/global/a owner=b`, `lock=/shop/_lock/doc/2 owner=c`,
		} {
			if !strings.Contains(log.String(), want) {
				t.Errorf("the log doesn't say %s:\n%s", want, log.String())
			}
		}
	})
}
