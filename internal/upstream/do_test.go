package upstream

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"optimist/internal/wire"
)

func fields(pairs ...string) []wire.Field {
	var fs []wire.Field
	for i := 0; i < len(pairs); i += 2 {
		fs = append(fs, wire.Field{Name: []byte(pairs[i]), Value: []byte(pairs[i+1])})
	}
	return fs
}

// raw serves one connection: it hands each request's bytes to a channel and answers 200.
func raw(heads chan<- string) func(p *peer) {
	return func(p *peer) {
		var all strings.Builder
		p.br = bufio.NewReader(io.TeeReader(p.Conn, &all))
		for {
			if req, _ := p.next(); req == nil {
				return
			}
			heads <- all.String()
			all.Reset()
			p.answer(200, "")
		}
	}
}

func TestRequestIsSentAsItIs(t *testing.T) {
	heads := make(chan string, 1)
	s := newStub(t, raw(heads))
	host := strings.TrimPrefix(s.url, "http://")
	for _, c := range []struct {
		name, base string
		r          Request
		want       string
	}{
		{"own bytes of the target, order and case of fields", "", Request{Method: "GET", Target: []byte("/a/..%2F/x%2fy+?q=&&"), Fields: fields("x-B", "2", "HOST", "client:9280", "X-a", "1", "x-a", "")},
			"GET /a/..%2F/x%2fy+?q=&& HTTP/1.1\r\nx-B: 2\r\nHOST: client:9280\r\nX-a: 1\r\nx-a: \r\n\r\n"},
		{"host of the node where there is none", "", Request{Method: "GET", Target: []byte("/")}, "GET / HTTP/1.1\r\nHost: " + host + "\r\n\r\n"},
		{"base path", "/es/", Request{Method: "GET", Target: []byte("/_cat?v"), Fields: fields("Host", "x")}, "GET /es/_cat?v HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"length in its place", "", Request{Method: "PUT", Target: []byte("/"), Fields: fields("content-length", "9", "Host", "x"), Body: []byte("hello")},
			"PUT / HTTP/1.1\r\ncontent-length: 5\r\nHost: x\r\n\r\nhello"},
		{"no body", "", Request{Method: "POST", Target: []byte("/"), Fields: fields("Host", "x")}, "POST / HTTP/1.1\r\nHost: x\r\n\r\n"},
		{"empty body", "", Request{Method: "PUT", Target: []byte("/"), Fields: fields("Host", "x"), Body: []byte{}}, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"},
		{"chunked, and whole", "", Request{Method: "PUT", Target: []byte("/"), Fields: fields("Host", "x"), Body: []byte("hello"), Length: -1}, "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"},
		{"chunked, and empty", "", Request{Method: "PUT", Target: []byte("/"), Fields: fields("Host", "x"), Length: -1}, "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
		{"empty body that was said", "", Request{Method: "DELETE", Target: []byte("/"), Fields: fields("Host", "x", "Content-Length", "0")}, "DELETE / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"},
		{"GET with a body", "", Request{Method: "GET", Target: []byte("/_search"), Fields: fields("Host", "x"), Body: []byte("{}")}, "GET /_search HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"},
		{"expectation is answered by us", "", Request{Method: "PUT", Target: []byte("/"), Fields: fields("Host", "x", "expect", "100-Continue"), Body: []byte("{}")}, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"},
		{"stream of known length", "", Request{Method: "PUT", Target: []byte("/"), Fields: fields("Host", "x"), Body: []byte("he"), Stream: newParts("llo"), Length: 5}, "PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello"},
		{"stream of unknown length", "", Request{Method: "PUT", Target: []byte("/"), Fields: fields("Host", "x", "Content-Length", "4"), Body: []byte("he"), Stream: newParts("llo"), Length: -1},
			"PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"},
		{"a client's credentials", "", Request{Method: "GET", Target: []byte("/"), Fields: fields("Host", "x", "authorization", "client")}, "GET / HTTP/1.1\r\nHost: x\r\nauthorization: client\r\n\r\n"},
		{"our own credentials", "", Request{Method: "GET", Target: []byte("/"), Fields: fields("authorization", "client", "Host", "x"), Own: true}, "GET / HTTP/1.1\r\nHost: x\r\nAuthorization: ApiKey ours\r\n\r\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			set := newSet(t, func(cfg *Config) { cfg.Authorization = "ApiKey ours" }, s.url+c.base)
			do(t, set, &c.r)
			if got := <-heads; got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestAnswersOfEveryFramingAreCollected(t *testing.T) {
	for _, c := range []struct {
		name, method, answer, body string
		kept                       bool // the connection carries the next request
	}{
		{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
		{"chunked with trailer", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\nT: v\r\n\r\n", "hello", true},
		{"until close", "GET", "HTTP/1.1 200 OK\r\n\r\nhello", "hello", false},
		{"HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", "", true},
		{"204", "DELETE", "HTTP/1.1 204 No Content\r\n\r\n", "", true},
		{"after interim answers", "PUT", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 Created\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
		{"close asked for", "GET", "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", "hello", false},
		{"HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", false},
		{"HTTP/1.0 kept alive", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", "hello", true},
		{"bytes behind the answer", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil", "hello", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStub(t, func(p *peer) {
				for p.head() != nil {
					io.WriteString(p, c.answer)
					if !c.kept {
						return
					}
				}
			})
			set := newSet(t, nil, s.url)
			for range 2 {
				resp, err := set.Do(context.Background(), &Request{Method: c.method, Target: []byte("/")})
				if err != nil || string(resp.Payload) != c.body || resp.Status < 200 || resp.Node != s.url {
					t.Fatalf("%+v, %v", resp, err)
				}
				resp.Release()
			}
			if got := s.accepted.Load() == 1; got != c.kept {
				t.Errorf("kept is %v, want %v", got, c.kept)
			}
		})
	}
}

func TestMalformedAnswerIsALostOne(t *testing.T) {
	for name, answer := range map[string]string{
		"both framings":       "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
		"two lengths":         "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
		"not HTTP":            "This is not an HTTP port",
		"upgrade":             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
		"bad chunk":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
		"body cut":            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
		"chunks cut":          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
		"head cut":            "HTTP/1.1 200 OK\r\nContent-Le",
		"interim without end": strings.Repeat("HTTP/1.1 102 Processing\r\n\r\n", 20),
		"head without end":    "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 70<<10),
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(p *peer) {
				if req, _ := p.next(); req != nil {
					io.WriteString(p, answer)
					p.Conn.(*net.TCPConn).CloseWrite()
					io.Copy(io.Discard, p)
				}
			})
			set := newSet(t, nil, s.url)
			if e := fails(t, set, put("{}"), Lost); !e.Sent || e.Node != s.url {
				t.Errorf("%+v", e)
			}
			if s.requests.Load() != 1 {
				t.Errorf("the write was sent %d times", s.requests.Load())
			}
			fails(t, set, get(), Lost)
			if s.requests.Load() != 3 {
				t.Errorf("the read was sent %d times, want 2", s.requests.Load()-1)
			}
			if st := set.Nodes()[0]; st.Open != 0 || !st.Alive {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestAnswerOverTheLimitIsRefused(t *testing.T) {
	for name, answer := range map[string]string{
		"said":   "HTTP/1.1 200 OK\r\nContent-Length: 11\r\n\r\nhello world",
		"unsaid": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(p *peer) {
				for p.head() != nil {
					io.WriteString(p, answer)
				}
			})
			set := newSet(t, func(c *Config) { c.MaxAnswer = 10 }, s.url)
			if e := fails(t, set, get(), TooLarge); !e.Sent {
				t.Errorf("%+v", e)
			}
			if s.requests.Load() != 1 || set.Nodes()[0].Open != 0 {
				t.Error("asked again, or kept the connection")
			}
			set = newSet(t, func(c *Config) { c.MaxAnswer = 11 }, s.url)
			if got := do(t, set, get()); got != "200 hello world" {
				t.Errorf("exactly the limit: %q", got)
			}
		})
	}
}

func TestReleasedResponsesDontShowOldBytes(t *testing.T) {
	s := newStub(t, echo)
	set := newSet(t, nil, s.url)
	for i := range 50 {
		body := strings.Repeat("x", i*997)
		if got := do(t, set, put(body)); got != "200 PUT /i/_doc/1 "+body {
			t.Fatalf("request %d: %d bytes", i, len(got))
		}
	}
	if s.accepted.Load() != 1 {
		t.Errorf("%d connections for requests one after the other", s.accepted.Load())
	}
}

func TestErrorsSayWhichNodeAndWhy(t *testing.T) {
	url := refusing(t)
	e := fails(t, newSet(t, nil, url), put("{}"), NotSent)
	var c *ConnectError
	if !errors.As(e, &c) || c.Reason != Refused || e.Sent || !strings.Contains(e.Error(), url) || !strings.Contains(e.Error(), "connection refused") {
		t.Errorf("refused: %v", e)
	}
	e = fails(t, newSet(t, nil, "http://no-such-host.invalid:9200"), put("{}"), NotSent)
	if !errors.As(e, &c) || c.Reason != Unresolved || !strings.Contains(e.Error(), "not resolved") {
		t.Errorf("unresolved: %v", e)
	}
	s := newStub(t, echo)
	e = fails(t, newSet(t, nil, strings.Replace(s.url, "http:", "https:", 1)), put("{}"), NotSent)
	if !errors.As(e, &c) || c.Reason != Handshake || !strings.Contains(e.Error(), "TLS handshake") {
		t.Errorf("handshake: %v", e)
	}
	if s.requests.Load() != 0 {
		t.Error("something was sent in clear")
	}
}

func TestConnectTimeoutIsSaidAndBoundsTheHandshake(t *testing.T) {
	stop := make(chan struct{})
	s := newStub(t, func(p *peer) { <-stop }) // takes the connection and never shakes hands
	defer close(stop)
	set := newSet(t, func(c *Config) { c.ConnectTimeout = 1e7 }, strings.Replace(s.url, "http:", "https:", 1))
	e := fails(t, set, put("{}"), NotSent)
	var c *ConnectError
	if !errors.As(e, &c) || c.Reason != TimedOut || !strings.Contains(e.Error(), "timed out (after 10ms") {
		t.Errorf("%v", e)
	}
}

func TestConfigIsChecked(t *testing.T) {
	for want, cfg := range map[string]Config{
		"no URL":              {},
		"more than 64":        {URLs: make([]string, 65)},
		"must begin with":     {URLs: []string{"es:9200"}},
		"has no host":         {URLs: []string{"http://:9200"}},
		"credentials":         {URLs: []string{"http://u:secret@es:9200"}},
		"query or fragment":   {URLs: []string{"http://es:9200/?x"}},
		"can't be read":       {URLs: []string{"http://u:secret@[es"}},
		"twice":               {URLs: []string{"http://es:9200", "http://es:9200/"}},
		"ca_file":             {URLs: []string{"https://es"}, TLS: TLS{CAFile: "nowhere.pem"}},
		"no certificate":      {URLs: []string{"https://es"}, TLS: TLS{CAFile: "doc.go"}},
		"need each other":     {URLs: []string{"https://es"}, TLS: TLS{CertFile: "x.pem"}},
		"cert_file and key_f": {URLs: []string{"https://es"}, TLS: TLS{CertFile: "doc.go", KeyFile: "doc.go"}},
		"negative":            {URLs: []string{"http://es"}, ConnectTimeout: -1},
	} {
		s, err := New(cfg)
		if err == nil {
			s.Close()
			t.Errorf("%s: accepted", want)
		} else if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("want %q: %v", want, err)
		}
	}
}

func TestUnknownMethodsAndLargeBodiesGoThrough(t *testing.T) {
	s := newStub(t, func(p *peer) {
		for {
			req, body := p.next()
			if req == nil {
				return
			}
			p.answer(200, fmt.Sprint(req.Method, len(body)))
		}
	})
	set := newSet(t, nil, s.url)
	for _, n := range []int{0, 1, maxCopied, maxCopied + 1, maxInline, maxInline + 1, 5 << 20} {
		for _, length := range []int64{0, -1} {
			r := &Request{Method: "QUERY", Target: []byte("/"), Body: make([]byte, n), Length: length}
			if got := do(t, set, r); got != fmt.Sprintf("200 QUERY%d", n) {
				t.Errorf("%d bytes: %s", n, got)
			}
		}
	}
	if s.accepted.Load() != 1 {
		t.Errorf("%d connections", s.accepted.Load())
	}
}
