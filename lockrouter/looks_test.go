package lockrouter_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"optimist/lockrouter"
	"optimist/lockrouter/memory"
	"optimist/lockrouter/state"
)

// TestOneLookATickIsForAllThatWait: they came at different times, and are looked at together all the same.
func TestOneLookATickIsForAllThatWait(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		here, there := router(t, s, lockrouter.Options{}), router(t, s, lockrouter.Options{})
		const locks = 200
		for i := range locks {
			lock := fmt.Sprint("/_lock/global/", i)
			ask(t, there, 201, "", "PUT", lock, `{"owner":"a","ttl":"1h"}`)
			go func() { _, _ = request(t.Context(), here, "PUT", lock, `{"owner":"b","wait":"1h"}`) }()
			time.Sleep(7 * time.Millisecond)
		}
		time.Sleep(time.Second)
		looks := func() int {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.looks
		}
		before := looks()
		time.Sleep(time.Minute)
		if n := looks() - before; n > 60*4*3/2 {
			t.Errorf("%d looks in a minute", n)
		}
	})
}

// slow is a store whose looks take their time.
type slow struct {
	lockrouter.Store
	took time.Duration
}

func (s *slow) Read(ctx context.Context, ids []string) ([]*state.Doc, error) {
	docs, err := s.Store.Read(ctx, ids)
	time.Sleep(s.took)
	return docs, err
}

// TestALockThatIsDueWhileOthersAreLookedAtIsLookedAtNext: the others' waiters left meanwhile, and nobody looked at it for an hour.
func TestALockThatIsDueWhileOthersAreLookedAtIsLookedAtNext(t *testing.T) {
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			store := memory.New(nil)
			here, there := router(t, &slow{store, 200 * time.Millisecond}, lockrouter.Options{}), router(t, store, lockrouter.Options{})
			held := ask(t, there, 201, "", "PUT", global, `{"owner":"a","ttl":"1h"}`)
			ask(t, there, 201, "", "PUT", "/_lock/global/other", `{"owner":"a","ttl":"1h"}`)
			got := make(chan time.Time, 1)
			go func() {
				_, _ = request(t.Context(), here, "PUT", global, `{"owner":"b","wait":"1h"}`)
				got <- time.Now()
			}()
			rng := rand.New(rand.NewPCG(seed, 0))
			time.Sleep(5 * time.Second)
			for range 5 {
				time.Sleep(time.Duration(rng.IntN(300)) * time.Millisecond)
				_, _ = request(t.Context(), here, "PUT", "/_lock/global/other", fmt.Sprintf(`{"owner":"c","wait":"%dms"}`, 1+rng.IntN(300)))
			}
			began := time.Now()
			give(t, there, "a", held.token)
			if took := (<-got).Sub(began); took > time.Second {
				t.Errorf("%d: handed over after %v", seed, took)
			}
		})
	}
}
