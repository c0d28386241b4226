package upstream

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
)

// Whatever nodes do to their connections: a write reaches a node at most once, exactly once if it is said to be sent or
// answered, and never if it is said to be not sent.
func TestWritesReachANodeAtMostOnceUnderChaos(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	serve := func(p *peer) {
		for {
			req, body := p.next()
			if req == nil {
				return
			}
			mu.Lock()
			seen[req.RequestURI]++
			mu.Unlock()
			answer := "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
			switch rand.IntN(8) {
			case 0: // nothing
				return
			case 1: // a reset
				_ = p.Conn.(*net.TCPConn).SetLinger(0)
				return
			case 2: // half an answer
				fmt.Fprint(p, answer[:rand.IntN(len(answer))])
				return
			case 3: // an answer, and a goodbye that isn't announced
				fmt.Fprint(p, answer)
				return
			default:
				if int64(len(body)) != max(req.ContentLength, 0) {
					t.Errorf("%s has %d bytes", req.RequestURI, len(body))
				}
				fmt.Fprint(p, answer)
			}
		}
	}
	a, b := newStub(t, serve), newStub(t, serve)
	set := newSet(t, func(c *Config) { c.MaxConns = 4 }, a.url, b.url, refusing(t))
	var wg sync.WaitGroup
	for worker := range 16 {
		wg.Go(func() {
			x := set.NewExchange(context.Background())
			defer x.Close()
			for i := range 100 {
				r := &Request{Method: "PUT", Target: fmt.Appendf(nil, "/%d/%d", worker, i), Body: []byte(strings.Repeat("x", rand.IntN(3)*20000))}
				if i%10 == 0 {
					r.Method, r.Repeatable = "GET", true
				}
				var resp *Response
				var err error
				if i%2 == 0 {
					resp, err = x.Do(r)
				} else {
					resp, err = set.Do(context.Background(), r)
				}
				resp.Release()
				mu.Lock()
				n := seen[string(r.Target)]
				mu.Unlock()
				switch {
				case err == nil && n == 1, errors.Is(err, Lost) && n <= 1, errors.Is(err, NotSent) && n == 0:
				case r.Repeatable && n <= 2 && (err == nil || errors.Is(err, Lost)):
				default:
					t.Errorf("%s %s was seen %d times: %v", r.Method, r.Target, n, err)
				}
			}
		})
	}
	wg.Wait()
	for _, st := range set.Nodes() {
		if st.Open != st.Idle || st.Open > 4 {
			t.Errorf("%+v", st)
		}
	}
}
