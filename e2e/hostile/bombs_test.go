package hostile

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"optimist/e2e/engine"
	"optimist/internal/enginetest"
)

// The bounds that the bombs meet, small so that a few of them reach these. A process may grow by its budget and slack.
const (
	bounded = "limits: {max_guarded_body: 4MiB, memory: 48MiB, max_connections: 500}\nsessions: {memory: 8MiB}\n"
	memory  = 48 * mebi
	slack   = 64 * mebi
)

// holds fails the test if the process grew by more than it may, and waits until no request holds memory any more: whatever was done, all
// of it has to be given back.
func (g *target) holds(t testing.TB, grown int64) {
	t.Helper()
	t.Logf("memory grew by %d MiB; %.0f times there was none", grown/mebi, g.Metric(t, "optimist_memory_refusals_total"))
	if grown > memory+slack {
		t.Errorf("memory grew by %d MiB, of which %d MiB are for requests and %d MiB for the rest", grown/mebi, memory/mebi, slack/mebi)
	}
	wait(t, "memory is given back", func() bool { return g.Metric(t, "optimist_memory_taken_bytes") == 0 })
}

// patience is how long a test waits for what has to come. A slow machine needs some of it, and only a test that fails needs all.
const patience = 2 * time.Minute

// wait waits until something has come.
func wait(t testing.TB, what string, is func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for tick := time.NewTicker(10 * time.Millisecond); !is(); <-tick.C {
		if time.Now().After(deadline) {
			t.Fatalf("it doesn't come: %s", what)
		}
	}
}

// atOnce calls what each of n clients does at the same time, and returns how often each status came.
func atOnce(n int, do func(i int) int) map[int]int {
	var (
		wg       sync.WaitGroup
		mu       sync.Mutex
		statuses = map[int]int{}
	)
	for i := range n {
		wg.Go(func() {
			status := do(i)
			mu.Lock()
			statuses[status]++
			mu.Unlock()
		})
	}
	wg.Wait()
	return statuses
}

// Many clients without credentials write small bodies that become large ones, all at the same time.
func TestCompressedWritesStayWithinTheBudget(t *testing.T) {
	const clients = 150
	var held, refused atomic.Int64
	var once sync.Once
	release := make(chan struct{})
	open := func() { // when all have come: those that wait for the engine, and those that found no memory
		if held.Load()+refused.Load() == clients {
			once.Do(func() { close(release) })
		}
	}
	url := enginetest.Between(t, engine.Embedded(t), func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/held/") {
			held.Add(1)
			open()
			<-release // no request ends before all have come
		}
		return false
	})
	g := startAt(t, url, bounded)
	body := zipped(func(w io.Writer) {
		_, _ = io.WriteString(w, `{"a":"`)
		repeat(w, "a", 4*mebi-64)
		_, _ = io.WriteString(w, `"}`)
	})
	var statuses map[int]int
	grown := g.growth(t, func() {
		statuses = atOnce(clients, func(i int) int {
			status := g.exchange(request("PUT", fmt.Sprintf("/held/_doc/%d", i), body, "Content-Type", "application/json", "Content-Encoding", "gzip"))
			if status == http.StatusServiceUnavailable {
				refused.Add(1)
				open()
			}
			return status
		})
	})
	t.Logf("%d bytes of each; statuses %v", len(body), statuses)
	if statuses[201]+statuses[503] != clients || statuses[201] == 0 || statuses[503] == 0 {
		t.Errorf("of %d writes some have to come through, and all others to be told to come again: %v", clients, statuses)
	}
	g.holds(t, grown)
}

// Whoever is refused is told so in the engine's words, and when to come again.
func TestARefusalSaysWhenToComeAgain(t *testing.T) {
	blocked, release := make(chan struct{}), make(chan struct{})
	url := enginetest.Between(t, engine.Embedded(t), func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasPrefix(r.URL.Path, "/held/_doc/") && r.Method == http.MethodPut {
			blocked <- struct{}{}
			<-release
		}
		return false
	})
	g := startAt(t, url, "limits: {max_guarded_body: 1MiB, memory: 8MiB}")
	large := `{"a":"` + strings.Repeat("a", mebi-64<<10) + `"}` // a connection holds a buffer besides
	var wg sync.WaitGroup
	for i := range 4 { // a client gets half
		wg.Go(func() {
			g.exchange(request("PUT", fmt.Sprintf("/held/_doc/%d", i), []byte(large), "Content-Type", "application/json"))
		})
		<-blocked
	}
	a := g.ask(t, http.MethodPut, "/i/_doc/2", large)
	other := g.ask(t, http.MethodPut, "/i/_doc/3", large, "Authorization", "Basic YTpi")
	close(release)
	wg.Wait()
	if a.Status != 503 || a.Header.Get("Retry-After") == "" || !strings.Contains(a.Body, `"type":"overloaded"`) {
		t.Errorf("%d %v %s", a.Status, a.Header, a.Body)
	}
	if other.Status != 201 {
		t.Errorf("another client is refused, too: %d %s", other.Status, other.Body)
	}
	if a = g.ask(t, http.MethodPut, "/i/_doc/2", large); a.Status != 201 {
		t.Errorf("afterwards: %d %s", a.Status, a.Body)
	}
}

// Many clients ask for a large document and don't read the answer.
func TestReadersThatTakeNothingStayWithinTheBudget(t *testing.T) {
	const readers = 60
	g := start(t, bounded)
	g.put(t, "/i/_doc/large", `{"a":"`+strings.Repeat("a", 12*mebi)+`"}`)
	g.put(t, "/i/_doc/small", `{"a":"a"}`)
	grown := g.growth(t, func() {
		for range readers {
			c, err := g.connect()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			if _, err := c.Write(request("GET", "/i/_doc/large", nil)); err != nil {
				t.Fatal(err)
			}
			if _, err := bufio.NewReaderSize(c, 16).Peek(1); err != nil { // the answer has begun
				t.Fatal(err)
			}
		}
		if a := g.ask(t, http.MethodGet, "/i/_doc/small", ""); a.Status != 200 {
			t.Errorf("another reader: %d %s", a.Status, a.Body)
		}
		if a := g.ask(t, http.MethodPut, "/i/_doc/small", `{"a":"b"}`); a.Status != 200 {
			t.Errorf("a writer: %d %s", a.Status, a.Body)
		}
	})
	g.holds(t, grown)
}

// A client asks for more documents than anybody has, in few bytes. The engine knows the client's credentials to be none.
func TestAQuestionThatIsRefusedCostsNothing(t *testing.T) {
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if _, _ = io.Copy(io.Discard, r.Body); r.URL.Path != "/" {
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(stub.Close)
	g := startAt(t, stub.URL, bounded+"rules: [{name: all, base: {stamp: _stamp}}]")
	body := zipped(func(w io.Writer) {
		_, _ = io.WriteString(w, `{"ids":[`)
		repeat(w, `"",`, 5*mebi)
		_, _ = io.WriteString(w, `""]}`)
	})
	t.Logf("%d bytes", len(body))
	before := g.cpu(t)
	const times = 20
	grown := g.growth(t, func() {
		atOnce(times, func(int) int {
			return g.exchange(request("POST", "/i/_mget", body, "Content-Type", "application/json", "Content-Encoding", "gzip"))
		})
	})
	t.Logf("processor time for each: %v", (g.cpu(t)-before)/times)
	if grown > slack {
		t.Errorf("memory grew by %d MiB", grown/mebi)
	}
	g.holds(t, grown)
}

// A patch that copies the document into itself doubles it with each operation.
func TestPatchesThatDoubleTheDocumentStayWithinTheBudget(t *testing.T) {
	g := start(t, bounded)
	var ops []string
	for i := range 40 {
		ops = append(ops, fmt.Sprintf(`{"op":"copy","from":"","path":"/%d"}`, i))
	}
	patch := []byte("[" + strings.Join(ops, ",") + "]")
	for i := range 24 {
		g.put(t, fmt.Sprintf("/i/_doc/%d", i), `{"a":"aaaaaaaa"}`)
	}
	var statuses map[int]int
	grown := g.growth(t, func() {
		statuses = atOnce(24, func(i int) int {
			return g.exchange(request("PATCH", fmt.Sprintf("/i/_doc/%d", i), patch, "Content-Type", "application/json-patch+json"))
		})
	})
	if statuses[413]+statuses[503] != 24 || statuses[413] == 0 {
		t.Errorf("%v", statuses)
	}
	g.holds(t, grown)
	if a := g.ask(t, http.MethodGet, "/i/_source/0", ""); a.Body != `{"a":"aaaaaaaa"}` {
		t.Errorf("%d %.100s", a.Status, a.Body)
	}
}

// Patches that are short when they are compressed are dear to read: of many values, or with a path of millions of tokens.
func TestPatchesThatAreDearToReadStayWithinTheBudget(t *testing.T) {
	const operations, steps = "application/json-patch+json", "application/vnd.optimist-patch+json"
	path := strings.Repeat("/", 2*mebi)
	for _, c := range []struct{ name, media, before, repeated, after string }{
		{"operations without anything", operations, "[", "{},", "{}]"},
		{"steps without anything", steps, "[", "{},", "{}]"},
		{"steps that are numbers", steps, "[", "0,", "0]"},
		{"a value of many values", steps, `[{"op":"add","path":"/a","value":[`, "{},", "{}]}]"},
		{"an operation's path", operations, `[{"op":"add","path":"` + path, "/", `","value":1}]`},
		{"where an operation copies from", operations, `[{"op":"copy","path":"/a","from":"` + path, "/", `"}]`},
		{"a step's path", steps, `[{"op":"add","path":"` + path, "/", `","value":1}]`},
		{"the path of a step's value", steps, `[{"op":"add","path":"/a","value":{"from":"current","path":"` + path, "/", `"}}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := start(t, bounded)
			g.put(t, "/i/_doc/1", `{"a":1}`)
			body := zipped(func(w io.Writer) {
				_, _ = io.WriteString(w, c.before)
				repeat(w, c.repeated, (4*mebi-len(c.before)-len(c.after)-1)/len(c.repeated))
				_, _ = io.WriteString(w, c.after)
			})
			var statuses map[int]int
			grown := g.growth(t, func() {
				statuses = atOnce(16, func(int) int {
					return g.exchange(request("PATCH", "/i/_doc/1", body, "Content-Type", c.media, "Content-Encoding", "gzip"))
				})
			})
			t.Logf("%d bytes of each; statuses %v", len(body), statuses)
			if statuses[400]+statuses[413]+statuses[503] != 16 {
				t.Errorf("%v", statuses)
			}
			g.holds(t, grown)
		})
	}
}

// Documents of as many values as their bytes hold are dear to take apart: each of 12 clients changes one that others have changed, by a
// document, a patch, and a part.
func TestMergesStayWithinTheBudget(t *testing.T) {
	const clients = 12
	g := start(t, bounded)
	list := func(last string) string { return `{"l":[` + strings.Repeat("0,", mebi/4) + last + `]}` }
	for i := range clients {
		path := fmt.Sprintf("/i/_doc/%d", i)
		g.put(t, path, list("0"))
		if a := g.ask(t, http.MethodGet, path, "", "Optimist-Session", path); a.Status != 200 {
			t.Fatalf("%d %.100s", a.Status, a.Body)
		}
		g.put(t, path, list("1"))
	}
	var statuses map[int]int
	grown := g.growth(t, func() {
		statuses = atOnce(clients, func(i int) int {
			session := fmt.Sprintf("/i/_doc/%d", i)
			method, path, body, media := "PUT", session, list("2"), "application/json"
			switch i % 3 {
			case 1:
				method, body, media = "PATCH", `[{"op":"add","path":"/l/0","value":7}]`, "application/json-patch+json"
			case 2:
				method, path, body = "POST", fmt.Sprintf("/i/_update/%d", i), `{"doc":`+list("2")+`}`
			}
			return g.exchange(request(method, path, []byte(body), "Content-Type", media, "Optimist-Session", session))
		})
	})
	t.Logf("statuses %v", statuses)
	if statuses[200]+statuses[503]+statuses[409] != clients || statuses[200] == 0 { // what never fits keeps the engine's conflict
		t.Errorf("%v", statuses)
	}
	g.holds(t, grown)
}

// A bulk of items without documents is short for what they are: each is looked at by itself, and guarded.
func TestBulksOfManyItemsStayWithinTheBudget(t *testing.T) {
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, `{"took":1,"errors":false,"items":[]}`)
	}))
	t.Cleanup(stub.Close)
	g := startAt(t, stub.URL, bounded+"rules: [{name: all, base: {unknown: fetch}}]")
	for _, line := range []string{`{"delete":{"_id":"1"}}` + "\n", "\n", `{"index":{}}` + "\n{}\n"} {
		body := zipped(func(w io.Writer) { repeat(w, line, mebi/len(line)-1) })
		var statuses map[int]int
		grown := g.growth(t, func() {
			statuses = atOnce(8, func(int) int {
				return g.exchange(request("POST", "/i/_bulk", body, "Content-Type", "application/x-ndjson", "Content-Encoding", "gzip"))
			})
		})
		t.Logf("%q: %d bytes, statuses %v", line, len(body), statuses)
		g.holds(t, grown)
	}
}

// A bulk of empty lines has no items, whatever its length. The engine knows the client's credentials to be none, and is asked for each.
func TestBulksOfEmptyLinesStayWithinTheBudget(t *testing.T) {
	var asked atomic.Int64
	stub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if _, _ = io.Copy(io.Discard, r.Body); r.URL.Path != "/" {
			asked.Add(1)
			w.WriteHeader(http.StatusUnauthorized)
		}
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(stub.Close)
	g := startAt(t, stub.URL, bounded)
	// A gigabyte, in members: to compress it in one takes more than a minute.
	empty := bytes.Repeat(zipped(func(w io.Writer) { repeat(w, "\n", 8*mebi) }), 128)
	items := zipped(func(w io.Writer) { repeat(w, `{"delete":{"_id":"1"}}`+"\n", 1000) })
	member := zipped(func(io.Writer) {})
	for _, c := range []struct {
		name, coding string
		body         []byte
	}{
		{"plain", "identity", bytes.Repeat([]byte("\n"), 256*mebi)},
		{"compressed", "gzip", empty},
		{"before items", "gzip", slices.Concat(empty, items)},
		{"behind items", "gzip", slices.Concat(items, empty)},
		{"of no bytes", "gzip", bytes.Repeat(member, 64*mebi/len(member))},
	} {
		t.Run(c.name, func(t *testing.T) {
			const clients = 2
			asked.Store(0)
			body := request("POST", "/i/_bulk", c.body, "Content-Type", "application/x-ndjson", "Content-Encoding", c.coding)
			before := g.cpu(t)
			var statuses map[int]int
			grown := g.growth(t, func() { statuses = atOnce(clients, func(int) int { return g.exchange(body) }) })
			t.Logf("%d bytes of each; processor time for each: %v", len(c.body), (g.cpu(t)-before)/clients)
			if statuses[401]+statuses[503] != clients || int64(statuses[401]) > asked.Load() {
				t.Errorf("%v, and the engine was asked %d times", statuses, asked.Load())
			}
			g.holds(t, grown)
		})
	}
}

// One request of another client's may end guarding for nobody: neither a question about indices, nor a change that never ends, nor one
// that the engine refuses.
func TestNobodySwitchesGuardingOffForOthers(t *testing.T) {
	g := start(t, "")
	path := "/i/_doc/1"
	g.put(t, path, `{"n":0}`)
	for _, hostile := range []string{
		"OPTIONS /_aliases", "OPTIONS /_alias", "OPTIONS /_all", "OPTIONS /_snapshot/a/b/_restore", "DELETE /nothing-*", "POST /_aliases",
		"PUT /other/_alias/a", "OPTIONS /i", "PUT /x#/i", "PUT /y#,i",
	} {
		if a := g.ask(t, http.MethodGet, path, "", "Optimist-Session", "good"); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
		method, target, _ := strings.Cut(hostile, " ")
		body := ""
		if method == http.MethodPost {
			body = `{"actions":[{"add":{"index":"nothing","alias":"a"}}]}`
		}
		g.exchange(request(method, target, []byte(body), "Content-Type", "application/json"))
		c := g.dial(t)
		if _, err := io.WriteString(c, "POST /_aliases HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"); err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
		a := g.ask(t, http.MethodPut, path, `{"n":1}`, "Optimist-Session", "good")
		if a.Status != 200 || !strings.HasPrefix(a.Outcome(), "guarded") || !strings.Contains(a.Outcome(), "base=session") {
			t.Errorf("after %s: %d %s", hostile, a.Status, a.Outcome())
		}
	}
}
