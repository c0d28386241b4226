package main

import (
	"bytes"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
)

// TestMain is the program itself where an experiment starts one of its own processes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && strings.HasPrefix(os.Args[1], "serve-") {
		main()
		return
	}
	os.Exit(m.Run())
}

// An experiment fails if an answer isn't what it has to be: a write that has to be guarded, say, and isn't. So each that needs no engine
// runs once, for a moment, and what it measures doesn't matter.
func TestExperimentsMeasureWhatTheySay(t *testing.T) {
	for _, args := range [][]string{
		{"passthrough", "-only", "optimist", "-rounds", "1", "-for", "20ms", "-clients", "2"},
		{"guarded", "-only", "optimist serve", "-rounds", "1", "-for", "20ms", "-clients", "2"},
		{"bulk", "-engine", "embedded", "-pairs", "2", "-items", "20"},
	} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if err := run(t.Context(), args, &out); err != nil {
				t.Fatalf("%v\n%s", err, out.String())
			}
			if !strings.Contains(out.String(), "optimist") {
				t.Errorf("no figures of optimist:\n%s", out.String())
			}
		})
	}
}

// On a busy machine the time is over before the clients are connected.
func TestALoadWithoutTimeMeasuresOneCycle(t *testing.T) {
	l, load := loadOn(t)
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			defer c.Close() // at the end: the answer may not have been read yet
			_, _ = c.Write(stubMessage(stubBody))
		}
	}()
	if s, err := load.run(t.Context(), 0); s.requests != 2 || err != nil {
		t.Errorf("%d requests, error %v", s.requests, err)
	}
}

// go test would end the test in its place, and leave the processes.
func TestAProxyThatHangsEndsTheExperiment(t *testing.T) {
	_, load := loadOn(t)
	if _, err := load.run(t.Context(), -patience); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}

// loadOn is a listener that nobody serves, and a load of two clients on it.
func loadOn(t *testing.T) (net.Listener, *steps) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, &steps{addr: l.Addr().String(), clients: 2, opening: func(int) []step { return nil },
		cycle: func(client int) []step { return smallPut("h", client, false) }}
}
