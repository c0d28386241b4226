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
	"sync"
	"time"
)

// load is a closed loop of clients: each sends the same request and waits for its answer before it sends the next.
type load struct {
	addr    string
	clients int
	request []byte
	want    []byte // the body that every answer must have
}

// sample is what a load saw.
type sample struct {
	requests int64
	elapsed  time.Duration
	p50, p99 time.Duration
}

// smallPut is a client's write of a small document, as the official clients send it.
func smallPut(host string) []byte {
	body := `{"name":"a small document","stock":10,"tags":["a","b"],"updated_at":"2024-05-01T10:00:00Z"}`
	return []byte("PUT /bench/_doc/1 HTTP/1.1\r\nHost: " + host +
		"\r\nUser-Agent: bench/1.0 (linux-amd64)\r\nAccept: application/json\r\nAuthorization: Basic YmVuY2g6YmVuY2g=\r\n" +
		"Content-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// run drives the load until d has passed. Any answer but a 200 with the body wanted ends it with an error: a proxy that
// answers wrongly has no figures.
func (l *load) run(ctx context.Context, d time.Duration) (sample, error) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	var (
		wg    sync.WaitGroup
		mu    sync.Mutex
		times []time.Duration
		first error
	)
	start := time.Now()
	for range l.clients {
		wg.Go(func() {
			mine, err := l.client(ctx)
			mu.Lock()
			defer mu.Unlock()
			times = append(times, mine...)
			if err != nil && first == nil {
				first = err
			}
		})
	}
	wg.Wait()
	s := sample{requests: int64(len(times)), elapsed: time.Since(start)}
	if first != nil {
		return s, first
	}
	if len(times) == 0 {
		return s, errors.New("no request was answered")
	}
	slices.Sort(times)
	s.p50, s.p99 = times[len(times)/2], times[len(times)*99/100]
	return s, nil
}

func (l *load) client(ctx context.Context) ([]time.Duration, error) {
	c, err := net.Dial("tcp", l.addr)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	times := make([]time.Duration, 0, 1<<16)
	buf := make([]byte, 16<<10)
	for ctx.Err() == nil {
		start := time.Now()
		if _, err := c.Write(l.request); err != nil {
			return times, err
		}
		have, size := 0, -1
		for size < 0 || have < size {
			n, err := c.Read(buf[have:])
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
				return times, err
			}
			have += n
			size = messageSize(buf[:have])
		}
		times = append(times, time.Since(start))
		if !bytes.HasPrefix(buf, []byte("HTTP/1.1 200")) || !bytes.HasSuffix(buf[:have], l.want) || have != size {
			return times, fmt.Errorf("wrong answer: %q", buf[:have])
		}
	}
	return times, nil
}
