package main

import (
	"bytes"
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
