package proxy

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"

	"optimist/internal/budget"
)

// A body for which there is no memory is whole all the same where it goes on, and whoever needs it is told to come again.
func TestABodyWithoutMemoryIsForwardedWholeOrRefused(t *testing.T) {
	body := strings.Repeat("0123456789", 40<<10)
	for name, framing := range map[string]func() string{
		"length": func() string { return fmt.Sprintf("Content-Length: %d\r\n\r\n%s", len(body), body) },
		"chunked": func() string {
			return fmt.Sprintf("Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", len(body), body)
		},
	} {
		for _, limit := range []int64{1, 100 << 10, 300 << 10} { // nothing is collected of it, or more and more
			b := budget.New(budget.Options{Limit: 2 * limit})
			s := newStub(t, nil)
			addr, _ := newProxy(t, s, func(o *Options) {
				o.Budget = b
				o.Intercept = func(x *Exchange) bool {
					_, err := x.Body(1 << 20)
					_, again := x.Body(1 << 20)
					if !errors.Is(err, budget.ErrTooMuch) || !errors.Is(again, budget.ErrTooMuch) {
						t.Errorf("%s, %d: %v, %v", name, limit, err, again)
					}
					if strings.HasPrefix(string(x.Op().Path), "/refused") {
						x.Fail(budget.ErrOverloaded)
						return true
					}
					return false
				}
			})
			c := dial(t, addr)
			c.send("PUT /i/_doc/1 HTTP/1.1\r\nHost: h\r\n", framing())
			if a := c.answer("PUT"); a.status != 200 {
				t.Errorf("%s, %d: %d", name, limit, a.status)
			}
			got := s.requests()[0].body
			if name == "chunked" {
				got = dechunk(t, got)
			}
			if got != body {
				t.Errorf("%s, %d: the engine got %d bytes of %d, or others", name, limit, len(got), len(body))
			}
			c.send("PUT /refused/_doc/1 HTTP/1.1\r\nHost: h\r\n", framing())
			if a := c.answer("PUT"); a.status != 503 || a.field("retry-after") == "" || !strings.Contains(a.body, TypeOverloaded) {
				t.Errorf("%s, %d: %d %s %s", name, limit, a.status, a.head, a.body)
			}
			eventually(t, "the memory", func() bool { return b.Used() == 0 })
		}
	}
}

// Whatever becomes of requests, and however they end, nothing of the budget is gone afterwards.
func TestTheBudgetIsWholeAfterAnyMixOfRequests(t *testing.T) {
	b := budget.New(budget.Options{Limit: 1 << 20})
	s := newStub(t, func(c *stubConn, r seen) {
		switch {
		case strings.Contains(r.head, "/lost"):
			_ = c.Close()
		case strings.Contains(r.head, "/broken"):
			c.say("abc", "HTTP/1.1 200 OK", "content-length: 100")
			_ = c.Close()
		default:
			c.ok(strings.Repeat("x", 100<<10))
		}
	})
	addr, _ := newProxy(t, s, func(o *Options) {
		o.Budget = b
		o.Owner = func(x *Exchange) budget.Owner {
			return budget.Owner{Address: netip.IPv6Loopback(), Credentials: [16]byte{byte(len(x.Head().Get("authorization")))}}
		}
		o.Intercept = func(x *Exchange) bool {
			body, err := x.Body(200 << 10)
			switch path := string(x.Op().Path); {
			case err != nil && !errors.Is(err, ErrTooLarge):
				x.Fail(err)
				return true
			case strings.HasPrefix(path, "/panic"):
				panic("a bug")
			case strings.HasPrefix(path, "/own"):
				_ = x.Answer(200, nil, body)
				return true
			}
			return false
		}
	})
	var wg sync.WaitGroup
	for i := range 48 {
		wg.Go(func() {
			c := dial(t, addr)
			kind := [...]string{"own", "passed", "lost", "broken", "panic", "left", "half", "large"}[i%8]
			size := 100 << 10
			if kind == "large" {
				size *= 5
			}
			head := fmt.Sprintf("PUT /%s/_doc/1 HTTP/1.1\r\nHost: h\r\nAuthorization: %s\r\nContent-Length: %d\r\n\r\n", kind, strings.Repeat("a", i%3), size)
			body := strings.Repeat("b", size)
			switch kind {
			case "half":
				body = body[:size/2]
			case "left":
				c.send(head, body)
				_ = c.Close()
				return
			}
			c.send(head, body)
			if kind == "half" {
				_ = c.Close()
				return
			}
			_, _ = c.tryAnswer("PUT")
		})
	}
	wg.Wait()
	eventually(t, "the memory", func() bool { return b.Used() == 0 })
}

// What passes needs none of the budget, however large it is.
func TestWhatOnlyPassesNeedsNoMemory(t *testing.T) {
	b := budget.New(budget.Options{Refused: func(budget.Owner) { t.Error("memory was asked for") }})
	answer := strings.Repeat("x", 1<<20)
	s := newStub(t, func(c *stubConn, _ seen) { c.ok(answer) })
	addr, _ := newProxy(t, s, func(o *Options) { o.Budget = b })
	c := dial(t, addr)
	c.send(fmt.Sprintf("POST /_bulk HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", 1<<20), strings.Repeat("y", 1<<20))
	if a := c.answer("POST"); a.status != 200 || a.body != answer {
		t.Errorf("%d, %d bytes", a.status, len(a.body))
	}
}
