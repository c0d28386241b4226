package conformance

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
)

// stub is an engine that answers what the cases say, byte for byte.
type stub struct {
	ln net.Listener
	wg sync.WaitGroup // the listener, and what serves connections

	mu   sync.Mutex
	runs map[string][]StubAnswer // what is still to be answered, by the name of the run's index
	open map[net.Conn]bool
}

// newStub starts a stub on a free port of the loopback interface; close ends it.
func newStub() (*stub, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("stub: %w", err)
	}
	s := &stub{ln: ln, runs: make(map[string][]StubAnswer), open: make(map[net.Conn]bool)}
	s.wg.Go(func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.open[nc] = true
			s.mu.Unlock()
			s.wg.Go(func() { s.serve(nc) })
		}
	})
	return s, nil
}

// close ends the stub and its connections, and waits for what serves them.
func (s *stub) close() {
	_ = s.ln.Close()
	s.mu.Lock()
	for nc := range s.open {
		_ = nc.Close()
	}
	s.mu.Unlock()
	s.wg.Wait()
}

func (s *stub) address() string { return s.ln.Addr().String() }

// expect tells the stub what to answer to the requests of a run.
func (s *stub) expect(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range r.c.Stub {
		s.runs[r.names["index"]] = append(s.runs[r.names["index"]], StubAnswer{r.expand(a.Raw), a.Then})
	}
}

// next takes the next answer to a request; others than those of runs are optimist's own looks at the engine.
func (s *stub) next(target string) StubAnswer {
	index, _, _ := strings.Cut(strings.TrimPrefix(target, "/"), "/")
	s.mu.Lock()
	defer s.mu.Unlock()
	left, ok := s.runs[index]
	switch {
	case !ok:
		return StubAnswer{Raw: `HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}`}
	case len(left) == 0:
		return StubAnswer{Raw: `HTTP/1.1 500 More Requests Than Answers\r\nContent-Length: 0\r\n\r\n`}
	}
	s.runs[index] = left[1:]
	return left[0]
}

func (s *stub) serve(nc net.Conn) {
	defer func() {
		_ = nc.Close()
		s.mu.Lock()
		delete(s.open, nc)
		s.mu.Unlock()
	}()
	in := bufio.NewReader(nc)
	for {
		req, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		if _, err := io.Copy(io.Discard, req.Body); err != nil {
			return
		}
		a := s.next(req.RequestURI)
		text, err := unescape(a.Raw)
		if err != nil {
			text = fmt.Sprintf("HTTP/1.1 500 Broken Case\r\nContent-Length: %d\r\n\r\n%v", len(err.Error()), err)
		}
		if _, err := io.WriteString(nc, text); err != nil || a.Then == "close" {
			return
		}
	}
}
