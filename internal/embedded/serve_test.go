package embedded

import (
	"net"
	"testing"
	"time"
)

// TestServeEndsWithClose whichever of the two comes first, and whatever clients have open.
func TestServeEndsWithClose(t *testing.T) {
	listen := func() net.Listener {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	ends := func(t *testing.T, e *Engine, served chan error) {
		t.Helper()
		closed := make(chan error, 1)
		go func() { closed <- e.Close() }()
		for name, c := range map[string]chan error{"Close": closed, "Serve": served} {
			select {
			case err := <-c:
				if err != nil {
					t.Errorf("%s: %v", name, err)
				}
			case <-time.After(time.Minute):
				t.Fatal(name, "hasn't returned")
			}
		}
	}
	t.Run("Close at the same time", func(t *testing.T) {
		for range 200 {
			e, served := New(Options{}), make(chan error, 1)
			ln := listen()
			go func() { served <- e.Serve(ln) }()
			ends(t, e, served)
		}
	})
	t.Run("Close first", func(t *testing.T) {
		e, served := New(Options{}), make(chan error, 1)
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		served <- e.Serve(listen())
		ends(t, e, served)
	})
	t.Run("a connection without a request", func(t *testing.T) {
		e, served := New(Options{}), make(chan error, 1)
		ln := listen()
		go func() { served <- e.Serve(ln) }()
		c, err := net.Dial("tcp", ln.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		ends(t, e, served)
	})
}
