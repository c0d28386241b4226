package wire

import (
	"errors"
	"net/http"
)

// The reasons for refusing a message. After any of them nobody knows where the next message begins: answer a client with
// StatusOf, and close the connection.
var (
	// ErrRequestLine reports a first line that isn't "method SP target SP HTTP/1.x".
	ErrRequestLine = errors.New("invalid request line")
	// ErrStatusLine reports a first line of an answer that isn't "HTTP/1.x SP status [SP reason]".
	ErrStatusLine = errors.New("invalid status line")
	// ErrVersion reports a well-formed HTTP version that isn't 1.x.
	ErrVersion = errors.New("HTTP version not supported")
	// ErrTarget reports a request target that is empty, has spaces or control bytes, or has a form that isn't for servers.
	ErrTarget = errors.New("invalid request target")
	// ErrConnect reports the method CONNECT: this is a gateway and opens no tunnels.
	ErrConnect = errors.New("CONNECT is not supported")
	// ErrBareLF reports a line that ends in LF without CR. Only some parsers take that as the end of the line.
	ErrBareLF = errors.New("line feed without carriage return")
	// ErrFold reports a field line that begins with white space (obs-fold).
	ErrFold = errors.New("folded header field")
	// ErrFieldName reports a field name that is empty or isn't a token, white space before the colon included.
	ErrFieldName = errors.New("invalid header field name")
	// ErrFieldValue reports a NUL, CR or other control byte in a field's value.
	ErrFieldValue = errors.New("control byte in header field")
	// ErrHost reports an HTTP/1.1 request without exactly one Host, or one whose target names another host.
	ErrHost = errors.New("missing, duplicate or contradictory Host")
	// ErrContentLength reports a Content-Length that is repeated, a list, signed, not decimal or above 2^63-1.
	ErrContentLength = errors.New("invalid or duplicate Content-Length")
	// ErrBothFramings reports Content-Length together with Transfer-Encoding, which request smuggling uses.
	ErrBothFramings = errors.New("both Content-Length and Transfer-Encoding")
	// ErrTransferEncoding reports a Transfer-Encoding that is malformed, repeated, not ended by chunked, or in HTTP/1.0.
	ErrTransferEncoding = errors.New("invalid Transfer-Encoding")
	// ErrTransferCoding reports a transfer coding other than chunked.
	ErrTransferCoding = errors.New("transfer coding not supported")
	// ErrHeadTooLarge reports a head over the reader's limit in bytes, or with more than MaxFields fields, or MaxOptions
	// connection options.
	ErrHeadTooLarge = errors.New("header section too large")
	// ErrChunk reports a chunked body that breaks the grammar: size, line ending or trailer.
	ErrChunk = errors.New("invalid chunked body")
	// ErrChunkOverhead reports chunk extensions or trailers over their limits. They cost work and carry no data.
	ErrChunkOverhead = errors.New("chunk extensions or trailers too large")
	// ErrSwitched reports a 101 answer, although no upgrade is ever asked for.
	ErrSwitched = errors.New("answer switches protocols")
)

// StatusOf returns the status for a request that was refused with err: 400, 431, 501 or 505. It is 0 if err isn't one of this
// package's: then it is an error of the connection, on which no answer can be sent.
func StatusOf(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, ErrHeadTooLarge):
		return http.StatusRequestHeaderFieldsTooLarge
	case errors.Is(err, ErrTransferCoding), errors.Is(err, ErrConnect):
		return http.StatusNotImplemented
	case errors.Is(err, ErrVersion):
		return http.StatusHTTPVersionNotSupported
	}
	for _, e := range [...]error{
		ErrRequestLine, ErrStatusLine, ErrTarget, ErrBareLF, ErrFold, ErrFieldName, ErrFieldValue, ErrHost, ErrContentLength,
		ErrBothFramings, ErrTransferEncoding, ErrChunk, ErrChunkOverhead, ErrSwitched,
	} {
		if errors.Is(err, e) {
			return http.StatusBadRequest
		}
	}
	return 0
}
