package admin

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
	"github.com/valyala/fasthttp/fasthttputil"

	"optimist/internal/enginetest"
	"optimist/internal/obs"
	"optimist/internal/rule"
)

// served is a server on a connection in memory.
type served struct {
	sw       *rule.Switch
	notReady atomic.Pointer[error]
	changed  atomic.Int32
	client   *http.Client
	server   *Server
	log      *enginetest.Log
}

func serve(t *testing.T, hosts ...string) *served {
	t.Helper()
	return serveFor(t, Access{}, nil, hosts...)
}

// serveFor is serve for those whom access lets in, with TLS unless conf is nil.
func serveFor(t *testing.T, access Access, conf *tls.Config, hosts ...string) *served {
	t.Helper()
	s := &served{sw: rule.NewSwitch(rule.Guard, nil), log: new(enginetest.Log)}
	server := New(Options{
		Log:     slog.New(slog.NewTextHandler(s.log, nil)),
		Build:   obs.Build{Version: "1.2.3", Revision: "abc", Go: "go1.26"},
		Metrics: obs.NewMetrics(obs.Build{}).Gatherer(),
		Switch:  s.sw,
		Config:  func() ([]byte, error) { return []byte(`{"mode": "guard"}`), nil },
		Nodes:   func() []Node { return []Node{{URL: "http://es1:9200", Error: "connection refused"}} },
		Ready: func() error {
			if p := s.notReady.Load(); p != nil {
				return *p
			}
			return nil
		},
		Changed: func(rule.Mode) { s.changed.Add(1) },
		Access:  access,
		Hosts:   hosts,

		Hot:         func(top int) any { return []int{top} },
		Suggestions: func(index string) any { return "of " + index },
	})
	s.server = server
	l := fasthttputil.NewInmemoryListener()
	done := make(chan error, 1)
	var place net.Listener = l
	if conf != nil {
		place = tls.NewListener(l, conf)
	}
	go func() { done <- server.Serve(place) }()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		s.client.CloseIdleConnections()
		if err := server.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	s.client = &http.Client{Transport: &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) { return l.Dial() },
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

// do sends a request; headers are "Name: value".
func (s *served) do(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	scheme := "http://"
	if s.client.Transport.(*http.Transport).TLSClientConfig != nil {
		scheme = "https://"
	}
	req, err := http.NewRequest(method, scheme+"127.0.0.1:9281"+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	resp, err := s.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if method != "HEAD" && strings.Contains(resp.Header.Get("Content-Type"), "json") && !json.Valid(text) {
		t.Errorf("%s %s answers no JSON: %s", method, path, text)
	}
	return resp.StatusCode, string(text)
}

const asJSON = "Content-Type: application/json"

func TestEveryPathAnswers(t *testing.T) {
	s := serve(t)
	for path, want := range map[string]string{
		"/":                  "/_optimist/ready",
		"/_optimist/health":  "connection refused",
		"/_optimist/ready":   `"ready": true`,
		"/_optimist/version": `"revision": "abc"`,
		"/_optimist/mode":    `"mode": "guard"`,
		"/_optimist/config":  "{\n  \"mode\": \"guard\"\n}\n",
		"/metrics":           "optimist_build_info",
	} {
		status, body := s.do(t, "GET", path, "")
		if status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s", path, status, body)
		}
	}
	if status, body := s.do(t, "GET", "/_optimist/nothing", ""); status != 404 || !strings.Contains(body, `"type": "not_found"`) {
		t.Errorf("an unknown path is %d %s", status, body)
	}
	if status, _ := s.do(t, "HEAD", "/_optimist/ready", ""); status != 200 {
		t.Errorf("HEAD is %d", status)
	}
}

func TestReadinessGoesWhileHealthStays(t *testing.T) {
	s := serve(t)
	err := errors.New("draining")
	s.notReady.Store(&err)
	if status, body := s.do(t, "GET", "/_optimist/ready", ""); status != 503 || !strings.Contains(body, `"reason": "draining"`) {
		t.Errorf("ready: %d %s", status, body)
	}
	if status, body := s.do(t, "GET", "/_optimist/health", ""); status != 200 || !strings.Contains(body, `"ready": false`) {
		t.Errorf("health: %d %s", status, body)
	}
}

func TestTheModeIsChangedAndTold(t *testing.T) {
	s := serve(t)
	status, body := s.do(t, "PUT", "/_optimist/mode", `{"mode":"off"}`, asJSON)
	if status != 200 || !strings.Contains(body, `"mode": "off"`) || !strings.Contains(body, `"before": "guard"`) {
		t.Fatalf("%d %s", status, body)
	}
	if s.sw.Mode() != rule.Off || s.changed.Load() != 1 {
		t.Errorf("mode is %s, told %d times", s.sw.Mode(), s.changed.Load())
	}
	for _, bad := range []string{`{"mode":"on"}`, `{}`, `off`, ``} {
		if status, _ := s.do(t, "PUT", "/_optimist/mode", bad, asJSON); status != 400 {
			t.Errorf("%s: %d", bad, status)
		}
	}
	for _, method := range []string{"POST", "DELETE", "PATCH"} {
		if status, _ := s.do(t, method, "/_optimist/mode", `{"mode":"guard"}`, asJSON); status != 405 {
			t.Errorf("%s: %d", method, status)
		}
	}
	if status, _ := s.do(t, "PUT", "/_optimist/config", `{}`, asJSON); status != 405 {
		t.Errorf("the configuration can be put: %d", status)
	}
	if s.sw.Mode() != rule.Off {
		t.Error("a refused change changed the mode")
	}
}

// TestOtherSitesChangeNothing: what a page in an operator's browser can send, by form, by fetch, or after DNS rebinding.
func TestOtherSitesChangeNothing(t *testing.T) {
	s := serve(t, "admin.example")
	for name, headers := range map[string][]string{
		"form":                    {"Content-Type: text/plain", "Origin: https://evil.example"},
		"no type":                 {},
		"form type":               {"Content-Type: application/x-www-form-urlencoded"},
		"cross origin":            {asJSON, "Origin: https://evil.example"},
		"null origin":             {asJSON, "Origin: null"},
		"rebound name":            {asJSON, "Host: evil.example:9281", "Origin: http://evil.example:9281"},
		"rebound name, no origin": {asJSON, "Host: evil.example:9281"},
		"fetch metadata":          {asJSON, "Sec-Fetch-Site: cross-site"},
		"same site, other host":   {asJSON, "Sec-Fetch-Site: same-site"},
		"other port":              {asJSON, "Origin: http://127.0.0.1:3000"},
	} {
		status, body := s.do(t, "PUT", "/_optimist/mode", `{"mode":"off"}`, headers...)
		if status != 403 || !strings.Contains(body, "foreign_request") || s.sw.Mode() != rule.Guard {
			t.Errorf("%s: %d %s, mode %s", name, status, body, s.sw.Mode())
		}
	}
	for name, headers := range map[string][]string{
		"curl":            {asJSON},
		"charset":         {"Content-Type: application/json; charset=utf-8"},
		"localhost":       {asJSON, "Host: localhost:9281"},
		"ipv6":            {asJSON, "Host: [::1]:9281"},
		"ipv6, no port":   {asJSON, "Host: [::1]"},
		"configured name": {asJSON, "Host: Admin.Example"},
		"own page":        {asJSON, "Origin: http://127.0.0.1:9281", "Sec-Fetch-Site: same-origin"},
	} {
		if status, body := s.do(t, "PUT", "/_optimist/mode", `{"mode":"guard"}`, headers...); status != 200 {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	rebound := "Host: evil.example:9281"
	for _, path := range []string{"/_optimist/config", "/_optimist/hot"} {
		if status, _ := s.do(t, "GET", path, "", rebound); status != 403 {
			t.Errorf("%s is read under a rebound name: %d", path, status)
		}
	}
	for _, path := range []string{"/metrics", "/_optimist/ready", "/_optimist/health"} {
		if status, _ := s.do(t, "GET", path, "", "Host: optimist.monitoring.svc:9281"); status != 200 {
			t.Errorf("%s can't be read by a name of the cluster: %d", path, status)
		}
	}
}

func TestWhatWasLearntIsTold(t *testing.T) {
	s := serve(t)
	for path, want := range map[string]string{
		"/_optimist/hot": "20", "/_optimist/hot?top=3": "3", "/_optimist/hot?top=0": "want a number from 1 on", "/_optimist/hot?top=x": "invalid_request",
		"/_optimist/suggestions": `"of "`, "/_optimist/suggestions?index=a%20b": `"of a b"`,
	} {
		if _, body := s.do(t, "GET", path, ""); !strings.Contains(body, want) {
			t.Errorf("%s: %s, want %s", path, body, want)
		}
	}
	for _, path := range []string{"/_optimist/hot", "/_optimist/suggestions"} {
		if status, _ := s.do(t, "GET", path, "", "Host: evil.example:9281"); status != 403 {
			t.Errorf("%s is read under a rebound name: %d", path, status)
		}
		if status, _ := s.do(t, "PUT", path, "{}", asJSON); status != 405 {
			t.Errorf("%s is written: %d", path, status)
		}
	}
}

func TestABodyBeyondReasonIsRefused(t *testing.T) {
	s := serve(t)
	req, err := http.NewRequest("PUT", "http://127.0.0.1:9281/_optimist/mode", strings.NewReader(strings.Repeat(" ", 100<<10)+`{"mode":"off"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := s.client.Do(req)
	if err == nil { // else the listener has closed the connection before it was all sent
		defer resp.Body.Close()
		if resp.StatusCode != 400 && resp.StatusCode != 413 {
			t.Errorf("%d", resp.StatusCode)
		}
	}
	if _, body := s.do(t, "GET", "/_optimist/mode", ""); !strings.Contains(body, `"guard"`) {
		t.Errorf("it has changed the mode: %s", body)
	}
}

// TestShutdownEndsIdleConnections: an open connection to the admin listener doesn't hold up the end of the process.
func TestShutdownEndsIdleConnections(t *testing.T) {
	server := New(Options{Metrics: obs.NewMetrics(obs.Build{}).Gatherer(), Switch: rule.NewSwitch(rule.Guard, nil),
		Nodes: func() []Node { return nil }, Ready: func() error { return nil }})
	l := fasthttputil.NewInmemoryListener()
	go func() { _ = server.Serve(l) }()
	c, err := l.Dial()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, "GET /_optimist/health HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	resp.Body.Close()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := server.Shutdown(ctx); err != nil {
		t.Errorf("shutdown waits for an idle connection: %v", err)
	}
}

func TestAURLAsTargetDoesntHideTheHost(t *testing.T) {
	for _, target := range []string{"http://127.0.0.1/_optimist/mode", "http://localhost:9281/_optimist/mode", "//localhost/_optimist/mode"} {
		var ctx fasthttp.RequestCtx
		raw := "PUT " + target + " HTTP/1.1\r\nHost: evil.example\r\n" + asJSON + "\r\nContent-Length: 0\r\n\r\n"
		if err := ctx.Request.Read(bufio.NewReader(strings.NewReader(raw))); err != nil {
			t.Fatal(err)
		}
		if New(Options{Metrics: obs.NewMetrics(obs.Build{}).Gatherer()}).foreign(&ctx, true) == "" {
			t.Errorf("%s is taken under a rebound name", target)
		}
	}
}
