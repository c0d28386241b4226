package wire

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// bothWays runs a check on a stream that arrives at once and on one that arrives byte by byte: where a read ends must
// never decide what a message means.
func bothWays(t *testing.T, raw string, check func(t *testing.T, r *Reader)) {
	t.Helper()
	check(t, newReader(strings.NewReader(raw)))
	check(t, newReader(iotest.OneByteReader(strings.NewReader(raw))))
}

func TestRequestsThatTwoParsersCouldReadDifferentlyAreRefused(t *testing.T) {
	const host = "Host: es\r\n"
	for _, c := range []struct {
		name, raw string
		err       error
		status    int
	}{
		{"two content lengths", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 4\r\n\r\n", ErrContentLength, 400},
		{"two equal content lengths", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nContent-Length: 3\r\n\r\n", ErrContentLength, 400},
		{"list of content lengths", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 1, 1\r\n\r\n", ErrContentLength, 400},
		{"signed content length", "PUT / HTTP/1.1\r\n" + host + "Content-Length: +1\r\n\r\n", ErrContentLength, 400},
		{"negative content length", "PUT / HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", ErrContentLength, 400},
		{"empty content length", "PUT / HTTP/1.1\r\n" + host + "Content-Length:\r\n\r\n", ErrContentLength, 400},
		{"hex content length", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 0x1\r\n\r\n", ErrContentLength, 400},
		{"content length with a space", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 1 1\r\n\r\n", ErrContentLength, 400},
		{"content length over 2^63", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 9223372036854775808\r\n\r\n", ErrContentLength, 400},
		{"content length that wraps to small", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 18446744073709551617\r\n\r\n", ErrContentLength, 400},
		{"both framings", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", ErrBothFramings, 400},
		{"both framings, other order", "PUT / HTTP/1.1\r\n" + host + "transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n", ErrBothFramings, 400},
		{"both framings, coding unknown", "PUT / HTTP/1.1\r\n" + host + "Content-Length: 3\r\nTransfer-Encoding: x\r\n\r\n", ErrBothFramings, 400},
		{"chunked twice", "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, chunked\r\n\r\n", ErrTransferEncoding, 400},
		{"chunked in two fields", "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", ErrTransferEncoding, 400},
		{"chunked not last", "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked, gzip\r\n\r\n", ErrTransferEncoding, 400},
		{"identity", "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: identity\r\n\r\n", ErrTransferEncoding, 400},
		{"empty coding", "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding:\r\n\r\n", ErrTransferEncoding, 400},
		{"comma after chunked", "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked,\r\n\r\n", ErrTransferEncoding, 400},
		{"quoted chunked", "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: \"chunked\"\r\n\r\n", ErrTransferEncoding, 400},
		{"almost chunked", "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: xchunked\r\n\r\n", ErrTransferCoding, 501},
		{"unknown coding before chunked", "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: gzip, chunked\r\n\r\n", ErrTransferCoding, 501},
		{"chunked in HTTP/1.0", "PUT / HTTP/1.0\r\n" + host + "Transfer-Encoding: chunked\r\n\r\n", ErrTransferEncoding, 400},
		{"vertical tab before chunked", "PUT / HTTP/1.1\r\n" + host + "Transfer-Encoding: \x0bchunked\r\n\r\n", ErrFieldValue, 400},
		{"folded field", "PUT / HTTP/1.1\r\n" + host + "X: a\r\n b\r\n\r\n", ErrFold, 400},
		{"folded first field", "PUT / HTTP/1.1\r\n " + host + "\r\n", ErrFold, 400},
		{"bare LF after the request line", "GET / HTTP/1.1\n" + host + "\r\n", ErrBareLF, 400},
		{"bare LF after a field", "GET / HTTP/1.1\r\nHost: es\nX: y\r\n\r\n", ErrBareLF, 400},
		{"bare LF as the empty line", "GET / HTTP/1.1\r\nHost: es\r\n\nGET /evil HTTP/1.1\r\n", ErrBareLF, 400},
		{"bare LF before the request", "\nGET / HTTP/1.1\r\n" + host + "\r\n", ErrBareLF, 400},
		{"bare CR in a value", "GET / HTTP/1.1\r\n" + host + "X: a\rb\r\n\r\n", ErrFieldValue, 400},
		{"bare CR before the line's end", "GET / HTTP/1.1\r\n" + host + "X: a\r\r\n\r\n", ErrFieldValue, 400},
		{"bare CR in a name", "GET / HTTP/1.1\r\n" + host + "X\r: a\r\n\r\n", ErrFieldName, 400},
		{"NUL in a value", "GET / HTTP/1.1\r\n" + host + "X: a\x00b\r\n\r\n", ErrFieldValue, 400},
		{"control byte in a value", "GET / HTTP/1.1\r\n" + host + "X: a\x01b\r\n\r\n", ErrFieldValue, 400},
		{"DEL in a value", "GET / HTTP/1.1\r\n" + host + "X: abcdefghijkl\x7f\r\n\r\n", ErrFieldValue, 400},
		{"space before the colon", "GET / HTTP/1.1\r\n" + host + "Content-Length : 3\r\n\r\n", ErrFieldName, 400},
		{"tab before the colon", "GET / HTTP/1.1\r\n" + host + "Transfer-Encoding\t: chunked\r\n\r\n", ErrFieldName, 400},
		{"empty name", "GET / HTTP/1.1\r\n" + host + ": x\r\n\r\n", ErrFieldName, 400},
		{"no colon", "GET / HTTP/1.1\r\n" + host + "nonsense\r\n\r\n", ErrFieldName, 400},
		{"bracket in a name", "GET / HTTP/1.1\r\n" + host + "X[1]: x\r\n\r\n", ErrFieldName, 400},
		{"non-ASCII name", "GET / HTTP/1.1\r\n" + host + "Stra\xdfe: x\r\n\r\n", ErrFieldName, 400},
		{"no host", "GET / HTTP/1.1\r\nX: y\r\n\r\n", ErrHost, 400},
		{"two hosts", "GET / HTTP/1.1\r\n" + host + host + "\r\n", ErrHost, 400},
		{"list of hosts", "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n", ErrHost, 400},
		{"host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", ErrHost, 400},
		{"target names another host", "GET http://a/x HTTP/1.1\r\nHost: b\r\n\r\n", ErrHost, 400},
		{"no target", "GET HTTP/1.1\r\n" + host + "\r\n", ErrRequestLine, 400},
		{"empty target", "GET  HTTP/1.1\r\n" + host + "\r\n", ErrTarget, 400},
		{"space in the target", "GET /a b HTTP/1.1\r\n" + host + "\r\n", ErrTarget, 400},
		{"tab in the target", "GET /a\tb HTTP/1.1\r\n" + host + "\r\n", ErrTarget, 400},
		{"NUL in the target", "GET /a\x00b HTTP/1.1\r\n" + host + "\r\n", ErrTarget, 400},
		{"CR in the target", "GET /a\rb HTTP/1.1\r\n" + host + "\r\n", ErrTarget, 400},
		{"relative target", "GET a/b HTTP/1.1\r\n" + host + "\r\n", ErrTarget, 400},
		{"asterisk for GET", "GET * HTTP/1.1\r\n" + host + "\r\n", ErrTarget, 400},
		{"absolute target without path", "GET http://es?x HTTP/1.1\r\n" + host + "\r\n", ErrTarget, 400},
		{"absolute target with credentials", "GET http://u:p@es/ HTTP/1.1\r\n" + host + "\r\n", ErrTarget, 400},
		{"other scheme", "GET ftp://es/ HTTP/1.1\r\n" + host + "\r\n", ErrTarget, 400},
		{"CONNECT", "CONNECT es:443 HTTP/1.1\r\n" + host + "\r\n", ErrConnect, 501},
		{"HTTP/0.9", "GET /\r\n\r\n", ErrRequestLine, 400},
		{"HTTP/2.0", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ErrVersion, 505},
		{"HTTP/3.1", "GET / HTTP/3.1\r\n\r\n", ErrVersion, 505},
		{"lower case version", "GET / http/1.1\r\n" + host + "\r\n", ErrRequestLine, 400},
		{"long version", "GET / HTTP/1.10\r\n" + host + "\r\n", ErrRequestLine, 400},
		{"space after the version", "GET / HTTP/1.1 \r\n" + host + "\r\n", ErrRequestLine, 400},
		{"tabs instead of spaces", "GET\t/\tHTTP/1.1\r\n" + host + "\r\n", ErrRequestLine, 400},
		{"space before the method", " GET / HTTP/1.1\r\n" + host + "\r\n", ErrRequestLine, 400},
		{"a TLS hello", "\x16\x03\x01\x02\x00\x01", ErrRequestLine, 400},
		{"many empty lines", strings.Repeat("\r\n", 5) + "GET / HTTP/1.1\r\n" + host + "\r\n", ErrRequestLine, 400},
		{"CR without LF before the request", "\rGET / HTTP/1.1\r\n" + host + "\r\n", ErrRequestLine, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			bothWays(t, c.raw, func(t *testing.T, r *Reader) {
				var h Head
				err := h.ReadRequest(r, 0)
				if !errors.Is(err, c.err) || StatusOf(err) != c.status {
					t.Errorf("got %v (%d), want %v (%d)", err, StatusOf(err), c.err, c.status)
				}
			})
		})
	}
}

// TestALineWithoutAVersionIsRefusedAtOnce: a client that speaks HTTP/0.9 sends nothing more, and waits for its answer.
func TestALineWithoutAVersionIsRefusedAtOnce(t *testing.T) {
	errWaits := errors.New("more is waited for")
	for raw, want := range map[string]error{
		"GET /\r\n": ErrRequestLine, "\r\nGET /\r\n": ErrRequestLine, "GET\r\n": ErrRequestLine, "GET /a b\r\n": ErrRequestLine,
		"GET / HTTP/2.0\r\n": ErrVersion, "GET /": errWaits, "GET / HTTP/1.1\r\n": errWaits, "GET / HTTP/1.1\r\nHost: es\r\n": errWaits,
	} {
		var h Head
		if err := h.ReadRequest(newReader(io.MultiReader(strings.NewReader(raw), iotest.ErrReader(errWaits))), 0); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", raw, err, want)
		}
	}
}

func TestRequestKeepsTargetAndFieldsAsSent(t *testing.T) {
	const raw = "\r\nPUT /a/_doc/x%2Fy+..%2F\xc3\xa4?q=a%20b&&z HTTP/1.1\r\nhOsT: es:9200\r\nX-A: 1\r\nx-a:  2 \t\r\nEmpty:\r\ncontent-length: 5\r\n\r\nhello"
	bothWays(t, raw, func(t *testing.T, r *Reader) {
		var h Head
		if err := h.ReadRequest(r, 0); err != nil {
			t.Fatal(err)
		}
		if got := string(h.Method) + " " + string(h.Target); got != "PUT /a/_doc/x%2Fy+..%2F\xc3\xa4?q=a%20b&&z" {
			t.Errorf("start line %q", got)
		}
		var got []string
		for _, f := range h.Fields {
			got = append(got, string(f.Name)+"="+string(f.Value))
		}
		if s := strings.Join(got, ","); s != "hOsT=es:9200,X-A=1,x-a=2,Empty=,content-length=5" {
			t.Errorf("fields %s", s)
		}
		if h.Body != Length || h.Length != 5 || h.Close || h.Minor != 1 || !h.HasBody() {
			t.Errorf("framing %+v", h)
		}
		if h.Get("EMPTY") == nil || h.Get("absent") != nil || string(h.Get("X-a")) != "1" {
			t.Error("Get tells an empty field from none, and takes the first")
		}
	})
}

func TestAbsoluteTargetBecomesItsOriginForm(t *testing.T) {
	bothWays(t, "GET HTTP://Es:9200/a%2F?x HTTP/1.1\r\nHost: es:9200\r\n\r\n", func(t *testing.T, r *Reader) {
		var h Head
		if err := h.ReadRequest(r, 0); err != nil || string(h.Target) != "/a%2F?x" {
			t.Errorf("%q, %v", h.Target, err)
		}
	})
}

func TestConnectionPersistenceByVersion(t *testing.T) {
	for _, c := range []struct {
		line, fields   string
		close, stays10 bool
	}{
		{"HTTP/1.1", "", false, false},
		{"HTTP/1.1", "Connection: close\r\n", true, false},
		{"HTTP/1.1", "Connection: x, CLOSE\r\n", true, false},
		{"HTTP/1.1", "Connection: keep-alive\r\nConnection: ,close\r\n", true, false},
		{"HTTP/1.0", "", true, false},
		{"HTTP/1.0", "Connection: Keep-Alive\r\n", false, true},
		{"HTTP/1.0", "Connection: keep-alive, close\r\n", true, false},
		{"HTTP/1.7", "", false, false},
	} {
		var h Head
		err := h.ReadRequest(newReader(strings.NewReader("GET / "+c.line+"\r\nHost: a\r\n"+c.fields+"\r\n")), 0)
		if err != nil || h.Close != c.close || h.KeepAlive != c.stays10 {
			t.Errorf("%s %q: close %v, keep-alive %v, %v", c.line, c.fields, h.Close, h.KeepAlive, err)
		}
	}
}

func TestExpectIsKnownInAnyCaseAndOnlyWithABody(t *testing.T) {
	for _, c := range []struct {
		raw  string
		want bool
	}{
		{"PUT / HTTP/1.1\r\nHost: a\r\nexpect: 100-Continue\r\nContent-Length: 1\r\n\r\n", true},
		{"PUT / HTTP/1.1\r\nHost: a\r\nEXPECT: 100-CONTINUE\r\nTransfer-Encoding: Chunked\r\n\r\n", true},
		{"PUT / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 0\r\n\r\n", false},
		{"PUT / HTTP/1.0\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\n", false},
		{"PUT / HTTP/1.1\r\nHost: a\r\nExpect: the worst\r\nContent-Length: 1\r\n\r\n", false},
	} {
		var h Head
		if err := h.ReadRequest(newReader(strings.NewReader(c.raw)), 0); err != nil || h.Expect100 != c.want {
			t.Errorf("%q: %v, %v", c.raw, h.Expect100, err)
		}
	}
}

func TestHeadOverItsLimitIs431(t *testing.T) {
	const limit = 8 << 10
	const start, end = "GET / HTTP/1.1\r\nHost: a\r\nX: ", "\r\n\r\n"
	fits := start + strings.Repeat("x", limit-len(start)-len(end)) + end
	bothWays(t, fits, func(t *testing.T, r *Reader) {
		var h Head
		if err := h.ReadRequest(r, limit); err != nil {
			t.Errorf("a head of exactly the limit: %v", err)
		}
	})
	over := start + strings.Repeat("x", limit-len(start)-len(end)+1) + end
	bothWays(t, over, func(t *testing.T, r *Reader) {
		var h Head
		if err := h.ReadRequest(r, limit); !errors.Is(err, ErrHeadTooLarge) || StatusOf(err) != 431 {
			t.Errorf("one byte more: %v", err)
		}
	})
	bothWays(t, "GET / HTTP/1.1\r\nHost: a\r\n"+strings.Repeat("a:\r\n", MaxFields)+"\r\n", func(t *testing.T, r *Reader) {
		var h Head
		if err := h.ReadRequest(r, 0); !errors.Is(err, ErrHeadTooLarge) {
			t.Errorf("too many fields: %v", err)
		}
	})
}

// Each option is compared with each field: a list of 60 KB and 500 fields took a tenth of a second.
func TestAConnectionListsOnlySoManyOptions(t *testing.T) {
	for list, want := range map[string]error{
		strings.Repeat("a,", MaxOptions-1) + "close":                  nil,
		strings.Repeat("a,", MaxOptions) + "close":                    ErrHeadTooLarge,
		strings.Repeat(",", 40<<10):                                   ErrHeadTooLarge,
		"a\r\nConnection: " + strings.Repeat("b\r\nConnection: ", 64): ErrHeadTooLarge,
	} {
		bothWays(t, "GET / HTTP/1.1\r\nHost: h\r\nConnection: "+list+"\r\n\r\n", func(t *testing.T, r *Reader) {
			var h Head
			if err := h.ReadRequest(r, 0); !errors.Is(err, want) || err == nil && !h.Close {
				t.Errorf("%.40s: %v, closes %v", list, err, h.Close)
			}
		})
	}
}

func TestEndlessHeadIsNotBuffered(t *testing.T) {
	src := io.MultiReader(strings.NewReader("GET / HTTP/1.1\r\nX: "), zeros{})
	r := newReader(src)
	var h Head
	if err := h.ReadRequest(r, 16<<10); !errors.Is(err, ErrHeadTooLarge) {
		t.Fatal(err)
	}
	if len(r.buf) > 32<<10 {
		t.Errorf("buffer grew to %d", len(r.buf))
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestEndOfStreamBetweenAndInsideRequests(t *testing.T) {
	for raw, want := range map[string]error{
		"":                              io.EOF,
		"\r\n":                          io.EOF,
		"\r":                            io.ErrUnexpectedEOF,
		"G":                             io.ErrUnexpectedEOF,
		"GET / HTTP/1.1\r\nHost: a\r\n": io.ErrUnexpectedEOF,
	} {
		bothWays(t, raw, func(t *testing.T, r *Reader) {
			var h Head
			if err := h.ReadRequest(r, 0); err != want || StatusOf(err) != 0 {
				t.Errorf("%q: %v, want %v", raw, err, want)
			}
		})
	}
}

func TestPipelinedRequestsAreReadOneByOne(t *testing.T) {
	raw := "PUT /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nabGET /2 HTTP/1.1\r\nHost: a\r\n\r\n\r\nGET /3 HTTP/1.1\r\nHost: a\r\n\r\n"
	bothWays(t, raw, func(t *testing.T, r *Reader) {
		var h Head
		var b Body
		var got bytes.Buffer
		for {
			err := h.ReadRequest(r, 0)
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			got.Write(h.Target)
			b.Reset(r, &h)
			body, err := readAll(&b)
			if err != nil {
				t.Fatal(err)
			}
			got.Write(body)
		}
		if got.String() != "/1ab/2/3" {
			t.Errorf("got %q", got.String())
		}
	})
}
