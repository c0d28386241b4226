package proxy

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"optimist/internal/api"
	"optimist/internal/wire"
)

func field(name, value string) wire.Field {
	return wire.Field{Name: []byte(name), Value: []byte(value)}
}

func TestInterceptedBodyIsWhole(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			for range 2 {
				b, err := x.Body(1 << 20)
				if err != nil {
					x.Fail(err)
					return true
				}
				defer func() {
					_ = x.Answer(201, []wire.Field{field("content-type", "application/json"), field("X-A", "1")}, b)
				}()
			}
			return true
		}
	})
	large := strings.Repeat("0123456789abcdef", 20000)
	c := dial(t, addr)
	for name, tt := range map[string]struct{ head, sent, want string }{
		"small":         {"Content-Length: 2", "{}", "{}"},
		"none":          {"X-Nothing: 1", "", ""},
		"large":         {"Content-Length: 320000", large, large},
		"chunked":       {"Transfer-Encoding: chunked", "2\r\nab\r\n1\r\nc\r\n0\r\n\r\n", "abc"},
		"chunked large": {"Transfer-Encoding: chunked", "4e200\r\n" + large + "\r\n0\r\n\r\n", large},
	} {
		c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", tt.head), tt.sent)
		a := c.answer("PUT")
		want := lines("HTTP/1.1 201 Created", "content-type: application/json", "X-A: 1", "Content-Length: "+strconv.Itoa(len(tt.want)))
		if a.head != want || a.body != tt.want {
			t.Errorf("%s: got %q and %d bytes", name, a.head, len(a.body))
		}
	}
	c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 5", expect))
	if a := c.answer("PUT"); a.status != 100 {
		t.Fatalf("%+v", a)
	}
	c.send("hello")
	if a := c.answer("PUT"); a.status != 201 || a.body != "hello" {
		t.Fatalf("%+v", a)
	}
	c.send(lines("HEAD /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 5"), "hello")
	if a := c.answer("HEAD"); a.field("content-length") != "5" {
		t.Fatalf("%+v", a)
	}
	if len(s.requests()) > 0 {
		t.Error("forwarded, too")
	}
}

func TestInterceptedBodyOverTheLimit(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			if _, err := x.Body(10); err != nil {
				x.Fail(err)
				return true
			}
			return false
		}
	})
	for name, tt := range map[string][]string{
		"length, unsent": {"Content-Length: 11", expect},
		"length":         {"Content-Length: 11"},
		"chunked":        {"Transfer-Encoding: chunked"},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, addr)
			c.send(lines(append([]string{"PUT /a/_doc/1 HTTP/1.1", "Host: h"}, tt...)...))
			if strings.HasPrefix(tt[0], "Transfer") {
				c.send("6\r\nabcdef\r\n6\r\nabcdef\r\n")
			}
			a := c.answer("PUT")
			wantError(t, a, 413, TypeTooLarge)
			if a.field("Connection") != "close" {
				t.Error(a.head)
			}
			_ = c.endSending()
			c.closed()
		})
	}
}

func TestBodyOverTheLimitIsForwardedWhole(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			for range 2 {
				if _, err := x.Body(10); !errors.Is(err, ErrTooLarge) {
					t.Errorf("got %v", err)
				}
			}
			return false
		}
	})
	large := strings.Repeat("0123456789abcdef", 20000)
	c := dial(t, addr)
	for name, tt := range map[string]struct{ head, sent string }{
		"small":          {"Content-Length: 11", "hello world"},
		"length":         {"Content-Length: 320000", large},
		"chunked, here":  {"Transfer-Encoding: chunked", "b\r\nhello world\r\n0\r\n\r\n"},
		"chunked, large": {"Transfer-Encoding: chunked", "4e200\r\n" + large + "\r\n0\r\n\r\n"},
	} {
		head := lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", tt.head)
		c.send(head, tt.sent)
		if a := c.answer("PUT"); a.status != 200 {
			t.Fatalf("%s: %+v", name, a)
		}
		got := s.requests()
		last := got[len(got)-1]
		want := tt.sent
		if tt.head[0] == 'T' {
			last.body, want = dechunk(t, last.body), dechunk(t, want)
		}
		if last.head != head || last.body != want {
			t.Errorf("%s: upstream got %q and %d bytes, want %d", name, last.head, len(last.body), len(want))
		}
	}
}

func TestForwardChangesWhatItIsTold(t *testing.T) {
	s := newStub(t, func(c *stubConn, _ seen) {
		c.say(`{"_seq_no":7,"more":true}`, "HTTP/1.1 200 OK", "X-A: 1", "content-length: 25")
	})
	var first, copied string
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			if x.Op().Kind != api.Get || string(x.Op().ID) != "1" {
				t.Errorf("op %+v", x.Op())
			}
			copied = ""
			err := x.Forward(ForwardOptions{
				Target: []byte("/a/_doc/1?realtime=true"), Drop: []string{"accept-encoding"}, Peek: 12,
				OnHead: func(h *wire.Head, f []byte) []wire.Field {
					first = fmt.Sprint(h.Status, string(f))
					return []wire.Field{field("ETag", `"7-1"`)}
				},
				Copy: func(p []byte) { copied += string(p) },
			})
			if err != nil {
				t.Error(err)
			}
			if err := x.Answer(200, nil, nil); !errors.Is(err, ErrSecondAnswer) {
				t.Errorf("a second answer: %v", err)
			}
			return true
		}
	})
	c := dial(t, addr)
	for range 2 {
		c.send(lines("GET /a/_doc/1 HTTP/1.1", "Host: h", "Accept-Encoding: gzip", "X-Old: 1"))
		a := c.answer("GET")
		if a.head != lines("HTTP/1.1 200 OK", "X-A: 1", "content-length: 25", `ETag: "7-1"`) || a.body != `{"_seq_no":7,"more":true}` {
			t.Fatalf("%+v", a)
		}
		if first != `200{"_seq_no":7` || copied != a.body {
			t.Errorf("first %q, copied %q", first, copied)
		}
	}
	if got, want := s.requests()[1].head, lines("GET /a/_doc/1?realtime=true HTTP/1.1", "Host: h", "X-Old: 1"); got != want {
		t.Errorf("upstream got %q, want %q", got, want)
	}
}

// What looks at an answer reads gzip at most. Where the other fields stand, and how they are spelled, stays.
func TestAReadableAnswerIsAskedForInGzipAtMost(t *testing.T) {
	s := newStub(t, func(c *stubConn, _ seen) { c.say("{}", "HTTP/1.1 200 OK", "Content-Length: 2") })
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool { return x.Forward(ForwardOptions{Readable: true}) == nil }
	})
	c := dial(t, addr)
	for _, tt := range []struct {
		accepts []string
		want    string // empty: nothing
	}{
		{nil, ""},
		{[]string{"Accept-Encoding: deflate"}, ""},
		{[]string{"Accept-Encoding:"}, ""},
		{[]string{"Accept-Encoding: gzip;Q=0, br"}, ""},
		{[]string{"Accept-Encoding: identity;q=0, deflate"}, ""},
		{[]string{"Accept-Encoding: " + strings.Repeat("gzip;q=0,", 1000)}, ""},
		{[]string{"ACCEPT-encoding: br, gzip;q=0.5"}, "ACCEPT-encoding: gzip"},
		{[]string{"Accept-Encoding: br, *"}, "Accept-Encoding: gzip"},
		{[]string{"Accept-Encoding: deflate", "accept-encoding: gzip"}, "Accept-Encoding: gzip"},
		{[]string{"Accept-Encoding: gzip", "Accept-Encoding: gzip"}, "Accept-Encoding: gzip"},
		{[]string{"Accept-Encoding: *", "Accept-Encoding: gzip;q=0"}, ""},
	} {
		c.send(lines(append(append([]string{"GET /a/_doc/1 HTTP/1.1", "Host: h", "x-A: 1"}, tt.accepts...), "X-b: 2")...))
		c.answer("GET")
		want := lines("GET /a/_doc/1 HTTP/1.1", "Host: h", "x-A: 1", tt.want, "X-b: 2")
		if tt.want == "" {
			want = lines("GET /a/_doc/1 HTTP/1.1", "Host: h", "x-A: 1", "X-b: 2")
		}
		if got := s.requests(); got[len(got)-1].head != want {
			t.Errorf("%q: the engine got %q, want %q", tt.accepts, got[len(got)-1].head, want)
		}
	}
}

// What comes in pieces is changed piece by piece, and the client has it before the next one comes.
func TestAnAnswerIsChangedAsItComes(t *testing.T) {
	release, held := make(chan struct{}), ""
	s := newStub(t, func(c *stubConn, r seen) {
		switch {
		case strings.Contains(r.head, "/small"):
			c.say("abcdef", "HTTP/1.1 200 OK", "X-A: 1", "Content-Length: 6", "X-B: 2")
		case strings.Contains(r.head, "/none"):
			c.say("", "HTTP/1.1 200 OK", "Content-Length: 0")
		case strings.Contains(r.head, "/chunks"):
			c.say("3\r\nabc\r\n", "HTTP/1.1 200 OK", "Transfer-Encoding: chunked")
			<-release
			_, _ = io.WriteString(c, "3\r\ndef\r\n0\r\n\r\n")
		default:
			c.say("abc", "HTTP/1.1 200 OK", "Content-Length: 6")
			<-release
			_, _ = io.WriteString(c, "def")
		}
	})
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			held = ""
			return x.Forward(ForwardOptions{Change: func(p []byte, last bool) []byte {
				out := held + strings.ToUpper(string(p)) // the last letter comes later
				if held = ""; !last && len(out) > 0 {
					out, held = out[:len(out)-1], out[len(out)-1:]
				} else if last && len(out) > 0 {
					out += "!"
				}
				return []byte(out)
			}}) == nil
		}
	})
	for _, target := range []string{"/chunks", "/length"} {
		c := dial(t, addr)
		c.send(lines("GET "+target+" HTTP/1.1", "Host: h"))
		head, err := readHead(c.r)
		early := make([]byte, len("2\r\nAB\r\n"))
		if _, err2 := io.ReadFull(c.r, early); err != nil || err2 != nil || string(early) != "2\r\nAB\r\n" {
			t.Fatalf("%s: %q behind %q, %v %v", target, early, head, err, err2)
		}
		release <- struct{}{}
		late := make([]byte, len("2\r\nCD\r\n...2\r\nEF\r\n1\r\n!\r\n0\r\n\r\n"))
		n, _ := io.ReadAtLeast(c.r, late, len("5\r\nCDEF!\r\n0\r\n\r\n"))
		if rest := dechunk(t, string(late[:n])); rest != "CDEF!" || strings.Contains(strings.ToLower(head), "content-length") {
			t.Errorf("%s: %q behind %q", target, late[:n], head)
		}
	}
	c := dial(t, addr)
	for range 2 {
		c.send(lines("GET /small HTTP/1.1", "Host: h"))
		if a := c.answer("GET"); a.head != lines("HTTP/1.1 200 OK", "X-A: 1", "Content-Length: 7", "X-B: 2") || a.body != "ABCDEF!" {
			t.Errorf("%+v", a)
		}
		c.send(lines("GET /none HTTP/1.1", "Host: h"))
		if a := c.answer("GET"); a.head != lines("HTTP/1.1 200 OK", "Content-Length: 0") || a.body != "" {
			t.Errorf("%+v", a)
		}
	}
	old := dial(t, addr)
	old.send(lines("GET /length HTTP/1.0"))
	head, _ := readHead(old.r)
	release <- struct{}{}
	if body, err := io.ReadAll(old.r); string(body) != "ABCDEF!" || err != nil || strings.Contains(strings.ToLower(head), "transfer") {
		t.Errorf("%q behind %q: %v", body, head, err)
	}
}

func TestPeekWaitsForWhatItWantsAndNoLonger(t *testing.T) {
	seenFirst := make(chan string, 1)
	release := make(chan struct{})
	for name, framing := range map[string]string{"length": "Content-Length: 10", "chunked": "Transfer-Encoding: chunked"} {
		t.Run(name, func(t *testing.T) {
			pieces := []string{"abcd", "efgh", "ij"}
			if name == "chunked" {
				pieces = []string{"4\r\nabcd\r\n", "4\r\nefgh\r\n", "2\r\nij\r\n0\r\n\r\n"}
			}
			s := newStub(t, func(c *stubConn, _ seen) {
				c.say(pieces[0], "HTTP/1.1 200 OK", framing)
				_, _ = io.WriteString(c, pieces[1])
				<-release
				_, _ = io.WriteString(c, pieces[2])
			})
			copied := make(chan string, 1)
			addr, _ := newProxy(t, s, func(o *Options) {
				o.Intercept = func(x *Exchange) bool {
					var all string
					err := x.Forward(ForwardOptions{Peek: 6,
						OnHead: func(_ *wire.Head, first []byte) []wire.Field { seenFirst <- string(first); return nil },
						Copy:   func(p []byte) { all += string(p) }})
					copied <- all
					return err == nil
				}
			})
			c := dial(t, addr)
			c.send(lines("GET / HTTP/1.1", "Host: h"))
			if got := wait(t, seenFirst, "the first bytes"); got != "abcdef" {
				t.Fatalf("%q", got)
			}
			release <- struct{}{}
			a := c.answer("GET")
			if name == "chunked" {
				a.body = dechunk(t, a.body)
			}
			if a.body != "abcdefghij" {
				t.Fatalf("%+v", a)
			}
			if got := wait(t, copied, "the copy"); got != "abcdefghij" {
				t.Errorf("copied %q", got)
			}
		})
	}
}

func TestRequestNobodyAnsweredIsAnError(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, func(o *Options) { o.Intercept = func(*Exchange) bool { return true } })
	c := dial(t, addr)
	c.send(lines("GET / HTTP/1.1", "Host: h"))
	wantError(t, c.answer("GET"), 500, TypeInternal)
}

func TestPanicEndsOneConnectionOnly(t *testing.T) {
	s := newStub(t, nil)
	addr, server := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			if string(x.Head().Target) == "/panic" {
				panic("a bug")
			}
			return false
		}
	})
	other, c := dial(t, addr), dial(t, addr)
	c.send(lines("GET /panic HTTP/1.1", "Host: h"))
	c.gone()
	other.send(lines("GET / HTTP/1.1", "Host: h"))
	if a := other.answer("GET"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	eventually(t, "the connection's end", func() bool { open, _ := server.Connections(); return open == 1 })
}

func TestUnreadBodyOfAnInterceptedRequestIsSkipped(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			x.Fail(&Failure{Status: 428, Type: "precondition_required", Reason: "no \"base\"\n\x00\xff"})
			return true
		}
	})
	c := dial(t, addr)
	for _, head := range []string{"Content-Length: 5", "Transfer-Encoding: chunked"} {
		body := "hello"
		if head[0] == 'T' {
			body = "5\r\nhello\r\n0\r\n\r\n"
		}
		c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", head), body)
		a := c.answer("PUT")
		wantError(t, a, 428, "precondition_required")
		if a.field("connection") != "" || !strings.Contains(a.body, `"reason":"no \"base\"\n\u0000\ufffd"}`) {
			t.Errorf("%+v", a)
		}
	}
}

// Who keeps account of what answers say must have it before the client acts on one.
func TestTheStatusIsKnownBeforeTheClientHasIt(t *testing.T) {
	var status atomic.Int64
	s := newStub(t, func(c *stubConn, r seen) {
		if !strings.Contains(r.head, "/lost") {
			c.say("", "HTTP/1.1 404 Not Found", "Content-Length: 0")
		}
		_ = c.Close()
	})
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			if string(x.Head().Target) != "/none" {
				x.OnStatus = func(code int) { status.Store(int64(code)) }
			}
			return string(x.Head().Target) == "/own" && x.Answer(409, nil, nil) == nil
		}
	})
	c := dial(t, addr)
	for target, want := range map[string]int64{"/forwarded": 404, "/own": 409, "/lost": 502, "/none": 0} {
		status.Store(0)
		c.send(lines("GET "+target+" HTTP/1.1", "Host: h"))
		if a := c.answer("GET"); status.Load() != want {
			t.Errorf("%s: %d for %+v", target, status.Load(), a)
		}
	}
}
