// Package roundtrip sends one request of a command's own over HTTP, and reads the whole answer.
//
// It is for the tools beside optimist. It tries nothing twice, and bounds neither the time nor the answer.
package roundtrip

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// Request is what is sent. A nil body is none. If the header has a Host, it takes the place of the URL's.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Do sends a request. An error says that there was no answer, or not a whole one; it may be a *url.Error.
func Do(ctx context.Context, client *http.Client, r Request) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	for name, values := range r.Header {
		req.Header[name] = values
	}
	if host := req.Header.Get("Host"); host != "" {
		req.Host = host
	}
	res, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // read to its end, or given up
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	return &Answer{res.StatusCode, res.Header, text}, nil
}
