package proxy

import (
	"fmt"
	"io"
	"strings"
	"testing"
	"time"
)

const tooLargeBody = `{"error":"too large"}`

// refuses is an engine that answers 413 as soon as it has seen a head, and closes without reading the body: its kernel resets
// the connection under the answer.
func refuses(t *testing.T, closes bool) *stub {
	return newRawStub(t, func(s *stub, c *stubConn) {
		head, err := readHead(c.r)
		if err != nil {
			return
		}
		s.record(seen{head: head})
		c.say(tooLargeBody, "HTTP/1.1 413 Request Entity Too Large", fmt.Sprintf("content-length: %d", len(tooLargeBody)))
		if !closes {
			_, _ = io.Copy(io.Discard, c.r)
		}
	})
}

// TestEarlyRefusalReachesAClientThatSendsOn is for clients that read nothing before they have sent everything.
func TestEarlyRefusalReachesAClientThatSendsOn(t *testing.T) {
	for _, closes := range []bool{true, false} {
		for name, head := range map[string]string{"length": "Content-Length: 33554432", "chunked": "Transfer-Encoding: chunked"} {
			t.Run(fmt.Sprintf("%s, engine closes %v", name, closes), func(t *testing.T) {
				s := refuses(t, closes)
				addr, server := newProxy(t, s, nil)
				c := dial(t, addr)
				c.send(lines("POST /_bulk HTTP/1.1", "Host: h", head))
				piece := strings.Repeat("x", 1<<20)
				for range 32 {
					if head[0] == 'T' {
						c.send("100000\r\n", piece, "\r\n")
					} else {
						c.send(piece)
					}
				}
				if head[0] == 'T' {
					c.send("0\r\n\r\n")
				}
				a := c.answer("POST")
				if a.status != 413 || a.body != tooLargeBody || a.field("Connection") != "close" {
					t.Fatalf("%+v", a)
				}
				c.closed()
				_ = c.Close()
				eventually(t, "the connection's end", func() bool { open, _ := server.Connections(); return open == 0 })
			})
		}
	}
}

func TestLingeringIsBounded(t *testing.T) {
	s := refuses(t, true)
	for name, l := range map[string]Limits{
		"in silence": {Linger: 60 * time.Millisecond},
		"in bytes":   {MaxLinger: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			addr, server := newProxy(t, s, func(o *Options) { o.Limits.Linger, o.Limits.MaxLinger = l.Linger, l.MaxLinger })
			c := dial(t, addr)
			c.send(lines("POST /_bulk HTTP/1.1", "Host: h", "Content-Length: 1000000000"))
			if a := c.answer("POST"); a.status != 413 {
				t.Fatalf("%+v", a)
			}
			if l.MaxLinger > 0 {
				for {
					if _, err := io.WriteString(c, strings.Repeat("x", 64<<10)); err != nil {
						break // the door is shut at last
					}
				}
			}
			eventually(t, "the connection's end", func() bool { open, _ := server.Connections(); return open == 0 })
		})
	}
}

func TestAnswerBeforeTheEndOfTheBodyThatThenComes(t *testing.T) {
	// The engine answers early and still takes the body. The client gets the answer, and what it sends on harms nobody.
	s := newRawStub(t, func(_ *stub, c *stubConn) {
		if _, err := readHead(c.r); err != nil {
			return
		}
		c.ok(`{"early":true}`)
		_, _ = io.Copy(io.Discard, c.r)
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("POST /_bulk HTTP/1.1", "Host: h", "Content-Length: 200000"))
	if a := c.answer("POST"); a.status != 200 || a.body != `{"early":true}` || a.field("Connection") != "close" {
		t.Fatalf("%+v", a)
	}
	c.send(strings.Repeat("x", 200000))
	_ = c.endSending()
	c.closed()
}

// The cases of Expect: the client and the engine each in the order that is hardest for the proxy.

const expect = "Expect: 100-continue"

func TestContinueIsTheEnginesToGive(t *testing.T) {
	s := newRawStub(t, func(s *stub, c *stubConn) {
		for {
			head, err := readHead(c.r)
			if err != nil {
				return
			}
			if strings.Contains(head, "EXPECT: 100-Continue\r\n") {
				c.say("", "HTTP/1.1 100 Continue")
			}
			n, _ := contentLength(head)
			b := make([]byte, n)
			if _, err := io.ReadFull(c.r, b); err != nil {
				return
			}
			s.record(seen{head: head, body: string(b)})
			c.ok("{}")
		}
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	for range 2 {
		head := lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 5", "EXPECT: 100-Continue")
		c.send(head)
		if a := c.answer("PUT"); a.head != "HTTP/1.1 100 Continue\r\n\r\n" {
			t.Fatalf("%+v", a)
		}
		c.send("hello")
		if a := c.answer("PUT"); a.status != 200 || a.field("Connection") != "" {
			t.Fatalf("%+v", a)
		}
		got := s.requests()
		if last := got[len(got)-1]; last.head != head || last.body != "hello" {
			t.Fatalf("upstream got %+q", last)
		}
	}
}

func TestExpectationFailed(t *testing.T) {
	for _, status := range []string{"413 Request Entity Too Large", "417 Expectation Failed"} {
		t.Run(status[:3], func(t *testing.T) {
			s := newRawStub(t, func(_ *stub, c *stubConn) {
				if _, err := readHead(c.r); err != nil {
					return
				}
				c.say("{}", "HTTP/1.1 "+status, "content-length: 2")
				_, _ = io.Copy(io.Discard, c.r)
			})
			addr, _ := newProxy(t, s, nil)
			c := dial(t, addr)
			c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 100000000", expect))
			a := c.answer("PUT")
			if a.head != lines("HTTP/1.1 "+status, "content-length: 2", "Connection: close") || a.body != "{}" {
				t.Fatalf("%+v", a)
			}
			_ = c.endSending()
			c.closed()
		})
	}
}

func TestClientThatDoesNotWaitForContinue(t *testing.T) {
	s := newStub(t, nil) // never says 100
	addr, _ := newProxy(t, s, nil)
	for name, body := range map[string]string{"small": "hello", "large": strings.Repeat("x", 300000)} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			for range 2 {
				c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", fmt.Sprintf("Content-Length: %d", len(body)), expect), body)
				if a := c.answer("PUT"); a.status != 200 {
					t.Fatalf("%+v", a)
				}
			}
			got := s.requests()
			if got[len(got)-1].body != body {
				t.Fatal("another body upstream")
			}
		})
	}
}

func TestContinueComesAfterTheBody(t *testing.T) {
	s := newStub(t, func(c *stubConn, _ seen) {
		c.say("", "HTTP/1.1 100 Continue")
		c.say("", "HTTP/1.1 103 Early Hints", "Link: </x>")
		c.ok("{}")
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 5", expect), "hello")
	for _, want := range []string{lines("HTTP/1.1 100 Continue"), lines("HTTP/1.1 103 Early Hints", "Link: </x>")} {
		if a := c.answer("PUT"); a.head != want {
			t.Fatalf("got %q, want %q", a.head, want)
		}
	}
	if a := c.answer("PUT"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	old := dial(t, addr) // clients of HTTP/1.0 know no interim answers
	old.send(lines("GET / HTTP/1.0"))
	if a := old.answer("GET"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
}

func TestExpectWithTheEngineDown(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, nil)
	s.stop()
	c := dial(t, addr)
	c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 100000000", expect))
	a := c.answer("PUT")
	wantError(t, a, 502, TypeUnreachable)
	if a.field("Connection") != "close" {
		t.Errorf("the body may follow or not: the connection has to end: %q", a.head)
	}
	_ = c.endSending()
	c.closed()
}
