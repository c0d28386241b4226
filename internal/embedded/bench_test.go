package embedded

import (
	"fmt"
	"net"
	"sync/atomic"
	"testing"

	"github.com/valyala/fasthttp"
)

// BenchmarkWritesOverHTTP is what the demonstration's clients see: small documents, keep-alive connections.
func BenchmarkWritesOverHTTP(b *testing.B) {
	e := New(Options{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- e.Serve(ln) }()
	client := &fasthttp.Client{}
	var n atomic.Int64
	body := []byte(`{"name":"a chair","stock":12,"tags":["wood","brown"],"price":49.90}`)
	b.RunParallel(func(pb *testing.PB) {
		req, resp := fasthttp.AcquireRequest(), fasthttp.AcquireResponse()
		for pb.Next() {
			req.SetRequestURI(fmt.Sprintf("http://%s/shop/_doc/%d", ln.Addr(), n.Add(1)%10000))
			req.Header.SetMethod("PUT")
			req.Header.SetContentType("application/json")
			req.SetBodyRaw(body)
			if err := client.Do(req, resp); err != nil || resp.StatusCode() > 201 {
				b.Error(resp.StatusCode(), err)
				return
			}
		}
	})
	b.StopTimer()
	client.CloseIdleConnections()
	if err := e.Close(); err != nil {
		b.Error(err)
	}
	<-done
}

func BenchmarkWrite(b *testing.B) {
	e := New(Options{})
	body := []byte(`{"name":"a chair","stock":12,"tags":["wood","brown"],"price":49.90}`)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r := e.Handle(&Request{Method: "PUT", Target: "/shop/_doc/1", ContentType: "application/json", Body: body})
		if r.Status > 201 {
			b.Fatal(r.Status)
		}
	}
}
