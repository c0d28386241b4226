package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"optimist/internal/app"
	"optimist/internal/config"
	"optimist/internal/enginetest"
	"optimist/internal/rule"
)

// pickyEngine answers optimist's own credentials with a status of choice, and everybody else with 200.
type pickyEngine struct {
	url, secret string
	status      atomic.Int32
}

func newPickyEngine(t *testing.T) *pickyEngine {
	t.Helper()
	e := &pickyEngine{secret: filepath.Join(t.TempDir(), "secret")}
	e.url = enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
		user, _, _ := r.BasicAuth()
		status := int(e.status.Load())
		if user != "optimist" || status == http.StatusOK {
			return false
		}
		w.WriteHeader(status)
		return true
	})
	if err := os.WriteFile(e.secret, []byte("optimist:secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	e.status.Store(http.StatusUnauthorized)
	return e
}

// upstream is the configuration with the engine's credentials and a health interval.
func (e *pickyEngine) upstream(interval string) string {
	return "upstream: {health_interval: " + interval + ", auth: {basic_file: " + e.secret + "}}"
}

// With credentials that the engine refuses optimist can't ask what an index is, and each conflict is a 409.
func TestCredentialsThatTheEngineRefusesAreNotReady(t *testing.T) {
	e := newPickyEngine(t)
	r := serveFor(t, e.url, e.upstream("10ms"))
	for i, refusal := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		r.log.Wait(t, `level=ERROR msg="the engine refuses optimist's own credentials \(upstream.auth\).*status=`+strconv.Itoa(refusal))
		if i == 0 && r.log.Contains("the engine answers") {
			t.Error("an engine that refuses the credentials is said to answer")
		}
		if got, body := r.get(t, "/_optimist/ready"); got != 503 || !strings.Contains(body, "upstream.auth") || !strings.Contains(body, e.url) {
			t.Errorf("ready is %d %s", got, body)
		}
		_, metrics := r.get(t, "/metrics")
		for _, want := range []string{"optimist_ready 0", `optimist_upstream_auth_refused{node="` + e.url + `"} 1`, "optimist_upstream_up{node=\"" + e.url + `"} 1`} {
			if !strings.Contains(metrics, want) {
				t.Errorf("the metrics lack %s", want)
			}
		}
		if got := r.ask(t, "GET", "/", "").Status; got != 200 {
			t.Errorf("a client with other credentials is answered %d", got)
		}
		e.status.Store(http.StatusOK)
		r.log.Wait(t, fmt.Sprintf("(?s)(the engine accepts optimist's own credentials.*){%d}", i+1))
		if got, body := r.get(t, "/_optimist/ready"); got != 200 {
			t.Errorf("ready is %d %s", got, body)
		}
		e.status.Store(http.StatusForbidden)
	}
}

// Without credentials of its own, optimist asks with those of clients, which seldom may ask.
func TestAnEngineThatAsksForCredentialsIsToldOf(t *testing.T) {
	r := serveFor(t, enginetest.Between(t, enginetest.Serve(t), func(w http.ResponseWriter, r *http.Request) bool {
		_, _, known := r.BasicAuth()
		if !known {
			w.WriteHeader(http.StatusUnauthorized)
		}
		return !known
	}), "")
	r.log.Wait(t, `level=WARN msg="the engine asks for credentials, and upstream.auth names none.*status=401`)
	if got, body := r.get(t, "/_optimist/ready"); got != 200 {
		t.Errorf("ready is %d %s", got, body)
	}
}

// Without health checks only the first question shows it. The question is asked again until the credentials are accepted.
func TestRefusedCredentialsAreTriedAgainWithoutHealthChecks(t *testing.T) {
	e := newPickyEngine(t)
	cfg, err := config.Parse("", []byte(e.upstream("0s")), config.Overrides{Listen: "127.0.0.1:0", Admin: new("127.0.0.1:0"), Upstream: []string{e.url}})
	if err != nil {
		t.Fatal(err)
	}
	rules, err := rule.FromConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	log := new(enginetest.Log)
	s, err := app.New(app.Options{Config: cfg, Rules: rules, Log: slog.New(slog.NewTextHandler(log, nil)), GreetAgain: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Serve()
	log.Wait(t, "the engine refuses optimist's own credentials")
	if err := s.Ready(); !errors.Is(err, app.ErrCredentials) {
		t.Errorf("readiness: %v", err)
	}
	e.status.Store(http.StatusOK)
	log.Wait(t, "the engine answers")
	if err := s.Ready(); err != nil {
		t.Errorf("readiness: %v", err)
	}
}

// A shell's <(…) is a pipe, which can be read once.
func TestDoctorReadsAFileOfCredentialsOnce(t *testing.T) {
	e := newPickyEngine(t)
	e.status.Store(http.StatusOK)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = read.Close() }()
	name := fmt.Sprintf("/dev/fd/%d", read.Fd())
	if _, err := os.Stat(name); err != nil {
		t.Skip("this system has no names for open files")
	}
	_, err = write.WriteString("optimist:secret\n")
	if err := errors.Join(err, write.Close()); err != nil {
		t.Fatal(err)
	}
	if status, stdout, stderr := invoke(t, "doctor", "--upstream", e.url, "--basic-file", name); status != exitOK {
		t.Errorf("status %d\n%s%s", status, stdout, stderr)
	}
}

// A file that is missing isn't a finding about the cluster.
func TestDoctorWithAFileThatCannotBeReadIsNoVerdict(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for _, flag := range []string{"--ca-file", "--basic-file", "--api-key-file", "--bearer-file"} {
		if status, _, stderr := invoke(t, "doctor", "--upstream", "https://127.0.0.1:1", flag, missing); status != exitUsage || !strings.Contains(stderr, missing) {
			t.Errorf("%s: status %d\n%s", flag, status, stderr)
		}
	}
}
