package wire

import (
	"bufio"
	"bytes"
	"io"
	"net/http"
	"testing"
)

// bodyOf reads the body after h, bounded.
func bodyOf(r *Reader, h *Head) ([]byte, error) {
	var b Body
	b.Reset(r, h)
	return readAll(&b)
}

// same compares what of two heads must survive being forwarded.
func same(t *testing.T, a, b *Head) {
	t.Helper()
	if !bytes.Equal(a.Method, b.Method) || !bytes.Equal(a.Target, b.Target) || a.Status != b.Status || a.Body != b.Body || a.Length != b.Length {
		t.Fatalf("%q %q %d %d %d became %q %q %d %d %d", a.Method, a.Target, a.Status, a.Body, a.Length, b.Method, b.Target, b.Status, b.Body, b.Length)
	}
	x, y := a.EndToEnd(nil), b.EndToEnd(nil)
	i := 0
	for _, f := range x {
		if EqualFold(f.Name, "Content-Length") || EqualFold(f.Name, "Expect") {
			continue // rewritten: compared as framing, or the door's to decide
		}
		for i < len(y) && (EqualFold(y[i].Name, "Content-Length") || EqualFold(y[i].Name, "Expect")) {
			i++
		}
		if i == len(y) || !bytes.Equal(f.Name, y[i].Name) || !bytes.Equal(f.Value, y[i].Value) {
			t.Fatalf("field %q: %q isn't there any more", f.Name, f.Value)
		}
		i++
	}
}

func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
		"PUT /a%2F HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
		"POST /_bulk HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\nT: v\r\n\r\nGET",
		"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET http://a/x HTTP/1.0\r\nConnection: keep-alive, x\r\nx: y\r\n\r\n",
		"\r\nGET / HTTP/1.1\r\nHost:\r\nX: a\r\n b\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a\nX: y\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := newReader(bytes.NewReader(raw))
		var h Head
		if err := h.ReadRequest(r, 8<<10); err != nil {
			return
		}
		out := h.AppendRequest(nil)
		var again Head
		if err := again.ReadRequest(newReader(bytes.NewReader(out)), 0); err != nil && !(h.Minor == 0 && h.Get("Host") == nil) {
			t.Fatalf("what was forwarded doesn't parse: %v\n%q", err, out)
		} else if err == nil {
			same(t, &h, &again)
		}
		body, err := bodyOf(r, &h)
		sameAsNetHTTP(t, raw, body, err)
	})
}

// sameAsNetHTTP holds our reading of a body against net/http's, where both take the request: one that is read with two
// lengths is a smuggled one.
func sameAsNetHTTP(t *testing.T, raw, body []byte, bodyErr error) {
	req, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(bytes.TrimLeft(raw, "\r\n"))))
	if err != nil {
		return
	}
	theirs, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))
	if (err == nil) && bodyErr == nil && !bytes.Equal(theirs, body) {
		t.Fatalf("net/http reads %q, we %q", theirs, body)
	}
	if err != nil && bodyErr == nil {
		t.Fatalf("net/http refuses a body (%v) that we read as %q", err, body)
	}
}

func FuzzResponse(f *testing.F) {
	for _, s := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}",
		"HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"HTTP/1.0 200 OK\r\nX : a\r\n\tb\r\n \r\nY:\r\n\r\nall",
		"HTTP/1.1 304 x\r\nContent-Length: 9\r\nConnection: y\r\n\r\n",
	} {
		f.Add([]byte(s), false)
		f.Add([]byte(s), true)
	}
	f.Fuzz(func(t *testing.T, raw []byte, head bool) {
		method := "GET"
		if head {
			method = "HEAD"
		}
		r := newReader(bytes.NewReader(raw))
		var h Head
		if err := h.ReadResponse(r, method, 8<<10); err != nil {
			return
		}
		out := h.AppendResponse(nil)
		var again Head
		if err := again.ReadResponse(newReader(bytes.NewReader(out)), method, 0); err != nil {
			t.Fatalf("what was forwarded doesn't parse: %v\n%q", err, out)
		}
		same(t, &h, &again)
		if _, err := bodyOf(r, &h); err == nil && h.Body == Length && h.Length > int64(len(raw)) {
			t.Fatal("a body longer than the stream")
		}
	})
}

func FuzzChunked(f *testing.F) {
	for _, s := range []string{"5\r\nhello\r\n0\r\n\r\n", "0\r\n\r\n", "2;x\r\nhi\r\n0\r\nA: b\r\n\r\nrest", "fffffffffffffff\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		r := newReader(bytes.NewReader(raw))
		_ = r.Fill()
		var b Body
		b.Reset(r, chunkedHead())
		whole, ok := b.Whole(nil)
		b.Reset(newReader(bytes.NewReader(raw)), chunkedHead())
		got, err := readAll(&b)
		if ok && (err != nil || !bytes.Equal(got, whole)) {
			t.Fatalf("Whole gives %q, Next %q and %v", whole, got, err)
		}
		if err != nil {
			return
		}
		out := append(AppendChunk(nil, got), LastChunk...)
		b.Reset(newReader(bytes.NewReader(out)), chunkedHead())
		if again, err := readAll(&b); err != nil || !bytes.Equal(again, got) {
			t.Fatalf("%q became %q, %v", got, again, err)
		}
	})
}
