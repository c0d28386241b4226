package pressure

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/fairqueue"
	"optimist/internal/identity"
	"optimist/internal/share"
	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// node is an engine: so many writes at a time, each for so long, the others in line; too many are rejected.
type node struct {
	mu       sync.Mutex
	busy     chan struct{}
	takes    time.Duration
	line     int
	drag     time.Duration // by which each write in line makes another one slower
	waiting  int
	worst    int // writes that were here at once
	rejected int
	here     int
}

func newNode(workers int, takes time.Duration, line int) *node {
	return &node{busy: make(chan struct{}, workers), takes: takes, line: line}
}

func (n *node) Do(context.Context, *upstream.Request) (*upstream.Response, error) {
	n.mu.Lock()
	if n.waiting >= n.line {
		n.rejected++
		n.mu.Unlock()
		return answer(http.StatusTooManyRequests), nil
	}
	n.waiting++
	n.here++
	n.worst = max(n.worst, n.here)
	n.mu.Unlock()
	n.busy <- struct{}{}
	n.mu.Lock()
	n.waiting--
	takes := n.takes + time.Duration(n.waiting)*n.drag
	n.mu.Unlock()
	time.Sleep(takes)
	<-n.busy
	n.mu.Lock()
	n.here--
	n.mu.Unlock()
	return answer(http.StatusOK), nil
}

func answer(status int) *upstream.Response {
	return &upstream.Response{Head: wire.Head{Status: status}}
}

// load are the results of writes that come in a steady stream, whatever becomes of those before them.
type load struct {
	mu      sync.Mutex
	written int
	refused int
	took    []time.Duration // of foreground writes that were written
}

// offer sends so many writes a second, for so long. One of twenty is a foreground write.
func (l *load) offer(d Doer, rate int, lasting time.Duration) {
	var wg sync.WaitGroup
	for k := range int(lasting.Seconds() * float64(rate)) {
		wg.Go(func() {
			start, background := time.Now(), k%20 != 0
			res, err := d.Do(context.Background(), &upstream.Request{Background: background})
			l.mu.Lock()
			defer l.mu.Unlock()
			if err != nil || res.Status != http.StatusOK {
				l.refused++
				return
			}
			l.written++
			if !background {
				l.took = append(l.took, time.Since(start))
			}
		})
		time.Sleep(time.Second / time.Duration(rate))
	}
	wg.Wait()
}

func (l *load) p99() time.Duration {
	slices.Sort(l.took)
	return l.took[len(l.took)*99/100]
}

// overload is an engine that can do 100 writes a second, and gets slower the more wait for it.
func overload() *node {
	n := newNode(4, 40*time.Millisecond, 1000)
	n.drag = 800 * time.Microsecond
	return n
}

// Ten times as many writes come as the engine can do, for half a minute. It goes on as if there were just enough.
func TestAnOverloadCostsLittleOfWhatTheEngineCanDo(t *testing.T) {
	const capacity, lasting = 100, 30 * time.Second
	var with, without load
	var worst int
	synctest.Test(t, func(t *testing.T) {
		n := overload()
		l := New(Options{Most: 512, Wait: time.Second})
		with.offer(l.Over(n), 10*capacity, lasting)
		worst = n.worst
		if s := l.Stats(); s.Out != 0 || s.Foreground+s.Background != 0 || s.Refused != uint64(with.refused) {
			t.Errorf("afterwards: %+v, and %d were refused", s, with.refused)
		}
		start := time.Now()
		if _, err := l.Over(n).Do(t.Context(), &upstream.Request{}); err != nil || time.Since(start) > 2*n.takes {
			t.Errorf("after the overload a write takes %s: %v", time.Since(start), err)
		}
	})
	synctest.Test(t, func(*testing.T) { without.offer(overload(), 10*capacity, lasting) })
	t.Logf("with a limit: %d written, p99 of foreground %s, %d at once in the engine at most", with.written, with.p99(), worst)
	t.Logf("without:      %d written, p99 of foreground %s", without.written, without.p99())
	if peak := capacity * int(lasting.Seconds()); with.written < peak*8/10 {
		t.Errorf("%d written of %d that the engine can do", with.written, peak)
	}
	if with.p99() > 500*time.Millisecond {
		t.Errorf("the 99th percentile of foreground writes is %s", with.p99())
	}
	if without.written > with.written/2 || without.p99() < 2*with.p99() {
		t.Error("this engine does as well without a limit: the test shows nothing")
	}
}

// The limit finds what an engine can do at once, wherever that is, and follows it.
func TestTheLimitFollowsTheEngine(t *testing.T) {
	for _, workers := range []int{8, 64} {
		synctest.Test(t, func(t *testing.T) {
			n := newNode(workers, 50*time.Millisecond, 100000)
			l := New(Options{Most: 512, Wait: time.Hour})
			stop := make(chan struct{})
			var wg sync.WaitGroup
			for range 200 {
				wg.Go(func() {
					for {
						select {
						case <-stop:
							return
						default:
							_, _ = l.Over(n).Do(t.Context(), &upstream.Request{})
						}
					}
				})
			}
			time.Sleep(40 * time.Second)
			limit := l.Stats().Limit
			n.mu.Lock()
			n.takes *= 3 // for a reason that isn't ours
			n.mu.Unlock()
			time.Sleep(40 * time.Second)
			slower := l.Stats().Limit
			close(stop)
			wg.Wait()
			if limit < workers || limit > 3*workers {
				t.Errorf("%d writes at once are best: the limit is %d", workers, limit)
			}
			if slower < workers || slower > 3*workers {
				t.Errorf("%d writes at once are best, also in an engine that has become slower: the limit is %d", workers, slower)
			}
		})
	}
}

func TestRejectionsCutTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Most: 512, Wait: time.Hour})
		l.estimate.limit = 100
		d := l.Over(newNode(0, 0, 0)) // its line has no place
		before := l.Stats().Limit
		for range 50 {
			if res, err := d.Do(t.Context(), &upstream.Request{}); err != nil || res.Status != http.StatusTooManyRequests {
				t.Fatal(res, err)
			}
			time.Sleep(window)
		}
		if after := l.Stats().Limit; after != floor || before <= floor {
			t.Errorf("the limit was %d and is %d", before, after)
		}
	})
}

// An engine whose disk is full answers with 429, too.
func TestOnlyRejectionsByABusyEngineCutTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Most: 512, Wait: time.Hour, IsBusy: func(*upstream.Response) bool { return false }})
		l.estimate.limit = 100
		d := l.Over(newNode(0, 0, 0))
		for range 50 {
			if res, err := d.Do(t.Context(), &upstream.Request{}); err != nil || res.Status != http.StatusTooManyRequests {
				t.Fatal(res, err)
			}
			time.Sleep(window)
		}
		if s := l.Stats(); s.Limit != 100 || s.Out != 0 || l.estimate.quickest[0] != 0 {
			t.Errorf("%+v, and the quickest window took %v", s, l.estimate.quickest)
		}
	})
}

// What few writes at a time are answered with says nothing of many at a time.
func TestTheLimitDoesntGrowUnused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Most: 512, Wait: time.Hour})
		d := l.Over(newNode(1, time.Millisecond, 10))
		for range 10000 {
			_, _ = d.Do(t.Context(), &upstream.Request{})
		}
		if limit := l.Stats().Limit; limit != floor {
			t.Errorf("the limit is %d after writes that went one after the other", limit)
		}
	})
}

// turns takes all places that one client may have, and has writes wait in line in the given order. order tells who went, after release let one go after the other.
func turns(t *testing.T, background ...bool) (order []int) {
	t.Helper()
	l := New(Options{Most: 1, Wait: time.Hour})
	for l.fits(share.Client{}) {
		if err := l.acquire(t.Context(), share.Client{}, false); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	for k, b := range background {
		go func() {
			if l.acquire(t.Context(), share.Client{}, b) == nil {
				mu.Lock()
				order = append(order, k)
				mu.Unlock()
			}
		}()
		synctest.Wait()
	}
	for range background {
		l.release(share.Client{}, time.Now(), 0, unheard)
		synctest.Wait()
	}
	return order
}

func TestForegroundGoesFirstAndBackgroundGoesToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if got := turns(t, true, false, true, false); !slices.Equal(got, []int{1, 3, 0, 2}) {
			t.Errorf("went: %v", got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		many := make([]bool, 3*fairqueue.Patience)
		many[0] = true
		if got := turns(t, many...); slices.Index(got, 0) != fairqueue.Patience {
			t.Errorf("the background write went after %d others, want %d", slices.Index(got, 0), fairqueue.Patience)
		}
	})
}

func TestWhoseTurnDoesntComeIsToldThatNothingWasSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Most: floor, Wait: time.Second})
		release := make(chan struct{})
		sent := 0
		d := l.Over(doer(func(context.Context) (*upstream.Response, error) {
			sent++
			<-release
			return answer(http.StatusOK), nil
		}))
		for n := range floor {
			client := share.Client{Network: identity.Network(n + 1)}
			go func() { _, _ = d.Do(t.Context(), &upstream.Request{Client: client}) }()
			synctest.Wait()
		}
		start := time.Now()
		_, err := d.Do(t.Context(), &upstream.Request{})
		if !errors.Is(err, upstream.NotSent) || !errors.Is(err, upstream.ErrLimited) || time.Since(start) != time.Second || sent != floor {
			t.Errorf("after %s, %d sent: %v", time.Since(start), sent, err)
		}
		client, leave := context.WithCancel(t.Context())
		go func() {
			time.Sleep(time.Millisecond)
			leave()
		}()
		_, err = d.Do(wire.Last(client), &upstream.Request{})
		var failed *upstream.Error
		if !errors.As(err, &failed) || failed.Class != upstream.Cancelled || failed.Sent || sent != floor {
			t.Errorf("of a client that left, %d sent: %v", sent, err)
		}
		if s := l.Stats(); s.Refused != 1 || s.Foreground != 0 {
			t.Errorf("%+v", s)
		}
		close(release)
	})
}

// A place is given back whatever becomes of its write.
func TestAPlaceIsNeverLost(t *testing.T) {
	l := New(Options{Most: floor, Wait: time.Second})
	d := l.Over(doer(func(context.Context) (*upstream.Response, error) { panic("a defect") }))
	for range 2 * floor {
		func() {
			defer func() { _ = recover() }()
			_, _ = d.Do(t.Context(), &upstream.Request{})
		}()
	}
	failing := l.Over(doer(func(context.Context) (*upstream.Response, error) { return nil, upstream.Lost }))
	for range 2 * floor {
		if _, err := failing.Do(t.Context(), &upstream.Request{}); !errors.Is(err, upstream.Lost) {
			t.Fatal(err)
		}
	}
	if s := l.Stats(); s.Out != 0 {
		t.Errorf("%+v", s)
	}
}

type doer func(ctx context.Context) (*upstream.Response, error)

func (d doer) Do(ctx context.Context, _ *upstream.Request) (*upstream.Response, error) { return d(ctx) }

// Writes come, wait, leave and end in every order: none waits although there is a place, and no more are out than may be.
func TestManyAtOnce(t *testing.T) {
	l := New(Options{Most: 16, Wait: 5 * time.Millisecond})
	var mu sync.Mutex
	out, worst := 0, 0
	d := l.Over(doer(func(context.Context) (*upstream.Response, error) {
		mu.Lock()
		out++
		worst = max(worst, out)
		mu.Unlock()
		time.Sleep(50 * time.Microsecond)
		mu.Lock()
		out--
		mu.Unlock()
		return answer(http.StatusOK), nil
	}))
	var wg sync.WaitGroup
	for k := range 64 {
		wg.Go(func() {
			for n := range 200 {
				ctx, cancel := context.WithCancel(t.Context())
				if (k+n)%7 == 0 {
					cancel()
				}
				_, _ = d.Do(ctx, &upstream.Request{Background: k%2 == 0})
				cancel()
			}
		})
	}
	wg.Wait()
	if s := l.Stats(); s.Out != 0 || s.Foreground+s.Background != 0 || worst > 16 {
		t.Errorf("%+v, %d were out at once", s, worst)
	}
}

// TestOneClientsSlowWritesStopNobodyElses: an engine, or a tenant, may answer one client late. That client's further writes wait. So do those of
// others at its address in the end, but not those of clients elsewhere, though they came later.
func TestOneClientsSlowWritesStopNobodyElses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := New(Options{Most: 512, Wait: time.Minute})
		release := make(chan struct{})
		slow := l.Over(doer(func(context.Context) (*upstream.Response, error) {
			<-release
			return answer(http.StatusOK), nil
		}))
		quick := l.Over(doer(func(context.Context) (*upstream.Response, error) { return answer(http.StatusOK), nil }))
		at := func(addr string, who uint64) share.Client { return share.Of(netip.MustParseAddr(addr), who) }
		var wg sync.WaitGroup
		for k := range 10 * floor {
			wg.Go(func() { _, _ = slow.Do(t.Context(), &upstream.Request{Client: at("192.0.2.1", uint64(k%5))}) })
			synctest.Wait()
		}
		if s := l.Stats(); s.Out >= floor || s.Out < floor/2 || s.Foreground != 10*floor-s.Out {
			t.Errorf("%+v", s)
		}
		start := time.Now()
		for range 100 {
			if _, err := quick.Do(t.Context(), &upstream.Request{Client: at("192.0.2.2", 1)}); err != nil {
				t.Fatal(err)
			}
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("another client's writes waited for %s", took)
		}
		close(release)
		wg.Wait()
		if s := l.Stats(); s.Out != 0 || s.Foreground != 0 || s.Refused != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestAWriteThatAsksToWaitTakesNoPlace: its time is the client's choice. It mustn't stand for the engine's, nor keep others out.
func TestAWriteThatAsksToWaitTakesNoPlace(t *testing.T) {
	for target, takes := range map[string]bool{
		"/a/_doc/1?refresh=wait_for": false, "/a/_doc/1?if_seq_no=1&wait_for_active_shards=all": false, "/_bulk?wait_for_active_shards=5&timeout=1h": false,
		"/a/_doc/1": true, "/a/_doc/1?refresh=true": true, "/a/_doc/1?wait_for_active_shards=1": true, "/a/_doc/wait_for?refresh": true,
	} {
		l := New(Options{Most: 512, Wait: time.Minute})
		out := -1
		_, err := l.Over(doer(func(context.Context) (*upstream.Response, error) {
			out = l.Stats().Out
			return answer(http.StatusOK), nil
		})).Do(t.Context(), &upstream.Request{Target: []byte(target)})
		if err != nil || (out == 1) != takes || (l.estimate.answers == 1) != takes {
			t.Errorf("%s: %d out, %d answers, %v", target, out, l.estimate.answers, err)
		}
	}
}
