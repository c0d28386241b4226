// Package hostile attacks the built program as an unknown client would, or as an engine that answers what no engine should. The tests
// look at what an operator would see: the memory and the processor time of the process, and whether the other clients were hurt.
//
// An attack is a file of its own. Here is what all of them need: a process in front of an engine in memory, the figures of the
// process, connections that say whatever they like, and a good client whose writes must go on, be guarded, and stay.
package hostile

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"optimist/e2e/engine"
	"optimist/e2e/optimist"
	"optimist/internal/enginetest"
)

const mebi = 1 << 20

// long reports whether the tests may take minutes.
func long() bool { return os.Getenv("E2E_LONG") != "" }

// target is a process under attack, in front of an engine in memory, which is in the test's own process: the figures are optimist's
// alone.
type target struct {
	*optimist.Process
	engine string // its URL
	addr   string // host:port of the data port
}

// start runs the program with a configuration, without listen, admin and upstream, in front of a new engine.
func start(t testing.TB, config string) *target {
	t.Helper()
	return startAt(t, engine.Embedded(t), config)
}

// startAt is start in front of an engine that the test has, or of a stub.
func startAt(t testing.TB, engineURL, config string) *target {
	t.Helper()
	p := optimist.Start(t, optimist.Options{Upstream: []string{engineURL}, Config: config})
	return &target{Process: p, engine: engineURL, addr: strings.TrimPrefix(p.URL, "http://")}
}

// rss is the resident memory of the process in bytes: as it is, and at its highest since the start or the last call of forgetPeak.
func (g *target) rss(t testing.TB) (now, peak int64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(g.PID()), "status"))
	if err != nil {
		t.Skipf("the memory of a process can't be measured here: %v", err)
	}
	figure := func(name string) int64 {
		_, rest, found := strings.Cut(string(text), "\n"+name+":")
		fields := strings.Fields(rest)
		if !found || len(fields) < 2 || fields[1] != "kB" {
			t.Fatalf("no %s in\n%s", name, text)
		}
		n, err := strconv.ParseInt(fields[0], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n << 10
	}
	return figure("VmRSS"), figure("VmHWM")
}

// forgetPeak begins a new measurement of the highest resident memory.
func (g *target) forgetPeak(t testing.TB) {
	t.Helper()
	if err := os.WriteFile(filepath.Join("/proc", strconv.Itoa(g.PID()), "clear_refs"), []byte("5"), 0); err != nil {
		t.Skipf("the peak of a process's memory can't be reset here: %v", err)
	}
}

// growth runs an attack and returns by how many bytes the resident memory of the process grew at most meanwhile.
func (g *target) growth(t testing.TB, attack func()) int64 {
	t.Helper()
	g.forgetPeak(t)
	before, _ := g.rss(t)
	attack()
	_, peak := g.rss(t)
	return peak - before
}

// cpu is the processor time that the process has used so far. The kernel counts it in ticks of 10 ms.
func (g *target) cpu(t testing.TB) time.Duration {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(g.PID()), "stat"))
	if err != nil {
		t.Skipf("the processor time of a process can't be measured here: %v", err)
	}
	_, rest, _ := bytes.Cut(text, []byte(") ")) // the name before it may have spaces
	fields := strings.Fields(string(rest))
	var ticks int64
	for _, field := range fields[11:13] { // utime and stime, fields 14 and 15 of proc(5)
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// ask makes a request of the target. Fields are name, value, name, value.
func (g *target) ask(t testing.TB, method, path, body string, fields ...string) enginetest.Answer {
	t.Helper()
	return enginetest.Ask(t, method, g.URL+path, body, fields...)
}

// put stores a document past the target. It ends the test unless that succeeds.
func (g *target) put(t testing.TB, path, body string) {
	t.Helper()
	if a := enginetest.Ask(t, http.MethodPut, g.engine+path, body, "Authorization", credentials); a.Status > 201 {
		t.Fatalf("PUT %s: %d %s", path, a.Status, a.Body)
	}
}

// dial opens a connection to the data port, which ends with the test.
func (g *target) dial(t testing.TB) net.Conn {
	t.Helper()
	c, err := g.connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// connect is dial for an attacker, who ends the connection itself and to whom a refusal is no surprise. It may be called by any
// goroutine.
func (g *target) connect() (net.Conn, error) { return net.Dial("tcp", g.addr) }

// request is a whole request in bytes, as an attacker writes it: nothing is added but Host and Content-Length.
func request(method, path string, body []byte, fields ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: hostile\r\nContent-Length: %d\r\n", method, path, len(body))
	for i := 0; i+1 < len(fields); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", fields[i], fields[i+1])
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// exchange sends a whole request on a connection of its own, and returns the status of the answer, which it reads to its end; 0 if
// there was none. Any goroutine may call it.
func (g *target) exchange(request []byte) int {
	c, err := g.connect()
	if err != nil {
		return 0
	}
	defer func() { _ = c.Close() }()
	go func() { _, _ = c.Write(request) }() // the answer may come before all of it is written
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	defer func() { _ = res.Body.Close() }()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// zipped is gzip data of what write writes.
func zipped(write func(w io.Writer)) []byte {
	var b bytes.Buffer
	z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression) // errs on levels that don't exist
	write(z)
	_ = z.Close() // a buffer takes everything
	return b.Bytes()
}

// repeat writes text so many times.
func repeat(w io.Writer, text string, times int) {
	const block = 1 << 10
	large := strings.Repeat(text, block)
	for ; times >= block; times -= block {
		_, _ = io.WriteString(w, large)
	}
	_, _ = io.WriteString(w, strings.Repeat(text, times))
}

// credentials are a good client's. Attackers have none.
const credentials = "Basic Z29vZDpzZWNyZXQ="

// good is a client that reads a document, changes it and writes it, again and again, while others attack. It names no session and
// does what no rule is needed for.
type good struct {
	target *target
	url    string // what it asks: the target, or another way to its engine
	from   string // its own address; "" is any
	path   string
	stop   chan struct{}
	done   chan error

	acknowledged, tries, refused atomic.Int64
	took                         []time.Duration // of the writes; read them after finish
}

// begin has the client work on a document of its own, until finish.
func (c *good) begin(t testing.TB) *good {
	t.Helper()
	c.stop, c.done = make(chan struct{}), make(chan error, 1)
	if a := enginetest.Ask(t, http.MethodPut, c.url+c.path, `{"n":0}`, "Authorization", credentials); a.Status != 201 {
		t.Fatalf("the good client's document: %d %s", a.Status, a.Body)
	}
	go func() { c.done <- c.work() }()
	return c
}

// direct reports whether the client works past the target.
func (c *good) direct() bool { return c.url != c.target.URL }

// pause is the time from one read of a good client to its next. With less, the client itself would keep a processor busy.
const pause = 10 * time.Millisecond

// work counts up until the client is stopped. A request that gets a 503 is made again: the client has been told that nothing was done.
func (c *good) work() error {
	dialer := &net.Dialer{}
	if c.from != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(c.from)}
	}
	own := &http.Client{Transport: &http.Transport{DialContext: dialer.DialContext}}
	defer own.CloseIdleConnections()
	pace := time.NewTicker(pause)
	defer pace.Stop()
	for {
		select {
		case <-c.stop:
			return nil
		case <-pace.C:
		}
		c.tries.Add(1)
		if err := c.once(own); err != nil {
			return err
		}
	}
}

// errRefused reports an answer that says that nothing was done.
var errRefused = errors.New("refused")

// once reads the document, adds one to it, and writes it.
func (c *good) once(own *http.Client) error {
	var found struct {
		Source struct{ N int64 } `json:"_source"`
	}
	body, _, err := c.do(own, http.MethodGet, "")
	if errors.Is(err, errRefused) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(body, &found)
	}
	if err != nil {
		return fmt.Errorf("the good client's read: %w", err)
	}
	begun := time.Now()
	_, outcome, err := c.do(own, http.MethodPut, fmt.Sprintf(`{"n":%d}`, found.Source.N+1))
	switch {
	case errors.Is(err, errRefused):
		return nil
	case err != nil:
		return fmt.Errorf("the good client's write: %w", err)
	case !c.direct() && !strings.HasPrefix(outcome, "guarded") && !strings.HasPrefix(outcome, "merged") && !strings.HasPrefix(outcome, "combined"):
		return fmt.Errorf("a write of the good client isn't guarded: %s", outcome)
	}
	c.took = append(c.took, time.Since(begun))
	c.acknowledged.Add(1)
	return nil
}

func (c *good) do(own *http.Client, method, body string) (answer []byte, outcome string, err error) {
	req, err := http.NewRequest(method, c.url+c.path, strings.NewReader(body))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", credentials)
	res, err := own.Do(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = res.Body.Close() }()
	answer, err = io.ReadAll(res.Body)
	switch {
	case err != nil:
	case res.StatusCode == http.StatusServiceUnavailable:
		c.refused.Add(1)
		err = errRefused
	case res.StatusCode > 201:
		err = fmt.Errorf("%d %s", res.StatusCode, answer)
	}
	return answer, res.Header.Get("Optimist-Outcome"), err
}

// finish stops the client, and fails the test if one of its writes was lost or wasn't guarded. It returns how long a write took, in the
// middle and at the slow end.
func (c *good) finish(t testing.TB) (p50, p99 time.Duration) {
	t.Helper()
	close(c.stop)
	if err := <-c.done; err != nil {
		t.Error(err)
	}
	a := enginetest.Ask(t, http.MethodGet, c.target.engine+c.path, "", "Authorization", credentials)
	var found struct {
		Source struct{ N int64 } `json:"_source"`
	}
	if err := json.Unmarshal([]byte(a.Body), &found); err != nil {
		t.Fatalf("%v: %s", err, a.Body)
	}
	if acked := c.acknowledged.Load(); found.Source.N != acked {
		t.Errorf("the good client's document counts %d writes, and %d were acknowledged", found.Source.N, acked)
	}
	if len(c.took) == 0 {
		t.Errorf("none of %d writes of the good client came through, %d were refused", c.tries.Load(), c.refused.Load())
		return 0, 0
	}
	slices.Sort(c.took)
	p50, p99 = c.took[len(c.took)/2], c.took[len(c.took)*99/100]
	t.Logf("client of %s: %d writes acknowledged, %d requests refused, p50 %v, p99 %v", c.path, len(c.took), c.refused.Load(), p50, p99)
	return p50, p99
}
