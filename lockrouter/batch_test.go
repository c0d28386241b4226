package lockrouter_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/memory"
	"optimist/lockrouter/state"
)

// busy is an engine that carries out what it has received, also when whoever sent it has hung up; and takes its time.
type busy struct {
	lockrouter.Store
	took time.Duration
}

func (b *busy) Do(ctx context.Context, changes []lockrouter.Change) []lockrouter.Changed {
	done := make(chan []lockrouter.Changed, 1)
	go func() {
		time.Sleep(b.took)
		done <- b.Store.Do(context.WithoutCancel(ctx), changes)
	}()
	select {
	case d := <-done:
		return d
	case <-ctx.Done():
		lost := make([]lockrouter.Changed, len(changes))
		for i := range lost {
			lost[i].Err = fmt.Errorf("%w: %w", lockrouter.ErrStore, context.Cause(ctx))
		}
		return lost
	}
}

// TestWhatIsCarriedOutAfterItsClientLeftIsGivenBackAfterThat: what gives it back must not come before it.
func TestWhatIsCarriedOutAfterItsClientLeftIsGivenBackAfterThat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := router(t, &busy{memory.New(nil), 300 * time.Millisecond}, lockrouter.Options{})
		ctx, leave := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer leave()
		if _, err := request(ctx, r, "POST", docs, `{"owner":"job","ttl":"1h","ids":["1","2"]}`); err == nil {
			t.Error("it was answered")
		}
		op := state.Op{Do: state.Acquire, Owner: "job", Mode: state.Exclusive, Class: state.Foreground, TTL: 3_600_000}
		asks := []lockrouter.Ask{{ID: "3", Op: op}, {ID: "4", Op: op}}
		for i := range asks {
			asks[i].Op.Rid = r.Rid()
		}
		ctx, leave = context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer leave()
		r.Direct(ctx, "shop", asks)
		time.Sleep(time.Second)
		for i := range 4 {
			ask(t, r, 201, "", "PUT", fmt.Sprintf("/shop/_lock/doc/%d", i+1), `{"owner":"next","wait":"0"}`)
		}
	})
}

// TestLocksOfDocumentsTakeNothingFromWhoHadOneOfThemBefore: their owner had one of the documents, for longer, and gets it for longer while
// the others are waited for.
func TestLocksOfDocumentsTakeNothingFromWhoHadOneOfThemBefore(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		had := ask(t, r, 201, "", "PUT", "/shop/_lock/doc/1", `{"owner":"job","ttl":"1h"}`)
		ask(t, r, 201, "", "PUT", "/shop/_lock/doc/3", `{"owner":"other","ttl":"5s"}`)
		all := ask(t, r, 201, "", "POST", docs, `{"owner":"job","ttl":"2s","wait":"1m","ids":["1","2","3"]}`)
		if all.in != 2000 {
			t.Error(all.body)
		}
		time.Sleep(10 * time.Second)
		ask(t, r, 409, lockrouter.TypeHeld, "PUT", "/shop/_lock/doc/1", `{"owner":"other","wait":"0"}`)
		ask(t, r, 200, "", "DELETE", fmt.Sprintf("/shop/_lock/doc/1?owner=job&token=%d", had.token), "")

		ask(t, r, 201, "", "PUT", "/shop/_lock/doc/3", `{"owner":"other","ttl":"1h"}`)
		go func() { // by the same owner, who has it by then
			time.Sleep(time.Second)
			ask(t, r, 200, "", "PUT", "/shop/_lock/doc/2", `{"owner":"job","ttl":"1h"}`)
		}()
		ask(t, r, 409, lockrouter.TypeTimeout, "POST", docs, `{"owner":"job","ttl":"2s","wait":"3s","ids":["1","2","3"]}`)
		ask(t, r, 201, "", "PUT", "/shop/_lock/doc/1", `{"owner":"other","wait":"0"}`)
		ask(t, r, 409, lockrouter.TypeHeld, "PUT", "/shop/_lock/doc/2", `{"owner":"other","wait":"0"}`)
	})
}

// TestLocksOfDocumentsAreRenewedForAsLongAsTheyWere: as a single one is, where the request says nothing.
func TestLocksOfDocumentsAreRenewedForAsLongAsTheyWere(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{TTL: 10 * time.Second})
		all := ask(t, r, 201, "", "POST", docs, `{"owner":"job","ttl":"5m","ids":["1","2"]}`)
		if again := ask(t, r, 200, "", "PUT", docs+"?renew", all.body); again.in != 300_000 {
			t.Error(again.body)
		}
		time.Sleep(4 * time.Minute)
		ask(t, r, 409, lockrouter.TypeHeld, "PUT", "/shop/_lock/doc/2", `{"owner":"other","wait":"0"}`)
		if again := ask(t, r, 200, "", "PUT", docs+"?renew&ttl=1m", all.body); again.in != 60_000 {
			t.Error(again.body)
		}
		none := ask(t, r, 201, "", "POST", docs, `{"owner":"job","ids":["1"]}`)
		if strings.Contains(none.body, "1970") || none.in != 60_000 {
			t.Error(none.body)
		}
	})
}

// TestAnOutageIsWaitedOutWhileDocumentsAreLocked: it is over before the leases are.
func TestAnOutageIsWaitedOutWhileDocumentsAreLocked(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		ask(t, r, 201, "", "PUT", "/shop/_lock/doc/2", `{"owner":"other","ttl":"20s"}`)
		got := make(chan reply, 1)
		go func() {
			a, _ := request(t.Context(), r, "POST", docs, `{"owner":"job","ttl":"9s","wait":"1m","ids":["1","2"]}`)
			got <- a
		}()
		time.Sleep(2 * time.Second)
		s.failing(func(*state.Call) (before, after error) { return lockrouter.ErrStore, nil })
		time.Sleep(2 * time.Second) // the leases are renewed every 3 s
		s.failing(nil)
		if a := <-got; a.status != 201 {
			t.Errorf("%+v", a)
		}
	})
}

// TestEveryLeaseIsCounted: locks that were acquired in the same millisecond have the same token.
func TestEveryLeaseIsCounted(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		r := router(t, s, lockrouter.Options{})
		held := func(want int) {
			t.Helper()
			if n := r.Held(); n != want {
				t.Errorf("%d held, not %d", n, want)
			}
		}
		all := ask(t, r, 201, "", "POST", docs, `{"owner":"job","ids":["1","2","3","4","5"]}`)
		held(5)
		ask(t, r, 409, lockrouter.TypeTimeout, "POST", docs, `{"owner":"other","wait":"1s","ids":["0","1"]}`)
		last := ask(t, r, 201, "", "PUT", "/shop/_lock/doc/9", `{"owner":"x"}`)
		go func() {
			time.Sleep(time.Second)
			ask(t, r, 200, "", "DELETE", fmt.Sprintf("/shop/_lock/doc/9?owner=x&token=%d", last.token), "")
		}()
		ask(t, r, 409, lockrouter.TypeTimeout, "POST", "/shop/_lock/docs", `{"owner":"other","wait":"2s","ids":["0","9","92","1"]}`)
		held(5)
		ask(t, r, 200, "", "DELETE", docs, all.body)
		held(0)
	})
}
