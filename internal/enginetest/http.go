package enginetest

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"optimist/internal/embedded"
)

// Serve serves an empty engine until the test ends, and returns its URL.
func Serve(t testing.TB) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := embedded.New(embedded.Options{})
	done := make(chan error, 1)
	go func() { done <- e.Serve(ln) }()
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections() // Close waits for them
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + ln.Addr().String()
}

// Forward returns what sends requests on to an engine.
func Forward(t testing.TB, engine string) http.Handler {
	t.Helper()
	target, err := url.Parse(engine)
	if err != nil {
		t.Fatal(err)
	}
	return httputil.NewSingleHostReverseProxy(target)
}

// Between serves in front of an engine until the test ends, and returns its URL. Requests that answer doesn't answer itself, as it reports,
// are sent on.
func Between(t testing.TB, engine string, answer func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	forward := Forward(t, engine)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// Body reads the body of a request, and leaves it for whoever reads it next.
func Body(r *http.Request) []byte {
	body, _ := io.ReadAll(r.Body) // what is missing shows where the body is read next
	r.Body = io.NopCloser(bytes.NewReader(body))
	return body
}

// Answer is a whole answer, or the error that came in its place.
type Answer struct {
	Status int
	Body   string
	Header http.Header
	Err    error
}

// Outcome is what the answer to a write says of itself.
func (a Answer) Outcome() string { return a.Header.Get("Optimist-Outcome") }

// Ask makes a request, with a JSON body unless that is empty; fields are name, value, name, value. It follows no redirects. A request
// that isn't answered ends the test.
func Ask(t testing.TB, method, url, body string, fields ...string) Answer {
	t.Helper()
	a := Try(t, method, url, body, fields...)
	if a.Err != nil {
		t.Fatalf("%s %s: %v", method, url, a.Err)
	}
	return a
}

// Try is Ask, but for the end of the test. An answer with a body has to have one Content-Type.
func Try(t testing.TB, method, url, body string, fields ...string) (a Answer) {
	t.Helper()
	var r io.Reader
	if body != "" {
		r = strings.NewReader(body)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url, r)
	if err != nil {
		return Answer{Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return Answer{Err: err}
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if types := res.Header.Values("Content-Type"); len(types) > 1 || len(types) == 0 && len(text) > 0 {
		t.Errorf("%s %s: the answer has %d Content-Type fields, and clients read it only with one: %q", method, url, len(types), types)
	}
	return Answer{res.StatusCode, string(text), res.Header, err}
}
