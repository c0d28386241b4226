package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestFramingOfAnswers(t *testing.T) {
	for _, c := range []struct {
		name, method, raw string
		body              Framing
		length            int64
		err               error
	}{
		{"length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", Length, 7, nil},
		{"chunked", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n", Chunked, -1, nil},
		{"neither", "GET", "HTTP/1.1 200 OK\r\n\r\n", UntilClose, -1, nil},
		{"HTTP/1.0 without length", "GET", "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\n", UntilClose, -1, nil},
		{"HEAD with length", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n", None, -1, nil},
		{"HEAD with chunked", "HEAD", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", None, -1, nil},
		{"HEAD without either", "HEAD", "HTTP/1.1 404 Not Found\r\n\r\n", None, -1, nil},
		{"204", "DELETE", "HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", None, -1, nil},
		{"304", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", None, -1, nil},
		{"100", "PUT", "HTTP/1.1 100 Continue\r\n\r\n", None, -1, nil},
		{"103", "GET", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", None, -1, nil},
		{"no reason", "GET", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", Length, 0, nil},
		{"no reason and no space", "GET", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", Length, 0, nil},
		{"both", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 0, ErrBothFramings},
		{"both, to HEAD", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 0, ErrBothFramings},
		{"two lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nContent-Length: 7\r\n\r\n", 0, 0, ErrContentLength},
		{"chunked in HTTP/1.0", "GET", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 0, 0, ErrTransferEncoding},
		{"unknown coding", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", 0, 0, ErrTransferCoding},
		{"101", "GET", "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", 0, 0, ErrSwitched},
		{"bare LF", "GET", "HTTP/1.1 200 OK\nContent-Length: 7\n\n", 0, 0, ErrBareLF},
		{"NUL in a value", "GET", "HTTP/1.1 200 OK\r\nX: \x00\r\n\r\n", 0, 0, ErrFieldValue},
		{"status of two digits", "GET", "HTTP/1.1 20 OK\r\n\r\n", 0, 0, ErrStatusLine},
		{"status below 100", "GET", "HTTP/1.1 099 OK\r\n\r\n", 0, 0, ErrStatusLine},
		{"status of four digits", "GET", "HTTP/1.1 2000 OK\r\n\r\n", 0, 0, ErrStatusLine},
		{"HTTP/2", "GET", "HTTP/2.0 200 OK\r\n\r\n", 0, 0, ErrStatusLine},
		{"another protocol", "GET", "SSH-2.0-OpenSSH\r\n", 0, 0, ErrStatusLine},
		{"an answer of a transport port", "GET", "This is not an HTTP port\r\n", 0, 0, ErrStatusLine},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothWays(t, c.raw, func(t *testing.T, r *Reader) {
				var h Head
				err := h.ReadResponse(r, c.method, 0)
				if !errors.Is(err, c.err) {
					t.Fatalf("got %v, want %v", err, c.err)
				}
				if err == nil && (h.Body != c.body || h.Length != c.length) {
					t.Errorf("framing %v %d, want %v %d", h.Body, h.Length, c.body, c.length)
				}
				if err == nil && c.body == UntilClose && !h.Close {
					t.Error("a body until close leaves no connection")
				}
			})
		})
	}
}

func TestFoldedAnswerFieldIsJoinedInPlace(t *testing.T) {
	const raw = "HTTP/1.1 200 OK\r\nWarning: 299 a\r\n\t  b\r\n c  \r\nEmpty:\r\n \r\nX : y\r\nContent-Length: 0\r\n\r\n"
	bothWays(t, raw, func(t *testing.T, r *Reader) {
		var h Head
		if err := h.ReadResponse(r, "GET", 0); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(strings.Fields(string(h.Get("Warning"))), " "); got != "299 a b c" {
			t.Errorf("Warning %q", h.Get("Warning"))
		}
		if strings.ContainsAny(string(h.Get("Warning")), "\r\n") {
			t.Error("a line end was left in a value")
		}
		if string(h.Get("X")) != "y" || string(h.Get("Empty")) != "" {
			t.Errorf("X %q, Empty %q", h.Get("X"), h.Get("Empty"))
		}
	})
}
