//go:build !race

// The race detector allocates. test.sh runs the tests of this name without it.

package proxy

import "testing"

// TestAllocationsOfASmallRequestAreNone is about the whole path: reading, parsing, forwarding, answering.
func TestAllocationsOfASmallRequestAreNone(t *testing.T) {
	s := newRawStub(t, func(_ *stub, c *stubConn) {
		buf, answer := make([]byte, 4096), []byte("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n{}")
		for {
			if _, err := c.Conn.Read(buf); err != nil {
				return
			}
			if _, err := c.Conn.Write(answer); err != nil {
				return
			}
		}
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	request := []byte(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Authorization: Basic abc", "Content-Type: application/json", "Content-Length: 2") + "{}")
	buf := make([]byte, 4096)
	run := func() {
		if _, err := c.Write(request); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Conn.Read(buf); err != nil || string(buf[:15]) != "HTTP/1.1 200 OK" {
			t.Fatal(string(buf[:n]), err)
		}
	}
	for range 100 {
		run()
	}
	if n := testing.AllocsPerRun(1000, run); n > 0.5 {
		t.Errorf("%v allocations a request", n)
	}
}
