package secure

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"optimist/internal/certtest"
)

// clock is a time that a test moves.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }

func (c *clock) pass(d time.Duration) { c.t = c.t.Add(d) }

// connect makes a handshake and returns what each side knows of the other.
func connect(t *testing.T, server, client *tls.Config) (of, to tls.ConnectionState, err error) {
	t.Helper()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	s, c := tls.Server(near, server), tls.Client(far, client)
	done := make(chan error, 1)
	go func() {
		err := s.Handshake()
		if err == nil {
			_, err = s.Write([]byte("!")) // with TLS 1.3 a client knows only by what it reads that its certificate is good
		} else {
			near.Close()
		}
		done <- err
	}()
	_, cerr := io.ReadFull(c, make([]byte, 1))
	far.Close()
	return s.ConnectionState(), c.ConnectionState(), errors.Join(<-done, cerr)
}

func TestCertificateIsReadAgainWhenItsFilesChange(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue("es.test")
	time0 := &clock{time.Unix(1000, 0)}
	var log bytes.Buffer
	conf, err := NewTLS(Options{Files: Files{Cert: cert, Key: key}, Now: time0.now, Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	serial := func() string {
		t.Helper()
		_, to, err := connect(t, conf, &tls.Config{RootCAs: a.Pool, ServerName: "es.test"})
		if err != nil {
			t.Fatal(err)
		}
		return to.PeerCertificates[0].SerialNumber.String()
	}
	first := serial()
	keep, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	a.Issue("es.test")
	if got := serial(); got != first {
		t.Errorf("the files were read again within the second: %s", got)
	}
	next, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, keep, 0o600); err != nil {
		t.Fatal(err)
	}
	time0.pass(lookEvery)
	if got := serial(); got != first || !strings.Contains(log.String(), "the old ones count") {
		t.Errorf("with a key that doesn't fit, the certificate is %s, was %s; the log: %s", got, first, &log)
	}
	lines := strings.Count(log.String(), "\n")
	time0.pass(lookEvery)
	if serial(); strings.Count(log.String(), "\n") != lines {
		t.Errorf("the same failure is in the log twice: %s", &log)
	}
	if err := os.WriteFile(key, next, 0o600); err != nil {
		t.Fatal(err)
	}
	time0.pass(lookEvery)
	if got := serial(); got == first || !strings.Contains(log.String(), fmt.Sprintf("files=%q", fmt.Sprintf("[%s %s]", cert, key))) {
		t.Errorf("the certificate is %s, was %s; the log: %s", got, first, &log)
	}
	if err := os.Remove(cert); err != nil {
		t.Fatal(err)
	}
	time0.pass(lookEvery)
	if got := serial(); got == first {
		t.Error("without its file, the certificate isn't the last one")
	}
}

func TestOldVersionsAndOtherProtocolsAreRefused(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue("es.test")
	conf, err := NewTLS(Options{Files: Files{Cert: cert, Key: key}})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		client *tls.Config
		want   string // the protocol; "refused": none
	}{
		"no word about a protocol": {&tls.Config{}, ""},
		"HTTP/2 and HTTP/1.1":      {&tls.Config{NextProtos: []string{"h2", "http/1.1"}}, "http/1.1"},
		"HTTP/2 alone":             {&tls.Config{NextProtos: []string{"h2"}}, "refused"},
		"TLS 1.2":                  {&tls.Config{MaxVersion: tls.VersionTLS12}, ""},
		"TLS 1.1":                  {&tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "refused"},
	} {
		c.client.RootCAs, c.client.ServerName = a.Pool, "es.test"
		_, to, err := connect(t, conf, c.client)
		got := to.NegotiatedProtocol
		if err != nil {
			got = "refused"
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q (%v)", name, got, c.want, err)
		}
	}
}

func expired(c *x509.Certificate) {
	c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(-time.Minute)
}

func ofTheFuture(c *x509.Certificate) {
	c.NotBefore, c.NotAfter = time.Now().Add(time.Hour), time.Now().Add(2*time.Hour)
}

func forServers(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} }

func TestClientsCertificatesAreAskedForAndChecked(t *testing.T) {
	ours, others := certtest.New(t), certtest.New(t)
	cert, key := ours.Issue("es.test")
	for _, may := range []bool{false, true} {
		conf, err := NewTLS(Options{Files: Files{Cert: cert, Key: key, ClientCA: ours.File}, ClientsMay: may})
		if err != nil {
			t.Fatal(err)
		}
		for name, c := range map[string]struct {
			certificates []tls.Certificate
			good         bool
		}{
			"none":                    {nil, may},
			"ours":                    {[]tls.Certificate{ours.Pair("billing")}, true},
			"of another authority":    {[]tls.Certificate{others.Pair("billing")}, false},
			"expired":                 {[]tls.Certificate{ours.Changed("billing", expired)}, false},
			"of the future":           {[]tls.Certificate{ours.Changed("billing", ofTheFuture)}, false},
			"of a server":             {[]tls.Certificate{ours.Changed("billing", forServers)}, false},
			"of ours, another's key":  {[]tls.Certificate{{Certificate: ours.Pair("billing").Certificate, PrivateKey: others.Pair("billing").PrivateKey}}, false},
			"of a workload, no names": {[]tls.Certificate{ours.Pair("spiffe://shop/billing")}, true},
		} {
			client := &tls.Config{RootCAs: ours.Pool, ServerName: "es.test"}
			client.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { // also if the server doesn't ask for such
				if len(c.certificates) == 0 {
					return new(tls.Certificate), nil
				}
				return &c.certificates[0], nil
			}
			of, _, err := connect(t, conf, client)
			if (err == nil) != c.good {
				t.Errorf("clients may come without: %v; %s: %v", may, name, err)
			}
			if err == nil && (len(Subject(&of)) > 0) != (c.certificates != nil) {
				t.Errorf("clients may come without: %v; %s: the subject is %q", may, name, Subject(&of))
			}
		}
	}
}

func TestSubjectTellsClientsApartAndStaysWhenTheirCertificatesAreRenewed(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue("es.test")
	conf, err := NewTLS(Options{Files: Files{Cert: cert, Key: key, ClientCA: a.File}})
	if err != nil {
		t.Fatal(err)
	}
	subject := func(name string) string {
		t.Helper()
		of, _, err := connect(t, conf, &tls.Config{RootCAs: a.Pool, ServerName: "es.test", Certificates: []tls.Certificate{a.Pair(name)}})
		if err != nil {
			t.Fatal(err)
		}
		return string(Subject(&of))
	}
	seen := map[string]string{}
	for _, name := range []string{"billing", "search", "spiffe://shop/billing", "spiffe://shop/search"} {
		s := subject(name)
		if s != subject(name) {
			t.Errorf("%s: a renewed certificate has another subject", name)
		}
		if other, twice := seen[s]; twice {
			t.Errorf("%s and %s have one subject", name, other)
		}
		seen[s] = name
	}
}

func TestFilesThatCannotBeUsedAreNamed(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue("es.test")
	_, otherKey := a.Issue("other.test")
	missing := filepath.Join(t.TempDir(), "missing")
	for name, f := range map[string]struct {
		files Files
		want  string
	}{
		"a certificate that isn't there": {Files{missing, key, ""}, missing},
		"a key of another certificate":   {Files{cert, otherKey, ""}, otherKey},
		"a key as authority":             {Files{cert, key, key}, key + ": there is no certificate in it"},
	} {
		if _, err := NewTLS(Options{Files: f.files}); err == nil || !strings.Contains(err.Error(), f.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTokenIsReadAgainAndComparedWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "token")
	write := func(content string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, bad := range []string{"", "\n", "fifteen-letters", "two lines of\ntext that are long", "with spaces in between it"} {
		write(bad)
		if _, err := NewToken(name, nil, nil); err == nil || bad != "" && strings.Contains(err.Error(), strings.TrimSpace(bad)+"x") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	const first, second = "0123456789abcdef", "fedcba9876543210"
	write(first + "\n")
	time0 := &clock{time.Unix(1000, 0)}
	token, err := NewToken(name, nil, time0.now)
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]bool{first: true, first + "\n": false, first[:15]: false, "": false, second: false} {
		if token.Matches([]byte(given)) != want {
			t.Errorf("%q: %v", given, !want)
		}
	}
	write(second)
	time0.pass(lookEvery)
	if token.Matches([]byte(first)) || !token.Matches([]byte(second)) {
		t.Error("the old token counts though its file has changed")
	}
}

// A file on a disk that doesn't answer holds up the one who looks at it, and nobody else.
func TestAFileThatCannotBeReadHoldsUpOneCaller(t *testing.T) {
	name := filepath.Join(t.TempDir(), "ca.pem")
	looks, goOn := make(chan struct{}), make(chan struct{})
	f := &followed[string]{names: []string{name}, log: slog.New(slog.DiscardHandler), now: time.Now}
	f.parse = func(files [][]byte) (string, error) {
		if string(files[0]) == "new" {
			close(looks)
			<-goOn
		}
		return string(files[0]), nil
	}
	put := func(content string) {
		if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put("old")
	if err := f.start(); err != nil {
		t.Fatal(err)
	}
	put("new")
	f.looked = time.Time{}
	looked := make(chan string)
	go func() { looked <- f.get() }()
	<-looks
	if got := f.get(); got != "old" {
		t.Errorf("%q beside the one who looks", got)
	}
	close(goOn)
	if got := <-looked; got != "new" {
		t.Errorf("%q for the one who looks", got)
	}
}
