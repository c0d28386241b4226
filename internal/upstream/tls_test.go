package upstream

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"optimist/internal/wire"
)

// authority signs certificates for one test.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t, dir: t.TempDir()}
	a.key, _ = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	a.cert, _ = x509.ParseCertificate(der)
	a.file = a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// issue makes a certificate for name and 127.0.0.1 and returns its files.
func (a *authority) issue(name string) (cert, key string) {
	a.t.Helper()
	k, _ := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if name == "by-address" {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	kder, _ := x509.MarshalECPrivateKey(k)
	return a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "EC PRIVATE KEY", kder)
}

// server returns a configuration that shows the certificate of name and asks for one of the authority's.
func (a *authority) server(name string) *tls.Config {
	a.t.Helper()
	pair, err := tls.LoadX509KeyPair(a.issue(name))
	if err != nil {
		a.t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool}
}

func TestTLSWithOwnAuthorityClientCertificateServerNameAndCredentials(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.issue("optimist")
	var who string
	s := newStubAt(t, "127.0.0.1:0", a.server("es.internal"), func(p *peer) {
		for {
			req, body := p.next()
			if req == nil {
				return
			}
			who = p.Conn.(*tls.Conn).ConnectionState().PeerCertificates[0].Subject.CommonName
			p.answer(200, req.Header.Get("Authorization")+" "+body)
		}
	})
	set := newSet(t, func(c *Config) {
		c.TLS = TLS{CAFile: a.file, CertFile: cert, KeyFile: key, ServerName: "es.internal"}
		c.Authorization = "ApiKey ours"
	}, s.url)
	for _, size := range []int{1, maxCopied + 1, maxInline + 1, 3 << 20} {
		r := put(strings.Repeat("x", size))
		r.Own = true
		if got := do(t, set, r); got != "200 ApiKey ours "+string(r.Body) {
			t.Errorf("%d bytes: %.80s", size, got)
		}
		r.Own = false
		if got := do(t, set, r); got != "200  "+string(r.Body) {
			t.Errorf("a client's request got our credentials: %.80s", got)
		}
	}
	x := newExchangeFor(t, set)
	if err := x.Send(stream(newParts("a", "b"), -1)); err != nil {
		t.Fatal(err)
	}
	if got, err := rest(x); got != " ab" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	x.Finish()
	if who != "optimist" || s.accepted.Load() != 1 {
		t.Errorf("certificate of %q, %d connections", who, s.accepted.Load())
	}
	if err := set.nodes[0].check(); err != nil {
		t.Errorf("check: %v", err)
	}
}

func TestTLSConnectionClosedWhileIdleIsNotUsed(t *testing.T) {
	a := newAuthority(t)
	conf := a.server("by-address")
	conf.ClientAuth = tls.NoClientCert
	s := newStubAt(t, "127.0.0.1:0", conf, func(p *peer) {
		if req, _ := p.next(); req != nil {
			p.answer(200, "")
			p.Conn.Close() // with TLS's goodbye, which a socket shows as bytes to read
		}
	})
	set := newSet(t, func(c *Config) { c.TLS.CAFile = a.file }, s.url)
	for range 5 {
		do(t, set, put("{}"))
		until(t, func() bool { return idle(set).probe.State() != wire.PeerQuiet })
	}
	if s.requests.Load() != 5 {
		t.Errorf("%d requests for 5 writes", s.requests.Load())
	}
}

func TestTLSRefusesWhoeverIsNotTheNode(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	conf := a.server("es.internal")
	conf.ClientAuth = tls.NoClientCert
	s := newStubAt(t, "127.0.0.1:0", conf, echo)
	for name, c := range map[string]struct {
		tls TLS
		ok  bool
	}{
		"right name and authority":     {TLS{CAFile: a.file, ServerName: "es.internal"}, true},
		"another authority":            {TLS{CAFile: other.file, ServerName: "es.internal"}, false},
		"the system's authorities":     {TLS{ServerName: "es.internal"}, false},
		"another name":                 {TLS{CAFile: a.file, ServerName: "es.external"}, false},
		"the address, which it lacks":  {TLS{CAFile: a.file}, false},
		"insecure, because it says so": {TLS{Insecure: true}, true},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(t, func(cfg *Config) { cfg.TLS = c.tls }, s.url)
			if c.ok {
				do(t, set, get())
				return
			}
			before := s.requests.Load()
			e := fails(t, set, put("secret"), NotSent)
			var ce *ConnectError
			if !errors.As(e, &ce) || ce.Reason != Handshake || s.requests.Load() != before {
				t.Errorf("%v", e)
			}
			var cert *tls.CertificateVerificationError
			if !errors.As(e, &cert) {
				t.Errorf("the reason is %T", e.Err)
			}
		})
	}
}

// With TLS 1.3 the client has finished its handshake before the node looks at the certificate: the refusal comes in place
// of the answer.
func TestTLSWithoutTheClientCertificateIsSaid(t *testing.T) {
	a := newAuthority(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		conf := a.server("by-address")
		conf.MaxVersion = version
		s := newStubAt(t, "127.0.0.1:0", conf, echo)
		set := newSet(t, func(c *Config) { c.TLS.CAFile = a.file }, s.url)
		_, err := set.Do(t.Context(), put("{}"))
		if err == nil || !strings.Contains(err.Error(), "remote error: tls: ") || s.requests.Load() != 0 {
			t.Errorf("%v", err)
		}
		if err := set.nodes[0].check(); err == nil {
			t.Error("the check finds nothing")
		}
	}
}

// TestBytesBehindAnAnswerAreSeenThroughTLS has an unasked answer come in the same record as one that ends exactly where the buffer
// does: it lies decrypted in memory, where no look at the socket finds it.
func TestBytesBehindAnAnswerAreSeenThroughTLS(t *testing.T) {
	a := newAuthority(t)
	conf := a.server("by-address")
	conf.ClientAuth, conf.DynamicRecordSizingDisabled = tls.NoClientCert, true
	const head, buffer = "HTTP/1.1 200 OK\r\nContent-Length: 4000\r\nX: ", 4 << 10
	whole := head + strings.Repeat("x", buffer-4000-len(head)-4) + "\r\n\r\n" + strings.Repeat("a", 4000)
	s := newStubAt(t, "127.0.0.1:0", conf, func(p *peer) {
		for {
			if req, _ := p.next(); req == nil {
				return
			}
			_, _ = p.Conn.Write([]byte(whole + "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"))
		}
	})
	set := newSet(t, func(c *Config) { c.TLS.CAFile = a.file }, s.url)
	for range 3 {
		if got := do(t, set, put("{}")); got != "200 "+strings.Repeat("a", 4000) {
			t.Fatalf("%.80s", got)
		}
	}
}
