// Package optimist builds the real program and runs it for end-to-end tests and benchmarks: on free ports, with its log kept, killed
// and started again where a test wants that. It is for tests on Unix systems only.
package optimist

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options say how the program is run.
type Options struct {
	// Upstream are the engine's nodes. None: --embedded.
	Upstream []string
	// Config is the configuration file's text, without listen, admin and upstream. Empty: no file, so that the defaults hold.
	Config string
	// Args are further arguments of serve.
	Args []string
	// Race runs a program with the race detector. It needs a C compiler, and a multiple of the processor's time.
	Race bool
	// Binary is a program that was built before. Empty: the one of this source.
	Binary string
}

// Process is a running optimist. Its methods may be called by several goroutines, but Kill, Stop and Start only by one at a time.
type Process struct {
	URL   string // of the data port, without a slash at the end
	Admin string // of the admin listener

	binary string
	args   []string
	dir    string // of its configuration and log

	mu     sync.Mutex
	cmd    *exec.Cmd
	exited chan struct{} // closed when cmd has ended
	status error         // what Wait said, once exited is closed
	killed bool          // by Kill
}

const (
	startTimeout = 20 * time.Second
	stopTimeout  = 20 * time.Second
	tick         = 5 * time.Millisecond
)

// ErrExited reports that the program ended by itself. The error that wraps it holds its log.
var ErrExited = errors.New("optimist ended")

// Run starts the program in front of an engine and returns once it is ready. dir is a folder for its files.
func Run(ctx context.Context, dir string, o Options) (*Process, error) {
	binary := o.Binary
	if binary == "" {
		var err error
		if binary, err = Binary(o.Race); err != nil {
			return nil, err
		}
	}
	data, admin, err := freeAddrs()
	if err != nil {
		return nil, err
	}
	p := &Process{URL: "http://" + data, Admin: "http://" + admin, binary: binary, dir: dir}
	p.args = []string{"serve", "--listen", data, "--admin", admin}
	if len(o.Upstream) == 0 {
		p.args = append(p.args, "--embedded")
	}
	for _, u := range o.Upstream {
		p.args = append(p.args, "--upstream", u)
	}
	if o.Config != "" {
		file := filepath.Join(dir, "optimist.yaml")
		if err := os.WriteFile(file, []byte(o.Config), 0o600); err != nil {
			return nil, err
		}
		p.args = append(p.args, "--config", file)
	}
	p.args = append(p.args, o.Args...)
	if err := p.Start(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Start runs the program again, on the same ports and with the same arguments, after Kill or Stop. It returns once it is ready.
func (p *Process) Start(ctx context.Context) error {
	log, err := os.OpenFile(filepath.Join(p.dir, "optimist.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // the program has its own
	cmd := exec.Command(p.binary, p.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0 "+os.Getenv("GORACE")) // else each end of a race binary takes a second
	cmd.SysProcAttr = Lifeline(syscall.SIGKILL)
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting optimist: %w", err)
	}
	exited := make(chan struct{})
	p.mu.Lock()
	p.cmd, p.exited, p.killed = cmd, exited, false
	p.mu.Unlock()
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.status = err
		p.mu.Unlock()
		close(exited)
	}()
	if err := p.awaitReady(ctx, exited); err != nil {
		p.Kill()
		return err
	}
	return nil
}

func (p *Process) awaitReady(ctx context.Context, exited <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	t := time.NewTicker(tick)
	defer t.Stop()
	for {
		status, body, err := p.admin(ctx, "/_optimist/ready")
		if err == nil && status == http.StatusOK {
			return nil
		}
		select {
		case <-exited:
			return fmt.Errorf("%w\n%s", ErrExited, p.Log())
		case <-ctx.Done():
			return fmt.Errorf("optimist isn't ready after %v: %d %s %w\n%s", startTimeout, status, body, err, p.Log())
		case <-t.C:
		}
	}
}

// admin asks the admin listener.
func (p *Process) admin(ctx context.Context, path string) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Admin+path, nil)
	if err != nil {
		return 0, "", err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = res.Body.Close() }() // read to its end
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), err
}

// Kill ends the program as kill -9 does and returns once it is gone.
func (p *Process) Kill() { _ = p.end(syscall.SIGKILL) }

// Stop ends the program as an interrupt from the keyboard does, and returns once it is gone. The error says that it didn't end well,
// or had to be killed.
func (p *Process) Stop() error { return p.end(syscall.SIGINT) }

func (p *Process) end(s syscall.Signal) error {
	p.mu.Lock()
	cmd, exited := p.cmd, p.exited
	select {
	case <-exited:
	default:
		p.killed = s == syscall.SIGKILL
	}
	p.mu.Unlock()
	_ = cmd.Process.Signal(s) // it may have ended already
	late := time.NewTimer(stopTimeout)
	defer late.Stop()
	select {
	case <-exited:
		return p.ended()
	case <-late.C:
		_ = cmd.Process.Kill()
		<-exited
		return fmt.Errorf("optimist had to be killed\n%s", p.Log())
	}
}

func (p *Process) ended() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.status != nil && !p.killed {
		return fmt.Errorf("%w: %w", ErrExited, p.status)
	}
	return nil
}

// PID is the program's process.
func (p *Process) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmd.Process.Pid
}

// Log is what the program has said so far, or its end where that is long.
func (p *Process) Log() string {
	b, err := os.ReadFile(filepath.Join(p.dir, "optimist.log"))
	if err != nil {
		return err.Error()
	}
	const enough = 8 << 10
	return strings.TrimSpace(string(b[max(len(b)-enough, 0):]))
}

// freeAddrs finds two loopback addresses that are free now. Somebody else may take one before it is used; the start then fails.
func freeAddrs() (string, string, error) {
	var addrs [2]string
	for i := range addrs {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return "", "", err
		}
		defer func() { _ = ln.Close() }() // both are held until both are known: they must differ
		addrs[i] = ln.Addr().String()
	}
	return addrs[0], addrs[1], nil
}
