package app

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"

	"optimist/proxy"
)

// answering is an engine that says the same to everything, and costs next to nothing itself: every request comes in one piece.
func answering(b *testing.B, body string) string {
	answer := fmt.Appendf(nil, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%s", len(body), body)
	return serving(b, func(c net.Conn) {
		buf := make([]byte, 16<<10)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			if _, err := c.Write(answer); err != nil {
				return
			}
		}
	})
}

// serving calls serve for each connection that comes to the address that it returns, and closes the connection afterwards.
func serving(b testing.TB, serve func(c net.Conn)) string {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(c)
			}()
		}
	}()
	return "http://" + ln.Addr().String()
}

// behind starts a door in front of the engine, with all that an App has behind it or without, and connects to it.
func behind(b testing.TB, engine string, guards bool) net.Conn {
	a := running(b, configured(b, "", engine))
	url := a.URL()
	if !guards {
		door, err := proxy.New(proxy.Options{Upstream: a.nodes})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(door.Close)
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal(err)
		}
		go func() { _ = door.Serve(ln) }()
		url = "http://" + ln.Addr().String()
	}
	c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// BenchmarkWatchedRead is a read of a document through the door, over sockets, passed and watched: the difference is what
// watching costs.
func BenchmarkWatchedRead(b *testing.B) {
	const body = `{"_index":"shop","_id":"1","_version":7,"_seq_no":6,"_primary_term":1,"found":true,"_source":{"name":"tea","stock":10}}`
	request := []byte("GET /shop/_doc/1 HTTP/1.1\r\nHost: h\r\nAuthorization: Basic YTpi\r\nOptimist-Session: thread\r\n\r\n")
	for _, guards := range []bool{false, true} {
		b.Run(map[bool]string{false: "Passed", true: "Watched"}[guards], func(b *testing.B) {
			c := behind(b, answering(b, body), guards)
			buf := make([]byte, 16<<10)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := c.Write(request); err != nil {
					b.Fatal(err)
				}
				n, err := c.Read(buf)
				if err != nil || !bytes.HasSuffix(buf[:n], []byte(body)) || guards != bytes.Contains(buf[:n], []byte("ETag: \"6-1\"")) {
					b.Fatalf("%q %v", buf[:n], err)
				}
			}
		})
	}
}
