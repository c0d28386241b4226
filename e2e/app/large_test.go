package app_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"optimist/e2e/optimist"
)

// TestLargeMessagesMoveThroughTheGuardInLittleMemory: what is looked at, watched or refused for its size is streamed as all else is. The
// program is the one that users have, without the race detector.
func TestLargeMessagesMoveThroughTheGuardInLittleMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of another process is read as Linux tells it")
	}
	const (
		streamed  = 64 << 20
		large     = 128 << 20 // what collects it shows
		collected = streamed + large
	)
	p := optimistFor(t, target{"stub", generous(t)}, "rules: [{name: r, base: {reads: [get, mget, search]}}]\n")
	for _, c := range []struct {
		method, path, framing string
		sent, answered        int64
		most                  int64
		outcome               string
	}{
		{"POST", "/_bulk", "chunked", 1 << 30, 1 << 30, streamed, "passed;attempts=1;base=none;reason=format"},
		{"POST", "/shop/_bulk", "length", large, large, streamed, "passed;attempts=1;base=none;reason=format"},
		{"GET", "/shop/_doc/1", "", 0, 1 << 30, streamed, ""},
		{"GET", "/shop/_doc/1?chunked", "", 0, large, streamed, ""},
		{"POST", "/shop/_search", "length", large, large, streamed, ""},
		{"PUT", "/shop/_doc/1", "chunked", large, large, streamed, "passed;attempts=1;base=none;reason=too_large"},
		{"PUT", "/_snapshot/s", "length", large, large, streamed, ""},
		// Their answers are asked for in another form than they are served.
		{"GET", "/shop/_source/1", "", 0, large, collected, ""},
		{"GET", "/shop/_search", "", 0, large, collected, ""},
	} {
		t.Run(fmt.Sprintf("%s %s %d MiB", c.method, strings.ReplaceAll(c.path, "/", " "), max(c.sent, c.answered)>>20), func(t *testing.T) {
			if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0); err != nil { // the peak is what it is now
				t.Fatal(err)
			}
			before := memory(t, p, "VmRSS")
			nc, err := net.Dial("tcp", strings.TrimPrefix(p.URL, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = nc.Close() }()
			var sending sync.WaitGroup
			sending.Go(func() {
				head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: h\r\nOptimist-Session: s\r\nX-Answer: %d\r\nContent-Type: application/json\r\n", c.method, c.path, c.answered)
				if err := pour(nc, head, c.framing, c.sent); err != nil {
					t.Error(err)
				}
			})
			res, err := http.ReadResponse(bufio.NewReader(nc), &http.Request{Method: c.method})
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, res.Body)
			sending.Wait()
			if err := errors.Join(err, res.Body.Close()); err != nil || n != c.answered || res.Header.Get("X-Got") != strconv.FormatInt(c.sent, 10) {
				t.Errorf("the engine got %s bytes of %d, the client %d of %d, %v", res.Header.Get("X-Got"), c.sent, n, c.answered, err)
			}
			if got := res.Header.Get("Optimist-Outcome"); got != c.outcome {
				t.Errorf("outcome %q, want %q", got, c.outcome)
			}
			grown := memory(t, p, "VmHWM") - before
			t.Logf("memory grew by %d MiB", grown>>20)
			if grown > c.most {
				t.Errorf("memory grew by %d MiB", grown>>20)
			}
		})
	}
}

// memory is a line of what Linux tells of a program's memory, in bytes: VmRSS is what it has now, VmHWM the most that it had.
func memory(t *testing.T, p *optimist.Process, name string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID()))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(b)
	if m == nil {
		t.Fatalf("no %s in %s", name, b)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// generous is the URL of an engine that takes everything, and answers with as many bytes as X-Answer says.
func generous(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			t.Error(err)
		}
		n, _ := strconv.ParseInt(r.Header.Get("X-Answer"), 10, 64)
		if r.URL.Path == "/shop" { // optimist asks what the index is, with the client's fields
			n = 0
		}
		w.Header().Set("Content-Type", "application/json")
		if r.URL.RawQuery != "chunked" {
			w.Header().Set("Content-Length", strconv.FormatInt(max(n, 2), 10))
		}
		w.Header().Set("X-Got", strconv.FormatInt(got, 10))
		_, err = io.WriteString(w, "{}")
		for left := n - 2; left > 0 && err == nil; left -= int64(len(blank)) {
			_, err = w.Write(blank[:min(left, int64(len(blank)))])
		}
	}))
	t.Cleanup(s.Close)
	return s.URL
}

var blank = bytes.Repeat([]byte(" "), 1<<20)

// pour writes a request of so many bytes.
func pour(w io.Writer, head, framing string, size int64) error {
	piece := blank
	switch framing {
	case "chunked":
		head, piece = head+"Transfer-Encoding: chunked\r\n", fmt.Appendf(nil, "%x\r\n%s\r\n", len(blank), blank)
	case "length":
		head += fmt.Sprintf("Content-Length: %d\r\n", size)
	}
	if _, err := io.WriteString(w, head+"\r\n"); err != nil {
		return err
	}
	for range size / int64(len(blank)) {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	if framing == "chunked" {
		_, err := io.WriteString(w, "0\r\n\r\n")
		return err
	}
	return nil
}
