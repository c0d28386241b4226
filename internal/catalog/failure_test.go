package catalog

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"optimist/internal/doc"
	"optimist/internal/es"
	"optimist/internal/session"
)

// headless is an engine without a master: a question about its indices waits. Its answers come after a while, or never.
type headless struct {
	Engine
	asked atomic.Int64
	after time.Duration // 0: never
}

func (e *headless) ResolveIndex(ctx context.Context, _ es.Caller, name string) (es.Index, error) {
	e.asked.Add(1)
	var answer <-chan time.Time
	if e.after > 0 {
		answer = time.After(e.after)
	}
	select {
	case <-answer:
		return es.Index{Name: name, UUID: "u"}, nil
	case <-ctx.Done():
		return es.Index{}, ctx.Err()
	}
}

func (e *headless) SeesWhole(ctx context.Context, caller es.Caller, index, _ string) (bool, error) {
	_, err := e.ResolveIndex(ctx, caller, index)
	return err == nil, err
}

func (e *headless) PrimaryTerm(ctx context.Context, caller es.Caller, s es.Shard, _ string) (int64, error) {
	_, err := e.ResolveIndex(ctx, caller, s.Index)
	return 1, err
}

// inTurn runs f n times at once, and tells how long all of them took.
func inTurn(n int, f func()) time.Duration {
	began := time.Now()
	var all sync.WaitGroup
	for range n {
		all.Go(f)
	}
	all.Wait()
	return time.Since(began)
}

// TestThoseWhoWaitShareAFailure: each of them would ask for half a minute otherwise, one after the other.
func TestThoseWhoWaitShareAFailure(t *testing.T) {
	for name, known := range map[string]bool{"of what was never known": false, "of what is known from before": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &headless{after: time.Millisecond}
				c := New(Options{Engine: e})
				if known {
					_, _ = c.Resolve(t.Context(), asker("anna"), "shop", 0)
				}
				e.after = 0
				e.asked.Store(0)
				<-time.After(2 * trustAge)
				took := inTurn(20, func() {
					ix, err := c.Resolve(t.Context(), asker("anna"), "shop", 0)
					if known != (err == nil) || known != ix.Exists() || err != nil && !errors.Is(err, doc.ErrNotWritten) {
						t.Errorf("%+v %v", ix, err)
					}
				})
				if n := e.asked.Load(); n != 1 || took != askingBudget {
					t.Errorf("asked %d times, in %v", n, took)
				}
				if e.after = time.Millisecond; inTurn(1, func() { _, _ = c.Resolve(t.Context(), asker("anna"), "shop", time.Nanosecond) }) != e.after {
					t.Error("who comes later doesn't ask")
				}
			})
		})
	}
}

// TestEachQuestionOfAWriteIsAskedByOneAtATime: so none waits for longer than one question takes, and who is gone waits for none.
func TestEachQuestionOfAWriteIsAskedByOneAtATime(t *testing.T) {
	for name, q := range map[string]struct {
		asks  func(ctx context.Context, c *Catalog) (known bool)
		asked int64 // how often, until it fails
	}{
		"what an index is": {asks: func(ctx context.Context, c *Catalog) bool {
			_, err := c.Resolve(ctx, asker("anna"), "shop", 0)
			return err == nil
		}, asked: 1},
		"who sees it whole": {asks: func(ctx context.Context, c *Catalog) bool {
			whole, err := c.SeesWhole(ctx, asker("anna"), "shop", "")
			return whole && err == nil
		}, asked: 2}, // an answer may be lost
		"which primary it has": {asks: func(ctx context.Context, c *Catalog) bool {
			return c.SamePrimary(ctx, asker("anna"), &Conflict{Index: "shop", Shard: "0", Sent: time.Now().Add(-time.Second), Answered: time.Now()}, 0)
		}, asked: 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &headless{}
				c := New(Options{Engine: e})
				took := inTurn(20, func() {
					if q.asks(t.Context(), c) {
						t.Error("it is known all the same")
					}
				})
				if n := e.asked.Load(); n != q.asked || took != askingBudget {
					t.Errorf("asked %d times, in %v", n, took)
				}
				e.after = time.Millisecond
				e.asked.Store(0)
				if took = inTurn(20, func() {
					if !q.asks(t.Context(), c) {
						t.Error("it isn't known")
					}
				}); took != e.after || e.asked.Load() != 1 {
					t.Errorf("after the outage: asked %d times, in %v", e.asked.Load(), took)
				}
			})
		})
	}
}

// TestAReadWaitsShortlyForWhatAnIndexIs: document reads work without a master.
func TestAReadWaitsShortlyForWhatAnIndexIs(t *testing.T) {
	for name, known := range map[string]bool{"that was never known": false, "that is suspected": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &headless{after: time.Millisecond}
				sessions := session.New(session.Options{})
				c := New(Options{Engine: e, Sessions: sessions})
				learn := func() { _, _ = c.Learn(t.Context(), asker("anna"), "shop") }
				if known {
					learn()
					sessions.DropIndex(session.Credentials{1}, "shop")
				}
				e.after = 0
				e.asked.Store(0)
				if took := inTurn(20, learn); took != readBudget || e.asked.Load() > 1 {
					t.Errorf("asked %d times, in %v", e.asked.Load(), took)
				}
				if took := inTurn(20, learn); took != 0 {
					t.Errorf("after a failure, reads wait for %v", took)
				}
				<-time.After(refusalAge)
				e.after = time.Millisecond
				if _, err := c.Learn(t.Context(), asker("anna"), "shop"); err != nil || !c.Knows(asker("anna").Realm, "shop") {
					t.Errorf("after the outage: %v", err)
				}
			})
		})
	}
}

// TestAReadDoesNotWaitAsLongAsAWriteThatAsks has a write ask first.
func TestAReadDoesNotWaitAsLongAsAWriteThatAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Engine: &headless{after: 5 * time.Second}})
		var write sync.WaitGroup
		write.Go(func() {
			if ix, err := c.Resolve(t.Context(), asker("anna"), "shop", 0); err != nil || !ix.Exists() {
				t.Errorf("%+v %v", ix, err)
			}
		})
		synctest.Wait()
		if took := inTurn(20, func() { _, _ = c.Learn(t.Context(), asker("anna"), "shop") }); took != readBudget {
			t.Errorf("the reads took %v", took)
		}
		write.Wait()
		if _, err := c.Learn(t.Context(), asker("anna"), "shop"); err != nil {
			t.Errorf("the write has learnt it: %v", err)
		}
	})
}

// TestAWriteHasItsOwnTimeAfterAReadHasAsked: that the engine is too slow for a read is no failure of the write.
func TestAWriteHasItsOwnTimeAfterAReadHasAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Engine: &headless{after: 5 * time.Second}})
		var read sync.WaitGroup
		read.Go(func() { _, _ = c.Learn(t.Context(), asker("anna"), "shop") })
		synctest.Wait()
		if ix, err := c.Resolve(t.Context(), asker("anna"), "shop", 0); err != nil || !ix.Exists() {
			t.Errorf("%+v %v", ix, err)
		}
		read.Wait()
	})
}

// TestAReadLeavesAFailureThatItSharesAsItIs has reads and writes wait in turn for a write's question, which fails. A read made a failure of its
// own of it, of a second's patience: the next write asked for another half a minute, and each read's failure named all those before.
func TestAReadLeavesAFailureThatItSharesAsItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &headless{}
		c := New(Options{Engine: e})
		var all sync.WaitGroup
		all.Go(func() { _, _ = c.Resolve(t.Context(), asker("anna"), "shop", 0) })
		<-time.After(askingBudget - readBudget/2)
		for range 20 {
			all.Go(func() {
				if _, err := c.Learn(t.Context(), asker("anna"), "shop"); err == nil || strings.Count(err.Error(), "can't be asked") != 1 {
					t.Errorf("the failure of a read: %v", err)
				}
			})
			<-time.After(time.Millisecond)
			all.Go(func() { _, _ = c.Resolve(t.Context(), asker("anna"), "shop", 0) })
			<-time.After(time.Millisecond)
		}
		waits := time.Now()
		all.Wait()
		if took := time.Since(waits); took > readBudget || e.asked.Load() != 1 {
			t.Errorf("asked %d times; the last one waits for %v", e.asked.Load(), took)
		}
	})
}

// TestWhoIsGoneWaitsForNobodyThatAsks has somebody ask, and one that gives up.
func TestWhoIsGoneWaitsForNobodyThatAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := New(Options{Engine: &headless{}})
		ctx, cancel := context.WithCancel(t.Context())
		var first sync.WaitGroup
		first.Go(func() { _, _ = c.Resolve(t.Context(), asker("anna"), "shop", 0) })
		synctest.Wait()
		took := inTurn(1, func() {
			cancel()
			if _, err := c.Resolve(ctx, asker("anna"), "shop", 0); !errors.Is(err, context.Canceled) || !errors.Is(err, doc.ErrNotWritten) {
				t.Error(err)
			}
		})
		if took != 0 {
			t.Errorf("it waits for %v", took)
		}
		first.Wait()
	})
}

// severals is an engine where a name stands for several indices, or for one from some time on.
type severals struct {
	Engine
	asked atomic.Int64
	one   atomic.Bool
}

func (e *severals) ResolveIndex(_ context.Context, _ es.Caller, name string) (es.Index, error) {
	if e.asked.Add(1); e.one.Load() {
		return es.Index{Name: name, UUID: "u"}, nil
	}
	return es.Index{}, es.ErrNoIndex
}

// TestAReadAsksSeldomForANameOfSeveralIndices: a client may search by such a name all the time. Writes ask each time, for they may be about
// to make the index.
func TestAReadAsksSeldomForANameOfSeveralIndices(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &severals{}
		c := New(Options{Engine: e})
		learn := func(asked int64) {
			t.Helper()
			if _, err := c.Learn(t.Context(), asker("anna"), "all"); err != nil || e.asked.Load() != asked {
				t.Errorf("%v; asked %d times, want %d", err, e.asked.Load(), asked)
			}
		}
		for range 3 {
			learn(1)
		}
		<-time.After(refusalAge)
		learn(2)
		e.one.Store(true)
		if ix, err := c.Resolve(t.Context(), asker("anna"), "all", 0); err != nil || !ix.Exists() {
			t.Errorf("a write: %+v, %v", ix, err)
		}
		learn(3)
		if !c.Knows(asker("anna").Realm, "all") {
			t.Error("what the write has learnt isn't known to reads")
		}
	})
}

// TestAQuestionEndsWithThePatienceOfItsWrite: when a write isn't tried again any more, its client needs no answer. But a write to an index
// of which nothing is known isn't sent without one.
func TestAQuestionEndsWithThePatienceOfItsWrite(t *testing.T) {
	for name, left := range map[string]time.Duration{"some seconds": 5 * time.Second, "hardly any": time.Millisecond, "none": -time.Second,
		"an hour": time.Hour} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &headless{after: time.Millisecond}
				c := New(Options{Engine: e})
				_, _ = c.Resolve(t.Context(), asker("anna"), "known", 0)
				<-time.After(2 * trustAge)
				e.after = 0
				want := min(max(left, readBudget), askingBudget)
				writes := func(want time.Duration, f func(a Asker)) {
					t.Helper()
					if took := inTurn(20, func() {
						a := asker("anna")
						a.Until = time.Now().Add(left)
						f(a)
					}); took != want {
						t.Errorf("it took %v, want %v", took, want)
					}
				}
				writes(askingBudget, func(a Asker) {
					if _, err := c.Resolve(t.Context(), a, "shop", 0); !errors.Is(err, doc.ErrNotWritten) {
						t.Error(err)
					}
				})
				writes(want, func(a Asker) {
					if ix, err := c.Resolve(t.Context(), a, "known", 0); err != nil || !ix.Exists() {
						t.Errorf("what was known before counts: %+v %v", ix, err)
					}
				})
				writes(want, func(a Asker) {
					if whole, err := c.SeesWhole(t.Context(), a, "shop", ""); whole || err == nil {
						t.Error(whole, err)
					}
				})
				writes(want, func(a Asker) {
					conflict := &Conflict{Index: "shop", Shard: "0", Sent: time.Now().Add(-time.Second), Answered: time.Now()}
					if c.SamePrimary(t.Context(), a, conflict, 0) {
						t.Error("nobody has said that")
					}
				})
			})
		})
	}
}

// moody is an engine that says something else of an index when it is asked again.
type moody struct {
	Engine
	ix  es.Index
	err error
}

func (e *moody) ResolveIndex(context.Context, es.Caller, string) (es.Index, error) {
	return e.ix, e.err
}

func TestAnIndexIsTheSameUnlessTheEngineSaysSomethingElse(t *testing.T) {
	shop := es.Index{Name: "shop", UUID: "u"}
	for name, then := range map[string]struct {
		ix   es.Index
		err  error
		same bool
	}{
		"the same":                  {shop, nil, true},
		"another one":               {es.Index{Name: "shop", UUID: "v"}, nil, false},
		"an alias of another one":   {es.Index{Name: "shop-2", UUID: "v"}, nil, false},
		"none":                      {es.Index{}, es.ErrNoIndex, false},
		"no answer":                 {es.Index{}, context.DeadlineExceeded, true},
		"no master":                 {es.Index{}, &es.StatusError{Status: 503}, true},
		"a page":                    {es.Index{}, &es.StatusError{Status: 404}, true},
		"the client mustn't ask it": {es.Index{}, &es.StatusError{Status: 403}, true},
	} {
		for _, learnt := range []string{"shop", "an alias"} { // the name by which the index was asked about before
			for _, forgotten := range []bool{false, true} {
				e := &moody{ix: shop}
				c := New(Options{Engine: e})
				if c.IsSame(t.Context(), asker("anna"), "shop") {
					t.Error("nobody knows what it was")
				}
				_, _ = c.Resolve(t.Context(), asker("anna"), learnt, 0)
				if forgotten {
					c.Forget(asker("anna").Credentials)
				}
				e.ix, e.err = then.ix, then.err
				if c.IsSame(t.Context(), asker("anna"), "shop") != then.same {
					t.Errorf("%s, learnt by %s, forgotten %t: not %t", name, learnt, forgotten, then.same)
				}
			}
		}
	}
}
