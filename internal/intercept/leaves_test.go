package intercept

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"optimist/internal/api"
	"optimist/internal/client"
	"optimist/internal/configtest"
	"optimist/internal/embedded"
	"optimist/internal/enginetest"
	"optimist/internal/es"
	"optimist/internal/obs"
	"optimist/internal/rule"
	"optimist/internal/session"
	"optimist/internal/tenantheader"
	"optimist/internal/upstream"
	"optimist/internal/wire"
	"optimist/internal/write"
	"optimist/proxy"
)

// TestAClientThatHasItsAnswerHasNotGivenUp: who closes the connection once the answer is there is not the one who sends the same
// next.
func TestAClientThatHasItsAnswerHasNotGivenUp(t *testing.T) {
	asked, answer := make(chan struct{}), make(chan struct{})
	var ticks atomic.Int64
	start := time.Now()
	sessions := session.New(session.Options{
		Left: func(context.Context) bool { close(asked); <-answer; return false },
		Now:  func() time.Time { return start.Add(time.Duration(ticks.Add(1)) * time.Second) }, // it takes its time
	})
	engine := embedded.New(embedded.Options{})
	url := guarding(t, serve(t, engine.Serve, func() { _ = engine.Close() }), sessions,
		client.Identity{Headers: []string{"Optimist-Session"}, Infer: true, Address: true}, proxy.Options{})
	c, err := net.Dial("tcp", url[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	r := bufio.NewReader(c)
	ask := func(method, body string) {
		_, _ = fmt.Fprintf(c, "%s /shop/_doc/1 HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
			method, len(body), body)
	}
	heard := func(status int) {
		t.Helper()
		res, err := http.ReadResponse(r, nil)
		if err != nil || res.StatusCode != status {
			t.Fatalf("%+v %v", res, err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		_ = res.Body.Close()
	}
	ask(http.MethodGet, "")
	heard(404)
	ask(http.MethodPut, `{"a":1}`)
	<-asked
	state := wire.NewProbe(c).State()
	close(answer)
	if state != wire.PeerQuiet {
		t.Error("it is asked whether it has left when it has its answer")
	}
	heard(201)
}

// half is a client that ends its sending side behind its request, and still reads.
type half struct {
	net.Conn
	t    *testing.T
	seen <-chan context.Context // of its request
}

// newHalf sends a bulk.
func newHalf(t *testing.T, url string, seen <-chan context.Context, body string) *half {
	t.Helper()
	c, err := net.Dial("tcp", url[len("http://"):])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_, _ = fmt.Fprintf(c, "POST /shop/_bulk HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nOptimist-Session: s\r\nContent-Length: %d\r\n\r\n%s",
		len(body), body)
	return &half{c, t, seen}
}

// end ends the sending side, and returns when that can be seen.
func (h *half) end() {
	h.t.Helper()
	ctx := <-h.seen
	_ = h.Conn.(*net.TCPConn).CloseWrite()
	for deadline := time.Now().Add(time.Minute); !wire.PeerClosed(ctx); runtime.Gosched() {
		if time.Now().After(deadline) {
			h.t.Fatal("the end of the sending side never comes")
		}
	}
}

// hears fails unless each item has its status and type of error in the answer, "201 " for example, and the outcome is as it should be.
func (h *half) hears(outcome string, items ...string) {
	h.t.Helper()
	res, err := http.ReadResponse(bufio.NewReader(h), nil)
	if err != nil {
		h.t.Fatal("no answer: ", err)
	}
	body, _ := io.ReadAll(res.Body)
	_ = res.Body.Close()
	var got []string
	for _, it := range gjson.GetBytes(body, "items.#.index").Array() {
		got = append(got, it.Get("status").Raw+" "+it.Get("error.type").Str)
	}
	if !slices.Equal(got, items) || res.Header.Get("Optimist-Outcome") != outcome {
		h.t.Errorf("%s [%s]", body, res.Header.Get("Optimist-Outcome"))
	}
}

// threeItems are two of documents that the session has read, and a new one.
const threeItems = `{"index":{"_id":"1"}}
{"a":2}
{"index":{"_id":"2"}}
{"a":2}
{"index":{"_id":"3"}}
{"a":2}
`

// halfWorld is a door before an engine, and the contexts of the bulks that come. The session s has read the documents 1 and 2. answer sees
// the requests before the engine does. outcome is how long the answer to a write is waited for after its client has left.
func halfWorld(t *testing.T, outcome time.Duration, answer func(w http.ResponseWriter, r *http.Request) bool) (url string, seen <-chan context.Context) {
	t.Helper()
	engine := enginetest.Serve(t)
	contexts := make(chan context.Context, 1)
	url = guarding(t, enginetest.Between(t, engine, answer), session.New(session.Options{Left: wire.PeerClosed}),
		client.Identity{Headers: []string{"Optimist-Session"}}, proxy.Options{
			Limits: proxy.Limits{Tick: time.Millisecond, Outcome: outcome},
			Intercept: func(x *proxy.Exchange) bool {
				if x.Op().Kind == api.Bulk {
					contexts <- x.Context()
				}
				return false
			}})
	for _, target := range []string{"/shop/_doc/1", "/shop/_doc/2"} {
		enginetest.Ask(t, http.MethodPut, engine+target, `{"a":1}`)
		enginetest.Ask(t, http.MethodGet, url+target, "", "Optimist-Session", "s")
	}
	return url, contexts
}

// TestAnItemThatWaitsWhenItsClientSeemsToHaveLeftIsNotSent: an item waits for another write of its document. The client that has ended its
// sending side still reads, and learns what was written and what wasn't.
func TestAnItemThatWaitsWhenItsClientSeemsToHaveLeftIsNotSent(t *testing.T) {
	single, bulk, release := make(chan struct{}), make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(release) })
	url, seen := halfWorld(t, time.Hour, func(_ http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method == http.MethodPut:
			close(single)
			<-release
		case strings.HasSuffix(r.URL.Path, "/_bulk"):
			close(bulk) // a second one would be a panic
		}
		return false
	})
	t.Cleanup(letGo)
	done := make(chan enginetest.Answer, 1)
	go func() {
		done <- enginetest.Ask(t, http.MethodPut, url+"/shop/_doc/1", `{"a":1,"b":1}`, "Optimist-Session", "s")
	}()
	<-single
	h := newHalf(t, url, seen, threeItems)
	<-bulk // with the items that needn't wait
	h.end()
	letGo()
	if a := <-done; a.Status != 200 {
		t.Errorf("%+v", a)
	}
	h.hears("refused;items=3;passed=1;guarded=1;refused=1", "503 client_left", "200 ", "201 ")
}

// twoItems are two of one document.
const twoItems = `{"index":{"_id":"1"}}
{"a":2}
{"index":{"_id":"1"}}
{"a":3}
`

// TestAnItemBehindAnotherOfItsDocumentIsNotSentWhenItsClientHasLeft: the client left while the engine worked on the first.
func TestAnItemBehindAnotherOfItsDocumentIsNotSentWhenItsClientHasLeft(t *testing.T) {
	bulk, release := make(chan struct{}), make(chan struct{})
	letGo := sync.OnceFunc(func() { close(release) })
	url, seen := halfWorld(t, time.Hour, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/_bulk") {
			close(bulk) // a second one would be a panic
			<-release
		}
		return false
	})
	t.Cleanup(letGo)
	h := newHalf(t, url, seen, twoItems)
	<-bulk
	h.end()
	letGo()
	h.hears("refused;items=2;guarded=1;refused=1", "200 ", "503 client_left")
	if a := enginetest.Ask(t, http.MethodGet, url+"/shop/_source/1", ""); a.Body != `{"a":2}` {
		t.Errorf("stored is %s", a.Body)
	}
}

// TestItemsThatWaitForManyOthersAreNotSentWhenTheirClientHasLeft: more documents are named than are written at the same time.
func TestItemsThatWaitForManyOthersAreNotSentWhenTheirClientHasLeft(t *testing.T) {
	bulk, release := make(chan struct{}), make(chan struct{})
	letGo, came := sync.OnceFunc(func() { close(release) }), sync.OnceFunc(func() { close(bulk) })
	var items atomic.Int64
	url, seen := halfWorld(t, time.Hour, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/_bulk") {
			if items.Add(int64(bytes.Count(enginetest.Body(r), []byte(`"_id"`)))) >= atOnce {
				came()
				<-release
			}
		}
		return false
	})
	t.Cleanup(letGo)
	var text strings.Builder
	for n := range atOnce + 1 {
		id := fmt.Sprintf("many%d", n)
		enginetest.Ask(t, http.MethodGet, url+"/shop/_doc/"+id, "", "Optimist-Session", "s")
		fmt.Fprintf(&text, "{\"index\":{\"_id\":%q}}\n{}\n", id)
	}
	h := newHalf(t, url, seen, text.String())
	<-bulk
	h.end()
	letGo()
	want := slices.Repeat([]string{"201 "}, atOnce)
	h.hears(fmt.Sprintf("refused;items=%d;guarded=%d;refused=1", atOnce+1, atOnce), append(want, "503 client_left")...)
}

// TestAnItemWhoseAnswerNobodyWaitedForIsUnknown: the client seems to have left so long ago that optimist gives up the engine's answer.
func TestAnItemWhoseAnswerNobodyWaitedForIsUnknown(t *testing.T) {
	bulk := make(chan struct{})
	came := sync.OnceFunc(func() { close(bulk) })
	var items atomic.Int64
	url, seen := halfWorld(t, time.Millisecond, func(_ http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "/_bulk") {
			body, _ := io.ReadAll(r.Body) // before: else nobody watches the connection
			if items.Add(int64(bytes.Count(body, []byte(`"_id"`)))) == 3 {
				came() // all items are out, in one bulk or in several: an item that isn't would never be sent
			}
			<-r.Context().Done()
			panic(http.ErrAbortHandler)
		}
		return false
	})
	h := newHalf(t, url, seen, threeItems)
	<-bulk
	h.end()
	h.hears("unknown;items=3;unknown=3", "504 unknown_outcome", "504 unknown_outcome", "504 unknown_outcome")
}

// guarding is the URL of a door with an interceptor that guards the writes of all documents.
func guarding(t *testing.T, engine string, sessions *session.Store, id client.Identity, o proxy.Options) string {
	t.Helper()
	nodes, err := upstream.New(upstream.Config{URLs: []string{engine}, HealthInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, set := configtest.Compile(t, "version: 1\nupstream: {urls: [http://127.0.0.1:1]}\n")
	es := &es.Client{Upstream: nodes}
	g := New(Options{
		Rules: rule.NewSwitch(rule.Guard, set), Upstream: nodes, Sessions: sessions, MaxBody: 1 << 20, Carrier: nodes, Documents: es, Metrics: new(obs.Metrics),
		Types:         func() api.Types { return api.NoTypes },
		Writes:        write.New(write.Options{Upstream: nodes, Engine: es, Sessions: sessions}),
		TenantHeaders: tenantheader.New(), Identity: id,
	})
	seen := o.Intercept
	o.Upstream, o.Intercept = nodes, func(x *proxy.Exchange) bool {
		if seen != nil {
			seen(x)
		}
		return g.Intercept(x)
	}
	door, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, door.Serve, func() { door.Close(); nodes.Close() })
}

// serve runs a server on a free port until the test ends.
func serve(t *testing.T, run func(net.Listener) error, stop func()) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = run(ln) }()
	t.Cleanup(func() { stop(); <-done })
	return "http://" + ln.Addr().String()
}
