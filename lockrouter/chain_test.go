package lockrouter_test

import (
	"context"
	"errors"
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

// witness holds what clients believe against each other.
type witness struct {
	mu      sync.Mutex
	t       *testing.T
	token   int64 // the highest that anybody was told in time
	owner   string
	until   time.Time // when whoever has it stops counting on it
	granted int
}

func (w *witness) got(owner string, token int64, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if !until.After(now) {
		return // the answer came when the lease had ended, and says so
	}
	if now.Before(w.until) && w.owner != owner {
		w.t.Errorf("%s has token %d, and %s counts on %d for another %v", owner, token, w.owner, w.token, w.until.Sub(now))
	}
	if token < w.token {
		w.t.Errorf("token %d after %d", token, w.token)
	}
	w.owner, w.token, w.until = owner, token, until
	w.granted++
}

// gives is called before a release is sent.
func (w *witness) gives(token int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.token == token {
		w.until = time.Time{}
	}
}

func TestALockGoesFromHandToHandFasterThanItIsWritten(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		s.took = 10 * time.Millisecond
		r := router(t, s, lockrouter.Options{Chain: 15, Foreground: time.Minute})
		w := &witness{t: t}
		const workers, rounds = 16, 50
		counts := make([]int, workers)
		var wg sync.WaitGroup
		began := time.Now()
		for i := range workers {
			wg.Go(func() {
				owner := fmt.Sprint("w", i)
				for time.Since(began) < 10*time.Second {
					asked := time.Now()
					a := take(t, r, owner)
					w.got(owner, a.token, asked.Add(time.Duration(a.waited+a.in)*time.Millisecond))
					w.gives(a.token)
					give(t, r, owner, a.token)
					counts[i]++
				}
			})
		}
		wg.Wait()
		if w.granted < 3*s.calls {
			t.Errorf("%d locks with %d calls", w.granted, s.calls)
		}
		for i, n := range counts {
			if mean := w.granted / workers; n < mean*95/100 || n > mean*105/100 {
				t.Errorf("worker %d got %d of %d locks", i, n, w.granted)
			}
		}
	})
}

func TestAChainedReleaseIsAnsweredWhenTheDocumentSaysSo(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		s.took = 10 * time.Millisecond
		r := router(t, s, lockrouter.Options{Chain: 4, Foreground: time.Minute, Patience: 200 * time.Millisecond})
		a, b, c := start(t, r, "a"), start(t, r, "b"), start(t, r, "c")
		first := <-a
		give(t, r, "a", first.token) // b has it, and c is promised it
		second := <-b
		s.failing(func(*state.Call) (before, after error) { return lockrouter.ErrStore, nil })
		began := time.Now()
		released := make(chan reply, 1)
		go func() {
			got, _ := request(t.Context(), r, "DELETE", fmt.Sprintf("%s?owner=b&token=%d", global, second.token), "")
			released <- got
		}()
		third := <-c
		if took := time.Since(began); took > 0 {
			t.Errorf("handed over after %v", took)
		}
		if got := <-released; got.status != 503 {
			t.Errorf("released without a write: %+v", got)
		}
		time.Sleep(5 * time.Second)
		s.failing(nil)
		time.Sleep(3 * time.Second) // nobody asks: the document follows all the same
		docs, err := s.Read(t.Context(), []string{"global:a"})
		if err != nil || len(docs[0].Holds) != 1 || docs[0].Holds[0].Token != third.token {
			t.Errorf("%+v %v", docs[0], err)
		}
	})
}

// start has an owner ask for the lock, and goes on when it waits.
func start(t *testing.T, r *lockrouter.Router, owner string) <-chan reply {
	got := make(chan reply, 1)
	go func() {
		a, err := request(t.Context(), r, "PUT", global, `{"owner":"`+owner+`","wait":"1m"}`)
		if err != nil || a.status != 201 {
			return
		}
		got <- a
	}()
	synctest.Wait()
	return got
}

func TestASlowHolderHasPromisesTakenBack(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		here, there := router(t, s, lockrouter.Options{Chain: 4}), router(t, s, lockrouter.Options{Chain: 4})
		a, b, c := start(t, here, "a"), start(t, here, "b"), start(t, here, "c")
		give(t, here, "a", (<-a).token)
		slow := <-b
		time.Sleep(time.Millisecond * 100)
		if docs, _ := s.Read(t.Context(), []string{"global:a"}); len(docs[0].Chain) != 1 {
			t.Fatalf("nothing is promised: %+v", docs[0])
		}
		again := ask(t, there, 200, "", "PUT", global, `{"owner":"b","wait":"2s"}`) // re-enters elsewhere
		if again.token != slow.token {
			t.Errorf("token %d, had %d", again.token, slow.token)
		}
		if docs, _ := s.Read(t.Context(), []string{"global:a"}); len(docs[0].Chain) != 0 {
			t.Errorf("still promised: %+v", docs[0])
		}
		give(t, there, "b", slow.token)
		last := <-c
		give(t, here, "c", last.token)
		if last.token <= slow.token {
			t.Errorf("token %d after %d", last.token, slow.token)
		}
	})
}

func TestASeatOfADeadProxyEndsWithItsLease(t *testing.T) {
	bubble(t, func(t *testing.T, s *shelf) {
		o := lockrouter.Options{Chain: 4, TTL: 3 * time.Second, Foreground: time.Minute}
		dying, alive := lockrouter.New(withStore(o, s)), router(t, s, o)
		ctx, kill := context.WithCancel(t.Context())
		var got [3]chan reply
		for i := range got {
			got[i] = make(chan reply, 1)
			go func() {
				a, err := request(ctx, dying, "PUT", global, fmt.Sprintf(`{"owner":"w%d","wait":"1m"}`, i))
				if err == nil {
					got[i] <- a
				}
			}()
			synctest.Wait()
		}
		give(t, dying, "w0", (<-got[0]).token)
		second := <-got[1]
		time.Sleep(20 * time.Millisecond)
		s.failing(func(c *state.Call) (before, after error) { return lockrouter.ErrStore, nil })
		dying.Close() // nothing of it reaches the store any more
		kill()
		s.failing(nil)
		began := time.Now()
		next := ask(t, alive, 201, "", "PUT", global, `{"owner":"next","wait":"1m"}`)
		if took := time.Since(began); took > 3*time.Second+time.Second {
			t.Errorf("waited for %v", took)
		}
		if next.token <= second.token {
			t.Errorf("token %d after %d", next.token, second.token)
		}
	})
}

func withStore(o lockrouter.Options, s lockrouter.Store) lockrouter.Options {
	o.Store = s
	return o
}

// flaky is a proxy's way to the store: calls take their time, get lost on the way there or back, and end when the proxy is killed.
type flaky struct {
	lockrouter.Store
	mu   sync.Mutex
	rand *rand.Rand
	dead bool
}

func (f *flaky) Do(ctx context.Context, changes []lockrouter.Change) []lockrouter.Changed {
	f.mu.Lock()
	before, after, fate := time.Duration(f.rand.IntN(15))*time.Millisecond, time.Duration(f.rand.IntN(15))*time.Millisecond, f.rand.IntN(20)
	if f.rand.IntN(30) == 0 {
		after += 150 * time.Millisecond
	}
	f.mu.Unlock()
	time.Sleep(before)
	lost := []lockrouter.Changed{{Err: lockrouter.ErrStore}}
	if fate == 0 {
		return lost
	}
	done := f.Store.Do(ctx, changes)
	time.Sleep(after)
	f.mu.Lock()
	defer f.mu.Unlock()
	if fate == 1 || f.dead {
		return lost
	}
	return done
}

func TestChainsOfSeveralProxiesNeverHaveTwoHolders(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, seed) })
		})
	}
}

func chaos(t *testing.T, seed uint64) {
	store := memory.New(nil)
	var mu sync.Mutex
	random := rand.New(rand.NewPCG(seed, 1))
	draw := func(n int) int {
		mu.Lock()
		defer mu.Unlock()
		return random.IntN(n)
	}
	type proxy struct {
		*lockrouter.Router
		way *flaky
		ctx context.Context
		end context.CancelFunc
	}
	open := func(n uint64) *proxy {
		p := &proxy{way: &flaky{Store: store, rand: rand.New(rand.NewPCG(seed, n))}}
		p.ctx, p.end = context.WithCancel(t.Context())
		p.Router = lockrouter.New(lockrouter.Options{Store: p.way, Chain: 6, TTL: 2 * time.Second, Patience: 100 * time.Millisecond})
		return p
	}
	proxies := []*proxy{open(2), open(3)}
	pick := func() *proxy { // mostly the same, or nothing is ever promised
		mu.Lock()
		defer mu.Unlock()
		return proxies[max(random.IntN(8)-6, 0)]
	}
	w := &witness{t: t}
	began := time.Now()
	var wg sync.WaitGroup
	for i := range 10 {
		wg.Go(func() {
			owner, n := fmt.Sprint("o", i), 0
			// Who doesn't know what became of a request goes on as somebody else: as the same it would re-enter what it has given back.
			other := func() {
				n++
				owner = fmt.Sprintf("o%d-%d", i, n)
			}
			for time.Since(began) < 20*time.Second {
				p := pick()
				ctx, cancel := context.WithTimeoutCause(p.ctx, time.Duration(1+draw(1500))*time.Millisecond, errors.New("left"))
				asked, ttl := time.Now(), 500+draw(1500)
				a, err := request(ctx, p.Router, "PUT", global, fmt.Sprintf(`{"owner":"%s","ttl":"%dms","wait":"1s"}`, owner, ttl))
				cancel()
				if err != nil || a.status >= 300 {
					other()
					time.Sleep(time.Duration(draw(20)) * time.Millisecond)
					continue
				}
				until := asked.Add(time.Duration(a.waited+a.in) * time.Millisecond)
				w.got(owner, a.token, until)
				switch draw(12) {
				case 0: // it dies
					time.Sleep(time.Until(until))
					continue
				case 1:
					time.Sleep(time.Duration(draw(300)) * time.Millisecond)
				case 2, 3, 4:
					time.Sleep(time.Duration(draw(3)) * time.Millisecond)
				}
				w.gives(a.token)
				q := p
				if draw(6) == 0 {
					q = pick()
				}
				if b, err := request(q.ctx, q.Router, "DELETE", fmt.Sprintf("%s?owner=%s&token=%d", global, owner, a.token), ""); err != nil || b.status != 200 {
					other()
				}
			}
		})
	}
	for n := uint64(10); time.Since(began) < 20*time.Second; n++ {
		time.Sleep(time.Duration(500+draw(3000)) * time.Millisecond)
		old, fresh := 0, open(n)
		mu.Lock()
		old = int(n % 2)
		p := proxies[old]
		proxies[old] = fresh
		mu.Unlock()
		p.way.mu.Lock()
		p.way.dead = true
		p.way.mu.Unlock()
		p.end()
		p.Close()
	}
	wg.Wait()
	last := proxies[0]
	if a, err := request(t.Context(), last.Router, "PUT", global, `{"owner":"last","wait":"10s"}`); err != nil || a.status != 201 || a.waited > 6000 {
		t.Errorf("%+v %v", a, err)
	}
	if w.granted < 20 { // deaths cost two seconds each, and how many there are is left to chance
		t.Errorf("only %d leases were given", w.granted)
	}
	for _, p := range proxies {
		p.end()
		p.Close()
	}
}
