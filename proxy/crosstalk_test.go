package proxy

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/upstream"
)

// rudeNode answers with the request's token, in all framings and pieces, and now and then breaks off, answers twice, or hangs up.
func rudeNode(c *stubConn, r seen) {
	token := strings.TrimPrefix(strings.Fields(r.head)[1], "/")
	body := strings.Repeat(token+" ", 1+rand.IntN(300)*rand.IntN(2))
	head := func(l ...string) string {
		return strings.Join(append([]string{"HTTP/1.1 200 OK"}, l...), "\r\n") + "\r\n\r\n"
	}
	whole := head("Token: "+token, fmt.Sprintf("content-length: %d", len(body))) + body
	switch rand.IntN(12) {
	case 0: // nothing
		_ = c.Close()
	case 1: // a piece of an answer, then a reset
		_, _ = io.WriteString(c, whole[:rand.IntN(len(whole))])
		_ = c.Conn.(*net.TCPConn).SetLinger(0)
		_ = c.Close()
	case 2: // chunks
		_, _ = fmt.Fprintf(c, "%s%x\r\n%s\r\n", head("Token: "+token, "transfer-encoding: chunked"), len(body), body)
		dawdle(3)
		_, _ = io.WriteString(c, "0\r\n\r\n")
	case 3: // until the end
		_, _ = io.WriteString(c, head("Token: "+token)+body)
		_ = c.Close()
	case 4: // two answers
		_, _ = io.WriteString(c, whole+whole)
	case 5: // interim answers first
		_, _ = io.WriteString(c, "HTTP/1.1 103 Early Hints\r\nToken: "+token+"\r\n\r\n"+whole)
	case 6: // late
		dawdle(20)
		_, _ = io.WriteString(c, whole)
	case 7: // the second part late
		n := rand.IntN(len(whole))
		_, _ = io.WriteString(c, whole[:n])
		dawdle(5)
		_, _ = io.WriteString(c, whole[n:])
	default:
		_, _ = io.WriteString(c, whole)
	}
}

// rudeClient sends one request, and takes its answer or doesn't. It reports whether the connection can be used again.
func rudeClient(t *testing.T, c net.Conn, r *bufio.Reader, token string, answered *atomic.Int64) bool {
	size := rand.IntN(3) * rand.IntN(30_000)
	req := fmt.Sprintf("PUT /%s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n%s", token, size, strings.Repeat("b", size))
	switch rand.IntN(4) {
	case 0:
		req = fmt.Sprintf("GET /%s HTTP/1.1\r\nHost: h\r\n\r\n", token)
	case 1:
		req = fmt.Sprintf("PUT /%s HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n", token, size+1, strings.Repeat("b", size+1))
	}
	leave := rand.IntN(6)
	if leave == 0 {
		req = req[:rand.IntN(len(req))]
	}
	if _, err := io.WriteString(c, req); err != nil || leave == 0 {
		return false
	}
	if leave == 1 {
		dawdle(5)
		_ = c.(*net.TCPConn).SetLinger(0)
		return false
	}
	resp, err := http.ReadResponse(r, nil) //nolint:bodyclose // of a raw connection, which is closed
	for err == nil && resp.StatusCode < 200 {
		if got := resp.Header.Get("Token"); got != token {
			t.Errorf("interim answer of %s for %s", got, token)
		}
		resp, err = http.ReadResponse(r, nil) //nolint:bodyclose // likewise
	}
	if err != nil {
		return false
	}
	body, err := io.ReadAll(resp.Body)
	if resp.StatusCode == 200 {
		if got := resp.Header.Get("Token"); got != token || len(strings.ReplaceAll(string(body), token+" ", "")) > len(token) {
			t.Errorf("answer of %s for %s: %.200q", got, token, body)
		}
		if err == nil && strings.ReplaceAll(string(body), token+" ", "") != "" {
			t.Errorf("a whole answer for %s that isn't: %.200q", token, body)
		}
		answered.Add(1)
	}
	return err == nil && !resp.Close
}

// TestEveryAnswerIsThatOfItsRequest has both sides leave, break off and dawdle at any moment: whatever the connections to the engine
// have been through, the token of an answer is the request's.
func TestEveryAnswerIsThatOfItsRequest(t *testing.T) {
	s := newStub(t, rudeNode)
	set, err := upstream.New(upstream.Config{URLs: []string{s.url()}, HealthInterval: -1, MaxConns: 12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(set.Close)
	addr, server := newProxy(t, s, func(o *Options) {
		o.Upstream = set
		o.Limits = Limits{Tick: 2 * time.Millisecond, IdleTimeout: 20 * time.Millisecond, Linger: 60 * time.Millisecond}
		o.Intercept = func(x *Exchange) bool {
			if rand.IntN(2) == 0 { // as the guard does: an exchange of our own, with a time-out
				return false
			}
			body, err := x.Body(20_000)
			if err != nil {
				x.Fail(err)
				return true
			}
			resp, err := x.c.server.upstream.Do(x.Context(), &upstream.Request{
				Method: "PUT", Target: x.Head().Target, Fields: nil, Body: body, Timeout: time.Duration(1+rand.IntN(20)) * time.Millisecond,
			})
			if err != nil {
				x.Fail(err)
				return true
			}
			_ = x.Answer(resp.Status, resp.EndToEnd(nil), resp.Payload)
			resp.Release()
			return true
		}
	})
	var answered, tokens atomic.Int64
	var wg sync.WaitGroup
	end := time.Now().Add(2 * time.Second)
	for range 40 {
		wg.Go(func() {
			for time.Now().Before(end) {
				nc, err := net.Dial("tcp", addr)
				if err != nil {
					t.Error(err)
					return
				}
				_ = nc.SetDeadline(time.Now().Add(patience))
				r := bufio.NewReader(nc)
				for time.Now().Before(end) && rudeClient(t, nc, r, fmt.Sprintf("t%08d", tokens.Add(1)), &answered) {
				}
				_ = nc.Close()
			}
		})
	}
	wg.Wait()
	t.Logf("%d of %d requests answered with 200", answered.Load(), tokens.Load())
	if answered.Load() == 0 {
		t.Error("nothing was answered")
	}
	eventually(t, "all connections to be gone", func() bool { open, _ := server.Connections(); return open == 0 })
	st := set.Nodes()[0]
	if st.Open != st.Idle {
		t.Errorf("%d connections to the engine are open, %d of them idle", st.Open, st.Idle)
	}
}

// dawdle takes up to so many milliseconds: a peer that is slow at random, which nothing in the test waits for.
func dawdle(ms int) { <-time.After(time.Duration(rand.IntN(ms)) * time.Millisecond) }
