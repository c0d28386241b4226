package wire

import (
	"bytes"
	"io"
	"testing"
)

const benchRequest = "PUT /orders-2024/_doc/x%2Fy?refresh=false HTTP/1.1\r\nHost: 127.0.0.1:9280\r\nUser-Agent: elasticsearch-py/7.17.9 (Python 3.11; elastic-transport 8)\r\n" +
	"Accept-Encoding: gzip\r\nConnection: keep-alive\r\nAccept: application/json\r\nContent-Type: application/json\r\nAuthorization: Basic ZWxhc3RpYzpjaGFuZ2VtZQ==\r\n" +
	"X-Opaque-Id: 3f6b0c1e\r\nContent-Length: 25\r\n\r\n{\"stock\":10,\"name\":\"tea\"}"

const benchResponse = "HTTP/1.1 200 OK\r\nX-elastic-product: Elasticsearch\r\nWarning: 299 Elasticsearch-7.10.2 \"some words of warning here\"\r\n" +
	"content-type: application/json; charset=UTF-8\r\ncontent-length: 2\r\n\r\n{}"

// loop repeats one message for ever.
type loop struct {
	raw []byte
	at  int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.raw[l.at:])
	l.at = (l.at + n) % len(l.raw)
	return n, nil
}

func BenchmarkReadAndForwardRequest(b *testing.B) {
	r := newReader(&loop{raw: []byte(benchRequest)})
	var h Head
	var body Body
	var out []byte
	b.ReportAllocs()
	b.SetBytes(int64(len(benchRequest)))
	for b.Loop() {
		if err := h.ReadRequest(r, 0); err != nil {
			b.Fatal(err)
		}
		out = h.AppendRequest(out[:0])
		body.Reset(r, &h)
		for {
			p, err := body.Next()
			if err == io.EOF {
				break
			}
			out = append(out, p...)
		}
	}
}

func BenchmarkReadRequest(b *testing.B) {
	r := newReader(&loop{raw: []byte(benchRequest)})
	var h Head
	b.ReportAllocs()
	for b.Loop() {
		if err := h.ReadRequest(r, 0); err != nil {
			b.Fatal(err)
		}
		for r.Buffered() < int(h.Length) {
			_ = r.Fill()
		}
		r.Discard(int(h.Length))
	}
}

func BenchmarkAppendRequest(b *testing.B) {
	var h Head
	if err := h.ReadRequest(newReader(&loop{raw: []byte(benchRequest)}), 0); err != nil {
		b.Fatal(err)
	}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = h.AppendRequest(out[:0])
	}
}

func BenchmarkReadAndForwardResponse(b *testing.B) {
	r := newReader(&loop{raw: []byte(benchResponse)})
	var h Head
	var body Body
	var out []byte
	b.ReportAllocs()
	b.SetBytes(int64(len(benchResponse)))
	for b.Loop() {
		if err := h.ReadResponse(r, "GET", 0); err != nil {
			b.Fatal(err)
		}
		out = h.AppendResponse(out[:0])
		body.Reset(r, &h)
		for {
			p, err := body.Next()
			if err == io.EOF {
				break
			}
			out = append(out, p...)
		}
	}
}

func BenchmarkChunkedBody(b *testing.B) {
	raw := append(AppendChunk(nil, bytes.Repeat([]byte("x"), 8000)), LastChunk...)
	r := newReader(&loop{raw: raw})
	var body Body
	h := chunkedHead()
	b.ReportAllocs()
	b.SetBytes(8000)
	for b.Loop() {
		body.Reset(r, h)
		for {
			if _, err := body.Next(); err == io.EOF {
				break
			}
		}
	}
}

func TestWarmPathDoesNotAllocate(t *testing.T) {
	r, answers := newReader(&loop{raw: []byte(benchRequest)}), newReader(&loop{raw: []byte(benchResponse)})
	var h, a Head
	var body Body
	var out []byte
	fields := make([]Field, 0, 32)
	round := func() {
		if h.ReadRequest(r, 0) != nil || a.ReadResponse(answers, "GET", 0) != nil {
			t.Fatal("the messages don't parse")
		}
		fields = h.EndToEnd(fields[:0])
		out = h.AppendRequest(out[:0])
		out = a.AppendResponse(out)
		for _, m := range []struct {
			r *Reader
			h *Head
		}{{r, &h}, {answers, &a}} {
			body.Reset(m.r, m.h)
			for !body.Done() {
				if _, err := body.Next(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	round()
	if n := testing.AllocsPerRun(200, round); n != 0 {
		t.Errorf("%v allocations a round", n)
	}
}
