package proxy

import (
	"io"
	"testing"
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
