package admin

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"optimist/internal/certtest"
	"optimist/internal/obs"
	"optimist/internal/rule"
	"optimist/internal/secure"
)

// trap is a request that two parsers may read differently. Its bytes are the code points of its text.
type trap struct {
	Name, Request, Repeat, After string
	Times, Status                int
}

func (c *trap) bytes() string {
	var b []byte
	for _, r := range c.Request + strings.Repeat(c.Repeat, c.Times) + c.After {
		b = append(b, byte(r))
	}
	return string(b)
}

// traps are those of the data port, and some whose body doesn't come.
func traps(t *testing.T) (list []trap) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "proxy", "testdata", "framings.json"))
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil || len(list) < 40 {
		t.Fatal(err, len(list))
	}
	const head = "PUT /_optimist/mode HTTP/1.1\r\nHost: localhost\r\n"
	return append(list,
		trap{Name: "no length and chunks, without a chunk", Request: head + "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n", Status: 400},
		trap{Name: "a length and chunks, without a body", Request: head + "Content-Length: 9\r\nTransfer-Encoding: chunked\r\n\r\n", Status: 400},
		trap{Name: "chunks and 100-continue", Request: head + "Expect: 100-continue\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", Status: 400},
		trap{Name: "identity without a body", Request: head + "Transfer-Encoding: identity\r\n\r\n", Status: 400},
	)
}

// open opens a connection to the listener.
func (s *served) open(t *testing.T) net.Conn {
	t.Helper()
	c, err := s.client.Transport.(*http.Transport).DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	return c
}

const switchOff = "PUT /_optimist/mode HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{\"mode\":\"off\"}"

// TestAmbiguousFramingIsRefused sends what two parsers could read differently, first alone and then with a second request behind it.
// Alone, the request gets its answer although the client sends nothing more and doesn't end the connection. The second is never carried out.
func TestAmbiguousFramingIsRefused(t *testing.T) {
	s := serve(t)
	for _, c := range traps(t) {
		for _, behind := range []string{"", switchOff} {
			t.Run(c.Name, func(t *testing.T) {
				conn := s.open(t)
				go func() { _, _ = io.WriteString(conn, c.bytes()+behind) }() // a refusal may come before all of it is read
				in := bufio.NewReader(conn)
				res, err := http.ReadResponse(in, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = res.Body.Close() }()
				body, err := io.ReadAll(res.Body)
				if err != nil || res.StatusCode != c.Status || !res.Close || !json.Valid(body) {
					t.Errorf("%d, closes: %v; %s, %v; want %d", res.StatusCode, res.Close, body, err, c.Status)
				}
				if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
					t.Errorf("behind the answer: %q, %v", rest, err)
				}
				if s.sw.Mode() != rule.Guard {
					t.Error("the request behind it was carried out")
				}
			})
		}
	}
}

// The body of a request is never read as a request, whatever its method.
func TestABodyIsNotASecondRequest(t *testing.T) {
	s := serve(t)
	for _, method := range []string{"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS", "PATCH", "X"} {
		for framing, request := range map[string]string{
			"length": fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(switchOff), switchOff),
			"chunks": fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(switchOff), switchOff),
		} {
			conn := s.open(t)
			const last = "GET /_optimist/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
			go func() { _, _ = io.WriteString(conn, method+" / HTTP/1.1\r\nHost: localhost\r\n"+request+last) }()
			all, err := io.ReadAll(conn)
			if n := strings.Count(string(all), "HTTP/1.1 "); n != 2 || err != nil {
				t.Errorf("%s, %s: %d answers, %v: %s", method, framing, n, err, all)
			}
			if s.sw.Mode() != rule.Guard {
				t.Errorf("%s, %s: the body was carried out", method, framing)
			}
		}
	}
}

// Requests in one packet get their answers in order, and a refusal comes after them.
func TestRequestsBehindOneAnotherAreAnsweredInOrder(t *testing.T) {
	s := serve(t)
	conn := s.open(t)
	chunked := strings.Replace(switchOff, "Content-Length: 14\r\n\r\n{\"mode\":\"off\"}", "Transfer-Encoding: chunked\r\n\r\n7\r\n{\"mode\"\r\n7\r\n:\"off\"}\r\n0\r\n\r\n", 1)
	go func() {
		_, _ = io.WriteString(conn, "GET /_optimist/health HTTP/1.1\r\nHost: localhost\r\n\r\n"+chunked+
			strings.Replace(switchOff, "off", "log", 1)+"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"+switchOff)
	}()
	all, err := io.ReadAll(conn)
	var statuses []string
	for _, part := range strings.Split(string(all), "HTTP/1.1 ")[1:] {
		statuses = append(statuses, part[:3])
	}
	if got := strings.Join(statuses, " "); got != "200 200 400 400" || err != nil || s.sw.Mode() != rule.Off {
		t.Errorf("%s, %v, mode %v: %s", got, err, s.sw.Mode(), all)
	}
}

// curl said "Empty reply from server", and nothing else.
func TestHTTPToATLSPortIsToldToUseHTTPS(t *testing.T) {
	cert, key := certtest.New(t).Issue("by-address")
	conf, err := secure.NewTLS(secure.Options{Files: secure.Files{Cert: cert, Key: key}})
	if err != nil {
		t.Fatal(err)
	}
	s := serveFor(t, Access{}, conf)
	r, err := s.client.Get("http://127.0.0.1:9281/_optimist/mode")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if body, err := io.ReadAll(r.Body); err != nil || r.StatusCode != 400 || !strings.Contains(string(body), "must begin with https") {
		t.Errorf("%d %s %v", r.StatusCode, body, err)
	}
}

// Clients that begin handshakes and don't end them take the places of their own address alone.
func TestHandshakesThatNeverEndKeepNobodyOut(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue("by-address")
	conf, err := secure.NewTLS(secure.Options{Files: secure.Files{Cert: cert, Key: key}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Options{Ready: func() error { return nil }, Switch: rule.NewSwitch(rule.Guard, nil), Metrics: obs.NewMetrics(obs.Build{}).Gatherer(),
		Config: func() ([]byte, error) { return nil, nil }, Nodes: func() []Node { return nil }})
	go func() { _ = s.Serve(tls.NewListener(l, conf)) }()
	t.Cleanup(func() { _ = l.Close() })
	for range maxConns + 100 {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		_, _ = io.WriteString(c, "\x16\x03\x01\x02\x00\x01") // may be refused already
	}
	other := net.Dialer{Timeout: time.Minute, LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	c, err := tls.DialWithDialer(&other, "tcp", l.Addr().String(), &tls.Config{RootCAs: a.Pool, ServerName: "127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /_optimist/health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if all, err := io.ReadAll(c); err != nil || !strings.HasPrefix(string(all), "HTTP/1.1 200 ") {
		t.Errorf("%s, %v", all, err)
	}
}
