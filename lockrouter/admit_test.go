package lockrouter_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/fencing"
	"optimist/lockrouter"
	"optimist/lockrouter/memory"
	"optimist/lockrouter/state"
)

// doors is a store whose gates can be counted, take time, and lose the answers to what they do.
type doors struct {
	*memory.Store
	took func() time.Duration

	mu    sync.Mutex
	looks int
	lose  func(to lockrouter.GateState) (before, after error)
}

func (d *doors) pause() {
	if d.took != nil {
		time.Sleep(d.took())
	}
}

func (d *doors) Do(ctx context.Context, changes []lockrouter.Change) []lockrouter.Changed {
	d.pause()
	defer d.pause()
	return d.Store.Do(ctx, changes)
}

func (d *doors) Look(ctx context.Context, ids, gates []string) ([]*state.Doc, []lockrouter.Gate, error) {
	d.mu.Lock()
	d.looks++
	d.mu.Unlock()
	d.pause()
	defer d.pause()
	return d.Store.Look(ctx, ids, gates)
}

func (d *doors) Move(ctx context.Context, name string, seen lockrouter.Gate, to lockrouter.GateState) (lockrouter.Gate, bool, error) {
	d.pause()
	var before, after error
	if d.lose != nil {
		before, after = d.lose(to)
	}
	if before != nil {
		return seen, false, before
	}
	now, moved, err := d.Store.Move(ctx, name, seen, to)
	d.pause()
	if after != nil {
		return seen, false, after
	}
	return now, moved, err
}

func (d *doors) Leased(ctx context.Context, prefix string, since int64, most int) ([]*state.Doc, error) {
	d.pause()
	defer d.pause()
	return d.Store.Leased(ctx, prefix, since, most)
}

func (d *doors) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.looks
}

// enforcing is a Router by which writes are admitted.
func enforcing(t *testing.T, d *doors, quiet time.Duration) *lockrouter.Router {
	return router(t, d, lockrouter.Options{Gates: d, Enforces: func() bool { return true }, Quiet: quiet})
}

const doc1 = "/shop/_lock/doc/1"

// admits asks for a write to the document 1 of shop.
func admits(t *testing.T, r *lockrouter.Router, tokens ...int64) lockrouter.Refusal {
	t.Helper()
	a, why := r.Admit(t.Context(), &fencing.Question{Indices: []string{"shop"}, ID: "1", Tokens: tokens})
	if (a == nil) != (why == 0) {
		t.Fatalf("%v and %v", a, why)
	}
	return why
}

// settled lets a gate be made free.
func settled(t *testing.T, r *lockrouter.Router) {
	t.Helper()
	if why := admits(t, r); why != 0 {
		t.Fatalf("refused: %d", why)
	}
	synctest.Wait()
	if why := admits(t, r); why != 0 {
		t.Fatalf("refused: %d", why)
	}
}

func TestWritesDontAskWhileNobodyHoldsALock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doors{Store: memory.New(nil)}
		r := enforcing(t, d, 0)
		settled(t, r)
		before := d.count()
		for range 10_000 {
			if why := admits(t, r); why != 0 {
				t.Fatalf("refused: %d", why)
			}
			time.Sleep(time.Millisecond)
		}
		if n := d.count() - before; n < 9 || n > 25 {
			t.Errorf("the gate was read %d times in 10 s", n)
		}
	})
}

// TestAnIndexThatIsNotThereHasNoGate: a gate stays in the store for good, and a client that may not write can make up any number of names.
func TestAnIndexThatIsNotThereHasNoGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moved := 0
		d := &doors{Store: memory.New(nil), lose: func(lockrouter.GateState) (before, after error) {
			moved++
			return nil, nil
		}}
		r := enforcing(t, d, 0)
		write := func(w fencing.Question, want lockrouter.Refusal) {
			t.Helper()
			w.NoIndex = true
			if _, why := r.Admit(t.Context(), &w); why != want {
				t.Errorf("%+v: %d, not %d", w, why, want)
			}
			synctest.Wait()
		}
		for i := range 100 {
			write(fencing.Question{Indices: []string{fmt.Sprint("shop", i)}, ID: "1"}, 0)
			write(fencing.Question{Indices: []string{fmt.Sprint("shop", i)}}, 0)
		}
		if moved > 0 {
			t.Errorf("gates were moved %d times", moved)
		}
		token := ask(t, r, 201, "", "PUT", doc1+"?owner=anna", "").token
		write(fencing.Question{Indices: []string{"shop"}, ID: "1"}, lockrouter.Locked)
		write(fencing.Question{Indices: []string{"shop"}, ID: "1", Tokens: []int64{token}}, 0)
		write(fencing.Question{Indices: []string{"shop"}, Tokens: []int64{token}}, lockrouter.Stale)
		ask(t, r, 201, "", "PUT", "/_lock/global/all?owner=anna", "")
		write(fencing.Question{Indices: []string{"shop"}, ID: "2", Global: "all"}, lockrouter.Locked)
	})
}

func TestTheFirstWhoAcquiresWaitsUntilNobodyCountsOnTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doors{Store: memory.New(nil)}
		writer, other := enforcing(t, d, 0), enforcing(t, d, 0)
		settled(t, writer)
		began := time.Now()
		token := ask(t, other, 201, "", "PUT", doc1+"?owner=anna", "").token
		if took := time.Since(began); took < time.Second || took > 3*time.Second {
			t.Errorf("acquired after %v", took)
		}
		if why := admits(t, writer); why != lockrouter.Locked {
			t.Errorf("a write by another, when the lock was given: %d", why)
		}
		if why := admits(t, writer, token); why != 0 {
			t.Errorf("a write by the holder: %d", why)
		}
		if why := admits(t, writer, 7); why != lockrouter.Stale {
			t.Errorf("with another token: %d", why)
		}
		began = time.Now()
		ask(t, writer, 201, "", "PUT", "/shop/_lock/doc/2?owner=bert", "")
		if took := time.Since(began); took > 100*time.Millisecond {
			t.Errorf("the second lock was acquired after %v", took)
		}
	})
}

// TestLocksThatAreTakenDirectlyAreSeenByWrites: the locks of the Definitive Guide's requests, one by one and many at once.
func TestLocksThatAreTakenDirectlyAreSeenByWrites(t *testing.T) {
	for _, ids := range [][]string{{"1"}, {"2", "1"}} {
		synctest.Test(t, func(t *testing.T) {
			d := &doors{Store: memory.New(nil)}
			writer, other := enforcing(t, d, 0), enforcing(t, d, 0)
			settled(t, writer)
			var asks []lockrouter.Ask
			for _, id := range ids {
				op := state.Op{Do: state.Acquire, Mode: state.Exclusive, Class: state.Foreground, TTL: 60_000, Owner: "anna", Rid: id}
				asks = append(asks, lockrouter.Ask{ID: id, Op: op})
			}
			for i, a := range other.Direct(t.Context(), "shop", asks) {
				if a.Err != nil || !a.Result.Verdict.Grants() {
					t.Fatalf("%s: %+v", ids[i], a)
				}
			}
			if why := admits(t, writer); why != lockrouter.Locked {
				t.Errorf("%v: a write by another, when the lock was given: %d", ids, why)
			}
		})
	}
}

func TestAGateIsFreeAgainWhenNothingHappensBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doors{Store: memory.New(nil)}
		r := enforcing(t, d, 10*time.Second)
		settled(t, r)
		ask(t, r, 201, "", "PUT", doc1+"?owner=anna&ttl=5s", "")
		for range 40 {
			time.Sleep(time.Second)
			admits(t, r)
		}
		synctest.Wait()
		if why := admits(t, r); why != 0 {
			t.Fatalf("after the lease has lapsed: %d", why)
		}
		before := d.count()
		for range 100 {
			admits(t, r)
		}
		if n := d.count() - before; n > 1 {
			t.Errorf("100 writes asked %d times", n)
		}
	})
}

func TestALostAnswerNeverLetsSomebodyInTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doors{Store: memory.New(nil)}
		writer, a, b := enforcing(t, d, 0), enforcing(t, d, 0), enforcing(t, d, 0)
		settled(t, writer)
		d.lose = func(to lockrouter.GateState) (before, after error) { return nil, lockrouter.ErrStore }
		ask(t, a, 503, lockrouter.TypeStore, "PUT", doc1+"?owner=anna", "")
		d.lose = nil
		settledAt := time.Now()
		ask(t, b, 201, "", "PUT", doc1+"?owner=bert", "")
		if took := time.Since(settledAt); took < time.Second {
			t.Errorf("the next one acquired after %v: the writer may still count on the gate", took)
		}
		if why := admits(t, writer); why != lockrouter.Locked {
			t.Errorf("a write by another: %d", why)
		}
	})
}

func TestALeaseThatHasLapsedKeepsNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doors{Store: memory.New(nil)}
		r := enforcing(t, d, 0)
		token := ask(t, r, 201, "", "PUT", doc1+"?owner=anna&ttl=5s", "").token
		if why := admits(t, r); why != lockrouter.Locked {
			t.Errorf("while it is held: %d", why)
		}
		time.Sleep(6 * time.Second)
		if why := admits(t, r); why != 0 {
			t.Errorf("after it has lapsed: %d", why)
		}
		if why := admits(t, r, token); why != lockrouter.Stale {
			t.Errorf("with its token, when it was taken away: %d", why)
		}
	})
}

// TestWhoWasHandedAPromisedLeaseShutsOutItsPredecessor has a lock go from hand to hand without its document: a write of the second holder
// has to make that known before it goes.
func TestWhoWasHandedAPromisedLeaseShutsOutItsPredecessor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memory.New(nil)
		ask := func(ops ...state.Op) *state.Doc {
			return store.Do(t.Context(), []lockrouter.Change{{ID: "doc:shop/1", Call: &state.Call{Lock: doc1, Kind: state.Document,
				Proxy: "p+", Ops: ops, Bound: 16, Grace: 750, Most: 100}}})[0].Doc
		}
		op := state.Op{Do: state.Acquire, Mode: state.Exclusive, Class: state.Foreground, TTL: 30_000, Chain: 5, Wait: true, Left: 1000}
		first, second := op, op
		first.Owner, first.Rid, second.Owner, second.Rid = "anna", "1", "bert", "2"
		ask(first)
		d := ask(second)
		if len(d.Holds) != 1 || len(d.Chain) != 1 {
			t.Fatalf("no promise: %+v", d)
		}
		r := enforcing(t, &doors{Store: store}, 0)
		anna, bert := d.Holds[0].Token, d.Chain[0].Token
		if why := admits(t, r, anna); why != 0 {
			t.Errorf("the first holder: %d", why)
		}
		if why := admits(t, r, bert); why != 0 {
			t.Errorf("the second holder: %d", why)
		}
		if why := admits(t, r, anna); why != lockrouter.Stale {
			t.Errorf("the first holder, after the second has written: %d", why)
		}
	})
}

// TestNoWriteOfAStaleHolderComesLate has writers and holders at several proxies in front of a store that takes its time, and a document
// that is written under guards: nothing lands on it behind the back of who holds its lock. The planted bug is a write without a guard.
func TestNoWriteOfAStaleHolderComesLate(t *testing.T) {
	late := func(t *testing.T, seed uint64, guarded bool) (landed int) {
		synctest.Test(t, func(t *testing.T) {
			w := newStreet(t, seed, guarded)
			w.run(t)
			landed = w.late
		})
		return landed
	}
	for seed := range uint64(40) {
		if n := late(t, seed, true); n != 0 {
			t.Fatalf("seed %d: %d writes came late", seed, n)
		}
	}
	found := 0
	for seed := range uint64(40) {
		found += late(t, seed, false)
	}
	if found == 0 {
		t.Error("writes without a guard never came late: the test finds nothing")
	}
}

// street is proxies, and one document.
type street struct {
	guarded bool
	routers []*lockrouter.Router
	random  *rand.Rand

	mu    sync.Mutex
	rev   int
	token int64 // the highest token under which the document was written
	late  int   // writes that landed though their holder's successor had written
	acks  int
}

func newStreet(t *testing.T, seed uint64, guarded bool) *street {
	s := &street{guarded: guarded, random: rand.New(rand.NewPCG(seed, 7))}
	d := &doors{Store: memory.New(nil), took: func() time.Duration { return s.upTo(20 * time.Millisecond) }}
	for range 3 {
		s.routers = append(s.routers, enforcing(t, d, 2*time.Second))
	}
	return s
}

// upTo is a random time.
func (s *street) upTo(most time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.random.Int64N(int64(most)))
}

func (s *street) run(t *testing.T) {
	var wg sync.WaitGroup
	end := time.Now().Add(40 * time.Second)
	for k := range 6 {
		r := s.routers[k%len(s.routers)]
		wg.Go(func() {
			for time.Now().Before(end) {
				if k < 3 {
					s.hold(t, r, k)
				} else {
					s.write(t, r, 0)
				}
				time.Sleep(s.upTo(6 * time.Second))
			}
		})
	}
	wg.Wait()
	if s.acks == 0 {
		t.Fatal("nothing was written")
	}
}

// hold takes the lock, and writes under it, for longer than its lease lasts at times.
func (s *street) hold(t *testing.T, r *lockrouter.Router, k int) {
	got, err := request(t.Context(), r, "PUT", fmt.Sprintf("%s?owner=o%d&ttl=1500ms", doc1, k), "")
	if err != nil || got.status > 201 {
		return
	}
	for range 3 {
		s.write(t, r, got.token)
		time.Sleep(s.upTo(time.Second))
	}
	_, _ = request(t.Context(), r, "DELETE", fmt.Sprintf("%s?owner=o%d&token=%d", doc1, k, got.token), "")
}

// write is a write as package write does it: the revision is read, the locks are asked, and the write goes under the guard. On its way it
// may take long.
func (s *street) write(t *testing.T, r *lockrouter.Router, token int64) {
	var tokens []int64
	if token > 0 {
		tokens = append(tokens, token)
	}
	for range 5 {
		s.mu.Lock()
		guard := s.rev
		s.mu.Unlock()
		_, why := r.Admit(t.Context(), &fencing.Question{Indices: []string{"shop"}, ID: "1", Tokens: tokens})
		if why != 0 {
			return
		}
		time.Sleep(s.upTo(3 * time.Second)) // stopped
		s.mu.Lock()
		if s.guarded && s.rev != guard {
			s.mu.Unlock()
			continue
		}
		s.rev++
		s.acks++
		switch {
		case token > s.token:
			s.token = token
		case token > 0 && token < s.token:
			s.late++
		}
		s.mu.Unlock()
		return
	}
}

func TestTheStoreIsAskedForLocksOnlyOnceByWritesThatCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doors{Store: memory.New(nil), took: func() time.Duration { return time.Millisecond }}
		r := enforcing(t, d, 0)
		ask(t, r, 201, "", "PUT", doc1+"?owner=anna", "")
		before := d.count()
		var wg sync.WaitGroup
		for k := range 500 {
			wg.Go(func() {
				_, why := r.Admit(t.Context(), &fencing.Question{Indices: []string{"shop"}, ID: fmt.Sprint(k + 2)})
				if why != 0 {
					t.Errorf("refused: %d", why)
				}
			})
		}
		wg.Wait()
		if n := d.count() - before; n > 5 {
			t.Errorf("500 writes at once asked %d times", n)
		}
	})
}

func TestAWriteIsRefusedWhereLocksCantBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &doors{Store: memory.New(nil)}
		r := router(t, d, lockrouter.Options{Gates: blind{d}, Enforces: func() bool { return true }})
		a, why := r.Admit(t.Context(), &fencing.Question{Indices: []string{"shop"}, ID: "1"})
		if why != lockrouter.StoreUnavailable || a.Status != 503 || !strings.Contains(string(a.Body), lockrouter.TypeStore) {
			t.Errorf("%d %+v", why, a)
		}
		ask(t, r, 503, lockrouter.TypeStore, "PUT", doc1+"?owner=anna", "")
	})
}

// blind is gates that can't be read.
type blind struct{ lockrouter.Gates }

func (blind) Look(context.Context, []string, []string) ([]*state.Doc, []lockrouter.Gate, error) {
	return nil, nil, errors.Join(lockrouter.ErrStore, errors.New("no answer"))
}
