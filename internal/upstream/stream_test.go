package upstream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"

	"optimist/internal/wire"
)

// parts is a Source of strings, then of whatever more gives.
type parts struct {
	list []string
	more func() ([]byte, error)

	once        sync.Once
	interrupted chan struct{}
}

func newParts(list ...string) *parts {
	return &parts{list: list, more: func() ([]byte, error) { return nil, io.EOF }, interrupted: make(chan struct{})}
}

// newStalled is a Source that, after list, waits until it is interrupted.
func newStalled(list ...string) *parts {
	p := newParts(list...)
	p.more = func() ([]byte, error) {
		<-p.interrupted
		return nil, errors.New("interrupted")
	}
	return p
}

func (p *parts) Next() ([]byte, error) {
	select {
	case <-p.interrupted:
		return nil, errors.New("interrupted")
	default:
	}
	if len(p.list) > 0 {
		s := p.list[0]
		p.list = p.list[1:]
		return []byte(s), nil
	}
	return p.more()
}

func (p *parts) Interrupt() { p.once.Do(func() { close(p.interrupted) }) }

// rest reads the answer's body.
func rest(x *Exchange) (string, error) {
	var all strings.Builder
	for {
		p, err := x.Next()
		if err == io.EOF {
			return all.String(), nil
		}
		if err != nil {
			return all.String(), err
		}
		all.Write(p)
	}
}

func newExchangeFor(t *testing.T, s *Set) *Exchange {
	t.Helper()
	x := s.NewExchange(context.Background())
	t.Cleanup(x.Close)
	return x
}

func stream(src Source, length int64) *Request {
	return &Request{Method: "POST", Target: []byte("/_bulk"), Stream: src, Length: length}
}

func TestExchangeCarriesOneRequestAfterTheOther(t *testing.T) {
	s := newStub(t, echo)
	x := newExchangeFor(t, newSet(t, nil, s.url))
	for i := range 10 {
		r := put(fmt.Sprint(i))
		if i%2 == 1 {
			r = stream(newParts("a", fmt.Sprint(i)), -1)
		}
		if err := x.Send(r); err != nil {
			t.Fatal(err)
		}
		want := "PUT /i/_doc/1 " + fmt.Sprint(i)
		if i%2 == 1 {
			want = "POST /_bulk a" + fmt.Sprint(i)
		}
		if got, err := rest(x); got != want || err != nil || x.Head().Status != 200 || x.Node() != s.url {
			t.Fatalf("%q, %v", got, err)
		}
		x.Finish()
	}
	if s.accepted.Load() != 1 {
		t.Errorf("%d connections", s.accepted.Load())
	}
}

func TestWholeAnswerIsHandedOutInOnePiece(t *testing.T) {
	s := newStub(t, echo)
	x := newExchangeFor(t, newSet(t, nil, s.url))
	if err := x.Send(put("x")); err != nil {
		t.Fatal(err)
	}
	var got string
	until(t, func() bool { // the body may come after the head, and then isn't here yet
		p, ok := x.Whole()
		if !ok {
			p, _ = x.Next()
		}
		got += string(p)
		return ok || x.body.Done()
	})
	if got != "PUT /i/_doc/1 x" {
		t.Errorf("%q", got)
	}
}

// An engine that refuses a large body answers before it has read it. Whoever waits until the body is written sees a reset.
func TestEarlyAnswerIsDeliveredWhileTheBodyIsStillSent(t *testing.T) {
	for name, after := range map[string]func(p *peer){
		"and closes":                 func(p *peer) {},
		"and resets":                 func(p *peer) { p.Conn.(*net.TCPConn).SetLinger(0) },
		"and neither reads nor ends": func(p *peer) { io.Copy(io.Discard, waitForEnd{p}) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(p *peer) {
				if p.head() != nil {
					p.answer(413, "too large")
					after(p)
				}
			})
			set := newSet(t, nil, s.url)
			big := strings.Repeat("x", 64<<10)
			src := newParts()
			src.more = func() ([]byte, error) { return []byte(big), nil }
			x := newExchangeFor(t, set)
			if err := x.Send(stream(src, 1<<40)); err != nil {
				t.Fatal(err)
			}
			if body, err := rest(x); x.Head().Status != 413 || body != "too large" || err != nil {
				t.Fatalf("%d %q %v", x.Head().Status, body, err)
			}
			x.Finish()
			if set.Nodes()[0].Open != 0 {
				t.Error("the connection was kept with half a request on it")
			}
			if got := do(t, set, &Request{Method: "PUT", Target: []byte("/"), Body: make([]byte, 32<<20)}); got != "413 too large" {
				t.Errorf("a large body in memory: %s", got)
			}
		})
	}
}

// waitForEnd reads nothing and ends when the peer's connection is closed.
type waitForEnd struct{ p *peer }

func (w waitForEnd) Read([]byte) (int, error) {
	probe := wire.NewProbe(w.p.Conn)
	for probe.State() != wire.PeerGone {
		runtime.Gosched()
		if w.p.s.t.Context().Err() != nil {
			break
		}
		// The client's goodbye stands behind megabytes that nobody reads: only an error of the socket shows it.
		if _, err := w.p.Write([]byte("x")); err != nil {
			break
		}
	}
	return 0, io.EOF
}

func TestEarlyAnswerInterruptsAClientThatStalls(t *testing.T) {
	s := newStub(t, func(p *peer) {
		if p.head() != nil {
			p.answer(429, "later")
			io.Copy(io.Discard, p)
		}
	})
	set := newSet(t, nil, s.url)
	x := newExchangeFor(t, set)
	src := newStalled("some", "thing")
	if err := x.Send(stream(src, -1)); err != nil {
		t.Fatal(err)
	}
	if body, err := rest(x); body != "later" || err != nil {
		t.Fatalf("%q, %v", body, err)
	}
	x.Finish()
	<-src.interrupted
	if set.Nodes()[0].Open != 0 {
		t.Error("the connection was kept")
	}
}

func TestAnswerCanBeStreamedWhileTheBodyIs(t *testing.T) {
	s := newStub(t, func(p *peer) {
		for {
			req := p.head()
			if req == nil {
				return
			}
			io.WriteString(p, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
			b := make([]byte, 100)
			for {
				n, err := req.Body.Read(b)
				if n > 0 {
					fmt.Fprintf(p, "%x\r\n%s\r\n", n, b[:n])
				}
				if err != nil {
					break
				}
			}
			io.WriteString(p, "0\r\n\r\n")
		}
	})
	set := newSet(t, nil, s.url)
	x := newExchangeFor(t, set)
	for range 3 {
		turn := make(chan string)
		src := newParts()
		src.more = func() ([]byte, error) {
			s, ok := <-turn
			if !ok {
				return nil, io.EOF
			}
			return []byte(s), nil
		}
		go func() { turn <- "ping" }()
		if err := x.Send(stream(src, -1)); err != nil {
			t.Fatal(err)
		}
		if p, err := x.Next(); string(p) != "ping" || err != nil {
			t.Fatalf("%q, %v", p, err)
		}
		turn <- "pong"
		if p, err := x.Next(); string(p) != "pong" || err != nil {
			t.Fatalf("%q, %v", p, err)
		}
		close(turn)
		if _, err := rest(x); err != nil {
			t.Fatal(err)
		}
		x.Finish()
	}
	if s.accepted.Load() != 1 {
		t.Error("a connection that carried everything to its end wasn't kept")
	}
}

func TestBrokenSourceNeverLooksLikeAWholeBody(t *testing.T) {
	for _, length := range []int64{-1, 100} {
		whole := make(chan bool, 1)
		s := newStub(t, func(p *peer) {
			if req := p.head(); req != nil {
				_, err := io.ReadAll(req.Body)
				whole <- err == nil
			}
		})
		set := newSet(t, nil, s.url)
		src := newParts("half a ")
		src.more = func() ([]byte, error) { return nil, wire.ErrChunk }
		x := newExchangeFor(t, set)
		err := x.Send(stream(src, length))
		if e := failed(t, nil, err, Body); !errors.Is(err, wire.ErrChunk) || wire.StatusOf(err) != 400 || !e.Sent {
			t.Errorf("%v", err)
		}
		if <-whole {
			t.Error("the node took a part for the whole")
		}
		if set.Nodes()[0].Open != 0 {
			t.Error("the connection was kept")
		}
	}
}

func TestSourceOfAnotherLengthIsRefused(t *testing.T) {
	s := newStub(t, func(p *peer) {
		if req, body := p.next(); req != nil {
			t.Errorf("the node got %q", body)
		}
		if n, _ := io.Copy(io.Discard, p.br); n > 0 {
			t.Errorf("and %d bytes behind it", n)
		}
	})
	set := newSet(t, nil, s.url)
	longer := stream(newParts("!"), 4)
	longer.Body = []byte("hello")
	for name, r := range map[string]*Request{
		"shorter": stream(newParts("hell"), 5), "longer": stream(newParts("hello!"), 5), "longer in memory": longer,
	} {
		if e := failed(t, nil, newExchangeFor(t, set).Send(r), Body); !errors.Is(e, errLength) {
			t.Errorf("%s: %v", name, e)
		}
	}
}

func TestEmptyStreamKeepsTheConnection(t *testing.T) {
	s := newStub(t, echo)
	x := newExchangeFor(t, newSet(t, nil, s.url))
	for i := range 20 {
		r := stream(newParts(), int64(-(i % 2)))
		if err := x.Send(r); err != nil {
			t.Fatal(err)
		}
		if got, err := rest(x); got != "POST /_bulk " || err != nil {
			t.Fatalf("%q, %v", got, err)
		}
		x.Finish()
	}
	if s.accepted.Load() != 1 {
		t.Errorf("%d connections", s.accepted.Load())
	}
}

func TestFinishedExchangeReadsNothingMore(t *testing.T) {
	s := newStub(t, echo)
	x := newExchangeFor(t, newSet(t, nil, s.url))
	if p, err := x.Next(); len(p) > 0 || err != io.EOF {
		t.Errorf("before the first: %q, %v", p, err)
	}
	if err := x.Send(put("secret of another client")); err != nil {
		t.Fatal(err)
	}
	x.Finish()
	x.Finish()
	if p, err := x.Next(); len(p) > 0 || err != io.EOF {
		t.Errorf("%q, %v", p, err)
	}
	if p, ok := x.Whole(); len(p) > 0 || ok {
		t.Errorf("%q", p)
	}
}

func TestStreamIsNeverSentTwice(t *testing.T) {
	s := newStub(t, func(p *peer) { p.next() }) // reads and closes
	src := newParts("{}")
	r := stream(src, 2)
	r.Repeatable = true
	failed(t, nil, newExchangeFor(t, newSet(t, nil, s.url)).Send(r), Lost)
	if s.requests.Load() != 1 {
		t.Errorf("sent %d times", s.requests.Load())
	}
}

func TestStreamGoesToTheNextNodeWhenNothingWasSent(t *testing.T) {
	s := newStub(t, echo)
	set := newSet(t, nil, refusing(t), s.url)
	for range 4 {
		x := newExchangeFor(t, set)
		if err := x.Send(stream(newParts("a", "b"), -1)); err != nil {
			t.Fatal(err)
		}
		if got, err := rest(x); got != "POST /_bulk ab" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
}

func TestBrokenAnswerGivesWhatCameOfIt(t *testing.T) {
	s := newStub(t, func(p *peer) {
		if p.head() != nil {
			io.WriteString(p, "HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf")
		}
	})
	set := newSet(t, nil, s.url)
	x := newExchangeFor(t, set)
	if err := x.Send(get()); err != nil {
		t.Fatal(err)
	}
	got, err := rest(x)
	if failed(t, nil, err, Broken); got != "half" || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("%q, %v", got, err)
	}
	x.Finish()
	if set.Nodes()[0].Open != 0 {
		t.Error("the connection was kept")
	}
}

func TestManyMegabytesMoveBothWaysInBoundedMemory(t *testing.T) {
	const size = 64 << 20
	s := newStub(t, func(p *peer) {
		if req := p.head(); req != nil {
			fmt.Fprintf(p, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", size)
			io.CopyBuffer(struct{ io.Writer }{p}, struct{ io.Reader }{req.Body}, make([]byte, 64<<10))
		}
	})
	x := newExchangeFor(t, newSet(t, nil, s.url))
	block, left := []byte(strings.Repeat("0123456789abcdef", 4<<10)), int64(size)
	src := newParts()
	src.more = func() ([]byte, error) {
		left -= int64(len(block))
		return block, nil
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := x.Send(stream(src, size)); err != nil {
		t.Fatal(err)
	}
	var got int64
	for {
		p, err := x.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range p[:min(len(p), 32)] {
			if c != block[(got+int64(i))%16] {
				t.Fatalf("byte %d is %q", got+int64(i), c)
			}
		}
		got += int64(len(p))
	}
	x.Finish()
	runtime.ReadMemStats(&after)
	if got != size || left != 0 {
		t.Errorf("%d bytes came back, %d weren't sent", got, left)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 4<<20 {
		t.Errorf("allocated %d KiB for %d MiB", grown>>10, size>>20)
	}
}
