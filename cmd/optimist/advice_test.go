package main

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"optimist/internal/certtest"
	"optimist/lockrouter/conformance"
)

// TestMistakesAboutTLSAreNamed: a port with TLS that is asked without it, the other way round, an
// authority that nobody has named, and a certificate for another name.
func TestMistakesAboutTLSAreNamed(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue("by-address")
	plain := serveFor(t, "", "")
	secure := serveFor(t, "", fmt.Sprintf("listen_tls: {cert_file: %s, key_file: %s}\nadmin_tls: {cert_file: %[1]s, key_file: %s}\n", cert, key))
	silent := closing(t)
	goServer := httptest.NewTLSServer(nil)
	t.Cleanup(goServer.Close)
	const useHTTPS, useHTTP = "perhaps the port speaks TLS (https://, and not http://)", "the port speaks no TLS, as it seems (http://, and not https://)"
	byName := func(address string) string { return "https://localhost" + address[strings.LastIndex(address, ":"):] }
	config := writeFile(t, "optimist.yaml", "version: 1\nupstream: {urls: ["+byName(secure.data)+"], tls: {ca_file: "+a.File+"}}\n")
	explain := func(url string, more ...string) []string {
		return append([]string{"explain", "PUT", "/shop/_doc/1", "--body", "{}", "--proxy", url}, more...)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"doctor, http to TLS":            {[]string{"doctor", "--upstream", "http://" + secure.data}, useHTTPS},
		"doctor, http to Go's TLS":       {[]string{"doctor", "--upstream", strings.Replace(goServer.URL, "https", "http", 1)}, useHTTPS},
		"doctor, http to who hangs up":   {[]string{"doctor", "--upstream", "http://" + silent}, useHTTPS},
		"doctor, https to plain":         {[]string{"doctor", "--upstream", "https://" + plain.data}, useHTTP},
		"doctor, authority":              {[]string{"doctor", "--upstream", "https://" + secure.data}, "name the file with the certificate's authority in upstream.tls.ca_file (doctor: --ca-file)"},
		"doctor, another name":           {[]string{"doctor", "--config", config}, "write a name that the certificate has in the URL, or as upstream.tls.server_name"},
		"admin, another name":            {[]string{"mode", "--admin", byName(secure.admin), "--admin-ca-file", a.File}, "write a name that the certificate has in --admin"},
		"admin, http to TLS":             {[]string{"mode", "--admin", secure.admin}, "this port speaks TLS: the URL must begin with https"},
		"admin, https to plain":          {[]string{"mode", "--admin", "https://" + plain.admin}, useHTTP},
		"admin, authority":               {[]string{"mode", "--admin", "https://" + secure.admin}, "name the file with the certificate's authority in --admin-ca-file"},
		"explain, http to TLS":           {explain("http://" + secure.data), useHTTPS[1:]},
		"explain, https to plain":        {explain("https://" + plain.data), useHTTP},
		"explain, http to who hangs up":  {explain("http://" + silent), useHTTPS},
		"explain, authority":             {explain("https://" + secure.data), "name the file with the certificate's authority in --ca-file"},
		"explain, by its authority":      {explain("https://"+secure.data, "--ca-file", a.File), "write     index of shop/1"},
		"admin, https to plain, by file": {[]string{"mode", "--admin", plain.admin, "--admin-ca-file", a.File}, useHTTP},
	} {
		status, stdout, stderr := invoke(t, c.args...)
		if failed := status == exitFailed; failed == slices.Contains(c.args, "--ca-file") || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%s: status %d\n%s%swant %s", name, status, stdout, stderr, c.want)
		}
	}
	for name, args := range map[string][]string{
		"doctor":  {"doctor", "--upstream", "http://127.0.0.1:1"},
		"admin":   {"mode", "--admin", "127.0.0.1:1"},
		"explain": explain("http://127.0.0.1:1"),
	} {
		if _, stdout, stderr := invoke(t, args...); strings.Contains(stdout+stderr, "TLS") {
			t.Errorf("%s: nobody listens, and TLS is blamed:\n%s%s", name, stdout, stderr)
		}
	}
}

// TestANodeThatIsNoEngineIsNotSaidToBeOne: a port that speaks TLS answers 400 to plain HTTP, and any web server answers something.
func TestANodeThatIsNoEngineIsNotSaidToBeOne(t *testing.T) {
	secure, web := httptest.NewTLSServer(http.NotFoundHandler()), httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(secure.Close)
	t.Cleanup(web.Close)
	for name, url := range map[string]string{"TLS": strings.Replace(secure.URL, "https", "http", 1), "web": web.URL} {
		r := serveFor(t, url, "")
		r.log.Wait(t, `level=WARN msg="the node answers GET / not as an engine does`)
		if r.log.Contains("the engine answers") {
			t.Errorf("%s: it is said to be one", name)
		}
	}
}

// closing is the address of a server that reads a line and hangs up, as engines do that want TLS.
func closing(t *testing.T) string {
	return conformance.Accept(t, func(c net.Conn) { _, _ = bufio.NewReader(c).ReadString('\n') })
}
