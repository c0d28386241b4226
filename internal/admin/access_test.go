package admin

import (
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"optimist/internal/certtest"
	"optimist/internal/rule"
	"optimist/internal/secure"
)

const goodToken = "0123456789abcdef"

func newToken(t *testing.T) *secure.Token {
	t.Helper()
	name := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(name, []byte(goodToken+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	token, err := secure.NewToken(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// everything is each path, and a method that it takes.
func everything() map[string]string {
	return map[string]string{"/": "GET", "/_optimist": "GET", "/_optimist/version": "GET", "/_optimist/mode": "PUT", "/_optimist/config": "GET",
		"/_optimist/hot": "GET", "/_optimist/suggestions": "GET", "/metrics": "GET", "/debug/pprof/": "GET", "/debug/pprof/heap": "GET",
		"/_optimist/undo": "GET", "/_optimist/undo/_lock/global/a": "GET", "/_optimist/locks": "GET", "/_optimist/locks/_lock/global/a": "DELETE", "/_optimist/locks/_release": "POST", "/nothing": "GET"}
}

func TestTokenIsAskedForEverywhereButForHealthAndReadiness(t *testing.T) {
	s := serveFor(t, Access{Token: newToken(t)}, nil)
	down := errors.New("es1.internal can't be reached")
	s.notReady.Store(&down)
	for _, field := range []string{"X: y", "Authorization: Bearer " + goodToken + "x", "Authorization: Bearer", "Authorization: Basic " + goodToken,
		"Authorization: " + goodToken, "Cookie: token=" + goodToken} {
		for path, method := range everything() {
			if status, body := s.do(t, method, path, `{"mode":"off"}`, asJSON, field); status != 401 || !strings.Contains(body, "unauthorized") {
				t.Errorf("%s %s with %s: %d %s", method, path, field, status, body)
			}
		}
	}
	if s.sw.Mode() != rule.Guard {
		t.Error("somebody without the token changed the mode")
	}
	if n := strings.Count(s.log.String(), "without token refused"); n != 1 {
		t.Errorf("%d lines in the log: who has no token can fill a disk", n)
	}
	for _, path := range []string{"/_optimist/health", "/_optimist/ready"} {
		status, body := s.do(t, "GET", path, "")
		if status == 401 || strings.Contains(body, "es1") || strings.Contains(body, "guard") {
			t.Errorf("%s without token: %d %s", path, status, body)
		}
		if _, body := s.do(t, "GET", path, "", "Authorization: Bearer "+goodToken); !strings.Contains(body, "es1") {
			t.Errorf("%s with token: %s", path, body)
		}
	}
	for _, scheme := range []string{"Bearer ", "bearer "} {
		if status, body := s.do(t, "PUT", "/_optimist/mode", `{"mode":"off"}`, asJSON, "Authorization: "+scheme+goodToken); status != 200 {
			t.Errorf("with the token: %d %s", status, body)
		}
	}
}

// TestAnyNameOfTheListenerIsGoodWithTheToken: a service of a cluster, for example. A page can't add the token; and what a browser says of a
// page of another site counts all the same, because an operator may have the browser add it.
func TestAnyNameOfTheListenerIsGoodWithTheToken(t *testing.T) {
	s := serveFor(t, Access{Token: newToken(t)}, nil)
	login, service := "Authorization: Bearer "+goodToken, "Host: optimist:9281"
	if status, body := s.do(t, "PUT", "/_optimist/mode", `{"mode":"guard"}`, asJSON, login, service); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	for _, path := range []string{"/_optimist/config", "/debug/pprof/heap"} {
		if status, body := s.do(t, "GET", path, "", login, service); status != 200 {
			t.Errorf("%s: %d %.200s", path, status, body)
		}
	}
	for _, page := range []string{"Origin: https://evil.example", "Sec-Fetch-Site: cross-site"} {
		if status, body := s.do(t, "PUT", "/_optimist/mode", `{"mode":"off"}`, asJSON, login, service, page); status != 403 {
			t.Errorf("%s: %d %s", page, status, body)
		}
	}
}

func TestProfilesNeedATokenOrACertificate(t *testing.T) {
	s := serve(t)
	for _, path := range []string{"/debug/pprof", "/debug/pprof/", "/debug/pprof/heap", "/debug/pprof/profile?seconds=60", "/debug/pprof/cmdline"} {
		if status, body := s.do(t, "GET", path, ""); status != 403 || !strings.Contains(body, "profiles_off") {
			t.Errorf("%s: %d %.200s", path, status, body)
		}
	}
	s = serveFor(t, Access{Token: newToken(t)}, nil)
	for path, want := range map[string]string{"/debug/pprof/": "goroutine", "/debug/pprof/cmdline": "admin.test"} {
		if status, body := s.do(t, "GET", path, "", "Authorization: Bearer "+goodToken); status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d %.200s", path, status, body)
		}
	}
	if status, _ := s.do(t, "GET", "/debug/pprof", "", "Authorization: Bearer "+goodToken); status != 301 {
		t.Errorf("the index of profiles without its slash is %d", status)
	}
}

func TestCertificateStandsForTheToken(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue("by-address")
	conf, err := secure.NewTLS(secure.Options{Files: secure.Files{Cert: cert, Key: key, ClientCA: a.File}, ClientsMay: true})
	if err != nil {
		t.Fatal(err)
	}
	s := serveFor(t, Access{Token: newToken(t), Certificates: true}, conf)
	for name, c := range map[string]struct {
		certificates []tls.Certificate
		want         int
	}{"none": {nil, 401}, "an operator's": {[]tls.Certificate{a.Pair("operator")}, 200}} {
		transport := s.client.Transport.(*http.Transport)
		transport.CloseIdleConnections()
		transport.TLSClientConfig = &tls.Config{RootCAs: a.Pool, Certificates: c.certificates}
		if status, body := s.do(t, "GET", "/_optimist/config", ""); status != c.want {
			t.Errorf("%s certificate: %d %s", name, status, body)
		}
		if status, body := s.do(t, "GET", "/_optimist/config", "", "Host: optimist:9281"); status != c.want {
			t.Errorf("%s certificate, by the name of a service: %d %s", name, status, body)
		}
		if status, _ := s.do(t, "GET", "/_optimist/config", "", "Authorization: Bearer "+goodToken); status != 200 {
			t.Errorf("%s certificate, and the token: %d", name, status)
		}
		if status, _ := s.do(t, "GET", "/_optimist/ready", ""); status != 200 {
			t.Errorf("%s certificate: not ready, %d", name, status)
		}
	}
}

// A request that can't be read may have a token in it: the answer doesn't say what was sent.
func TestAnAnswerHasNoTokenInIt(t *testing.T) {
	s := serveFor(t, Access{Token: newToken(t)}, nil)
	for _, head := range []string{"Host: a\r\nHost: b\r\n", "", "Host: a\r\nX\x00: b\r\n", "Host: \r\n"} {
		c, err := s.client.Transport.(*http.Transport).DialContext(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nAuthorization: Bearer "+goodToken+"\r\n"+head+"\r\n"); err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(c)
		if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 400 ") || strings.Contains(string(answer), goodToken) {
			t.Errorf("%q: %s, %v", head, answer, err)
		}
		_ = c.Close()
	}
}
