package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"optimist/internal/certtest"
	"optimist/internal/enginetest"
)

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
	engine := enginetest.Serve(t)
	r := serveFor(t, engine, "rules: [{name: shop, match: {index: [shop]}, merge: {paths: {/stock: sum}}}]")
	proxy := "http://" + r.data
	enginetest.Ask(t, "PUT", engine+"/shop/_doc/1", `{"stock":10}`)
	enginetest.Ask(t, "GET", proxy+"/shop/_doc/1", "", "Optimist-Session", "a")
	enginetest.Ask(t, "PUT", engine+"/shop/_doc/1", `{"stock":7}`)
	before := enginetest.Ask(t, "GET", engine+"/shop/_doc/1", "").Body
	for range 2 {
		out := printed(t, "explain", "--proxy", proxy, "--json", "PUT", "/shop/_doc/1", "--body", `{"stock":9}`, "--header", "Optimist-Session: a")
		if gjson.Get(out, "document.stock").Raw != "6" || gjson.Get(out, "outcome.field").String() != "merged;attempts=2;base=session" {
			t.Fatal(out)
		}
	}
	if out := printed(t, "explain", "--proxy", proxy, "PUT", "/shop/_doc/1", "--body", `{"stock":9}`); !strings.Contains(out, "base      ") {
		t.Error(out)
	}
	for _, patch := range []string{`{"stock":9}`, `[{"op":"replace","path":"/stock","value":9}]`} {
		for method, path := range map[string]string{"PATCH": "/shop/_doc/1", "POST": "/shop/_patch/1"} {
			if out := printed(t, "explain", "--proxy", proxy, method, path, "--body", patch); !strings.Contains(out, "outcome   200 updated") {
				t.Errorf("%s %s: %s", method, patch, out)
			}
		}
	}
	if after := enginetest.Ask(t, "GET", engine+"/shop/_doc/1", "").Body; after != before {
		t.Fatalf("it was %s and is %s", before, after)
	}
	if a := enginetest.Ask(t, "PUT", proxy+"/shop/_doc/1", `{"stock":9}`, "Optimist-Session", "a"); a.Status != 200 {
		t.Fatal(a.Body)
	}
	if body := enginetest.Ask(t, "GET", engine+"/shop/_source/1", "").Body; body != `{"stock":6}` {
		t.Error(body)
	}
}

// TestExplainAsksAsTheClientOfACertificate: the names in it are a part of who the client is.
func TestExplainAsksAsTheClientOfACertificate(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue("by-address")
	r := serveFor(t, "", fmt.Sprintf("listen_tls: {cert_file: %s, key_file: %s, client_ca_file: %s}", cert, key, a.File))
	billing, billingKey := a.Issue("billing")
	asked := []string{"explain", "--proxy", "https://" + r.data, "--ca-file", a.File, "PUT", "/shop/_doc/1", "--body", "{}"}
	for name, c := range map[string]struct {
		flags []string
		want  string
		exit  int
	}{
		"with it":         {[]string{"--cert-file", billing, "--key-file", billingKey}, "write     index of shop/1", exitOK},
		"without it":      {nil, "tls: certificate required", exitFailed},
		"half of it":      {[]string{"--cert-file", billing}, "--cert-file and --key-file belong together", exitUsage},
		"another's key":   {[]string{"--cert-file", billing, "--key-file", key}, "--cert-file and --key-file: tls: private key", exitUsage},
		"without a proxy": {[]string{"--proxy", "", "--ca-file", "", "--key-file", key}, "--key-file are for --proxy", exitUsage},
	} {
		if status, stdout, stderr := invoke(t, append(asked, c.flags...)...); status != c.exit || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: status %d, %s%s", name, status, stdout, stderr)
		}
	}
}

// TestExplainSendsNothingToWhatIsNoOptimist: an engine doesn't know the field, and would carry the write out.
func TestExplainSendsNothingToWhatIsNoOptimist(t *testing.T) {
	engine := enginetest.Serve(t)
	var out, errs bytes.Buffer
	status := run(t.Context(), []string{"explain", "--proxy", engine, "PUT", "/shop/_doc/1", "--body", `{"stock":9}`}, &out, &errs)
	if status != exitFailed || !strings.Contains(errs.String(), "is not an optimist that knows dry runs") {
		t.Errorf("status %d\n%s%s", status, &out, &errs)
	}
	if a := enginetest.Ask(t, "GET", engine+"/shop/_doc/1", ""); a.Status != 404 {
		t.Errorf("it was written: %s", a.Body)
	}
}

// TestADryRunNeverGoesElsewhere: who is named by a redirect may not be an optimist.
func TestADryRunNeverGoesElsewhere(t *testing.T) {
	engine := enginetest.Serve(t)
	elsewhere := enginetest.Between(t, engine, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"type":"invalid_dry_run"}}`)
			return true
		}
		http.Redirect(w, r, engine+r.URL.Path, http.StatusTemporaryRedirect)
		return true
	})
	var out, errs bytes.Buffer
	args := []string{"explain", "--proxy", elsewhere, "PUT", "/shop/_doc/1", "--body", `{"stock":9}`}
	if status := run(t.Context(), args, &out, &errs); status != exitFailed {
		t.Errorf("status %d\n%s%s", status, &out, &errs)
	}
	if a := enginetest.Ask(t, "GET", engine+"/shop/_doc/1", ""); a.Status != 404 {
		t.Errorf("it was written: %s", a.Body)
	}
}

// TestALockIsNotTakenInADryRun: nor is anything else that isn't a write of a document.
func TestALockIsNotTakenInADryRun(t *testing.T) {
	engine := enginetest.Serve(t)
	r := serveFor(t, engine, "locks: {path: /_lock}")
	for _, path := range []string{"/_lock/global/x", "/shop/_lock/doc/1"} {
		a := r.ask(t, "PUT", path, `{"owner":"a"}`, "Optimist-Dry-Run", "true")
		if a.Status != 400 || !strings.Contains(a.Body, "dry_run_not_available") {
			t.Errorf("%s: %d %s", path, a.Status, a.Body)
		}
	}
}
