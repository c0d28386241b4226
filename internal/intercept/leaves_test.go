package intercept

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/client"
	"optimist/internal/config"
	"optimist/internal/embedded"
	"optimist/internal/es"
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
	engine := embedded.New(embedded.Options{})
	nodes, err := upstream.New(upstream.Config{URLs: []string{serve(t, engine.Serve, func() { _ = engine.Close() })}, HealthInterval: -1})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Parse("test.yaml", []byte("version: 1\nupstream: {urls: [http://127.0.0.1:1]}\n"), config.Overrides{})
	if err != nil {
		t.Fatal(err)
	}
	set, err := rule.FromConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	asked, answer := make(chan struct{}), make(chan struct{})
	var ticks atomic.Int64
	start := time.Now()
	sessions := session.New(session.Options{
		Left: func(context.Context) bool { close(asked); <-answer; return false },
		Now:  func() time.Time { return start.Add(time.Duration(ticks.Add(1)) * time.Second) }, // it takes its time
	})
	g := New(Options{
		Rules: rule.NewSwitch(rule.Guard, set), Upstream: nodes, Sessions: sessions, MaxBody: 1 << 20,
		Writes:        write.New(write.Options{Upstream: nodes, Engine: &es.Client{Upstream: nodes}, Sessions: sessions}),
		TenantHeaders: tenantheader.New(),
		Identity:      client.Identity{Headers: []string{"Optimist-Session"}, Infer: true, Address: true},
	})
	door, err := proxy.New(proxy.Options{Upstream: nodes, Intercept: g.Intercept})
	if err != nil {
		t.Fatal(err)
	}
	url := serve(t, door.Serve, func() { door.Close(); nodes.Close() })
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
