package retry

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
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
		head := queued(t, t.Context(), ls, &change{name: "head"}, false, func(b *Batch[*change]) { <-release; r.run(b) })
		var rest []<-chan error
		for _, background := range []bool{false, true} {
			rest = append(rest, queued(t, t.Context(), ls, &change{name: "other"}, background, func(b *Batch[*change]) {
				if _, ok := b.Guess(""); ok || b.Waited() {
					t.Error("who goes beside the lane knows of it")
				}
				b.Wrote("", doc.Revision{Source: []byte(`{}`)})
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
		if lanes, waiting := ls.Busy(); lanes != 1 || waiting != 0 {
			t.Errorf("%d lanes and %d waiters: the lane is still its holder's", lanes, waiting)
		}
		close(release)
		<-head
		want := [][]string{{"other"}, {"other"}, {"head"}}
		if !slices.EqualFunc(r.batches, want, slices.Equal) {
			t.Errorf("batches %v, want %v", r.batches, want)
		}
	})
}

// With refresh=wait_for, the engine answers each write up to a second after it is written. Writes that can't be combined don't wait for all
// before them: whoever has waited for Patience goes beside the lane.
func TestALaneOfSlowWritesHoldsNobodyUpForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ls := NewLanes(8, func(_, _ *change) bool { return false })
		begun := time.Now()
		var all []<-chan error
		for range 50 {
			all = append(all, queued(t, t.Context(), ls, &change{}, false, func(*Batch[*change]) { time.Sleep(time.Second) }))
		}
		for _, e := range all {
			if err := <-e; err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(begun); took > Patience+2*time.Second {
			t.Errorf("they took %v", took)
		}
	})
}
