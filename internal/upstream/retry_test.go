package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"optimist/internal/wire"
)

// A proxy that sends a write again after a dropped connection writes twice: seen five times in a row elsewhere.
func TestWriteWithoutAnAnswerIsSentExactlyOnce(t *testing.T) {
	for _, reused := range []bool{false, true} {
		s := newStub(t, func(p *peer) {
			for {
				req, _ := p.next()
				if req == nil || req.Method != "GET" {
					return
				}
				p.answer(200, "")
			}
		})
		other := newStub(t, echo)
		set := newSet(t, nil, s.url)
		if reused {
			do(t, set, get())
		}
		before := s.requests.Load()
		e := fails(t, set, put("{}"), Lost)
		if !e.Sent || !errors.Is(e, errHungUp) || e.Node != s.url {
			t.Errorf("%+v", e)
		}
		if n := s.requests.Load() - before; n != 1 {
			t.Errorf("reused %v: the write was sent %d times", reused, n)
		}
		both := newSet(t, nil, s.url, other.url)
		for range 2 {
			_, _ = both.Do(context.Background(), put("{}"))
		}
		if n := s.requests.Load() - before; n != 2 || other.requests.Load() != 1 {
			t.Errorf("with another node: sent %d times here and %d there, for two writes", n-1, other.requests.Load())
		}
	}
}

func TestRepeatableRequestIsSentOnceMoreAfterALostAnswer(t *testing.T) {
	s := newStub(t, func(p *peer) {
		if req, _ := p.next(); req != nil && p.n > 1 {
			p.answer(200, "second")
		}
	})
	var resent []*Error
	set := newSet(t, func(c *Config) { c.Hooks.Resent = func(e *Error) { resent = append(resent, e) } }, s.url)
	if got := do(t, set, get()); got != "200 second" {
		t.Error(got)
	}
	if len(resent) != 1 || resent[0].Class != Lost {
		t.Errorf("resent %v", resent)
	}
}

func TestLostTwiceIsLost(t *testing.T) {
	s := newStub(t, func(p *peer) { p.next() })
	fails(t, newSet(t, nil, s.url), get(), Lost)
	if s.requests.Load() != 2 {
		t.Errorf("sent %d times", s.requests.Load())
	}
}

func TestLostStaysLostWhenTheNextNodeCannotBeReached(t *testing.T) {
	s := newStub(t, func(p *peer) {
		if req, _ := p.next(); req != nil {
			p.s.l.Close() // nobody can connect any more
		}
	})
	set := newSet(t, nil, s.url, refusing(t))
	for _, n := range set.nodes[1:] {
		n.recordFailure(errUnhealthy, false)
	}
	e := fails(t, set, get(), Lost)
	if !e.Sent || e.Node != s.url {
		t.Errorf("%+v", e)
	}
}

// A connection that the node closed while it was idle must cost nothing: neither an error nor a second sending.
func TestConnectionClosedWhileIdleIsNotUsed(t *testing.T) {
	s := newStub(t, func(p *peer) {
		if req, _ := p.next(); req != nil {
			p.answer(200, "")
		}
	})
	set := newSet(t, nil, s.url)
	for range 20 {
		do(t, set, put("{}"))
		until(t, func() bool { return idle(set).probe.State() == wire.PeerGone })
	}
	if s.requests.Load() != 20 {
		t.Errorf("%d requests for 20 writes", s.requests.Load())
	}
	if st := set.Nodes()[0]; st.Open != 1 || st.Idle != 1 {
		t.Errorf("%+v", st)
	}
}

// idle returns the first node's last used idle connection.
func idle(s *Set) *conn {
	p := &s.nodes[0].pool
	p.Lock()
	defer p.Unlock()
	return p.idle[len(p.idle)-1]
}

func TestWhatWasSentWhileIdleIsNotTakenForAnAnswer(t *testing.T) {
	s := newStub(t, func(p *peer) {
		for {
			if req, _ := p.next(); req == nil {
				return
			}
			p.answer(200, "right")
			p.answer(408, "unasked")
		}
	})
	set := newSet(t, nil, s.url)
	for range 5 {
		if got := do(t, set, put("{}")); got != "200 right" {
			t.Fatal(got)
		}
		until(t, func() bool { return set.Nodes()[0].Idle == 0 || idle(set).probe.State() == wire.PeerSent })
	}
}

func TestDeadConnectionsOfANodeThatRestartedAreDroppedTogether(t *testing.T) {
	const n = 5
	var together sync.WaitGroup
	together.Add(n)
	s := newStub(t, func(p *peer) {
		req, _ := p.next()
		if req == nil {
			return
		}
		if req.Method == "GET" {
			together.Done()
			together.Wait()
		}
		p.answer(200, "")
	})
	set := newSet(t, nil, s.url)
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() { do(t, set, &Request{Method: "GET", Target: []byte("/")}) })
	}
	wg.Wait()
	until(t, func() bool {
		p := &set.nodes[0].pool
		p.Lock()
		defer p.Unlock()
		for _, c := range p.idle {
			if c.probe.State() != wire.PeerGone {
				return false
			}
		}
		return true
	})
	_, _ = set.Do(context.Background(), put("{}")) // may be lost: it was used too soon to be probed
	if st := set.Nodes()[0]; st.Open > 1 {
		t.Errorf("%+v", st)
	}
}

func TestNextNodeIsTriedWhereNothingWasSent(t *testing.T) {
	s := newStub(t, echo)
	var mu sync.Mutex
	ejected := map[string]int{}
	dead1, dead2 := refusing(t), refusing(t)
	set := newSet(t, func(c *Config) {
		c.Hooks.Ejected = func(node string, err error) {
			mu.Lock()
			defer mu.Unlock()
			ejected[node]++
		}
	}, dead1, s.url, dead2)
	for range 30 {
		if got := do(t, set, put("x")); got != "200 PUT /i/_doc/1 x" {
			t.Fatal(got)
		}
	}
	if s.requests.Load() != 30 {
		t.Errorf("%d requests for 30 writes", s.requests.Load())
	}
	if ejected[dead1] != 1 || ejected[dead2] != 1 || ejected[s.url] != 0 {
		t.Errorf("ejected: %v", ejected)
	}
	for i, alive := range []bool{false, true, false} {
		if st := set.Nodes()[i]; st.Alive != alive || (st.Err == nil) != alive {
			t.Errorf("%+v", st)
		}
	}
}

func TestNodesTakeTurns(t *testing.T) {
	a, b, c := newStub(t, echo), newStub(t, echo), newStub(t, echo)
	set := newSet(t, nil, a.url, b.url, c.url)
	for range 30 {
		do(t, set, get())
	}
	if a.requests.Load() != 10 || b.requests.Load() != 10 || c.requests.Load() != 10 {
		t.Errorf("%d, %d, %d", a.requests.Load(), b.requests.Load(), c.requests.Load())
	}
}

// What a node has done only that node can be asked; where it is gone, another is better than none.
func TestNamedNodeIsAskedFirstWhileItIsAlive(t *testing.T) {
	a, b := newStub(t, echo), newStub(t, echo)
	dead := refusing(t)
	set := newSet(t, nil, a.url, b.url, dead)
	for _, node := range []string{b.url, dead, "http://none"} {
		for range 10 {
			r := get()
			r.Node = node
			do(t, set, r)
		}
	}
	if a.requests.Load() == 0 || b.requests.Load() < 15 || a.requests.Load()+b.requests.Load() != 30 {
		t.Errorf("%d, %d", a.requests.Load(), b.requests.Load())
	}
	resp, err := set.Do(t.Context(), &Request{Method: "GET", Target: []byte("/"), Node: b.url})
	if err != nil || resp.Node != b.url {
		t.Errorf("%v %v", resp, err)
	}
	resp.Release()
}

func TestAllNodesDownIsAnErrorAtOnce(t *testing.T) {
	set := newSet(t, nil, refusing(t), refusing(t))
	for range 3 { // also while both are ejected
		fails(t, set, put("{}"), NotSent)
	}
}

// No health check runs here: the request itself must find the node that is back.
func TestSingleNodeThatIsBackWorksAtOnce(t *testing.T) {
	s := newStub(t, echo)
	set := newSet(t, nil, s.url)
	do(t, set, put(""))
	s.close()
	_, _ = set.Do(context.Background(), put("{}"))
	fails(t, set, put("{}"), NotSent)
	if set.Nodes()[0].Alive {
		t.Error("a node that refuses is alive")
	}
	newStubAt(t, s.l.Addr().String(), nil, echo)
	if got := do(t, set, put("x")); got != "200 PUT /i/_doc/1 x" {
		t.Error(got)
	}
	if !set.Nodes()[0].Alive {
		t.Error("a node that answered isn't alive")
	}
}

func TestCheckBringsAnEjectedNodeBack(t *testing.T) {
	live, s := newStub(t, echo), newStub(t, echo)
	s.close()
	ejected, returned := make(chan string, 1), make(chan string, 1)
	set := newSet(t, func(c *Config) {
		c.HealthInterval, c.EjectMin, c.EjectMax = time.Hour, time.Millisecond, 5*time.Millisecond
		c.Hooks.Ejected = func(node string, err error) { ejected <- node }
		c.Hooks.Returned = func(node string) { returned <- node }
	}, live.url, s.url)
	for set.nodes[1].alive.Load() {
		do(t, set, get())
	}
	if got := <-ejected; got != s.url {
		t.Errorf("ejected %s", got)
	}
	back := newStubAt(t, s.l.Addr().String(), nil, echo)
	if got := <-returned; got != s.url {
		t.Errorf("returned %s", got)
	}
	checks := back.requests.Load()
	for range 10 {
		do(t, set, get())
	}
	if back.requests.Load()-checks != 5 {
		t.Errorf("the node that is back gets %d of 10 requests", back.requests.Load()-checks)
	}
}

func TestChecksTakeAnyAnswerBelow500ForAlive(t *testing.T) {
	for status, alive := range map[int]bool{200: true, 401: true, 404: true, 429: true, 500: false, 503: false} {
		s := newStub(t, func(p *peer) {
			if req, _ := p.next(); req != nil {
				if req.URL.Path != "/es/" || req.Method != "GET" || req.Header.Get("Authorization") != "Basic x" {
					t.Errorf("the check was %s %s %v", req.Method, req.URL, req.Header)
				}
				p.answer(status, "")
			}
		})
		set := newSet(t, func(c *Config) { c.Authorization = "Basic x" }, s.url+"/es")
		err := set.nodes[0].check()
		if (err == nil) != alive {
			t.Errorf("%d: %v", status, err)
		}
		if st := set.Nodes()[0]; st.Open != 0 {
			t.Errorf("a check's connection is counted: %+v", st)
		}
	}
}

// The system keeps a connection to a machine that is gone for a quarter of an hour.
func TestReadsOfANodeThatFallsSilentGoToAnother(t *testing.T) {
	silent, end := make(chan bool, 2), make(chan struct{})
	s := newStub(t, func(p *peer) {
		p.next()
		silent <- true
		<-end
		p.answer(200, "late")
	})
	set := newSet(t, nil, s.url, newStub(t, echo).url)
	n, other := set.nodes[0], set.nodes[1]
	start := func(r *Request) chan string {
		r.Node = s.url
		got := make(chan string, 1)
		go func() { got <- do(t, set, r) }()
		<-silent
		return got
	}
	read, write := start(get()), start(put("x"))
	n.recordFailure(errSilent, true)
	if got := <-read; got != "200 GET /i/_doc/1 " {
		t.Errorf("the read: %s", got)
	}

	n.recordSuccess()
	alone := start(get())
	other.recordFailure(errSilent, true)
	n.recordFailure(errSilent, true)
	close(end)
	for what, answer := range map[string]chan string{"the write": write, "the read that no other node can answer": alone} {
		if got := <-answer; got != "200 late" {
			t.Errorf("%s: %s", what, got)
		}
	}
}

func TestSilentNodeFailsItsCheck(t *testing.T) {
	s := newStub(t, func(p *peer) { io.Copy(io.Discard, p) })
	set := newSet(t, func(c *Config) { c.HealthTimeout = 300 * time.Millisecond }, s.url)
	if err := set.nodes[0].check(); err == nil || err.Error() != "the health check (GET /) had no answer within 300ms" {
		t.Errorf("%v", err)
	}
}

func TestEjectionGrowsToItsBoundAndIsNotGrownByRequests(t *testing.T) {
	set := newSet(t, func(c *Config) { c.EjectMin, c.EjectMax = time.Second, 10*time.Second }, refusing(t))
	n := set.nodes[0]
	wait := func() time.Duration { return (n.health.next - set.now()).Round(time.Second) }
	n.recordFailure(errUnhealthy, false)
	for range 100 {
		n.recordFailure(errUnhealthy, false)
	}
	if wait() != time.Second {
		t.Errorf("first wait %v", wait())
	}
	for _, want := range []time.Duration{2, 4, 8, 10, 10} {
		n.recordFailure(errUnhealthy, true)
		if wait() != want*time.Second {
			t.Errorf("wait %v, want %vs", wait(), int(want))
		}
	}
	for range 100 {
		n.recordFailure(errUnhealthy, true)
	}
	if wait() != 10*time.Second {
		t.Errorf("after many: %v", wait())
	}
	n.recordSuccess()
	n.recordFailure(errUnhealthy, false)
	if wait() != time.Second {
		t.Errorf("after a success: %v", wait())
	}
}

func TestSlowCheckEjectsANodeThatDied(t *testing.T) {
	live, s := newStub(t, echo), newStub(t, echo)
	ejected := make(chan string, 4)
	set := newSet(t, func(c *Config) {
		c.HealthInterval = 2 * time.Millisecond
		c.Hooks.Ejected = func(node string, err error) { ejected <- node }
	}, live.url, s.url)
	s.close()
	if got := <-ejected; got != s.url {
		t.Errorf("ejected %s", got)
	}
	for range 4 {
		do(t, set, get())
	}
}

func TestResetBeforeAnyByteWasWrittenIsNotSent(t *testing.T) {
	// The node takes the connection and resets it; then even a write is safe anywhere else.
	connected := make(chan struct{})
	s := newStub(t, func(p *peer) {
		<-connected
		_ = p.Conn.(*net.TCPConn).SetLinger(0)
	})
	set := newSet(t, nil, s.url)
	n := set.nodes[0]
	c, err := n.get(context.Background(), &user{}, false)
	if err != nil {
		t.Fatal(err)
	}
	close(connected)
	until(t, func() bool { return c.probe.State() == wire.PeerGone })
	x := newExchangeFor(t, set)
	e := x.attemptOn(c, put("{}"))
	x.release(false)
	if e == nil || e.Class != NotSent || e.Sent {
		t.Errorf("%+v", e)
	}
}
