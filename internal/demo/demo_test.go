package demo_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"optimist/internal/config"
	"optimist/internal/demo"
	"optimist/internal/enginetest"
)

// standIn starts something in optimist's place: it gets the requests after change, which reports whether it has answered itself.
func standIn(t *testing.T, change func(w http.ResponseWriter, r *http.Request) bool) demo.Optimist {
	return func(_ context.Context, c *config.Config) (string, func() error, error) {
		if c.Log.Level != "error" {
			t.Errorf("optimist's warnings would stand between the demonstration's lines: its log has the level %s", c.Log.Level)
		}
		return enginetest.Between(t, c.Upstream.URLs[0], change), func() error { return nil }, nil
	}
}

func forward(http.ResponseWriter, *http.Request) bool { return false }

// swallow answers writes as an engine does, and doesn't write them.
func swallow(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodPut {
		return false
	}
	_, _ = w.Write([]byte(`{"result":"updated","_seq_no":1,"_primary_term":1}`))
	return true
}

func TestDemoFailsIfAnythingWasLostThroughOptimist(t *testing.T) {
	var out strings.Builder
	err := demo.Run(t.Context(), demo.Options{Optimist: standIn(t, swallow), Once: true, Workers: 2, Rounds: 3}, &out)
	if !errors.Is(err, demo.ErrLost) {
		t.Errorf("error is %v\n%s", err, &out)
	}
}

func TestDemoFailsIfNothingWasAcknowledged(t *testing.T) {
	var out strings.Builder
	refuse := func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "no", http.StatusForbidden)
		return true
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	refuseWrites := func(w http.ResponseWriter, r *http.Request) bool { return r.Method == http.MethodPut && refuse(w, r) }
	err := demo.Run(ctx, demo.Options{Optimist: standIn(t, refuseWrites), Once: true, Workers: 2, Rounds: 3}, &out)
	if !errors.Is(err, demo.ErrLost) || !strings.Contains(err.Error(), "no change was acknowledged") {
		t.Errorf("error is %v\n%s", err, &out)
	}
}

func TestDemoSaysThatItsEngineIsInMemoryAndWhatItConfigures(t *testing.T) {
	var out strings.Builder
	if err := demo.Run(t.Context(), demo.Options{Optimist: standIn(t, forward), Once: true, Workers: 1, Rounds: 3}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"The engine is in memory: its data is lost at the end.", "/stock: sum", "own fields", "one counter", "a list", "rounds/s"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q isn't in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "curl") {
		t.Errorf("it invites to try what has ended:\n%s", &out)
	}
}

// watched is an output that tells when a text has come.
type watched struct {
	strings.Builder
	until string
	came  context.CancelFunc
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.Builder.Write(p)
	if strings.Contains(w.String(), w.until) {
		w.came()
	}
	return n, err
}

func TestCommandsToTryWorkAsTheyArePrinted(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl isn't installed")
	}
	came, tell := context.WithCancel(t.Context())
	out := &watched{until: "Interrupt", came: tell}
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- demo.Run(ctx, demo.Options{Optimist: standIn(t, forward), Workers: 1, Rounds: 1}, out)
	}()
	select {
	case <-came.Done():
	case err := <-done:
		t.Fatalf("ended by itself: %v\n%s", err, out)
	}
	lines := regexp.MustCompile(`(?m)^  (?:for|curl) .*$`).FindAllString(out.String(), -1)
	if len(lines) != 3 {
		t.Fatalf("%d lines to try in\n%s", len(lines), out)
	}
	for i, want := range []string{`"found":true`, "HTTP/1.1 200", `"price":25`} {
		got, err := exec.CommandContext(t.Context(), "sh", "-c", lines[i]).CombinedOutput()
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s\n%v: %s", lines[i], err, got)
		}
	}
	end()
	if err := <-done; err != nil {
		t.Errorf("interrupted: %v", err)
	}
}

// TestAnInterruptedDemoLeavesNothingBehind: at whichever request it is interrupted, the index is gone afterwards, and the end isn't taken
// for a success.
func TestAnInterruptedDemoLeavesNothingBehind(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		for _, path := range []string{"/", "/demo-", "/_doc/"} {
			engine := enginetest.Serve(t)
			ctx, interrupt := context.WithCancel(t.Context())
			front := enginetest.Between(t, engine, func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Method == method && strings.Contains(r.URL.Path, path) {
					interrupt()
				}
				return false
			})
			o := demo.Options{Optimist: standIn(t, forward), Upstream: front, Once: true, Workers: 1, Rounds: 1}
			if err := demo.Run(ctx, o, io.Discard); !errors.Is(err, demo.ErrInterrupted) {
				t.Errorf("interrupted at %s %s it ends with %v", method, path, err)
			}
			if left := enginetest.Ask(t, "GET", engine+"/_cat/indices?h=index", ""); left.Body != "" {
				t.Errorf("interrupted at %s %s it leaves %s", method, path, left.Body)
			}
			interrupt()
		}
	}
}
