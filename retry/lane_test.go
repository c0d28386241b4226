package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/doc"
	"optimist/internal/fairqueue"
)

var ref = Place{Ref: doc.Ref{Index: "shop", ID: "1"}}

// change is a lane's member in these tests: those of the same scope share a write.
type change struct {
	name, scope string
}

func sameScope(a, b *change) bool { return a.scope == b.scope }

// record runs changes through a lane whose first batch is held until release is closed, and returns the batches in their order.
type record struct {
	mu      sync.Mutex
	batches [][]string
}

func (r *record) run(b *Batch[*change]) {
	var names []string
	for _, m := range b.Members {
		names = append(names, m.name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.batches = append(r.batches, names)
}

// queued starts Do for a change and returns once it waits in its lane.
func queued(t *testing.T, ctx context.Context, ls *Lanes[*change], m *change, background bool, run func(*Batch[*change])) <-chan error {
	t.Helper()
	errs := make(chan error, 1)
	go func() { errs <- ls.Do(ctx, ref, m, background, run) }()
	synctest.Wait()
	return errs
}

func TestChangesThatArriveDuringAWriteShareTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(8, sameScope)
		var r record
		release := make(chan struct{})
		first := queued(t, t.Context(), ls, &change{"a", "x"}, false, func(b *Batch[*change]) { <-release; r.run(b) })
		var rest []<-chan error
		for _, m := range []*change{{"b", "x"}, {"c", "x"}, {"other", "y"}, {"d", "x"}} {
			rest = append(rest, queued(t, t.Context(), ls, m, false, r.run))
		}
		close(release)
		for _, e := range append(rest, first) {
			if err := <-e; err != nil {
				t.Fatal(err)
			}
		}
		want := [][]string{{"a"}, {"b", "c"}, {"other"}, {"d"}}
		if !slices.EqualFunc(r.batches, want, slices.Equal) {
			t.Errorf("batches %v, want %v: order is kept, and only those of one scope share", r.batches, want)
		}
		if lanes, waiting := ls.Busy(); lanes != 0 || waiting != 0 {
			t.Errorf("%d lanes and %d waiters are left", lanes, waiting)
		}
	})
}

func TestForegroundGoesFirstAndBackgroundIsNotStarved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(1, sameScope)
		var r record
		release := make(chan struct{})
		var all []<-chan error
		all = append(all, queued(t, t.Context(), ls, &change{name: "head"}, false, func(b *Batch[*change]) { <-release; r.run(b) }))
		all = append(all, queued(t, t.Context(), ls, &change{name: "background"}, true, r.run))
		for range 20 {
			all = append(all, queued(t, t.Context(), ls, &change{name: "f"}, false, r.run))
		}
		close(release)
		for _, e := range all {
			<-e
		}
		at := slices.IndexFunc(r.batches, func(b []string) bool { return b[0] == "background" })
		if at != fairqueue.Patience+1 {
			t.Errorf("the background change went at place %d, want %d", at, fairqueue.Patience+1)
		}
	})
}

func TestAClientThatLeavesBeforeItsTurnIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(1, sameScope)
		var r record
		release := make(chan struct{})
		head := queued(t, t.Context(), ls, &change{name: "head"}, false, func(b *Batch[*change]) { <-release; r.run(b) })
		gone := errors.New("the client left")
		ctx, leave := context.WithCancelCause(t.Context())
		left := queued(t, ctx, ls, &change{name: "left"}, false, r.run)
		last := queued(t, t.Context(), ls, &change{name: "last"}, false, r.run)
		leave(gone)
		if err := <-left; !errors.Is(err, gone) {
			t.Errorf("got %v", err)
		}
		close(release)
		<-head
		<-last
		if want := [][]string{{"head"}, {"last"}}; !slices.EqualFunc(r.batches, want, slices.Equal) {
			t.Errorf("batches %v, want %v", r.batches, want)
		}
	})
}

func TestAChangeInSomebodysBatchCountsThoughItsClientLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(8, sameScope)
		var r record
		release, second := make(chan struct{}), make(chan struct{})
		head := queued(t, t.Context(), ls, &change{name: "head"}, false, func(b *Batch[*change]) { <-release; r.run(b) })
		next := queued(t, t.Context(), ls, &change{name: "next"}, false, func(b *Batch[*change]) { <-second; r.run(b) })
		ctx, leave := context.WithCancel(t.Context())
		member := queued(t, ctx, ls, &change{name: "member"}, false, r.run)
		close(release)
		<-head
		synctest.Wait()
		leave()
		synctest.Wait()
		select {
		case err := <-member:
			t.Fatalf("Do returned %v while the batch was out", err)
		default:
		}
		close(second)
		<-next
		if err := <-member; err != nil {
			t.Errorf("got %v: the change was written", err)
		}
	})
}

func TestALeaderThatPanicsLeavesTheLaneUsable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(8, sameScope)
		func() {
			defer func() { _ = recover() }()
			_ = ls.Do(t.Context(), ref, &change{name: "a"}, false, func(*Batch[*change]) { panic("x") })
		}()
		if lanes, _ := ls.Busy(); lanes != 0 {
			t.Fatal("the lane is still held")
		}
	})
}

func TestAGuessIsForgotten(t *testing.T) {
	rev := doc.Revision{Numbers: doc.Numbers{SeqNo: 4, PrimaryTerm: 1}, Source: []byte(`{}`)}
	for name, c := range map[string]struct {
		between func(ls *Lanes[*change])
		scope   string
		want    bool
	}{
		"at once":                 {func(*Lanes[*change]) {}, "x", true},
		"after a second":          {func(*Lanes[*change]) { time.Sleep(GuessAge + 1) }, "x", false},
		"after an index change":   {func(ls *Lanes[*change]) { ls.DropGuesses() }, "x", false},
		"under other credentials": {func(*Lanes[*change]) {}, "y", false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ls := NewLanes(1, sameScope)
				release := make(chan struct{})
				head := queued(t, t.Context(), ls, &change{name: "a"}, false, func(b *Batch[*change]) { <-release; b.Wrote("x", rev); c.between(ls) })
				var got doc.Revision
				var ok bool
				next := queued(t, t.Context(), ls, &change{name: "b"}, false, func(b *Batch[*change]) { got, ok = b.Guess(c.scope) })
				close(release)
				<-head
				<-next
				if ok != c.want || ok && got.Numbers != rev.Numbers {
					t.Errorf("guess %v %v, want %v", got, ok, c.want)
				}
			})
		})
	}
}

// A lane that nobody waits in any more is another document's next.
func TestAGuessEndsWithItsLane(t *testing.T) {
	ls := NewLanes(1, sameScope)
	wrote := func(b *Batch[*change]) {
		b.Wrote("x", doc.Revision{Numbers: doc.Numbers{SeqNo: 4, PrimaryTerm: 1}, Source: []byte(`{}`)})
	}
	for n := range 20 { // lanes are used again, if not always
		_ = ls.Do(t.Context(), ref, &change{name: "a"}, false, wrote)
		for _, next := range []Place{ref, {Ref: doc.Ref{Index: "shop", ID: strconv.Itoa(n)}}, {Ref: ref.Ref, UUID: "another cluster's"}} {
			_ = ls.Do(t.Context(), next, &change{name: "b"}, false, func(b *Batch[*change]) {
				if rev, ok := b.Guess("x"); ok {
					t.Fatalf("the lane of %v knows %v", next, rev.Numbers)
				}
			})
		}
	}
}

func TestNobodyIsLostUnderLoad(t *testing.T) {
	ls := NewLanes(16, sameScope)
	var sum, inside int
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range 50 {
				ctx := t.Context()
				if err := ls.Do(ctx, ref, &change{scope: "x"}, false, func(b *Batch[*change]) {
					if inside++; inside != 1 {
						t.Error("two leaders at once")
					}
					mu.Lock()
					sum += len(b.Members)
					mu.Unlock()
					inside--
				}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if sum != 64*50 {
		t.Errorf("%d changes were led, want %d", sum, 64*50)
	}
}

func TestTheLoopStopsAtItsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		always := func(context.Context, int) error { n++; return doc.ErrConflict }
		var spent *ExhaustedError
		if err := Do(t.Context(), Policy{MaxAttempts: 5, BaseInterval: time.Millisecond, MaxInterval: time.Second}, always); !errors.As(err, &spent) || n != 5 || spent.Attempts != 5 {
			t.Errorf("%v after %d attempts", err, n)
		}
		start := time.Now()
		p := Policy{MaxAttempts: 1e6, MaxElapsed: time.Second, BaseInterval: time.Millisecond, MaxInterval: 100 * time.Millisecond}
		if err := Do(t.Context(), p, always); !errors.Is(err, doc.ErrConflict) || time.Since(start) != time.Second {
			t.Errorf("%v after %s", err, time.Since(start))
		}
		lost := errors.New("the answer was lost")
		n = 0
		if err := Do(t.Context(), p, func(context.Context, int) error { n++; return lost }); err != lost || n != 1 {
			t.Errorf("a lost acknowledgement was tried %d times: %v", n, err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		err := Do(ctx, p, func(_ context.Context, n int) error {
			if n == 3 {
				cancel(gone)
			}
			return doc.ErrConflict
		})
		if !errors.Is(err, gone) {
			t.Errorf("after the client left: %v", err)
		}
	})
}

// Writers that collided must not collide again in step, and those that many collide with not be asked for ever more often than they can take.
func TestWaitsAreDrawnBelowABoundThatDoubles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const attempts = 12
		p := Policy{MaxAttempts: attempts, BaseInterval: 2 * time.Millisecond, MaxInterval: 200 * time.Millisecond}
		var least, most [attempts + 1]time.Duration
		for run := range 500 {
			last := time.Now()
			_ = Do(t.Context(), p, func(_ context.Context, n int) error {
				wait := time.Since(last)
				if run == 0 {
					least[n] = wait
				}
				least[n], most[n], last = min(least[n], wait), max(most[n], wait), time.Now()
				return doc.ErrConflict
			})
		}
		if most[2] != 0 {
			t.Errorf("the first conflict is waited for, %s", most[2])
		}
		bound := p.BaseInterval
		for n := 3; n <= attempts; n++ {
			if least[n] > bound/10 || most[n] > bound || most[n] < bound*9/10 {
				t.Errorf("before attempt %d: %s to %s, want nothing to %s", n, least[n], most[n], bound)
			}
			bound = min(2*bound, p.MaxInterval)
		}
	})
}

func TestTheFirstAttemptsTimeCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		err := Do(t.Context(), Policy{MaxAttempts: 10, MaxElapsed: time.Second}, func(context.Context, int) error {
			n++
			time.Sleep(2 * time.Second)
			return doc.ErrConflict
		})
		var gone *ExhaustedError
		if !errors.As(err, &gone) || n != 1 || gone.Elapsed != 2*time.Second {
			t.Errorf("%d attempts: %v", n, err)
		}
	})
}

func BenchmarkFreeLane(b *testing.B) {
	ls := NewLanes(16, sameScope)
	m := &change{}
	run := func(*Batch[*change]) {}
	b.ReportAllocs()
	for b.Loop() {
		_ = ls.Do(b.Context(), ref, m, false, run)
	}
}

// Somebody's write waits for shards that don't come, and its client may have left: it has the lane, and nobody else waits for it.
func TestALaneThatIsHeldForLongHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(8, sameScope)
		var r record
		release := make(chan struct{})
		begun := time.Now()
		head := queued(t, t.Context(), ls, &change{name: "head"}, false, func(b *Batch[*change]) {
			<-release
			if b.Waited() {
				t.Error("who was passed over is waited for")
			}
			b.Wrote("", doc.Revision{Source: []byte(`{}`)})
			r.run(b)
		})
		var rest []<-chan error
		for _, background := range []bool{false, false, true} {
			rest = append(rest, queued(t, t.Context(), ls, &change{name: "other"}, background, func(b *Batch[*change]) {
				if _, ok := b.Guess(""); ok {
					t.Error("who passes over a leader knows of its write")
				}
				r.run(b)
			}))
		}
		for _, e := range rest {
			if err := <-e; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begun); took != Patience {
			t.Errorf("they waited for %v", took)
		}
		if lanes, waiting := ls.Busy(); lanes != 0 || waiting != 0 {
			t.Errorf("%d lanes and %d waiters: who was passed over has none", lanes, waiting)
		}
		next := queued(t, t.Context(), ls, &change{name: "next"}, false, func(b *Batch[*change]) { time.Sleep(time.Second); r.run(b) })
		close(release)
		<-head
		if lanes, _ := ls.Busy(); lanes != 1 {
			t.Error("who was passed over ended the lane of another")
		}
		<-next
		want := [][]string{{"other", "other", "other"}, {"head"}, {"next"}}
		if !slices.EqualFunc(r.batches, want, slices.Equal) {
			t.Errorf("batches %v, want %v", r.batches, want)
		}
	})
}

// One after the other, each leader has the lane: a slow engine is no reason to fight, and nor is much to do on a slow machine, as long as the
// leader goes on. Two leaders would refuse each other's writes, and so have more to do, and more leaders would be passed over.
func TestASlowLaneKeepsItsOrder(t *testing.T) {
	const nearly = Patience - time.Millisecond
	for name, c := range map[string]struct{ changes, steps int }{"a slow engine": {6, 1}, "much to do": {2, 3}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ls := NewLanes(8, func(_, _ *change) bool { return false })
				begun, inside, most := time.Now(), 0, 0
				var all []<-chan error
				for range c.changes {
					all = append(all, queued(t, t.Context(), ls, &change{}, false, func(b *Batch[*change]) {
						inside++
						most = max(most, inside)
						time.Sleep(nearly)
						for range c.steps - 1 {
							b.Progress()
							time.Sleep(nearly)
						}
						inside--
					}))
				}
				for _, e := range all {
					<-e
				}
				if most != 1 || time.Since(begun) != 6*nearly {
					t.Errorf("%d at once, %v", most, time.Since(begun))
				}
			})
		})
	}
}

// A leader that was passed over, and then goes on or ends, is no reason to have less patience with the next.
func TestALeaderThatGoesOnAgainNoLongerCounts(t *testing.T) {
	for name, progress := range map[string]bool{"it goes on": true, "it ends": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ls := NewLanes(1, sameScope)
				var inside, most atomic.Int32
				slow := queued(t, t.Context(), ls, &change{}, false, func(b *Batch[*change]) {
					if time.Sleep(Patience + time.Millisecond); progress {
						b.Progress()
						time.Sleep(time.Hour)
					}
				})
				var all []<-chan error
				for range 4 {
					all = append(all, queued(t, t.Context(), ls, &change{}, false, func(*Batch[*change]) {
						most.Store(max(most.Load(), inside.Add(1)))
						time.Sleep(Patience - 2*time.Millisecond)
						inside.Add(-1)
					}))
				}
				for _, e := range append(all, slow) {
					<-e
				}
				if n := most.Load(); n != 1 {
					t.Errorf("%d at once", n)
				}
			})
		})
	}
}

// Whoever stands behind many: behind writes that hang, behind writes that are slow, and behind writes that are answered late.
func TestManyHoldNobodyUpForLong(t *testing.T) {
	for name, c := range map[string]struct {
		each, want time.Duration
		late       bool
	}{
		"hang":                {time.Minute, 2 * Patience, false},
		"slow":                {Patience - time.Millisecond, LongestWait, false},
		"wait for a refresh":  {time.Second, 50 * LatePatience, true},
		"wait for quick ones": {time.Millisecond, 50 * time.Millisecond, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ls := NewLanes(8, func(_, _ *change) bool { return false })
				ls.Late = func(*change) bool { return c.late }
				var all []<-chan error
				for range 50 {
					all = append(all, queued(t, t.Context(), ls, &change{}, false, func(*Batch[*change]) { time.Sleep(c.each) }))
				}
				begun := time.Now()
				all = append(all, queued(t, t.Context(), ls, &change{}, false, func(*Batch[*change]) {
					if took := time.Since(begun); took > c.want {
						t.Errorf("it waited for %v", took)
					}
				}))
				for _, e := range all {
					if err := <-e; err != nil {
						t.Error(err)
					}
				}
				if lanes, waiting := ls.Busy(); lanes != 0 || waiting != 0 {
					t.Errorf("%d lanes and %d waiters are left", lanes, waiting)
				}
			})
		})
	}
}

// One slow answer isn't held against a lane that is never empty.
func TestPatienceComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(1, sameScope)
		var inside atomic.Int32
		do := func(d time.Duration) <-chan error {
			return queued(t, t.Context(), ls, &change{}, false, func(*Batch[*change]) { inside.Add(1); time.Sleep(d); inside.Add(-1) })
		}
		all := []<-chan error{do(time.Minute), do(Regain)} // the second is passed over after half of Patience
		for range 10 {
			all = append(all, do(time.Second))
		}
		time.Sleep(Patience + Patience/2 + 10*time.Second + time.Millisecond)
		all = append(all, do(Patience), do(time.Millisecond))
		time.Sleep(Patience - time.Millisecond)
		if n := inside.Load(); n != 2 { // the first, and one of Patience
			t.Errorf("%d at once", n)
		}
		for _, e := range all {
			<-e
		}
	})
}

// Clients come and leave, leaders are passed over, some are kept: each change is led once, or its client left first.
func TestNobodyIsLostWhenLeadersArePassedOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(4, sameScope)
		ls.Late = func(c *change) bool { return c.name == "late" }
		random := rand.New(rand.NewPCG(1, 2))
		var mu sync.Mutex
		led := map[*change]int{}
		var wg sync.WaitGroup
		for n := range 400 {
			c := &change{name: []string{"", "late"}[random.IntN(2)], scope: []string{"x", "y"}[random.IntN(2)]}
			stay, hold, keep := random.IntN(8000), random.IntN(4000), random.IntN(3) == 0
			wg.Go(func() {
				ctx, leave := context.WithTimeout(t.Context(), time.Duration(stay)*time.Millisecond)
				defer leave()
				var kept *Batch[*change]
				err := ls.Do(ctx, ref, c, n%5 == 0, func(b *Batch[*change]) {
					time.Sleep(time.Duration(hold) * time.Millisecond / 2)
					mu.Lock()
					for _, m := range b.Members {
						led[m]++
					}
					mu.Unlock()
					if keep && len(b.Members) == 1 {
						kept = b
						b.Keep()
					}
				})
				if kept != nil {
					time.Sleep(time.Duration(hold) * time.Millisecond / 2)
					kept.End()
				}
				mu.Lock()
				defer mu.Unlock()
				if want := map[bool]int{true: 1}[err == nil]; led[c] != want {
					t.Errorf("led %d times, want %d: %v", led[c], want, err)
				}
			})
			if n%10 == 0 {
				time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond)
			}
		}
		wg.Wait()
		if lanes, waiting := ls.Busy(); lanes != 0 || waiting != 0 {
			t.Errorf("%d lanes and %d waiters are left", lanes, waiting)
		}
	})
}
