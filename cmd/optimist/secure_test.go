package main

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"optimist/internal/certtest"
)

const adminToken = "an-operators-token"

func writeFile(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// invoke runs the program and returns what it prints.
func invoke(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	status = run(t.Context(), args, &out, &errs)
	return status, out.String(), errs.String()
}

func TestCommandsUseTokenAndCertificate(t *testing.T) {
	a, others := certtest.New(t), certtest.New(t)
	cert, key := a.Issue("by-address")
	token := writeFile(t, "token", adminToken+"\n")
	r := serveFor(t, "", fmt.Sprintf("admin_token_file: %s\nadmin_tls: {cert_file: %s, key_file: %s, client_ca_file: %s}", token, cert, key, a.File))
	at := []string{"--admin", "https://" + r.admin, "--admin-ca-file", a.File}
	operator, operatorKey := a.Issue("operator")
	stranger, strangerKey := others.Issue("operator")
	for name, c := range map[string]struct {
		flags []string
		want  string // of standard output; else of standard error
		good  bool
	}{
		"token":                 {[]string{"--admin-token-file", token}, "mode: guard\n", true},
		"certificate":           {[]string{"--admin-cert-file", operator, "--admin-key-file", operatorKey}, "mode: guard\n", true},
		"neither":               {nil, "this needs the token of admin_token_file", false},
		"another token":         {[]string{"--admin-token-file", writeFile(t, "other", "another-operators-token")}, "this needs the token", false},
		"another's certificate": {[]string{"--admin-cert-file", stranger, "--admin-key-file", strangerKey}, "no optimist answers", false},
		"half of a certificate": {[]string{"--admin-cert-file", operator}, "belong together", false},
		"the other half":        {[]string{"--admin-key-file", operatorKey}, "belong together", false},
		"no such token":         {[]string{"--admin-token-file", token + ".missing"}, "--admin-token-file", false},
		"no such authority":     {[]string{"--admin-ca-file", token}, "there is no certificate in", false},
		"another authority":     {[]string{"--admin-ca-file", others.File, "--admin-token-file", token}, "certificate", false},
	} {
		status, stdout, stderr := invoke(t, append(append([]string{"mode"}, at...), c.flags...)...)
		if got := map[bool]string{true: stdout, false: stderr}[c.good]; (status == 0) != c.good || !strings.Contains(got, c.want) {
			t.Errorf("%s: status %d, %s%s", name, status, stdout, stderr)
		}
		if strings.Contains(stderr, adminToken) {
			t.Errorf("%s: the token is printed: %s", name, stderr)
		}
	}
	if strings.Contains(r.log.String(), adminToken) {
		t.Error("the token is in the log")
	}
	if status, _, stderr := invoke(t, "locks", "ls", "--admin", r.admin); status == 0 {
		t.Errorf("without TLS, the listener answers: %s", stderr)
	}
}

// A container's health check asks at the address at which the listener is: OPTIMIST_ADMIN has no host in it that a certificate could have.
func TestCommandsAskThisMachineWhereTheListenerIsForEveryHost(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue("by-address")
	token := writeFile(t, "token", adminToken)
	r := serveFor(t, "", fmt.Sprintf("admin_token_file: %s\nadmin_tls: {cert_file: %s, key_file: %s}", token, cert, key))
	_, port, err := net.SplitHostPort(r.admin)
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"", "0.0.0.0", "[::]"} {
		status, stdout, stderr := invoke(t, "mode", "--admin", host+":"+port, "--admin-token-file", token, "--admin-ca-file", a.File)
		if status != 0 || stdout != "mode: guard\n" {
			t.Errorf("%q: status %d, %s%s", host, status, stdout, stderr)
		}
	}
}

// The names in a client's certificate are a part of who it is: with the same password, session name and address, two certificates are two
// clients.
func TestClientsWithOtherCertificatesShareNothing(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue("by-address")
	r := serveFor(t, "", fmt.Sprintf("listen_tls: {cert_file: %s, key_file: %s, client_ca_file: %s}", cert, key, a.File))
	client := func(name string) func(method, body string) string {
		c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: a.Pool, Certificates: []tls.Certificate{a.Pair(name)}}}}
		t.Cleanup(c.CloseIdleConnections)
		return func(method, body string) string {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), method, "https://"+r.data+"/shop/_doc/1", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.SetBasicAuth("shared", "password")
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Optimist-Session", "one")
			res, err := c.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			_, _ = io.Copy(io.Discard, res.Body)
			return res.Header.Get("Optimist-Outcome")
		}
	}
	billing, search := client("billing"), client("search")
	billing("PUT", `{"a":0}`)
	billing("GET", "")
	if got := search("PUT", `{"a":1}`); strings.Contains(got, "base=session") || strings.Contains(got, "base=view") {
		t.Errorf("another certificate's client wrote with billing's base: %s", got)
	}
	if got := client("billing")("PUT", `{"a":0,"b":1}`); got != "merged;attempts=2;base=session" { // its certificate was renewed
		t.Errorf("billing's own write: %s", got)
	}
}

func TestAdminListenerForEverybodyDoesNotStart(t *testing.T) {
	status, _, stderr := invoke(t, "serve", "--embedded", "--listen", "127.0.0.1:0", "--admin", "0.0.0.0:0")
	if status != exitUsage || !strings.Contains(stderr, "isn't a loopback address") {
		t.Errorf("status %d: %s", status, stderr)
	}
	empty := writeFile(t, "token", "short")
	if status, _, stderr := invoke(t, "serve", "--embedded", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--admin-token-file", empty); status == 0 ||
		!strings.Contains(stderr, "admin_token_file") {
		t.Errorf("with a short token: status %d: %s", status, stderr)
	}
}
