// Command steps counts the code that optimist runs for requests of two sizes. It has to be built with -cover. The counters count
// blocks of code, so neither the machine nor its load matters.
//
//	go build -cover -covermode=atomic -coverpkg=… -o steps ./e2e/hostile/steps && ./steps DIR SIZE ENGINE ATTACK
//
// ENGINE is "refused" for an engine that refuses all credentials, and ATTACK the name of one, or empty. For each attack it leaves the
// counters in DIR/NUMBER-1 and, for twice the size, in DIR/NUMBER-2, in the order of attacks.All.
package main

import (
	"bufio"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"strings"

	"optimist/e2e/hostile/attacks"
	"optimist/internal/app"
	"optimist/internal/config"
	"optimist/internal/embedded"
	"optimist/internal/rule"
)

func main() {
	size, err := strconv.Atoi(os.Args[2])
	if err == nil {
		err = run(os.Args[1], size, os.Args[3] == "refused", os.Args[4])
	}
	if err != nil {
		log.Fatal(err)
	}
}

// run counts. Unless refused, the engine carries out what it is asked; else it refuses all credentials. With only it counts the attack
// of that name, else all.
func run(dir string, size int, refused bool, only string) error {
	engine, err := startEngine(refused)
	if err != nil {
		return err
	}
	cfg, err := config.Parse("", []byte(attacks.Config),
		config.Overrides{Listen: "127.0.0.1:0", Admin: new("127.0.0.1:0"), Upstream: []string{engine}})
	if err != nil {
		return err
	}
	cfg.Upstream.HealthInterval = 0
	rules, err := rule.FromConfig(cfg)
	if err != nil {
		return err
	}
	a, err := app.New(app.Options{Config: cfg, Rules: rules})
	if err != nil {
		return err
	}
	defer a.Close()
	a.Serve()
	addr := strings.TrimPrefix(a.URL(), "http://")
	for i, attack := range attacks.All() {
		if only != "" && attack.Name != only {
			continue
		}
		for n := range 2 {
			to := filepath.Join(dir, fmt.Sprint(i, "-", n+1))
			if err := os.Mkdir(to, 0o700); err != nil {
				return err
			}
			if err := count(addr, engine, attack.Request(size*(n+1)), to); err != nil {
				return fmt.Errorf("%s: %w", attack.Name, err)
			}
		}
	}
	return nil
}

// startEngine is an engine in memory, or one that refuses everybody.
func startEngine(refused bool) (string, error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	if refused {
		go func() {
			_ = http.Serve(ln, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusUnauthorized)
				_, _ = io.WriteString(w, `{"error":{"type":"security_exception"},"status":401}`)
			}))
		}()
	} else {
		e := embedded.New(embedded.Options{})
		go func() { _ = e.Serve(ln) }()
	}
	return "http://" + ln.Addr().String(), nil
}

// count sends a request on a connection of its own, in front of the same document, and leaves the counters.
func count(addr, engine string, request []byte, to string) error {
	for _, method := range []string{http.MethodDelete, http.MethodPut} { // the index has no fields yet
		path, body := "/i", ""
		if method == http.MethodPut {
			path, body = "/i/_doc/1", `{"a":1,"l":[1,2,3],"n":0,"o":{"a":0}}`
		}
		req, err := http.NewRequest(method, engine+path, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			return err
		}
		_ = res.Body.Close()
	}
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if err := exchange(addr, request); err != nil {
		return err
	}
	if err := coverage.WriteCountersDir(to); err != nil {
		return err
	}
	return coverage.WriteMetaDir(to)
}

// exchange sends a request and reads its answer, whatever that is.
func exchange(addr string, request []byte) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	go func() { _, _ = c.Write(request) }() // it may be refused before its end
	method, _, _ := strings.Cut(string(request), " ")
	res, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		return err
	}
	defer func() { _ = res.Body.Close() }()
	_, err = io.Copy(io.Discard, res.Body)
	return err
}
