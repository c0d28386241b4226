package upstream

import (
	"bufio"
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"optimist/internal/wire"
)

// gated is a Source whose bytes come only after open was closed.
type gated struct {
	open chan struct{}
	gone chan struct{}
	sent bool
}

func (g *gated) Next() ([]byte, error) {
	select {
	case <-g.open:
	case <-g.gone:
		return nil, io.ErrClosedPipe
	}
	if g.sent {
		return nil, io.EOF
	}
	g.sent = true
	return []byte("hello"), nil
}

func (g *gated) Interrupt() { close(g.gone) }

// TestBodyThatWaitsForContinue shows that nobody waits for the other: the engine's 100 reaches the caller before the body.
func TestBodyThatWaitsForContinue(t *testing.T) {
	for _, status := range []string{"100", "417"} {
		t.Run(status, func(t *testing.T) {
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer ln.Close()
			heads := make(chan string, 1)
			go func() {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				defer c.Close()
				r := bufio.NewReader(c)
				var head strings.Builder
				for !strings.HasSuffix(head.String(), "\r\n\r\n") {
					b, err := r.ReadByte()
					if err != nil {
						return
					}
					head.WriteByte(b)
				}
				heads <- head.String()
				if status != "100" {
					_, _ = io.WriteString(c, "HTTP/1.1 417 Expectation Failed\r\nContent-Length: 0\r\n\r\n")
					_, _ = io.Copy(io.Discard, r)
					return
				}
				_, _ = io.WriteString(c, "HTTP/1.1 100 Continue\r\n\r\n")
				if _, err := io.CopyN(io.Discard, r, 5); err == nil {
					_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
				}
			}()
			s, err := New(Config{URLs: []string{"http://" + ln.Addr().String()}, HealthInterval: -1})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			x := s.NewExchange(context.Background())
			defer x.Close()
			body := &gated{open: make(chan struct{}), gone: make(chan struct{})}
			var interim []int
			err = x.Send(&Request{
				Method: "PUT", Target: []byte("/a"), Stream: body, Length: 5, Expect: true,
				Fields: []wire.Field{{Name: []byte("Host"), Value: []byte("h")}, {Name: []byte("EXPECT"), Value: []byte("100-continue")}},
				Interim: func(h *wire.Head) {
					interim = append(interim, h.Status)
					close(body.open)
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			if got := <-heads; !strings.Contains(got, "\r\nEXPECT: 100-continue\r\n") {
				t.Errorf("the node got %q", got)
			}
			switch final := x.Head().Status; {
			case status == "100" && (final != 201 || len(interim) != 1 || interim[0] != 100):
				t.Errorf("got %d after %v", final, interim)
			case status != "100" && (final != 417 || len(interim) != 0):
				t.Errorf("got %d after %v", final, interim)
			}
			x.Finish()
		})
	}
}
