package upstream

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/share"
	"optimist/internal/wire"
)

func TestOpenConnectionsAreBounded(t *testing.T) {
	var now, most atomic.Int64
	s := newStub(t, func(p *peer) {
		for {
			req, _ := p.next()
			if req == nil {
				return
			}
			n := now.Add(1)
			for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
			}
			now.Add(-1)
			p.answer(200, "")
		}
	})
	var waited atomic.Int64
	set := newSet(t, func(c *Config) {
		c.MaxConns = 3
		c.Hooks.Waited = func(string, time.Duration) { waited.Add(1) }
	}, s.url)
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			for range 20 {
				resp, err := set.Do(context.Background(), put("{}"))
				if err != nil {
					t.Error(err)
					return
				}
				resp.Release()
			}
		})
	}
	wg.Wait()
	if open := set.Nodes()[0].Open; s.accepted.Load() > 3 || most.Load() > 3 || int64(open) != s.accepted.Load() {
		t.Errorf("%d connections, %d requests at once, %d connections said to be open", s.accepted.Load(), most.Load(), open)
	}
	if s.requests.Load() != 600 || waited.Load() == 0 {
		t.Errorf("%d requests, %d waits", s.requests.Load(), waited.Load())
	}
}

func TestNoFreeConnectionIsSaidAfterAWhile(t *testing.T) {
	read, ended := make(chan struct{}), make(chan struct{}, 1)
	s := newStub(t, silent(read, ended))
	set := newSet(t, func(c *Config) { c.MaxConns, c.AcquireTimeout = 1, 5*time.Millisecond }, s.url)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := set.Do(ctx, put("{}"))
		done <- err
	}()
	<-read
	if e := fails(t, set, put("{}"), NotSent); !errors.Is(e, ErrBusy) {
		t.Errorf("%v", e)
	}
	if st := set.Nodes()[0]; !st.Alive {
		t.Error("a busy node was ejected")
	}
	cancel()
	if err := <-done; !errors.Is(err, Cancelled) {
		t.Errorf("%v", err)
	}
}

func TestPlaceOfABrokenConnectionGoesToWhoWaits(t *testing.T) {
	s := newStub(t, func(p *peer) {
		if req, _ := p.next(); req != nil && req.Method == "GET" {
			p.answer(200, "")
		} // and closes, answered or not
	})
	set := newSet(t, func(c *Config) { c.MaxConns, c.AcquireTimeout = 1, time.Minute }, s.url)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			r := put("{}")
			if i%2 == 0 {
				r = get()
			}
			if resp, err := set.Do(context.Background(), r); err == nil {
				resp.Release()
			} else if !errors.Is(err, Lost) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if st := set.Nodes()[0]; st.Open > 1 || set.nodes[0].pool.waiting() != 0 {
		t.Errorf("%+v", st)
	}
}

func TestWaiterThatLeavesPassesOnWhatItWasGiven(t *testing.T) {
	s := newStub(t, echo)
	set := newSet(t, func(c *Config) { c.MaxConns = 1 }, s.url)
	n := set.nodes[0]
	c, err := n.get(context.Background(), &user{}, false)
	if err != nil {
		t.Fatal(err)
	}
	_, _, first, _ := n.take(&user{}, false)
	_, _, second, _ := n.take(&user{}, false)
	n.put(c)            // given to the first,
	n.leaveQueue(first) // which has just left
	if got := <-second.turn; got != c {
		t.Errorf("got %v", got)
	}
	_, _, third, _ := n.take(&user{}, false)
	n.drop(c) // its place goes to the third,
	n.leaveQueue(third)
	if st := set.Nodes()[0]; st.Open != 0 {
		t.Errorf("%+v", st)
	}
}

func TestIdleConnectionsAreBoundedAndClosedInTime(t *testing.T) {
	var together sync.WaitGroup
	together.Add(5)
	s := newStub(t, func(p *peer) {
		for first := true; ; first = false {
			if req, _ := p.next(); req == nil {
				return
			}
			if first {
				together.Done()
				together.Wait()
			}
			p.answer(200, "")
		}
	})
	set := newSet(t, func(c *Config) { c.MaxIdle, c.IdleTimeout = 2, time.Hour }, s.url)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() { do(t, set, get()) })
	}
	wg.Wait()
	if st := set.Nodes()[0]; st.Open != 2 || st.Idle != 2 {
		t.Errorf("%+v", st)
	}
	set.nodes[0].pool.idle[0].since -= time.Hour
	set.checkDue()
	if st := set.Nodes()[0]; st.Open != 1 || st.Idle != 1 {
		t.Errorf("after the sweep: %+v", st)
	}
	set.nodes[0].pool.idle[0].since -= time.Hour // and without a sweep
	s2 := s.accepted.Load()
	together.Add(1)
	do(t, set, get())
	if s.accepted.Load() != s2+1 {
		t.Error("a connection over its idle time was used")
	}
}

func TestLastUsedConnectionIsUsedFirst(t *testing.T) {
	s := newStub(t, echo)
	set := newSet(t, nil, s.url)
	n := set.nodes[0]
	a, _ := n.get(context.Background(), &user{}, false)
	b, _ := n.get(context.Background(), &user{}, false)
	n.put(a)
	n.put(b)
	if c, _ := n.get(context.Background(), &user{}, false); c != b {
		t.Error("the other one")
	} else {
		n.put(c)
	}
	if c, _ := n.get(context.Background(), &user{}, true); c == a || c == b {
		t.Error("not fresh")
	} else {
		n.put(c)
	}
}

func TestFreshConnectionTakesThePlaceOfAnIdleOneAtTheBound(t *testing.T) {
	s := newStub(t, echo)
	set := newSet(t, func(c *Config) { c.MaxConns = 1 }, s.url)
	do(t, set, get())
	c, err := set.nodes[0].get(context.Background(), &user{}, true)
	if err != nil || c.reused {
		t.Fatal(err)
	}
	set.nodes[0].put(c)
	if st := set.Nodes()[0]; st.Open != 1 || st.Idle != 1 {
		t.Errorf("%+v", st)
	}
}

func TestFullNodeIsPassedOverWhileAnotherHasRoom(t *testing.T) {
	read, ended := make(chan struct{}), make(chan struct{}, 1)
	slow, quick := newStub(t, silent(read, ended)), newStub(t, echo)
	set := newSet(t, func(c *Config) { c.MaxConns, c.AcquireTimeout = 1, time.Minute }, slow.url, quick.url)
	c, err := set.nodes[0].get(context.Background(), &user{}, false)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		do(t, set, put("x"))
	}
	set.nodes[0].drop(c)
}

func TestCloseEndsWaitersAndLetsExchangesFinish(t *testing.T) {
	read, answer := make(chan struct{}), make(chan struct{})
	s := newStub(t, func(p *peer) {
		for p.head() != nil {
			read <- struct{}{}
			<-answer
			p.answer(200, "late")
		}
	})
	set := newSet(t, func(c *Config) { c.MaxConns, c.AcquireTimeout = 1, time.Minute }, s.url)
	got, waits := make(chan string), make(chan error)
	go func() { got <- do(t, set, &Request{Method: "GET", Target: []byte("/")}) }()
	<-read
	go func() {
		_, err := set.Do(context.Background(), put("{}"))
		waits <- err
	}()
	until(t, func() bool {
		p := &set.nodes[0].pool
		p.Lock()
		defer p.Unlock()
		return p.waiting() == 1
	})
	set.Close()
	if err := <-waits; !errors.Is(err, ErrClosed) || !errors.Is(err, NotSent) {
		t.Errorf("%v", err)
	}
	close(answer)
	if g := <-got; g != "200 late" {
		t.Error(g)
	}
	fails(t, set, put("{}"), NotSent)
	if st := set.Nodes()[0]; st.Open != 0 {
		t.Errorf("%+v", st)
	}
	set.Close() // twice is harmless
}

// TestHangUpEndsEverything: what was sent may have been carried out, also where it outlasts its client. A read isn't sent again.
func TestHangUpEndsEverything(t *testing.T) {
	read := make(chan struct{})
	s := newStub(t, func(p *peer) {
		for p.head() != nil {
			read <- struct{}{}
		}
	})
	for name, request := range map[string]*Request{"write": put("{}"), "read": get()} {
		t.Run(name, func(t *testing.T) {
			set := newSet(t, nil, s.url)
			ended := make(chan error)
			go func() {
				_, err := set.Do(wire.Last(context.Background()), request)
				ended <- err
			}()
			<-read
			set.HangUp()
			err := <-ended
			if lost := errors.Is(err, Lost); !errors.Is(err, ErrClosed) || lost == request.Repeatable {
				t.Error(err)
			}
			fails(t, set, put("{}"), NotSent)
			if st := set.Nodes()[0]; st.Open != 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

// A client whose requests the engine doesn't answer takes most connections. The next one finds a place, and gets what becomes free first.
func TestOneClientLeavesConnectionsToOthers(t *testing.T) {
	s := newStub(t, echo)
	const total = 16
	set := newSet(t, func(c *Config) { c.MaxConns, c.AcquireTimeout = total, time.Minute }, s.url)
	n := set.nodes[0]
	client := func(addr string) *user { return &user{client: share.Of(netip.MustParseAddr(addr), 0)} }
	var held []*conn
	var waiting *waiter
	for waiting == nil {
		c, dial, wait, err := n.take(client("192.0.2.1"), false)
		switch {
		case err != nil || c != nil:
			t.Fatal(c, err)
		case dial:
			n.pool.Lock()
			u := n.pool.users[len(n.pool.users)-1]
			n.pool.Unlock()
			if c, err = n.open(t.Context(), u); err != nil {
				t.Fatal(err)
			}
			held = append(held, c)
		}
		waiting = wait
	}
	if len(held) < total*3/4 || len(held) >= total {
		t.Errorf("one client got %d of %d connections", len(held), total)
	}
	other := client("192.0.2.2")
	c, err := n.get(t.Context(), other, false)
	if err != nil {
		t.Fatal(err)
	}
	n.put(c)
	select {
	case <-waiting.turn:
		t.Error("the client got more than its share")
	default:
	}
	c, err = n.get(t.Context(), other, false)
	if err != nil || !c.reused {
		t.Errorf("%v: the free connection isn't the other client's", err)
	}
	n.put(c)
	n.put(held[0])
	if got := <-waiting.turn; got == nil {
		t.Error("who waits got leave to make a connection, though there was a free one")
	} else {
		n.put(got)
	}
	for _, c := range held[1:] {
		n.put(c)
	}
	if st := set.Nodes()[0]; len(n.pool.users) != 0 || n.pool.waiting() != 0 || st.Open != st.Idle {
		t.Errorf("%+v, %d users, %d waiters", st, len(n.pool.users), n.pool.waiting())
	}
}

// Ten thousand requests wait for a connection, of a client that has its share, or of as many made-up clients at its address. A client that comes
// later has the next place that becomes free.
func TestWhoWaitsAtOneAddressHoldsNobodyUp(t *testing.T) {
	for name, credentials := range map[string]func(i int) uint64{"one client": func(int) uint64 { return 1 }, "made-up clients": func(i int) uint64 { return uint64(i) }} {
		t.Run(name, func(t *testing.T) {
			const total, waiting = 4, 10_000
			s := newStub(t, echo)
			set := newSet(t, func(c *Config) { c.MaxConns, c.AcquireTimeout = total, time.Minute }, s.url)
			n := set.nodes[0]
			client := func(addr string, i int) *user {
				return &user{client: share.Of(netip.MustParseAddr(addr), credentials(i))}
			}
			var users []*user
			for i := range waiting {
				u := client("192.0.2.1", i)
				_, dial, _, err := n.take(u, false)
				if err != nil {
					t.Fatal(err)
				}
				if dial {
					users = append(users, u)
				}
			}
			others := []string{"192.0.2.2", "192.0.2.3", "192.0.2.4"}
			var turns []*waiter
			for _, addr := range others {
				u := client(addr, 1)
				_, dial, w, err := n.take(u, false)
				switch {
				case err != nil:
					t.Fatal(err)
				case dial:
					users = append(users, u)
				default:
					turns = append(turns, w)
				}
			}
			if len(turns) == 0 {
				t.Fatal("there was a place for everybody")
			}
			for _, w := range turns {
				n.freePlace(users[0])
				users = users[1:]
				select {
				case <-w.turn:
				default:
					t.Fatalf("%v isn't the next", w.user.client)
				}
			}
		})
	}
}

// To make a line, all users of connections are counted. While most connections are taken, requests wait again and again: the line isn't made
// anew each time.
func TestTheLineOutlastsItsWaitersWhileTheNodeIsCrowded(t *testing.T) {
	const total = 8
	set := newSet(t, func(c *Config) { c.MaxConns = total }, newStub(t, echo).url)
	n := set.nodes[0]
	p := &n.pool
	next := byte(0)
	take := func() (u *user, w *waiter) {
		next++
		u = &user{client: share.Of(netip.AddrFrom4([4]byte{192, 0, 2, next}), 0)}
		_, _, w, err := n.take(u, false)
		if err != nil {
			t.Fatal(err)
		}
		return u, w
	}
	var users []*user
	for range total {
		u, _ := take()
		users = append(users, u)
	}
	if p.line != nil {
		t.Error("nobody has waited, and there is a line")
	}
	_, left := take()
	line := p.line
	n.leaveQueue(left)
	u, served := take()
	n.freePlace(users[0])
	<-served.turn
	users[0] = u
	if line == nil || p.line != line || p.waits() {
		t.Errorf("%p, then %p", line, p.line)
	}
	for len(users) > 0 {
		n.freePlace(users[0])
		users = users[1:]
		if crowded := share.Crowded(total, len(users)); (p.line != nil) != crowded {
			t.Errorf("with %d users: %v", len(users), p.line)
		}
	}
}

// A connection that came back while nobody waited is idle, or closed, whether there is a line or not.
func TestIdleConnectionsAreBoundedThoughThereIsALine(t *testing.T) {
	set := newSet(t, func(c *Config) { c.MaxConns, c.MaxIdle = 1, 1 }, newStub(t, echo).url)
	n := set.nodes[0]
	c, err := n.get(t.Context(), &user{}, false)
	if err != nil {
		t.Fatal(err)
	}
	_, _, w, _ := n.take(&user{}, false)
	n.leaveQueue(w)
	set.cfg.MaxIdle = 0
	n.put(c)
	if st := set.Nodes()[0]; st.Open != 0 {
		t.Errorf("%+v", st)
	}
}

// waiting is how many requests wait for a connection.
func (p *pool) waiting() int {
	if p.line == nil {
		return 0
	}
	n, _ := p.line.Len()
	return n
}
