package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"optimist/e2e/engine"
)

func TestCommandLine(t *testing.T) {
	t.Parallel()
	r, err := parse([]string{"-heap", "1g", "elasticsearch7", "--", "go", "test", "--", "-v"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(r.kinds, []engine.Kind{engine.ES7}) || r.options.Heap != "1g" ||
		!slices.Equal(r.command, []string{"go", "test", "--", "-v"}) {
		t.Errorf("parsed as %+v", r)
	}
	if r, err = parse(nil, io.Discard); err != nil || !slices.Equal(r.kinds, engine.All()) {
		t.Errorf("nothing is parsed as %+v (%v)", r, err)
	}
	for _, wrong := range [][]string{{"elasticsearch8"}, {"-no-such-flag"}} {
		if code, err := run(t.Context(), wrong, io.Discard, io.Discard); code != 2 || err == nil {
			t.Errorf("%q: status %d, error %v", wrong, code, err)
		}
	}
}

func TestCommandGetsTheVariablesAndItsStatusIsOurs(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	code, err := execute(t.Context(), []string{"sh", "-c", "echo $WHERE; exit 7"}, []string{"WHERE=here"}, &out, &out)
	if code != 7 || err != nil || out.String() != "here\n" {
		t.Errorf("status %d, error %v, output %q", code, err, out.String())
	}
	if code, err = execute(t.Context(), []string{"no-such-command"}, nil, &out, &out); code != 1 || err == nil {
		t.Errorf("status %d, error %v", code, err)
	}
}

// lines hands on what is written to it.
type lines chan string

func (l lines) Write(p []byte) (int, error) {
	l <- strings.TrimSpace(string(p))
	return len(p), nil
}

func TestWhatTheCommandStartedEndsWithIt(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	said := make(lines, 1)
	ended := make(chan error)
	go func() {
		_, err := execute(ctx, []string{"sh", "-c", "sleep 1000 & echo $!; wait"}, nil, said, io.Discard)
		ended <- err
	}()
	pid, err := strconv.Atoi(<-said)
	if err != nil {
		t.Fatal(err)
	}
	interrupted := errors.New("interrupted")
	cancel(interrupted)
	select {
	case err := <-ended:
		if !errors.Is(err, interrupted) {
			t.Errorf("error %v", err)
		}
	case <-time.After(time.Minute):
		t.Fatal("it did not end")
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		select {
		case <-tick.C: // dead, but nobody has asked yet what it died of
		case <-timeout:
			t.Fatalf("process %d is still there", pid)
		}
	}
}
