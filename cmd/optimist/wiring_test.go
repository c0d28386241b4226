package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"optimist/internal/enginetest"
)

// statuses are the answers that n connections get which all stay open.
func statuses(t *testing.T, addr string, n int) (got []int) {
	t.Helper()
	for range n {
		nc, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = nc.Close() }()
		fmt.Fprint(nc, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
		res, err := http.ReadResponse(bufio.NewReader(nc), nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		got = append(got, res.StatusCode)
	}
	return got
}

func TestWhatIsConfiguredIsInForce(t *testing.T) {
	const doc = "/shop/_doc/1"
	outcome := func(t *testing.T, r *running, body string, fields ...string) string {
		t.Helper()
		return r.ask(t, "PUT", doc, body, fields...).Outcome()
	}
	for name, c := range map[string]struct {
		content string
		holds   func(t *testing.T, r *running) bool
	}{
		"sniffing.advertise": {"sniffing: {advertise: 'es.test:1234'}", func(t *testing.T, r *running) bool {
			return strings.Contains(r.ask(t, "GET", "/_nodes/http", "").Body, `"publish_address":"es.test:1234"`)
		}},
		"sniffing.answer": {"sniffing: {answer: pass}", func(t *testing.T, r *running) bool {
			text := r.ask(t, "GET", "/_nodes/http", "").Body
			return strings.Contains(text, `"publish_address":"127.0.0.1:`) && !strings.Contains(text, r.data)
		}},
		"limits.max_guarded_body": {"limits: {max_guarded_body: 1KiB}", func(t *testing.T, r *running) bool {
			return strings.HasSuffix(outcome(t, r, `{"a":"`+strings.Repeat("x", 1<<10)+`"}`), "reason=too_large")
		}},
		"limits.max_header": {"limits: {max_header: 4KiB}", func(t *testing.T, r *running) bool {
			return r.ask(t, "GET", "/", "", "X-Long", strings.Repeat("x", 4<<10)).Status == http.StatusRequestHeaderFieldsTooLarge
		}},
		"limits.max_connections": {"limits: {max_connections: 1}", func(t *testing.T, r *running) bool {
			return slices.Equal(statuses(t, r.data, 2), []int{http.StatusOK, http.StatusServiceUnavailable})
		}},
		"sessions.header": {"sessions: {header: X-Thread}", func(t *testing.T, r *running) bool {
			r.ask(t, "PUT", doc, `{"a":0,"b":0}`)
			r.ask(t, "GET", doc, "", "X-Thread", "1")
			r.ask(t, "GET", doc, "", "X-Thread", "2")
			r.ask(t, "PUT", doc, `{"a":0,"b":1}`, "X-Thread", "2")
			return outcome(t, r, `{"a":1,"b":0}`, "X-Thread", "1") == "merged;attempts=2;base=session"
		}},
		"sessions.max_age": {"sessions: {max_age: 1ms}", func(t *testing.T, r *running) bool {
			for n := 1; n < 1<<12; n *= 2 { // at last there is a millisecond between the read and the write
				r.ask(t, "GET", doc, "", "Optimist-Session", "1")
				for range n {
					r.ask(t, "GET", "/", "")
				}
				if strings.HasSuffix(outcome(t, r, `{}`, "Optimist-Session", "1"), "base=lost;reason=aged") {
					return true
				}
			}
			return false
		}},
		"mode": {"mode: observe", func(t *testing.T, r *running) bool { return outcome(t, r, `{}`) == "" }},
		"rules": {"rules: [{name: r, base: {unknown: reject}}]", func(t *testing.T, r *running) bool {
			return r.ask(t, "PUT", doc, `{}`).Status == http.StatusPreconditionRequired
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if !c.holds(t, serveFor(t, "", c.content)) {
				t.Errorf("%s isn't in force", c.content)
			}
		})
	}
}

// What an index is, is asked with optimist's own credentials; whatever is a client's goes with the client's.
func TestOwnCredentialsAreForOwnQuestions(t *testing.T) {
	engine := serveFor(t, "", "mode: 'off'")
	var mu sync.Mutex
	seen := make(map[string]string)
	between := enginetest.Between(t, "http://"+engine.data, func(_ http.ResponseWriter, r *http.Request) bool {
		what, _, _ := strings.Cut(r.URL.Path, "optimist-probe")
		user, _, _ := r.BasicAuth()
		mu.Lock()
		seen[r.Method+" "+what] = user
		mu.Unlock()
		return false
	})
	file := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(file, []byte("optimist:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := serveFor(t, between, "upstream: {auth: {basic_file: "+file+"}}")
	r.log.Wait(t, "the engine answers")
	client := func(method, body, session string) string {
		t.Helper()
		return r.ask(t, method, "/shop/_doc/1", body, "Authorization", "Basic Y2xpZW50OnNlY3JldA==", "Optimist-Session", session).Outcome()
	}
	client("PUT", `{"a":0,"b":0}`, "0")
	client("GET", "", "1")
	client("GET", "", "2")
	client("PUT", `{"a":0,"b":1}`, "1")
	if got := client("PUT", `{"a":1,"b":0}`, "2"); got != "merged;attempts=2;base=session" {
		t.Errorf("outcome %s", got)
	}
	mu.Lock()
	defer mu.Unlock()
	want := map[string]string{"GET /": "optimist", "GET /shop": "optimist", "GET /shop/_doc/1": "client", "PUT /shop/_doc/1": "client", "POST /shop/_update/": "client"}
	if !reflect.DeepEqual(seen, want) {
		t.Errorf("asked was %v, want %v", seen, want)
	}
}

// The whole command, as its user has it: flags win over variables, and those over the file.
func TestFlagsWinOverVariablesAndVariablesOverTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "optimist.yaml")
	const content = "mode: observe\nlog: {format: text}\ndrain: {delay: 0s}\nupstream: {urls: [http://127.0.0.1:1]}\n"
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		variables map[string]string
		flags     []string
		want      string // of the line that says what is served
	}{
		{"the file", nil, nil, `upstream=http://127\.0\.0\.1:1 mode=observe `},
		{"variables", map[string]string{"OPTIMIST_MODE": "off", "OPTIMIST_UPSTREAM": "http://127.0.0.1:2,http://127.0.0.1:3"}, nil,
			`upstream=http://127\.0\.0\.1:2,http://127\.0\.0\.1:3 mode=off `},
		{"flags", map[string]string{"OPTIMIST_MODE": "off", "OPTIMIST_UPSTREAM": "http://127.0.0.1:2", "OPTIMIST_LOG_FORMAT": "text"},
			[]string{"--mode", "guard", "--upstream", "http://127.0.0.1:4", "--upstream", "http://127.0.0.1:5", "--log-format", "json"},
			`"upstream":"http://127\.0\.0\.1:4,http://127\.0\.0\.1:5","mode":"guard"`},
		{"an empty variable is none", map[string]string{"OPTIMIST_MODE": "", "OPTIMIST_UPSTREAM": ""}, nil, `upstream=http://127\.0\.0\.1:1 mode=observe `},
	} {
		t.Run(c.name, func(t *testing.T) {
			variables := map[string]string{"OPTIMIST_CONFIG": file, "OPTIMIST_LISTEN": "127.0.0.1:0", "OPTIMIST_ADMIN": "127.0.0.1:0"}
			maps.Copy(variables, c.variables)
			for name, value := range variables {
				t.Setenv(name, value)
			}
			ctx, end := context.WithCancel(t.Context())
			log, status := new(enginetest.Log), make(chan int, 1)
			go func() { status <- run(ctx, append([]string{"serve"}, c.flags...), io.Discard, log) }()
			log.Wait(t, c.want)
			end()
			if got := <-status; got != 0 {
				t.Errorf("status %d", got)
			}
		})
	}
}

func TestTheLevelOfTheLogCountsWhenItChanges(t *testing.T) {
	r := &running{log: new(enginetest.Log), file: filepath.Join(t.TempDir(), "optimist.yaml")}
	r.write(t, "log: {level: info}\n")
	ctx, end := context.WithCancel(t.Context())
	status := make(chan int, 1)
	go func() {
		status <- run(ctx, []string{"serve", "--config", r.file, "--embedded", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"}, io.Discard, r.log)
	}()
	r.data = r.log.Wait(t, `msg=serving addr=(\S+)`)
	r.ask(t, "GET", "/quiet/_doc/1", "")
	r.write(t, "log: {level: debug}\n")
	r.log.Wait(t, `msg="configuration reloaded"`)
	r.ask(t, "PUT", "/loud/_doc/1", "{}")
	line := r.log.Wait(t, `msg=request .*path=/loud/_doc/1.*`)
	if !strings.Contains(line, `outcome="passed;attempts=1;base=none"`) {
		t.Errorf("the line has no outcome: %s", line)
	}
	end()
	if got := <-status; got != 0 || strings.Contains(r.log.String(), "/quiet") {
		t.Errorf("status %d, logged %s", got, r.log.String())
	}
}
