package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// step is a request and what its answer must have.
type step struct {
	request []byte
	body    []byte // with any digits for anyNumber
	// mark stands in the answer's head, where the contender is one that guards: what isn't guarded has no figures as such.
	mark []byte
}

// steps is a closed loop of clients, each with requests of its own: the opening once, then the cycle over and over.
type steps struct {
	addr    string
	clients int
	opening func(client int) []step
	cycle   func(client int) []step
}

// sample is what the clients saw.
type sample struct {
	requests int64
	elapsed  time.Duration
	p50, p99 time.Duration
}

// smallPut is a client's write of a small document, as the official clients send it.
func smallPut(host string, _ int, _ bool) []step {
	body := `{"name":"a small document","stock":10,"tags":["a","b"],"updated_at":"2024-05-01T10:00:00Z"}`
	put := "PUT /bench/_doc/1 HTTP/1.1\r\nHost: " + host +
		"\r\nUser-Agent: bench/1.0 (linux-amd64)\r\nAccept: application/json\r\nAuthorization: Basic YmVuY2g6YmVuY2g=\r\n" +
		"Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	return []step{{request: []byte(put), body: []byte(stubBody)}}
}

// run drives the load until d has passed. Any answer but the one wanted ends it with an error: a proxy that answers wrongly has no figures.
func (l *steps) run(ctx context.Context, d time.Duration) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		times []time.Duration
		errs  []error
	)
	start := time.Now()
	for i := range l.clients {
		wg.Go(func() {
			mine, err := l.client(ctx, l.opening(i), l.cycle(i))
			mu.Lock()
			defer mu.Unlock()
			times = append(times, mine...)
			errs = append(errs, err)
		})
	}
	wg.Wait()
	s := sample{requests: int64(len(times)), elapsed: time.Since(start)}
	if err := errors.Join(errs...); err != nil {
		return s, err
	}
	slices.Sort(times)
	s.p50, s.p99 = times[len(times)/2], times[len(times)*99/100]
	return s, nil
}

// patience is how long an answer may take beyond the load's time. A proxy that hangs ends the experiment, which ends its processes.
const patience = time.Minute

func (l *steps) client(ctx context.Context, opening, cycle []step) ([]time.Duration, error) {
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	end, _ := ctx.Deadline()
	if err := c.SetDeadline(end.Add(patience)); err != nil {
		return nil, err
	}
	times := make([]time.Duration, 0, 1<<16)
	buf := make([]byte, 16<<10)
	for round := opening; ; round = cycle {
		for i := range round { // always to its end, so that every kind of request counts alike
			start := time.Now()
			answer, err := exchange(c, round[i].request, buf)
			if err != nil {
				return times, err
			}
			times = append(times, time.Since(start))
			if err := round[i].check(answer); err != nil {
				return times, err
			}
		}
		if ctx.Err() != nil && len(times) > 0 { // the opening may be empty, and the time over before the first request
			return times, nil
		}
	}
}

// exchange sends a request and reads its answer into buf.
func exchange(c net.Conn, request, buf []byte) ([]byte, error) {
	if _, err := c.Write(request); err != nil {
		return nil, err
	}
	have, size := 0, -1
	for size < 0 || have < size {
		n, err := c.Read(buf[have:])
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
		have += n
		size = messageSize(buf[:have])
	}
	if have != size {
		return nil, fmt.Errorf("more than one answer: %q", buf[:have])
	}
	return buf[:have], nil
}

func (s *step) check(answer []byte) error {
	if !bytes.HasPrefix(answer, []byte("HTTP/1.1 200")) || !endsWith(answer, s.body) || !bytes.Contains(answer, s.mark) {
		return fmt.Errorf("wrong answer: %q", answer)
	}
	return nil
}

// endsWith reports whether an answer ends with a body, which may have any digits in the places of anyNumber.
func endsWith(answer, body []byte) bool {
	if len(answer) < len(body) {
		return false
	}
	for i, c := range answer[len(answer)-len(body):] {
		if c != body[i] && (body[i] != anyNumber[0] || c < '0' || c > '9') {
			return false
		}
	}
	return true
}

// request writes a request as the official clients send it. more are further header fields, each "Name: value".
func request(method, target, host, body string, more ...string) []byte {
	b := []byte(method + " " + target + " HTTP/1.1\r\nHost: " + host +
		"\r\nUser-Agent: bench/1.0 (linux-amd64)\r\nAccept: application/json\r\nAuthorization: Basic YmVuY2g6YmVuY2g=\r\n")
	if len(more) > 0 {
		b = append(b, strings.Join(more, "\r\n")+"\r\n"...)
	}
	if body != "" && !strings.Contains(strings.Join(more, "\n"), "Content-Type: ") {
		b = append(b, "Content-Type: application/json\r\n"...)
	}
	if body != "" {
		b = append(b, "Content-Length: "+strconv.Itoa(len(body))+"\r\n"...)
	}
	return append(append(b, "\r\n"...), body...)
}
