package upstream

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/valyala/fasthttp"

	"optimist/internal/wire"
)

const benchBody = `{"_index":"i","_type":"_doc","_id":"1","_version":2,"result":"updated","_shards":{"total":2,"successful":1,"failed":0},"_seq_no":12345678,"_primary_term":123}`

var benchAnswer = fmt.Appendf(nil, "HTTP/1.1 201 Created\r\nLocation: /i/_doc/1\r\nWarning: 299 Elasticsearch-7.10.2 \"a warning\"\r\n"+
	"content-type: application/json; charset=UTF-8\r\ncontent-length: %d\r\n\r\n%s", len(benchBody), benchBody)

// benchNode answers every request that ends in "}" without parsing it: what is measured is the client.
func benchNode(tb testing.TB) (url string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				b := make([]byte, 64<<10)
				for {
					n, err := c.Read(b)
					if err != nil {
						return
					}
					if bytes.HasSuffix(b[:n], []byte("}")) {
						if _, err := c.Write(benchAnswer); err != nil {
							return
						}
					}
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

func benchSet(b *testing.B) *Set {
	s, err := New(Config{URLs: []string{benchNode(b)}, HealthInterval: -1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(s.Close)
	return s
}

func benchRequest() *Request {
	return &Request{
		Method: "PUT", Target: []byte("/i/_doc/1?if_seq_no=12&if_primary_term=1"), Body: []byte(`{"stock":10,"name":"tea"}`),
		Fields: []wire.Field{
			{Name: []byte("Host"), Value: []byte("127.0.0.1:9280")}, {Name: []byte("User-Agent"), Value: []byte("elasticsearch-py/7.17.9 (Python 3.11)")},
			{Name: []byte("Accept"), Value: []byte("application/json")}, {Name: []byte("Content-Type"), Value: []byte("application/json")},
			{Name: []byte("Authorization"), Value: []byte("Basic ZWxhc3RpYzpjaGFuZ2VtZQ==")}, {Name: []byte("Content-Length"), Value: []byte("25")},
		},
	}
}

func BenchmarkDo(b *testing.B) {
	s := benchSet(b)
	r := benchRequest()
	b.ReportAllocs()
	for b.Loop() {
		resp, err := s.Do(context.Background(), r)
		if err != nil {
			b.Fatal(err)
		}
		resp.Release()
	}
}

func BenchmarkDoWithCancellableContext(b *testing.B) {
	s := benchSet(b)
	r := benchRequest()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		resp, err := s.Do(ctx, r)
		if err != nil {
			b.Fatal(err)
		}
		resp.Release()
	}
}

func BenchmarkExchange(b *testing.B) {
	s := benchSet(b)
	r := benchRequest()
	x := s.NewExchange(context.Background())
	defer x.Close()
	b.ReportAllocs()
	for b.Loop() {
		if err := x.Send(r); err != nil {
			b.Fatal(err)
		}
		if p, ok := x.Whole(); !ok || len(p) != len(benchBody) {
			b.Fatal("not whole")
		}
		x.Finish()
	}
}

func BenchmarkFasthttpHostClient(b *testing.B) {
	c := &fasthttp.HostClient{Addr: benchNode(b)[len("http://"):], DisablePathNormalizing: true, DisableHeaderNamesNormalizing: true}
	b.Cleanup(c.CloseIdleConnections)
	var req fasthttp.Request
	var resp fasthttp.Response
	r := benchRequest()
	req.SetRequestURI("http://" + c.Addr + string(r.Target))
	req.Header.SetMethod(r.Method)
	req.SetBody(r.Body)
	for _, f := range r.Fields {
		if string(f.Name) != "Content-Length" {
			req.Header.SetBytesKV(f.Name, f.Value)
		}
	}
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Do(&req, &resp); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParallelExchange(b *testing.B) {
	s := benchSet(b)
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		r := benchRequest()
		x := s.NewExchange(context.Background())
		defer x.Close()
		for pb.Next() {
			if err := x.Send(r); err != nil {
				b.Error(err)
				return
			}
			x.Whole()
			x.Finish()
		}
	})
}

func BenchmarkParallelFasthttp(b *testing.B) {
	c := &fasthttp.HostClient{Addr: benchNode(b)[len("http://"):], DisablePathNormalizing: true, DisableHeaderNamesNormalizing: true}
	b.Cleanup(c.CloseIdleConnections)
	r := benchRequest()
	b.ReportAllocs()
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		var req fasthttp.Request
		var resp fasthttp.Response
		req.SetRequestURI("http://" + c.Addr + string(r.Target))
		req.Header.SetMethod(r.Method)
		req.SetBody(r.Body)
		for _, f := range r.Fields {
			if string(f.Name) != "Content-Length" {
				req.Header.SetBytesKV(f.Name, f.Value)
			}
		}
		for pb.Next() {
			if err := c.Do(&req, &resp); err != nil {
				b.Error(err)
				return
			}
		}
	})
}

func TestWarmExchangeDoesNotAllocate(t *testing.T) {
	set := newSet(t, nil, benchNode(t))
	x := newExchangeFor(t, set)
	r := benchRequest()
	round := func() {
		if err := x.Send(r); err != nil {
			t.Fatal(err)
		}
		for {
			if _, err := x.Next(); err != nil {
				break
			}
		}
		x.Finish()
	}
	round()
	if n := testing.AllocsPerRun(500, round); n != 0 {
		t.Errorf("%v allocations a request", n)
	}
}
