package wire

import (
	"crypto/tls"
	"net"
	"runtime"
	"testing"
)

// pair returns two ends of a TCP connection.
func pair(t testing.TB) (near, far *net.TCPConn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close() })
	return c.(*net.TCPConn), s.(*net.TCPConn)
}

// await probes until the state is there: the kernel needs a moment to carry a byte or a goodbye across.
func await(t *testing.T, p *Probe, want PeerState) {
	t.Helper()
	for range 1_000_000 {
		if p.State() == want {
			return
		}
	}
	t.Fatalf("the state never became %d", want)
}

func TestProbeSeesWhatThePeerDidWithoutTakingIt(t *testing.T) {
	near, far := pair(t)
	p := NewProbe(near)
	if p.State() != PeerQuiet {
		t.Error("a quiet connection isn't quiet")
	}
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	await(t, p, PeerSent)
	b := make([]byte, 2)
	if n, err := near.Read(b); n != 1 || err != nil {
		t.Errorf("the byte was taken: %d, %v", n, err)
	}
	far.Close()
	await(t, p, PeerGone)
}

func TestProbeSeesAGoodbyeBehindBytes(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("other systems tell only of the bytes")
	}
	near, far := pair(t)
	p := NewProbe(near)
	if _, err := far.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	await(t, p, PeerSent)
	far.Close()
	await(t, p, PeerGone)
}

func TestProbeSeesAResetAndOurOwnClose(t *testing.T) {
	near, far := pair(t)
	p := NewProbe(near)
	_ = far.SetLinger(0)
	far.Close()
	await(t, p, PeerGone)
	near, _ = pair(t)
	p = NewProbe(near)
	near.Close()
	if p.State() != PeerGone {
		t.Error("a connection that we closed isn't gone")
	}
}

func TestProbeLooksUnderTLSAndWorksWhileSomebodyReads(t *testing.T) {
	near, far := pair(t)
	p := NewProbe(tls.Client(near, &tls.Config{ServerName: "x"}))
	reading := make(chan error, 1)
	go func() {
		_, err := near.Read(make([]byte, 1))
		reading <- err
	}()
	if p.State() == PeerGone {
		t.Error("gone")
	}
	far.Close()
	await(t, p, PeerGone)
	<-reading
}

func TestProbeOfSomethingWithoutASocketIsQuiet(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	if NewProbe(a).State() != PeerQuiet {
		t.Error("not quiet")
	}
}

func TestProbeDoesNotAllocate(t *testing.T) {
	near, _ := pair(t)
	p := NewProbe(near)
	if n := testing.AllocsPerRun(100, func() { p.State() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
