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
	"time"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
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

// take answers a bulk. Each of its items has two lines, and names its document's id and nothing else.
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
		named := bytes.TrimSuffix(action, []byte("}}")) // {"create":{"_id":"7"
		fmt.Fprintf(out, `%s,"_index":"shop","_version":1,"result":"created","_seq_no":%d,"_primary_term":1,"status":201}}`,
			named, e.items.Add(1))
	}
	out.WriteString("]}")
	_, _ = w.Write(out.Bytes()) // a client that has left shows where it is
}

// endless makes a bulk of so many items, of 1 KiB each.
type endless struct {
	name string // the beginning of each id
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
		fmt.Fprintf(&b.next, `{"%s":{"_id":"%s%d"}}`+"\n"+`{"text":"%s"}`+"\n", verb, b.name, b.left, blank[:980])
	}
	return b.next.Read(p)
}

// TestALargeBulkTakesLittleMemory: its items are guarded as those of a small one, and there is one answer.
func TestALargeBulkTakesLittleMemory(t *testing.T) {
	items := 128 << 10
	if long() {
		items = 1 << 20
	}
	spools := t.TempDir()
	t.Setenv("TMPDIR", spools)
	e := newTaker(t)
	l := startLarge(t, target{"stub", e.URL}, "shop")
	e.items.Store(0)
	grown, outcome := l.growth(items)
	if grown > 64<<20 {
		t.Errorf("memory grew by %d MiB", grown>>20)
	}
	if want := fmt.Sprintf("passed;items=%d;passed=%d", items, items); outcome != want {
		t.Errorf("outcome %q, want %q", outcome, want)
	}
	if got := e.items.Load(); got != int64(items) {
		t.Errorf("the engine got %d items of %d", got, items)
	}
	if most := e.largest.Load(); most > 8<<20 {
		t.Errorf("the engine got %d bytes at once", most)
	}
	if left, err := os.ReadDir(spools); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestALargeBulkTakesLittleMemoryBeforeAnEngine sends 1 GiB to each of the real engines. They are slower than a stub, and their answers longer.
func TestALargeBulkTakesLittleMemoryBeforeAnEngine(t *testing.T) {
	engine.Long(t)
	engine.Each(t, engine.All(), func(t *testing.T, en *engine.Engine) {
		e := target{en.Kind.String(), en.URL}
		index := e.reserve(t, "large-")
		e.send(t, http.StatusOK, http.MethodPut, "/"+index, `{"settings":{"number_of_shards":1,"number_of_replicas":0,"refresh_interval":"10s",
			"translog":{"durability":"async","flush_threshold_size":"64mb"}},"mappings":{"dynamic":false}}`)
		const items = 1 << 20
		if grown, _ := startLarge(t, e, index).growth(items); grown > 90<<20 {
			t.Errorf("memory grew by %d MiB", grown>>20)
		}
		e.send(t, http.StatusOK, http.MethodPost, "/"+index+"/_refresh", "")
		count := e.send(t, http.StatusOK, http.MethodGet, "/"+index+"/_count?filter_path=count", "")
		if want := fmt.Sprintf(`{"count":%d}`, items+warming); count.body != want {
			t.Errorf("%s, want %s", count.body, want)
		}
	})
}

// large is a client that sends large bulks through optimist, and looks at its memory.
type large struct {
	t     *testing.T
	p     *optimist.Process
	index string
}

// warming are the items of the bulk before the large one: the program has all that it needs for any bulk then.
const warming = 4000

func startLarge(t *testing.T, e target, index string) *large {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the memory of another process is read as Linux tells it")
	}
	// The program is the one that users have, without the race detector.
	p := optimist.Start(t, optimist.Options{Upstream: []string{e.url}, Config: "sessions: {memory: 4MiB}\n"})
	l := &large{t, p, index}
	l.ask("warming-", warming)
	return l
}

// growth is by how much a bulk of so many items has optimist's memory grow, in bytes, and the outcome of that bulk.
func (l *large) growth(items int) (grown int64, outcome string) {
	l.t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", l.p.PID()), []byte("5"), 0); err != nil { // the peak is what it is now
		l.t.Fatal(err)
	}
	before, began := memory(l.t, l.p, "VmRSS"), time.Now()
	outcome = l.ask("", items)
	grown = memory(l.t, l.p, "VmHWM") - before
	l.t.Logf("%d MiB in %v: memory grew by %d MiB from %d MiB; %s", items>>10, time.Since(began).Round(time.Second), grown>>20, before>>20, outcome)
	return grown, outcome
}

// ask sends a bulk of new documents, and returns its outcome.
func (l *large) ask(name string, items int) (outcome string) {
	l.t.Helper()
	req, err := http.NewRequestWithContext(l.t.Context(), http.MethodPost, l.p.URL+"/"+l.index+"/_bulk", &endless{name: name, left: items})
	if err != nil {
		l.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-ndjson")
	req.Header.Set("Optimist-Session", "s")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		l.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	n, answer := 0, bufio.NewReader(res.Body)
	for err == nil {
		var part []byte
		part, err = answer.ReadSlice('}')
		n += bytes.Count(part, []byte(`"status":201`))
	}
	if err != io.EOF || n != items || res.StatusCode != http.StatusOK {
		l.t.Errorf("%d of %d items were taken, %d, %v", n, items, res.StatusCode, err)
	}
	return res.Header.Get("Optimist-Outcome")
}
