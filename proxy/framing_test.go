package proxy

import (
	"strings"
	"testing"

	"optimist/internal/api"
)

// TestAmbiguousFramingIsRefused sends what two parsers could read differently, with a second request behind it. Each must be
// refused in the engine's shape, the connection closed, and nothing may reach the engine: not the request, not its tail.
func TestAmbiguousFramingIsRefused(t *testing.T) {
	const smuggled = "GET /smuggled HTTP/1.1\r\nHost: h\r\n\r\n"
	for name, tt := range map[string]struct {
		request string
		status  int
		typ     string
	}{
		"both framings": {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, TypeInvalid},
		"both framings, other order": {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400,
			TypeInvalid},
		"two lengths":           {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nContent-Length: 5\r\n\r\n", 400, TypeInvalid},
		"two equal lengths":     {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n", 400, TypeInvalid},
		"list of lengths":       {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0, 0\r\n\r\n", 400, TypeInvalid},
		"signed length":         {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: +0\r\n\r\n", 400, TypeInvalid},
		"hex length":            {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0x0\r\n\r\n", 400, TypeInvalid},
		"empty length":          {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length:\r\n\r\n", 400, TypeInvalid},
		"length over int64":     {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 92233720368547758080\r\n\r\n", 400, TypeInvalid},
		"unknown coding":        {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501, TypeUnsupported},
		"chunked not last":      {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 400, TypeInvalid},
		"chunked twice":         {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, TypeInvalid},
		"identity":              {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: identity\r\n\r\n", 400, TypeInvalid},
		"chunked in 1.0":        {"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400, TypeInvalid},
		"hidden coding":         {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400, TypeInvalid},
		"obs-fold":              {"GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\r\n Transfer-Encoding: chunked\r\n\r\n", 400, TypeInvalid},
		"space before colon":    {"POST / HTTP/1.1\r\nHost: h\r\nContent-Length : 5\r\n\r\nhello", 400, TypeInvalid},
		"bare LF":               {"GET / HTTP/1.1\nHost: h\n\n", 400, TypeInvalid},
		"one bare LF":           {"GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\nX-B: 2\r\n\r\n", 400, TypeInvalid},
		"bare CR":               {"GET / HTTP/1.1\r\nHost: h\r\nX-A: 1\rTransfer-Encoding: chunked\r\n\r\n", 400, TypeInvalid},
		"NUL":                   {"GET / HTTP/1.1\r\nHost: h\r\nX-A: a\x00b\r\n\r\n", 400, TypeInvalid},
		"no host":               {"GET / HTTP/1.1\r\n\r\n", 400, TypeInvalid},
		"two hosts":             {"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400, TypeInvalid},
		"other host in target":  {"GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n", 400, TypeInvalid},
		"no name":               {"GET / HTTP/1.1\r\nHost: h\r\n: x\r\n\r\n", 400, TypeInvalid},
		"space in target":       {"GET /a b HTTP/1.1\r\nHost: h\r\n\r\n", 400, TypeInvalid},
		"no target":             {"GET HTTP/1.1\r\nHost: h\r\n\r\n", 400, TypeInvalid},
		"relative target":       {"GET a/b HTTP/1.1\r\nHost: h\r\n\r\n", 400, TypeInvalid},
		"HTTP/2 preface":        {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, TypeUnsupported},
		"HTTP/0.9":              {"GET /\r\n", 400, TypeInvalid},
		"CONNECT":               {"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 501, TypeUnsupported},
		"TLS":                   {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400, TypeInvalid},
		"too large":             {"GET / HTTP/1.1\r\nHost: h\r\nX-A: " + strings.Repeat("x", 70000) + "\r\n\r\n", 431, TypeHeader},
		"too many fields":       {"GET / HTTP/1.1\r\nHost: h\r\n" + strings.Repeat("a:b\r\n", 600) + "\r\n", 431, TypeHeader},
		"chunk size not hex":    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n", 400, TypeInvalid},
		"chunk size too large":  {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", 400, TypeInvalid},
		"chunk size with LF":    {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\na\r\n0\r\n\r\n", 400, TypeInvalid},
		"chunk longer":          {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", 400, TypeInvalid},
		"chunk extension no ;":  {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n1 x\r\na\r\n0\r\n\r\n", 400, TypeInvalid},
		"smuggling by trailers": {"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + strings.Repeat("x", 9000) + "\r\n\r\n", 400, TypeInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, nil)
			told := new(counters)
			addr, _ := newProxy(t, s, func(o *Options) { o.Metrics = told })
			c := dial(t, addr)
			c.send(tt.request, smuggled, smuggled)
			a := c.answer("POST")
			wantError(t, a, tt.status, tt.typ)
			if a.field("Connection") != "close" {
				t.Errorf("the answer doesn't say that the connection ends: %q", a.head)
			}
			if err := c.endSending(); err != nil {
				t.Fatal(err)
			}
			c.closed()
			for _, r := range s.requests() {
				// A chunked body is found out while it is streamed, when its head has gone; the node must not have got an end of it.
				t.Errorf("reached the engine: %q %q", r.head, r.body)
			}
			if told.failures(tt.typ) != 1 {
				t.Errorf("not counted")
			}
		})
	}
}

func TestRequestBehindARefusedOneIsNotServed(t *testing.T) {
	s := newStub(t, nil)
	addr, _ := newProxy(t, s, nil)
	c := dial(t, addr)
	c.send(lines("GET /first HTTP/1.1", "Host: h"), "POST /second HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 1\r\n\r\nx", lines("GET /third HTTP/1.1", "Host: h"))
	if a := c.answer("GET"); a.status != 200 {
		t.Fatalf("%+v", a)
	}
	wantError(t, c.answer("POST"), 400, TypeInvalid)
	_ = c.endSending()
	c.closed()
	if got := s.requests(); len(got) != 1 || !strings.HasPrefix(got[0].head, "GET /first ") {
		t.Fatalf("upstream got %+q", got)
	}
}

func TestAmbiguousAnswerIsRefused(t *testing.T) {
	for name, head := range map[string][]string{
		"both framings": {"HTTP/1.1 200 OK", "Content-Length: 2", "Transfer-Encoding: chunked"},
		"two lengths":   {"HTTP/1.1 200 OK", "Content-Length: 2", "Content-Length: 3"},
		"not HTTP":      {"SSH-2.0-OpenSSH_9.2"},
		"switch":        {"HTTP/1.1 101 Switching Protocols", "Upgrade: websocket"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(c *stubConn, _ seen) { c.say("{}", head...) })
			told := new(counters)
			addr, _ := newProxy(t, s, func(o *Options) { o.Metrics = told })
			c := dial(t, addr)
			c.send(lines("PUT /a/_doc/1 HTTP/1.1", "Host: h", "Content-Length: 2"), "{}")
			wantError(t, c.answer("PUT"), 504, TypeUnknown)
			c.send(lines("GET /a/_doc/1 HTTP/1.1", "Host: h"))
			wantError(t, c.answer("GET"), 502, TypeLost)
			eventually(t, "the count", func() bool { return told.answered(api.Index, 5) == 1 && told.answered(api.Get, 5) == 1 })
		})
	}
}
