package upstream

import (
	"crypto/tls"
	"errors"
	"os"
	"strings"
	"testing"

	"optimist/internal/certtest"
	"optimist/internal/wire"
)

// server returns a configuration that shows the certificate of name and asks for one of the authority's.
func server(a *certtest.Authority, name string) *tls.Config {
	return &tls.Config{Certificates: []tls.Certificate{a.Pair(name)}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: a.Pool}
}

func TestTLSWithOwnAuthorityClientCertificateServerNameAndCredentials(t *testing.T) {
	a := certtest.New(t)
	cert, key := a.Issue("optimist")
	var who string
	s := newStubAt(t, "127.0.0.1:0", server(a, "es.internal"), func(p *peer) {
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
		c.TLS = TLS{CAFile: a.File, CertFile: cert, KeyFile: key, ServerName: "es.internal"}
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
	a := certtest.New(t)
	conf := server(a, "by-address")
	conf.ClientAuth = tls.NoClientCert
	s := newStubAt(t, "127.0.0.1:0", conf, func(p *peer) {
		if req, _ := p.next(); req != nil {
			p.answer(200, "")
			p.Conn.Close() // with TLS's goodbye, which a socket shows as bytes to read
		}
	})
	set := newSet(t, func(c *Config) { c.TLS.CAFile = a.File }, s.url)
	for range 5 {
		do(t, set, put("{}"))
		until(t, func() bool { return idle(set).probe.State() != wire.PeerQuiet })
	}
	if s.requests.Load() != 5 {
		t.Errorf("%d requests for 5 writes", s.requests.Load())
	}
}

func TestTLSRefusesWhoeverIsNotTheNode(t *testing.T) {
	a, other := certtest.New(t), certtest.New(t)
	conf := server(a, "es.internal")
	conf.ClientAuth = tls.NoClientCert
	s := newStubAt(t, "127.0.0.1:0", conf, echo)
	for name, c := range map[string]struct {
		tls TLS
		ok  bool
	}{
		"right name and authority":     {TLS{CAFile: a.File, ServerName: "es.internal"}, true},
		"another authority":            {TLS{CAFile: other.File, ServerName: "es.internal"}, false},
		"the system's authorities":     {TLS{ServerName: "es.internal"}, false},
		"another name":                 {TLS{CAFile: a.File, ServerName: "es.external"}, false},
		"the address, which it lacks":  {TLS{CAFile: a.File}, false},
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
	a := certtest.New(t)
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		conf := server(a, "by-address")
		conf.MaxVersion = version
		s := newStubAt(t, "127.0.0.1:0", conf, echo)
		set := newSet(t, func(c *Config) { c.TLS.CAFile = a.File }, s.url)
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
	a := certtest.New(t)
	conf := server(a, "by-address")
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
	set := newSet(t, func(c *Config) { c.TLS.CAFile = a.File }, s.url)
	for range 3 {
		if got := do(t, set, put("{}")); got != "200 "+strings.Repeat("a", 4000) {
			t.Fatalf("%.80s", got)
		}
	}
}

// An authority is replaced while optimist runs: its file has the old one and the new one for a while.
func TestTLSFilesThatChangeCountForNewConnections(t *testing.T) {
	a, next := certtest.New(t), certtest.New(t)
	conf := server(next, "by-address")
	conf.ClientAuth = tls.NoClientCert
	s := newStubAt(t, "127.0.0.1:0", conf, echo)
	set := newSet(t, func(c *Config) { c.TLS.CAFile = a.File }, s.url)
	fails(t, set, put("{}"), NotSent)
	pem, err := os.ReadFile(next.File)
	if err == nil {
		err = os.WriteFile(a.File, pem, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	until(t, func() bool {
		_, err := set.Do(t.Context(), put("{}"))
		return err == nil
	})
}
