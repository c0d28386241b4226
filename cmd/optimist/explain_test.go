package main

import (
	"bytes"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/embedded"
)

// engineFor serves an engine in memory and returns its URL.
func engineFor(t *testing.T) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := embedded.New(embedded.Options{})
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Serve(ln) }()
	t.Cleanup(func() { _ = e.Close(); <-done })
	return "http://" + ln.Addr().String()
}

// send makes a request and returns the answer's status and body.
func send(t *testing.T, method, url, body string, fields ...string) (int, string) {
	t.Helper()
	a := exchange(t, method, url, body, fields...)
	return a.status, a.text
}

// exchange makes a request and reads its answer; fields are name, value, name, value.
func exchange(t *testing.T, method, url, body string, fields ...string) told {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(fields); i += 2 {
		req.Header.Set(fields[i], fields[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var out bytes.Buffer
	if _, err := out.ReadFrom(res.Body); err != nil {
		t.Fatal(err)
	}
	return told{res.StatusCode, res.Header.Get("Optimist-Outcome"), out.String()}
}

// printed is what a command prints that ends well.
func printed(t *testing.T, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if status := run(t.Context(), args, &out, &errs); status != exitOK {
		t.Fatalf("status %d\n%s%s", status, &out, &errs)
	}
	return out.String()
}

// TestExplainAsksARunningOptimist: about the documents that it has and the bases of its sessions; it changes neither.
func TestExplainAsksARunningOptimist(t *testing.T) {
	engine := engineFor(t)
	r := serveFor(t, engine, "rules: [{name: shop, match: {index: [shop]}, merge: {paths: {/stock: sum}}}]")
	proxy := "http://" + r.data
	send(t, "PUT", engine+"/shop/_doc/1", `{"stock":10}`)
	send(t, "GET", proxy+"/shop/_doc/1", "", "Optimist-Session", "a")
	send(t, "PUT", engine+"/shop/_doc/1", `{"stock":7}`)
	_, before := send(t, "GET", engine+"/shop/_doc/1", "")
	for range 2 {
		out := printed(t, "explain", "--proxy", proxy, "--json", "PUT", "/shop/_doc/1", "--body", `{"stock":9}`, "--header", "Optimist-Session: a")
		if gjson.Get(out, "document.stock").Raw != "6" || gjson.Get(out, "outcome.field").String() != "merged;attempts=2;base=session" {
			t.Fatal(out)
		}
	}
	if out := printed(t, "explain", "--proxy", proxy, "PUT", "/shop/_doc/1", "--body", `{"stock":9}`); !strings.Contains(out, "base      ") {
		t.Error(out)
	}
	if _, after := send(t, "GET", engine+"/shop/_doc/1", ""); after != before {
		t.Fatalf("it was %s and is %s", before, after)
	}
	if status, body := send(t, "PUT", proxy+"/shop/_doc/1", `{"stock":9}`, "Optimist-Session", "a"); status != 200 {
		t.Fatal(body)
	}
	if _, body := send(t, "GET", engine+"/shop/_source/1", ""); body != `{"stock":6}` {
		t.Error(body)
	}
}

// TestExplainSendsNothingToWhatIsNoOptimist: an engine doesn't know the field, and would carry the write out.
func TestExplainSendsNothingToWhatIsNoOptimist(t *testing.T) {
	engine := engineFor(t)
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"explain", "--proxy", engine, "PUT", "/shop/_doc/1", "--body", `{"stock":9}`}, &out, &errs)
	if status != exitFailed || !strings.Contains(errs.String(), "is no optimist that knows dry runs") {
		t.Errorf("status %d\n%s%s", status, &out, &errs)
	}
	if status, body := send(t, "GET", engine+"/shop/_doc/1", ""); status != 404 {
		t.Errorf("it was written: %s", body)
	}
}

// TestADryRunNeverGoesElsewhere: who is named by a redirect may not be an optimist.
func TestADryRunNeverGoesElsewhere(t *testing.T) {
	engine := engineFor(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = w.Write([]byte(`{"error":{"type":"invalid_dry_run"}}`))
			return
		}
		http.Redirect(w, r, engine+r.URL.Path, http.StatusTemporaryRedirect)
	})}
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = s.Close() })
	var out, errs bytes.Buffer
	args := []string{"explain", "--proxy", "http://" + ln.Addr().String(), "PUT", "/shop/_doc/1", "--body", `{"stock":9}`}
	if status := run(t.Context(), args, &out, &errs); status != exitFailed {
		t.Errorf("status %d\n%s%s", status, &out, &errs)
	}
	if status, body := send(t, "GET", engine+"/shop/_doc/1", ""); status != 404 {
		t.Errorf("it was written: %s", body)
	}
}

// TestALockIsNotTakenInADryRun: nor is anything else that isn't a write of a document.
func TestALockIsNotTakenInADryRun(t *testing.T) {
	engine := engineFor(t)
	r := serveFor(t, engine, "locks: {path: /_lock}")
	for _, path := range []string{"/_lock/global/x", "/shop/_lock/doc/1"} {
		status, body := send(t, "PUT", "http://"+r.data+path, `{"owner":"a"}`, "Optimist-Dry-Run", "true")
		if status != 400 || !strings.Contains(body, "dry_run_not_available") {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
}
