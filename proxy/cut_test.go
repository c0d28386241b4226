package proxy

import "testing"

// The watcher decides that a connection is idle, and a request comes before it acts on that. The request's head was in time to be
// read; its body must be, too.
func TestRequestThatMeetsTheEndOfAnIdleWaitIsServed(t *testing.T) {
	cut := make(chan struct{})
	addr, _ := newProxy(t, newStub(t, nil), func(o *Options) {
		o.Intercept = func(x *Exchange) bool {
			x.c.cutRead(cutIdle)
			close(cut)
			body, err := x.Body(1 << 10)
			if err != nil {
				x.Fail(err)
				return true
			}
			_ = x.Answer(200, nil, body)
			return true
		}
	})
	c := dial(t, addr)
	c.send(lines("PUT /a HTTP/1.1", "Host: h", "Content-Length: 2"))
	wait(t, cut, "the cut")
	c.send("{}")
	if a := c.answer("PUT"); a.status != 200 || a.body != "{}" {
		t.Errorf("%+v", a)
	}
}
