package hostile

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"

	"optimist/internal/embedded"
)

// role is the variable that makes this program something else than the tests: one of the roles, as name=argument.
const role = "HOSTILE_ROLE"

// roles are what this program is besides the tests. Each has the role's argument, calls ready when others may begin, and ends with ctx.
// What it returns is printed.
var roles = map[string]func(ctx context.Context, argument string, ready func(said string)) (result string, err error){
	"forwarder": forward,
	"engine":    serveEngine,
	"attackers": attackFrom,
}

func TestMain(m *testing.M) {
	name, argument, given := strings.Cut(os.Getenv(role), "=")
	if !given {
		os.Exit(m.Run())
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // the tests have ended, or want this to end
		cancel()
	}()
	result, err := roles[name](ctx, argument, func(said string) { fmt.Println(said) })
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(result)
}

// forward copies bytes between its clients and an address. It says on which port.
func forward(ctx context.Context, to string, ready func(string)) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	ready("http://" + l.Addr().String())
	for {
		client, err := l.Accept()
		if err != nil {
			return "", nil //nolint:nilerr // the end closes the listener
		}
		go func() {
			defer func() { _ = client.Close() }()
			engine, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer func() { _ = engine.Close() }()
			go func() { _, _ = io.Copy(engine, client) }()
			_, _ = io.Copy(client, engine)
		}()
	}
}

// refusing is the engine's argument with which it refuses requests without credentials.
const refusing = "refusing"

// serveEngine is an engine in memory. It says where.
func serveEngine(ctx context.Context, argument string, ready func(string)) (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	at := l.Addr()
	go func() { _ = embedded.New(embedded.Options{}).Serve(l) }()
	if argument == refusing {
		if at, err = serveDoorkeeper(at); err != nil {
			return "", err
		}
	}
	ready("http://" + at.String())
	<-ctx.Done() // who is still connected loses the connection
	return "", nil
}

// serveDoorkeeper lets requests with credentials through to an engine, and answers all others as an engine with security does. It returns
// where.
func serveDoorkeeper(engine net.Addr) (net.Addr, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	forward := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: engine.String()})
	forward.Transport = &http.Transport{MaxIdleConnsPerHost: 100}
	go func() {
		_ = http.Serve(l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "" {
				forward.ServeHTTP(w, r)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Www-Authenticate", `Basic realm="security"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":{"type":"security_exception","reason":"missing authentication credentials"},"status":401}`)
		}))
	}()
	return l.Addr(), nil
}

// player is a process with a role.
type player struct {
	t      testing.TB
	cmd    *exec.Cmd
	input  io.Closer
	output *bufio.Reader
}

// play starts a process with a role, which ends with the test, and returns it with what it says once it is ready. The process is started by
// a command, if there is one.
func play(t testing.TB, name, argument string, command ...string) (p *player, said string) {
	t.Helper()
	command = append(command, os.Args[0])
	p = &player{t: t, cmd: exec.Command(command[0], command[1:]...)}
	p.cmd.Env = append(os.Environ(), role+"="+name+"="+argument)
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.input, p.output = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = p.cmd.Wait()
	})
	return p, p.line()
}

// line is the next line that the process says.
func (p *player) line() string {
	p.t.Helper()
	line, err := p.output.ReadString('\n')
	if err != nil {
		p.t.Fatalf("%v of %v", err, p.cmd.Args)
	}
	return strings.TrimSpace(line)
}

// end ends the process, and returns its result.
func (p *player) end() string {
	p.t.Helper()
	_ = p.input.Close()
	return p.line()
}
