package app_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

// taker is an engine that takes every item of a bulk, and keeps nothing of it.
type taker struct {
	*httptest.Server
	items, largest atomic.Int64 // largest request, in bytes
}

func newTaker(t *testing.T) *taker {
	t.Helper()
	memory := inMemory(t)
	memory.send(t, 200, "PUT", "/shop", "{}")
	behind, err := url.Parse(memory.url)
	if err != nil {
		t.Fatal(err)
	}
	others := httputil.NewSingleHostReverseProxy(behind)
	e := &taker{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/_bulk") {
			others.ServeHTTP(w, r)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "application/json")
		e.take(w, body)
	}))
	t.Cleanup(e.Close)
	return e
}

// take answers a bulk. Each of its items has two lines.
func (e *taker) take(w io.Writer, body []byte) {
	for size := int64(len(body)); ; {
		if most := e.largest.Load(); size <= most || e.largest.CompareAndSwap(most, size) {
			break
		}
	}
	out := bytes.NewBufferString(`{"took":1,"errors":false,"items":[`)
	for n := 0; len(body) > 0; n++ {
		action, rest, _ := bytes.Cut(body, []byte("\n"))
		_, body, _ = bytes.Cut(rest, []byte("\n"))
		if n > 0 {
			out.WriteByte(',')
		}
		verb := action[2 : bytes.IndexByte(action[2:], '"')+2]
		fmt.Fprintf(out, `{"%s":{"_index":"shop","_id":"%d","_version":1,"result":"created","_seq_no":%d,"_primary_term":1,"status":201}}`,
			verb, n, e.items.Add(1))
	}
	out.WriteString("]}")
	_, _ = w.Write(out.Bytes()) // a client that has left shows where it is
}

// endless makes a bulk of so many items, of 1 KiB each.
type endless struct {
	left int
	next bytes.Buffer
}

// Read implements io.Reader.
func (b *endless) Read(p []byte) (int, error) {
	for ; b.next.Len() < len(p) && b.left > 0; b.left-- {
		verb := "index"
		if b.left%10 == 0 {
			verb = "create" // which is written by itself: its session may write its next change from memory
		}
		fmt.Fprintf(&b.next, `{"%s":{"_id":"%d"}}`+"\n"+`{"text":"%s"}`+"\n", verb, b.left, blank[:980])
	}
	return b.next.Read(p)
}

// TestALargeBulkTakesLittleMemory: its items are guarded as those of a small one, and there is one answer.
func TestALargeBulkTakesLittleMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of another process is read as Linux tells it")
	}
	items := 128 << 10
	if long() {
		items = 1 << 20
	}
	spools := t.TempDir()
	t.Setenv("TMPDIR", spools)
	e := newTaker(t)
	p := optimistFor(t, target{"stub", e.URL}, "sessions: {memory: 4MiB}\n")
	ask := func(items int) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/shop/_bulk", &endless{left: items})
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		req.Header.Set("Optimist-Session", "s")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }() // read to its end
		n, answer := 0, bufio.NewReader(res.Body)
		for err == nil {
			var part []byte
			part, err = answer.ReadSlice('}')
			n += bytes.Count(part, []byte(`"status":201`))
		}
		if err != io.EOF || n != items || res.StatusCode != http.StatusOK {
			t.Errorf("%d of %d items are answered, %d, %v", n, items, res.StatusCode, err)
		}
		if want := fmt.Sprintf("passed;items=%d;passed=%d", items, items); res.Header.Get("Optimist-Outcome") != want {
			t.Errorf("outcome %q, want %q", res.Header.Get("Optimist-Outcome"), want)
		}
	}
	ask(4000)
	e.items.Store(0)
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.PID()), []byte("5"), 0); err != nil { // the peak is what it is now
		t.Fatal(err)
	}
	before := memory(t, p, "VmRSS")
	ask(items)
	grown := memory(t, p, "VmHWM") - before
	t.Logf("%d MiB: memory grew by %d MiB", items>>10, grown>>20)
	if got := e.items.Load(); got != int64(items) {
		t.Errorf("the engine got %d items of %d", got, items)
	}
	if grown > 64<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	if most := e.largest.Load(); most > 8<<20 {
		t.Errorf("the engine got %d bytes at once", most)
	}
	if left, err := os.ReadDir(spools); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
