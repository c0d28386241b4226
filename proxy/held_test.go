package proxy

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"optimist/internal/upstream"
	"optimist/internal/wire"
)

// An answer that breaks while all of it is held back is lost: the client is told so. One of which a part was sent breaks off.
func TestAnAnswerThatBreaksWhileItIsHeldIsLost(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"
	for name, c := range map[string]struct {
		answer string
		part   string // what the client gets of it
	}{
		"at once":            {"zz\r\n", ""},
		"behind the first":   {"2\r\n{}\r\nzz\r\n", ""},
		"behind the second":  {"1\r\n{\r\n1\r\n \r\nzz\r\n", "1\r\n{\r\n"},
		"with no end":        {"2\r\n{}\r\n", ""},
		"in a chunk":         {"10\r\n{", ""},
		"before its framing": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStub(t, func(sc *stubConn, _ seen) {
				_, _ = io.WriteString(sc, head+c.answer)
				_ = sc.Close()
			})
			addr, _ := newProxy(t, s, func(o *Options) {
				o.Intercept = func(x *Exchange) bool {
					if err := x.Forward(ForwardOptions{Last: func() { t.Error("it isn't whole") }}); err != nil {
						x.Fail(err)
					}
					return true
				}
			})
			cl := dial(t, addr)
			cl.send(lines("GET /i/_mget HTTP/1.1", "Host: h"))
			a, err := cl.tryAnswer("GET")
			if c.part == "" {
				if err != nil {
					t.Fatal(err)
				}
				wantError(t, a, 502, TypeLost)
				cl.send(lines("GET /i/_mget HTTP/1.1", "Host: h")) // the connection stays
				wantError(t, cl.answer("GET"), 502, TypeLost)
				return
			}
			if err == nil || a.status != 200 || a.body != c.part {
				t.Errorf("%v %+v", err, a)
			}
		})
	}
}

// TestTheConnectionToTheEngineIsFreeBeforeTheClientHasTheEnd asks the only node something when all of an answer is here, over its only
// connection. The client gets the answer as it was.
func TestTheConnectionToTheEngineIsFreeBeforeTheClientHasTheEnd(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for name, want := range map[string]struct{ framing, body string }{
		"short":       {"content-length: 5\r\n\r\n", "12345"},
		"empty":       {"content-length: 0\r\n\r\n", ""},
		"long":        {"content-length: 100000\r\n\r\n", long},
		"chunked":     {"transfer-encoding: chunked\r\n\r\n", "3\r\n123\r\n2\r\n45\r\n0\r\n\r\n"},
		"long chunks": {"transfer-encoding: chunked\r\n\r\n", "186a0\r\n" + long + "\r\n2\r\n45\r\n0\r\n\r\n"},
	} {
		for _, peek := range []int{0, 4, 1000} {
			t.Run(fmt.Sprint(name, peek), func(t *testing.T) {
				s := newStub(t, func(sc *stubConn, r seen) {
					if strings.HasPrefix(r.head, "GET /asked ") {
						_, _ = io.WriteString(sc, "HTTP/1.1 200 OK\r\ncontent-length: 2000\r\n\r\n"+strings.Repeat("?", 2000))
						return
					}
					_, _ = io.WriteString(sc, "HTTP/1.1 200 OK\r\n"+want.framing+want.body)
				})
				set, err := upstream.New(upstream.Config{URLs: []string{s.url()}, HealthInterval: -1, MaxConns: 1})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(set.Close)
				addr, _ := newProxy(t, s, func(o *Options) {
					o.Upstream = set
					o.Intercept = func(x *Exchange) bool {
						err := x.Forward(ForwardOptions{Peek: peek, OnHead: func(*wire.Head, []byte) []wire.Field { return nil }, Last: func() {
							x.FreeUpstream()
							if _, err := set.Do(x.Context(), &upstream.Request{Method: "GET", Target: []byte("/asked")}); err != nil {
								t.Error(err)
							}
						}})
						if err != nil {
							x.Fail(err)
						}
						return true
					}
				})
				cl := dial(t, addr)
				for range 2 {
					cl.send(lines("GET /i/_doc/1 HTTP/1.1", "Host: h"))
					a := cl.answer("GET")
					got, sent := a.body, want.body
					if strings.Contains(want.framing, "chunked") {
						got, sent = dechunk(t, got), dechunk(t, sent)
					}
					if a.status != 200 || got != sent {
						t.Errorf("%d %.100q", a.status, got)
					}
				}
				if s.accepted != 1 {
					t.Errorf("%d connections", s.accepted)
				}
			})
		}
	}
}
