package engine

import (
	"net"
	"testing"

	"optimist/internal/embedded"
)

// Embedded serves the engine in memory, beside which tests set the real ones, until the test ends, and returns its URL.
func Embedded(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := embedded.New(embedded.Options{})
	done := make(chan error, 1)
	go func() { done <- e.Serve(ln) }()
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}
