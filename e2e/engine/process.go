package engine

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// stopTimeout is how long a node may take to close after SIGTERM; then it is killed.
const stopTimeout = 10 * time.Second

// process is a node's JVM, in a process group of its own, so that Ctrl-C at a terminal reaches only the tests, which then stop
// it.
type process struct {
	cmd     *exec.Cmd
	home    string // the node's folder
	log     string // path of its log
	address chan string
	done    chan struct{} // closed when the process is gone
	stop    sync.Mutex    // held while it is being ended
}

// launch starts the command. Its standard input stays open until it or this process ends: see java/lifeline.
func launch(command []string, home string) (*process, error) {
	p := &process{
		home: home, log: filepath.Join(home, "engine.log"),
		address: make(chan string, 1), done: make(chan struct{}),
	}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	// The process outlives the context of its start, hence no CommandContext.
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Dir = home
	p.cmd.Stderr = log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	_, err = p.cmd.StdinPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, log.Close())
	}
	go p.follow(out, log)
	return p, nil
}

// follow takes the address from the first line, and the end of the process after that.
func (p *process) follow(out io.Reader, log *os.File) {
	r := bufio.NewReader(out)
	if line, err := r.ReadString('\n'); err == nil {
		p.address <- strings.TrimSpace(line)
	}
	_, _ = io.Copy(log, r) // to the end, whatever is written: a full pipe would stop the engine
	_ = p.cmd.Wait()       // killed or closed by us, or the log says why it ended
	_ = log.Close()
	close(p.done)
}

// ready waits for the address that the node listens on.
func (p *process) ready(ctx context.Context) (string, error) {
	select {
	case a := <-p.address:
		return a, nil
	case <-p.done:
		return "", fmt.Errorf("it ended: %s", p.cmd.ProcessState)
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// terminate asks the process to close, and kills it where that takes too long.
func (p *process) terminate() {
	if !p.end(syscall.SIGTERM, stopTimeout) {
		p.kill()
	}
}

func (p *process) kill() { p.end(syscall.SIGKILL, stopTimeout) }

// end sends the signal to the whole process group and reports whether the process went within the time.
func (p *process) end(signal syscall.Signal, within time.Duration) bool {
	p.stop.Lock()
	defer p.stop.Unlock()
	select {
	case <-p.done:
		return true // its number may belong to another process by now
	default:
	}
	_ = syscall.Kill(-p.cmd.Process.Pid, signal) // gone already: done says so
	timer := time.NewTimer(within)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// logTail is the end of the log, for errors.
func (p *process) logTail() string {
	const lines = 30
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
