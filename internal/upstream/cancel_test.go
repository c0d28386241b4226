package upstream

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/wire"
)

// silent reads requests, never answers, and tells when each connection ends.
func silent(read, ended chan<- struct{}) func(p *peer) {
	return func(p *peer) {
		if p.head() != nil {
			read <- struct{}{}
			io.Copy(io.Discard, p.br)
			ended <- struct{}{}
		}
	}
}

func TestCancelClosesTheConnectionToTheEngine(t *testing.T) {
	read, ended := make(chan struct{}), make(chan struct{})
	s := newStub(t, silent(read, ended))
	set := newSet(t, nil, s.url)
	for name, r := range map[string]*Request{
		"while the answer is awaited":       put("{}"),
		"repeatable, too":                   get(),
		"while a large body is written":     {Method: "PUT", Target: []byte("/"), Body: make([]byte, 64<<20)},
		"while the client is still sending": stream(newStalled("x"), -1),
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(context.Background())
			left := errors.New("the client left")
			go func() {
				<-read
				cancel(left)
			}()
			resp, err := set.Do(ctx, r)
			e := failed(t, resp, err, Cancelled)
			if !e.Sent || !errors.Is(e, left) {
				t.Errorf("%+v", e)
			}
			<-ended
			if st := set.Nodes()[0]; st.Open != 0 || !st.Alive {
				t.Errorf("%+v", st)
			}
		})
	}
	if n := s.requests.Load(); n != 4 {
		t.Errorf("%d requests: something was sent again", n)
	}
}

// longEnough calls try with a time that grows until its request was sent within it: a busy machine may need more than another to
// get as far. It returns the error of that request.
func longEnough(t *testing.T, try func(limit time.Duration) error) *Error {
	t.Helper()
	for limit := 10 * time.Millisecond; ; limit *= 2 {
		err := try(limit)
		if e := failed(t, nil, err, Cancelled); e.Sent || limit > 10*time.Second {
			return e
		}
	}
}

func TestDeadlineEndsAnExchange(t *testing.T) {
	read, ended := make(chan struct{}, 1), make(chan struct{}, 1)
	s := newStub(t, silent(read, ended))
	set := newSet(t, nil, s.url)
	e := longEnough(t, func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		defer cancel()
		_, err := set.Do(ctx, put("{}"))
		return err
	})
	if !e.Sent || !errors.Is(e, context.DeadlineExceeded) {
		t.Fatalf("%+v", e)
	}
	<-ended
}

func TestTimeoutOfARequestEndsItAsADeadlineDoes(t *testing.T) {
	read, ended := make(chan struct{}, 2), make(chan struct{}, 2)
	s := newStub(t, silent(read, ended))
	set := newSet(t, nil, s.url)
	for range 2 { // the second may use what the first left
		e := longEnough(t, func(limit time.Duration) error {
			r := put("{}")
			r.Timeout = limit
			_, err := set.Do(context.Background(), r)
			return err
		})
		if !e.Sent || !errors.Is(e, context.DeadlineExceeded) {
			t.Fatalf("%+v", e)
		}
		<-ended
	}
	if n := s.requests.Load(); n != 2 {
		t.Errorf("%d requests: something was sent again", n)
	}
}

// slowToEnd is a context whose deadline has passed a moment before it says so.
type slowToEnd struct{ context.Context }

func (slowToEnd) Deadline() (time.Time, bool) { return time.Unix(1, 0), true }

func TestNodeIsNotBlamedForADeadlineWhileConnecting(t *testing.T) {
	s := newStub(t, echo)
	set := newSet(t, nil, s.url)
	ctx, cancel := context.WithCancelCause(t.Context())
	late := errors.New("the client's time is up")
	time.AfterFunc(5*time.Millisecond, func() { cancel(late) })
	resp, err := set.Do(slowToEnd{ctx}, put("{}"))
	if e := failed(t, resp, err, Cancelled); e.Sent || !errors.Is(e, late) {
		t.Errorf("%+v", e)
	}
	if !set.Nodes()[0].Alive {
		t.Error("the node was ejected")
	}
}

func TestNothingIsSentUnderAContextThatHasEnded(t *testing.T) {
	s := newStub(t, echo)
	set := newSet(t, nil, s.url)
	do(t, set, get()) // an idle connection is there
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	for range 100 {
		resp, err := set.Do(ctx, put("{}"))
		if e := failed(t, resp, err, Cancelled); e.Sent {
			t.Fatalf("%+v", e)
		}
	}
	if s.requests.Load() != 1 {
		t.Errorf("%d requests", s.requests.Load())
	}
}

func TestCancelWhileConnecting(t *testing.T) {
	entered := make(chan struct{})
	stop := make(chan struct{})
	defer close(stop)
	s := newStub(t, func(p *peer) {
		entered <- struct{}{}
		<-stop
	})
	set := newSet(t, func(c *Config) { c.ConnectTimeout = time.Minute }, "https"+s.url[len("http"):])
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-entered
		cancel()
	}()
	resp, err := set.Do(ctx, put("{}"))
	if e := failed(t, resp, err, Cancelled); e.Sent {
		t.Errorf("%+v", e)
	}
	if st := set.Nodes()[0]; st.Open != 0 || !st.Alive {
		t.Errorf("a node is blamed for a client that left: %+v", st)
	}
}

func TestCancelEndsAStreamedAnswerAndAllLaterExchanges(t *testing.T) {
	ended := make(chan struct{})
	s := newStub(t, func(p *peer) {
		if p.head() != nil {
			io.WriteString(p, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
			io.Copy(io.Discard, p.br)
			close(ended)
		}
	})
	set := newSet(t, nil, s.url)
	x := newExchangeFor(t, set)
	if err := x.Send(get()); err != nil {
		t.Fatal(err)
	}
	go x.cancel()
	_, err := rest(x)
	if e := failed(t, nil, err, Cancelled); !e.Sent || !errors.Is(e, context.Canceled) {
		t.Errorf("%+v", e)
	}
	<-ended
	failed(t, nil, x.Send(get()), Cancelled)
	if s.requests.Load() != 1 {
		t.Errorf("%d requests", s.requests.Load())
	}
}

func TestLateCancelDoesNotHarmTheNextUserOfTheConnection(t *testing.T) {
	s := newStub(t, echo)
	set := newSet(t, nil, s.url)
	for range 200 {
		ctx, cancel := context.WithCancel(context.Background())
		resp, err := set.Do(ctx, get())
		if err != nil {
			t.Fatal(err)
		}
		resp.Release()
		go cancel()
		if got := do(t, set, put("x")); got != "200 PUT /i/_doc/1 x" {
			t.Fatal(got)
		}
	}
	if s.accepted.Load() != 1 {
		t.Errorf("%d connections", s.accepted.Load())
	}
}

// bindings is a context that knows how many functions wait for its end.
type bindings struct {
	context.Context
	done chan struct{}
	now  atomic.Int32
}

func (b *bindings) Done() <-chan struct{} { return b.done }

func (b *bindings) AfterFunc(func()) (stop func() bool) {
	b.now.Add(1)
	return func() bool { b.now.Add(-1); return true }
}

// TestRequestsThatRanOutOfTimeLeaveNothingWithTheirContext: a client's connection, and its context, may live for days.
func TestRequestsThatRanOutOfTimeLeaveNothingWithTheirContext(t *testing.T) {
	read, ended := make(chan struct{}, 3), make(chan struct{}, 3)
	s := newStub(t, silent(read, ended))
	set := newSet(t, nil, s.url)
	ctx := &bindings{Context: context.Background(), done: make(chan struct{})}
	for range 3 {
		r := put("{}")
		r.Timeout = 5 * time.Millisecond
		resp, err := set.Do(ctx, r)
		failed(t, resp, err, Cancelled)
	}
	if n := ctx.now.Load(); n != 0 {
		t.Errorf("%d exchanges are still bound", n)
	}
}

// While many requests are under way, nothing is read for a client that has left, though nobody has noticed that yet. A write is made: its
// client may not want to know more.
func TestNothingIsReadForAClientThatLeft(t *testing.T) {
	s := newStub(t, echo)
	set := newSet(t, nil, s.url)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	served, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = served.Close() }()
	_ = client.Close()
	if _, err := served.Read(make([]byte, 1)); err != io.EOF { // its end has come
		t.Fatal(err)
	}
	ctx := wire.WithPeer(t.Context(), served)
	resp, err := set.Do(ctx, get())
	if err != nil {
		t.Fatalf("nothing else is under way: %v", err)
	}
	resp.Release()
	n, before := set.nodes[0], s.requests.Load()
	for range crowdedFrom {
		u := new(user)
		if c, _, _, err := n.take(u, true); c != nil || err != nil {
			t.Fatal(c, err)
		}
		defer n.freePlace(u)
	}
	resp, err = set.Do(ctx, get())
	if e := failed(t, resp, err, Cancelled); e.Sent || !errors.Is(e, context.Canceled) {
		t.Errorf("%+v", e)
	}
	if st := set.Nodes()[0]; !st.Alive || s.requests.Load() != before {
		t.Errorf("%+v, %d requests", st, s.requests.Load()-before)
	}
	if resp, err = set.Do(ctx, put("{}")); err != nil {
		t.Fatal(err)
	}
	resp.Release()
}
