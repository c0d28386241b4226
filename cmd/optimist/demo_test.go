package main

import (
	"context"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"optimist/internal/enginetest"
)

// TestTheDemonstrationLosesNothing: the first of the two commands that the README begins with, on its own engine and on another
// one.
func TestTheDemonstrationLosesNothing(t *testing.T) {
	engine := serveFor(t, "", "mode: 'off'") // stands for a cluster: whatever it is sent, its engine gets
	for name, flags := range map[string][]string{"in memory": nil, "on another engine": {"--upstream", "http://" + engine.data}} {
		t.Run(name, func(t *testing.T) {
			var out, errs strings.Builder
			args := append([]string{"demo", "--once", "--workers", "8", "--rounds", "20"}, flags...)
			if status := run(t.Context(), args, &out, &errs); status != exitOK {
				t.Fatalf("status %d\n%s%s", status, &out, &errs)
			}
			through := regexp.MustCompile(`(?m)^ +through optimist +160 +160 +0 +0 +\d+$`).FindAllString(out.String(), -1)
			direct := regexp.MustCompile(`(?m)^  [a-z].* without optimist +160 .*$`).FindAllString(out.String(), -1)
			if len(through) != 3 || len(direct) != 3 {
				t.Errorf("the table isn't that of three shapes, all of whose changes are there:\n%s", &out)
			}
			if strings.Contains(out.String(), "The engine is in memory: ") != (flags == nil) {
				t.Errorf("it doesn't say where it was:\n%s", &out)
			}
		})
	}
	if left := engine.ask(t, "GET", "/_cat/indices?h=index", ""); left.Body != "" {
		t.Errorf("left behind is %s", left.Body)
	}
}

func TestTheDemonstrationEndsWhenInterrupted(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	out := new(enginetest.Log)
	status := make(chan int, 1)
	go func() { status <- run(ctx, []string{"demo", "--workers", "1", "--rounds", "1"}, out, io.Discard) }()
	out.Wait(t, `(?s)curl.*curl.*curl`)
	interrupt()
	if got := <-status; got != exitOK {
		t.Errorf("status %d", got)
	}
}

// TestAnOutputThatNobodyReadsLeavesNothingBehind: as in optimist demo --upstream URL | head -2.
func TestAnOutputThatNobodyReadsLeavesNothingBehind(t *testing.T) {
	engine := serveFor(t, "", "mode: 'off'")
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	var errs strings.Builder
	args := []string{"demo", "--once", "--upstream", "http://" + engine.data}
	if status := run(t.Context(), args, w, &errs); status != exitFailed || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("status %d, %s", status, &errs)
	}
	if left := engine.ask(t, "GET", "/_cat/indices?h=index", ""); left.Body != "" {
		t.Errorf("left behind is %s", left.Body)
	}
}
