package proxy

import (
	"net"
	"testing"
	"time"

	"optimist/internal/upstream"
)

// newProxy starts a Server in front of the stub. change may alter the options.
func newProxy(t *testing.T, s *stub, change func(o *Options)) (addr string, server *Server) {
	t.Helper()
	set, err := upstream.New(upstream.Config{URLs: []string{s.url()}, HealthInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	o := Options{Upstream: set, Limits: Limits{Tick: 10 * time.Millisecond}}
	if change != nil {
		change(&o)
	}
	return serve(t, o)
}

// serve starts a Server and stops it at the end of the test.
func serve(t *testing.T, o Options) (addr string, server *Server) {
	t.Helper()
	server, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(ln) }()
	t.Cleanup(func() {
		server.Close()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	return ln.Addr().String(), server
}

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
