package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"optimist/e2e/engine"
)

type numbers struct {
	SeqNo       int64 `json:"_seq_no"`
	PrimaryTerm int64 `json:"_primary_term"`
}

// send does one request that has to answer with the status, and decodes the answer.
func send(t *testing.T, e *engine.Engine, status int, method, target, body string) numbers {
	t.Helper()
	a, err := e.Do(t.Context(), method, target, body)
	if err != nil {
		t.Fatal(err)
	}
	if a.Status != status {
		t.Fatalf("%s %s: %d, want %d: %s", method, target, a.Status, status, a.Body)
	}
	var n numbers
	if err := json.Unmarshal(a.Body, &n); err != nil {
		t.Fatalf("%s %s: %s: %v", method, target, a.Body, err)
	}
	return n
}

func TestEveryEngineSaysItsVersion(t *testing.T) {
	t.Parallel()
	want := map[engine.Kind]string{engine.OpenSearch38: "3.8.0", engine.ES7: "7.10.2", engine.ES9: "9.5.3"}
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		if e.Version != want[e.Kind] {
			t.Errorf("version %s, want %s", e.Version, want[e.Kind])
		}
		if e.Cluster == "" || e.Name == "" {
			t.Errorf("cluster %q, node %q", e.Cluster, e.Name)
		}
	})
}

func TestGuardedWriteAfterAnotherConflicts(t *testing.T) {
	t.Parallel()
	engine.Each(t, engine.All(), func(t *testing.T, e *engine.Engine) {
		doc := "/" + e.Index(t) + "/_doc/1"
		first := send(t, e, http.StatusCreated, http.MethodPut, doc, `{"n":1}`)
		guard := fmt.Sprintf("?if_seq_no=%d&if_primary_term=%d", first.SeqNo, first.PrimaryTerm)
		send(t, e, http.StatusOK, http.MethodPut, doc+guard, `{"n":2}`)
		send(t, e, http.StatusConflict, http.MethodPut, doc+guard, `{"n":3}`)
	})
}

func TestScriptsByQueryAndPipelinesRun(t *testing.T) {
	t.Parallel()
	engine.Each(t, engine.Scripted(), func(t *testing.T, e *engine.Engine) {
		index := e.Index(t)
		pipeline := "/_ingest/pipeline/" + index
		send(t, e, http.StatusOK, http.MethodPut, pipeline, `{"processors":[{"set":{"field":"piped","value":true}}]}`)
		t.Cleanup(func() { _, _ = e.Do(context.Background(), http.MethodDelete, pipeline, "") })
		send(t, e, http.StatusCreated, http.MethodPut, "/"+index+"/_doc/1?refresh=true&pipeline="+index, `{"n":1}`)
		send(t, e, http.StatusOK, http.MethodPost, "/"+index+"/_update/1?refresh=true", `{"script":"ctx._source.n += 1"}`)
		send(t, e, http.StatusOK, http.MethodPost, "/"+index+"/_update_by_query", `{"script":"ctx._source.n *= 10"}`)
		a, err := e.Do(t.Context(), http.MethodGet, "/"+index+"/_source/1", "")
		if err != nil {
			t.Fatal(err)
		}
		if got := string(a.Body); got != `{"piped":true,"n":20}` && got != `{"n":20,"piped":true}` {
			t.Errorf("document is %s", got)
		}
	})
}

func TestElasticsearch9CompressesWithTheNativeLibrary(t *testing.T) {
	t.Parallel()
	e := engine.Shared(t, engine.ES9)
	index := e.Index(t)
	send(t, e, http.StatusOK, http.MethodPut, "/"+index, `{"settings":{"index.codec":"best_compression"}}`)
	send(t, e, http.StatusCreated, http.MethodPut, "/"+index+"/_doc/1?refresh=true", `{"n":1}`)
	send(t, e, http.StatusOK, http.MethodGet, "/"+index+"/_search", `{"query":{"match_all":{}}}`)
}

func TestStopEndsTheProcessAndRemovesItsFolder(t *testing.T) {
	t.Parallel()
	e, err := engine.Start(t.Context(), engine.ES7, engine.Options{Heap: "256m"})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(); err != nil {
		t.Fatal(err)
	}
	expectGone(t, e.PID(), filepath.Dir(e.Log()))
	if err := e.Stop(); err != nil {
		t.Errorf("second Stop: %v", err)
	}
}

func TestRefusedSettingIsAnErrorWithTheLog(t *testing.T) {
	t.Parallel()
	_, err := engine.Start(t.Context(), engine.ES7, engine.Options{Heap: "256m", Settings: map[string]string{"no.such.setting": "1"}})
	if !errors.Is(err, engine.ErrStart) || !strings.Contains(err.Error(), "unknown setting [no.such.setting]") {
		t.Errorf("error is %v", err)
	}
}

// orphan makes this test binary start an engine and wait to be killed, see TestEngineEndsWithAKilledTestProcess.
const orphan = "OPTIMIST_E2E_ORPHAN"

func TestEngineEndsWithAKilledTestProcess(t *testing.T) {
	t.Parallel()
	if os.Getenv(orphan) != "" {
		e, err := engine.Start(t.Context(), engine.ES7, engine.Options{Heap: "256m"})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("started %d %s\n", e.PID(), filepath.Dir(e.Log()))
		select {} // killed here
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), orphan+"=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var home string
	lines := bufio.NewScanner(out)
	for home == "" && lines.Scan() {
		_, _ = fmt.Sscanf(lines.Text(), "started %d %s", &pid, &home) // other lines are none of ours
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait() // killed, as it was to be
	if home == "" {
		t.Fatal("the process said nothing of its engine")
	}
	expectGone(t, pid, home)
}

// expectGone waits until neither the process nor the folder is there any more.
func expectGone(t *testing.T, pid int, home string) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(time.Minute)
	for {
		dead := errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
		_, err := os.Stat(home)
		if dead && errors.Is(err, fs.ErrNotExist) {
			return
		}
		select {
		case <-tick.C:
		case <-timeout:
			t.Fatalf("process %d gone: %t, folder %s: %v", pid, dead, home, err)
		}
	}
}
