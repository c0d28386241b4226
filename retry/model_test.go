package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/doc"
)

// traffic is changes to a few documents. Their leaders are slow, panic, are kept and lose their lanes, and their clients leave.
type traffic struct {
	t     *testing.T
	lanes *Lanes[*change]
	mu    sync.Mutex
	dealt map[*change]int // how often a batch had the change
}

// check fails unless the batch's lane either is in the table or was taken over.
func (tr *traffic) check(b *Batch[*change]) {
	s := tr.lanes.slot(b.lane.place)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := b.lane.line.leaders; n < 1 {
		tr.t.Errorf("%d are at work", n)
	}
	if in := s.find(b.lane.place) == b.lane; in == b.lane.overtaken {
		tr.t.Errorf("in the table: %v, taken over: %v", in, b.lane.overtaken)
	}
}

// tries is what a leader does.
func (tr *traffic) tries(ctx context.Context, r *rand.Rand, b *Batch[*change]) {
	for range 1 + r.IntN(3) {
		time.Sleep(time.Duration(r.IntN(5)) * Patience / 4)
		tr.check(b)
		b.Guess("")
		b.GoOn(ctx)
		tr.check(b)
		if b.Waited() {
			b.Wrote("", doc.Revision{Source: []byte(`{}`)})
		} else {
			b.Forget()
		}
	}
}

// change brings one change to its lane. It returns the batch that is kept, if one is.
func (tr *traffic) change(ctx context.Context, r *rand.Rand, at Place) (kept *Batch[*change]) {
	m := &change{name: "192.0.2." + strconv.Itoa(r.IntN(3)), scope: strconv.Itoa(r.IntN(2))}
	var err error
	defer func() {
		_ = recover()
		tr.mu.Lock()
		defer tr.mu.Unlock()
		if n := tr.dealt[m]; err == nil && n != 1 || err != nil && (n != 0 || !errors.Is(err, context.Canceled)) {
			tr.t.Errorf("%d batches had a change, and its end is %v", n, err)
		}
	}()
	err = tr.lanes.Do(ctx, at, m, r.IntN(4) == 0, func(b *Batch[*change]) {
		tr.mu.Lock()
		for _, m := range b.Members {
			tr.dealt[m]++
		}
		tr.mu.Unlock()
		tr.tries(ctx, r, b)
		switch what := r.IntN(8); {
		case what == 0:
			panic("a leader")
		case what < 4 && len(b.Members) == 1:
			b.Keep()
			kept = b
		}
	})
	return kept
}

// All times are multiples of Patience/4, so that much happens at the same moment.
func TestEachChangeIsDealtWithOnceWhateverLeadersAndClientsDo(t *testing.T) {
	for seed := range uint64(50) {
		synctest.Test(t, func(t *testing.T) {
			tr := &traffic{t: t, lanes: NewLanes(4, sameScope), dealt: map[*change]int{}}
			tr.lanes.Client = func(m *change) netip.Addr { return netip.MustParseAddr(m.name) }
			var all sync.WaitGroup
			for n := range 60 {
				r := rand.New(rand.NewPCG(seed, uint64(n)))
				all.Go(func() {
					time.Sleep(time.Duration(r.IntN(40)) * Patience / 4)
					ctx, leave := context.WithCancel(t.Context())
					defer leave()
					if r.IntN(2) == 0 {
						time.AfterFunc(time.Duration(r.IntN(20))*Patience/4, leave)
					}
					if kept := tr.change(ctx, r, Place{Ref: doc.Ref{ID: strconv.Itoa(n % 3)}}); kept != nil {
						all.Go(func() {
							defer kept.End()
							tr.tries(t.Context(), r, kept)
						})
					}
				})
			}
			all.Wait()
			if lanes, waiting := tr.lanes.Busy(); lanes != 0 || waiting != 0 {
				t.Errorf("%d lanes and %d waiters are left", lanes, waiting)
			}
			for n := range 9 { // lanes are used again
				_ = tr.lanes.Do(t.Context(), Place{Ref: doc.Ref{ID: strconv.Itoa(n)}}, &change{}, false, func(b *Batch[*change]) {
					if l := b.lane; l.line.leaders != 1 || l.overtaken || l.last.Source != nil {
						t.Errorf("a new lane: %+v", l)
					}
				})
			}
		})
	}
}
