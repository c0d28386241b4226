package proxy

import (
	"bytes"
	"io"
	"strings"
	"testing"
)

func TestForwardedRequestKeepsItsBytes(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	head := lines("PUT /a%2Fb/_doc/..%2F..%2Fx+y%20?refresh=true&q=%C3%A9 HTTP/1.1", "hOsT: example:9200", "X-Dup: 1", "content-LENGTH: 8",
		"x-dup:  2", "Authorization: ApiKey abc")
	c.send(head, `{"a":12}`)
	a := c.answer("PUT")
	if a.status != 200 || a.body != `{"ok":true}` {
		t.Fatalf("answer %+v", a)
	}
	got := s.requests()
	if len(got) != 1 || got[0].head != lines("PUT /a%2Fb/_doc/..%2F..%2Fx+y%20?refresh=true&q=%C3%A9 HTTP/1.1", "hOsT: example:9200", "X-Dup: 1",
		"content-LENGTH: 8", "x-dup: 2", "Authorization: ApiKey abc") || got[0].body != `{"a":12}` {
		t.Fatalf("upstream got %+q", got)
	}
}

func TestEveryMethodAndTargetPassesAsItIs(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	for _, line := range []string{
		"GET /_search HTTP/1.1", "POST /_refresh HTTP/1.1", "DELETE /a/_doc/%2F?if_seq_no=1&if_primary_term=1 HTTP/1.1",
		"PATCH /x HTTP/1.1", "OPTIONS * HTTP/1.1", "PURGE //x//../.%2e/ HTTP/1.1", "GET /<logs-{now/d}>,b*/_search?q=a|b HTTP/1.1",
		"GET /?a=b?c#d HTTP/1.1", "GET /\xff\xfe\"^`\\ HTTP/1.1", "PUT /" + strings.Repeat("%C3%A9", 170) + " HTTP/1.1",
	} {
		head := lines(line, "Host: h")
		c.send(head)
		if a := c.answer("GET"); a.status != 200 {
			t.Fatalf("%s: %+v", line, a)
		}
		got := s.requests()
		if got[len(got)-1].head != head {
			t.Errorf("sent %q, upstream got %q", head, got[len(got)-1].head)
		}
	}
}

func TestHopByHopHeadersStayHere(t *testing.T) {
	s := newStub(t, func(c *stubConn, _ seen) {
		c.say("{}", "HTTP/1.1 200 Fine By Me", "Connection: X-Mine, keep-alive", "X-Mine: 1", "Keep-Alive: timeout=5", "Trailer: X-T",
			"Proxy-Authenticate: Basic", "Upgrade: h2c", "Warning: 299 a \"one\"", "X-Other: 2", "warning: 299 b \"two\"", "Content-Length: 2",
			"Date: Sat, 21 Nov 2026 06:00:00 GMT")
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h", "Connection: x-secret, TE", "X-Secret: 1", "TE: trailers", "Keep-Alive: 1", "Proxy-Connection: x",
		"Proxy-Authorization: Basic abc", "Upgrade: websocket", "HTTP2-Settings: x", "X-Kept: 1", "Trailer: a"))
	a := c.answer("GET")
	want := lines("HTTP/1.1 200 Fine By Me", "Warning: 299 a \"one\"", "X-Other: 2", "warning: 299 b \"two\"", "Content-Length: 2",
		"Date: Sat, 21 Nov 2026 06:00:00 GMT")
	if a.head != want || a.body != "{}" {
		t.Errorf("answer\n%q, want\n%q", a.head, want)
	}
	if got, want := s.requests()[0].head, lines("GET / HTTP/1.1", "Host: h", "X-Kept: 1"); got != want {
		t.Errorf("upstream got\n%q, want\n%q", got, want)
	}
}

func TestFramingOfRequestsIsKept(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, nil)
	large := strings.Repeat("0123456789abcdef", 20000)
	for name, tt := range map[string]struct{ head, body, want string }{
		"length":         {"Content-Length: 5", "hello", "hello"},
		"length 0":       {"Content-Length: 0", "", ""},
		"length, large":  {"Content-Length: 320000", large, large},
		"chunked":        {"Transfer-Encoding: chunked", "5\r\nhello\r\n3;x=y\r\nyou\r\n0\r\nX-Trailer: 1\r\n\r\n", "helloyou"},
		"chunked, empty": {"Transfer-Encoding: chunked", "0\r\n\r\n", ""},
		"chunked, large": {"Transfer-Encoding: chunked", "4e200\r\n" + large + "\r\n0\r\n\r\n", large},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(s.requests())
			c := dial(t, addr)
			for range 2 { // the second shows that the first ended where it should
				c.send(lines("POST /_bulk HTTP/1.1", "Host: h", tt.head), tt.body)
				if a := c.answer("POST"); a.status != 200 {
					t.Fatalf("%+v", a)
				}
			}
			for _, got := range s.requests()[before:] {
				body := got.body
				if strings.HasPrefix(tt.head, "Transfer") {
					body = dechunk(t, body)
				}
				if body != tt.want {
					t.Errorf("body of %d bytes, want %d", len(body), len(tt.want))
				}
				if want := lines("POST /_bulk HTTP/1.1", "Host: h", tt.head); got.head != want {
					t.Errorf("head %q, want %q", got.head, want)
				}
			}
		})
	}
}

func TestGETKeepsItsBody(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET /a/_search HTTP/1.1", "Host: h", "Content-Length: 13"), `{"size":1000}`)
	c.answer("GET")
	if got := s.requests()[0].body; got != `{"size":1000}` {
		t.Fatalf("upstream got %q", got)
	}
}

func TestFramingOfAnswersIsKept(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 20000)
	for name, tt := range map[string]struct {
		method string
		head   []string
		body   string
	}{
		"length":        {"GET", []string{"HTTP/1.1 200 OK", "content-length: 3"}, "abc"},
		"length, large": {"GET", []string{"HTTP/1.1 200 OK", "content-length: 320000"}, large},
		"chunked":       {"GET", []string{"HTTP/1.1 200 OK", "Transfer-Encoding: chunked"}, "3\r\nabc\r\n0\r\n\r\n"},
		"no body":       {"GET", []string{"HTTP/1.1 200 OK", "content-length: 0"}, ""},
		"HEAD, length":  {"HEAD", []string{"HTTP/1.1 200 OK", "content-length: 1234"}, ""},
		"HEAD, none":    {"HEAD", []string{"HTTP/1.1 404 Not Found"}, ""},
		"204":           {"DELETE", []string{"HTTP/1.1 204 No Content"}, ""},
		"304":           {"GET", []string{"HTTP/1.1 304 Not Modified", "ETag: \"1\"", "Content-Length: 99"}, ""},
		"no reason":     {"GET", []string{"HTTP/1.1 299 ", "content-length: 1"}, "x"},
		"429":           {"POST", []string{"HTTP/1.1 429 Too Many Requests", "Retry-After: 1", "content-length: 2"}, "{}"},
		"text":          {"GET", []string{"HTTP/1.1 200 OK", "content-type: text/plain; charset=UTF-8", "content-length: 10"}, "green 1 2\n"},
		"gzip":          {"GET", []string{"HTTP/1.1 200 OK", "content-encoding: gzip", "content-length: 4"}, "\x1f\x8b\x00\xff"},
		"binary name":   {"GET", []string{"HTTP/1.1 200 OK", "x-Odd_Name!: \xc3\xa9", "content-length: 1"}, "x"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(c *stubConn, _ seen) { c.say(tt.body, tt.head...) })
			addr, _ := newProxy(t, s, nil)
			c := dial(t, addr)
			for range 2 {
				c.send(lines(tt.method+" / HTTP/1.1", "Host: h"))
				a := c.answer(tt.method)
				if a.head != lines(tt.head...) || a.body != tt.body {
					t.Fatalf("got %q with %d bytes, want %q with %d", a.head, len(a.body), lines(tt.head...), len(tt.body))
				}
			}
		})
	}
}

func TestLargeChunkedAnswerArrivesWhole(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 20000)
	s := newStub(t, func(c *stubConn, _ seen) {
		c.say("4e200\r\n"+large+"\r\n0\r\n\r\n", "HTTP/1.1 200 OK", "Transfer-Encoding: chunked")
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	for range 2 {
		c.send(lines("GET / HTTP/1.1", "Host: h"))
		if a := c.answer("GET"); dechunk(t, a.body) != large {
			t.Fatal("another body")
		}
	}
}

func TestAnswerUntilCloseEndsTheConnection(t *testing.T) {
	s := newStub(t, func(c *stubConn, _ seen) {
		c.say("all there is", "HTTP/1.0 200 OK", "X-A: 1")
		_ = c.Close()
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	a := c.answer("GET")
	if a.head != lines("HTTP/1.1 200 OK", "X-A: 1", "Connection: close") || a.body != "all there is" {
		t.Fatalf("%+v", a)
	}
}

func TestPipelinedRequestsAreAnsweredInOrder(t *testing.T) {
	s := newStub(t, func(c *stubConn, r seen) { c.ok(strings.Fields(r.head)[1] + r.body) })
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET /1 HTTP/1.1", "Host: h"), lines("PUT /2 HTTP/1.1", "Host: h", "Content-Length: 2"), "ab",
		lines("PUT /3 HTTP/1.1", "Host: h", "Transfer-Encoding: chunked"), "1\r\nc\r\n0\r\n\r\n", lines("GET /4 HTTP/1.1", "Host: h")[:9])
	for _, want := range []string{"/1", "/2ab", "/31\r\nc\r\n0\r\n\r\n"} {
		if a := c.answer("GET"); a.body != want {
			t.Fatalf("got %q, want %q", a.body, want)
		}
	}
	c.send(lines("GET /4 HTTP/1.1", "Host: h")[9:])
	if a := c.answer("GET"); a.body != "/4" {
		t.Fatalf("got %q", a.body)
	}
}

func TestClientsOfHTTP10(t *testing.T) {
	s := newStub(t, func(c *stubConn, r seen) {
		if strings.Contains(r.head, "chunked-answer") {
			c.say("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "HTTP/1.1 200 OK", "Transfer-Encoding: chunked")
			return
		}
		c.ok("{}")
	})
	addr, _ := newProxy(t, s, nil)
	t.Run("closes", func(t *testing.T) {
		c := dial(t, addr)
		c.send(lines("GET / HTTP/1.0"))
		if a := c.answer("GET"); a.field("Connection") != "close" || a.body != "{}" {
			t.Fatalf("%+v", a)
		}
		c.closed()
	})
	t.Run("keep-alive", func(t *testing.T) {
		c := dial(t, addr)
		for range 2 {
			c.send(lines("GET / HTTP/1.0", "Connection: keep-alive", "Expect: 100-continue"))
			if a := c.answer("GET"); a.field("Connection") != "keep-alive" || a.body != "{}" {
				t.Fatalf("%+v", a)
			}
		}
	})
	t.Run("no chunks", func(t *testing.T) {
		c := dial(t, addr)
		c.send(lines("GET /chunked-answer HTTP/1.0", "Connection: keep-alive"))
		a := c.answer("GET")
		if a.head != lines("HTTP/1.1 200 OK", "Connection: close") || a.body != "abcde" {
			t.Fatalf("%+v", a)
		}
	})
}

func TestConnectionCloseOfTheClientIsHeeded(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h", "Connection: close"))
	if a := c.answer("GET"); a.field("Connection") != "close" {
		t.Fatalf("%+v", a)
	}
	c.closed()
}

func TestBodyIsStreamedWhileItComes(t *testing.T) {
	arrived := make(chan string)
	s := newRawStub(t, func(_ *stub, c *stubConn) {
		if _, err := readHead(c.r); err != nil {
			return
		}
		buf := make([]byte, 3)
		for range 2 {
			if _, err := io.ReadFull(c.r, buf); err != nil {
				return
			}
			arrived <- string(buf)
		}
		c.say("", "HTTP/1.1 200 OK", "Transfer-Encoding: chunked")
		for _, p := range []string{"abc", "def"} {
			_, _ = io.WriteString(c, "3\r\n"+p+"\r\n")
			arrived <- ""
		}
		_, _ = io.WriteString(c, "0\r\n\r\n")
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("POST /_bulk HTTP/1.1", "Host: h", "Content-Length: 100006"), "one")
	if got := wait(t, arrived, "the first bytes upstream"); got != "one" {
		t.Fatal(got)
	}
	c.send("two", strings.Repeat("x", 100000))
	if got := wait(t, arrived, "the next bytes upstream"); got != "two" {
		t.Fatal(got)
	}
	if _, err := readHead(c.r); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 8)
	for _, want := range []string{"3\r\nabc\r\n", "3\r\ndef\r\n"} {
		if _, err := io.ReadFull(c.r, buf); err != nil || string(buf) != want {
			t.Fatalf("%q %v", buf, err)
		}
		wait(t, arrived, "the answer's next piece")
	}
}

func TestBrokenAnswerIsNotFinished(t *testing.T) {
	for name, head := range map[string]string{
		"length": "Content-Length: 100", "chunked": "Transfer-Encoding: chunked", "large": "Content-Length: 100000",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(c *stubConn, _ seen) {
				c.say("3\r\nabc\r\n", "HTTP/1.1 200 OK", head)
				_ = c.Close()
			})
			addr, _ := newProxy(t, s, nil)
			c := dial(t, addr)
			c.send(lines("GET / HTTP/1.1", "Host: h"))
			if a, err := c.tryAnswer("GET"); err == nil {
				t.Fatalf("a whole answer: %+v", a)
			}
		})
	}
}

func TestAnswerUntilCloseThatBreaksIsReset(t *testing.T) {
	s := newStub(t, func(c *stubConn, _ seen) {
		c.say(strings.Repeat("x", 1000), "HTTP/1.1 200 OK")
		_ = c.Conn.(interface{ SetLinger(int) error }).SetLinger(0)
		_ = c.Close()
	})
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	if b, err := io.ReadAll(c.r); err == nil && bytes.Contains(b, []byte("200 OK")) {
		t.Fatalf("looks whole: %q", b)
	}
}
