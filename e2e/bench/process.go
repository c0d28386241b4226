package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"optimist/e2e/optimist"
)

// process is one that an experiment started: it is ended by its own id.
type process struct {
	addr string // where it listens
	pid  int
	end  func()
}

// startSelf starts this program with other arguments and waits for the address that it prints.
func startSelf(ctx context.Context, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	prepare(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return nil, fmt.Errorf("%s didn't say where it listens: %w", args[0], err)
	}
	return running(cmd, strings.TrimSpace(line)), nil
}

// prepare has a command end with its context, or with this process, however that ends. A server that stayed would hold the pipe of
// go test, which waits for a minute then. SIGTERM, because nginx ends its workers with it.
func prepare(cmd *exec.Cmd) {
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	cmd.SysProcAttr = optimist.Lifeline(syscall.SIGTERM)
}

func running(cmd *exec.Cmd, addr string) *process {
	return &process{addr: addr, pid: cmd.Process.Pid, end: func() { end(cmd) }}
}

// startCommand starts another program that is known to listen on addr.
func startCommand(ctx context.Context, addr, name string, args ...string) (*process, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	prepare(cmd)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := running(cmd, addr)
	if err := waitForPort(ctx, addr, 10*time.Second); err != nil {
		p.end()
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// end asks a process to go and waits for it; one that stays is killed.
func end(cmd *exec.Cmd) {
	_ = cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan struct{})
	go func() { _ = cmd.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(5 * time.Second):
		_ = cmd.Process.Kill()
		<-done
	}
}

// cpu is the processor time that the process and its descendants have used, user and system.
func (p *process) cpu() (time.Duration, error) {
	var total time.Duration
	for _, pid := range append(descendants(p.pid), p.pid) {
		t, err := cpuOf(pid)
		if err != nil {
			return 0, err
		}
		total += t
	}
	return total, nil
}

// cpuOf sums the run time of a process's threads, in nanoseconds, as the scheduler counts it; /proc/PID/stat would give
// it in ticks of 10 ms.
func cpuOf(pid int) (time.Duration, error) {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil {
		return 0, err
	}
	var total time.Duration
	for _, task := range tasks {
		b, err := os.ReadFile(task)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				continue // the thread ended in between
			}
			return 0, err
		}
		ns, err := strconv.ParseInt(strings.Fields(string(b))[0], 10, 64)
		if err != nil {
			return 0, err
		}
		total += time.Duration(ns)
	}
	if total == 0 {
		return 0, fmt.Errorf("no processor time found for process %d", pid)
	}
	return total, nil
}

// rss is the resident memory of the process and its descendants, in bytes.
func (p *process) rss() int64 {
	var total int64
	for _, pid := range append(descendants(p.pid), p.pid) {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
		if err != nil {
			continue
		}
		if f := strings.Fields(string(b)); len(f) > 1 {
			pages, _ := strconv.ParseInt(f[1], 10, 64)
			total += pages * int64(os.Getpagesize())
		}
	}
	return total
}

// descendants lists the children of a process, theirs included: nginx works in a child of the process started.
func descendants(pid int) []int {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	var all []int
	for _, f := range files {
		b, _ := os.ReadFile(f)
		for _, s := range strings.Fields(string(b)) {
			if child, err := strconv.Atoi(s); err == nil {
				all = append(append(all, child), descendants(child)...)
			}
		}
	}
	return all
}
