package conformance

import (
	"net"
	"testing"
)

// Accept has speak talk on each connection to the address that it returns, until the test ends: it stands for a store of which nothing
// good is known. The connection is closed after that.
func Accept(t *testing.T, speak func(c net.Conn)) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = c.Close() }()
				speak(c)
			}()
		}
	}()
	return l.Addr().String()
}
