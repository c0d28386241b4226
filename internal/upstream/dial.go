package upstream

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"syscall"
	"time"

	"optimist/internal/secure"
	"optimist/internal/wire"
)

// Load reads the files. It returns what gives the configuration of a new connection: changed files count within a second.
func (t TLS) Load() (func() *tls.Config, error) {
	if (t.CertFile == "") != (t.KeyFile == "") {
		return nil, errors.New("upstream.tls.cert_file and key_file need each other")
	}
	get, err := secure.Follow(t.Log, t.parse, t.CAFile, t.CertFile, t.KeyFile)
	switch {
	case errors.As(err, new(*fs.PathError)):
		return nil, fmt.Errorf("upstream.tls: ca_file, cert_file or key_file: %w", err)
	case err != nil:
		return nil, fmt.Errorf("upstream.tls: %w", err)
	}
	return get, nil
}

// parse makes the configuration of the content of CAFile, CertFile and KeyFile.
func (t TLS) parse(files [][]byte) (*tls.Config, error) {
	cfg := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		NextProtos:         []string{"http/1.1"},
		ServerName:         t.ServerName,
		InsecureSkipVerify: t.Insecure, //nolint:gosec // only if somebody wrote so
		ClientSessionCache: tls.NewLRUClientSessionCache(0),
	}
	if t.CAFile != "" {
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(files[0]) {
			return nil, fmt.Errorf("ca_file %s has no certificate in PEM", t.CAFile)
		}
	}
	if t.CertFile != "" {
		cert, err := tls.X509KeyPair(files[1], files[2])
		if err != nil {
			return nil, fmt.Errorf("cert_file and key_file: %w", err)
		}
		cfg.Certificates = []tls.Certificate{cert}
	}
	return cfg, nil
}

// dial makes one connection. Its errors are *ConnectError, that of ctx, or ErrClosed.
func (n *node) dial(ctx context.Context) (*conn, error) {
	timeout := n.set.cfg.ConnectTimeout
	limited, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	defer context.AfterFunc(n.set.ctx, cancel)()
	begun := time.Now()
	c, err := n.connect(limited)
	if err != nil && n.set.ctx.Err() != nil {
		err = ErrClosed
	}
	if err != nil && overdue(ctx) {
		<-ctx.Done()
	}
	if err != nil && ctx.Err() == nil && n.set.ctx.Err() == nil {
		err = connectError(err, limited.Err() != nil, timeout)
	}
	n.set.cfg.Hooks.Dialed.Call(n.url, time.Since(begun), err)
	return c, err
}

// overdue reports whether ctx's deadline has passed. The dialer keeps the deadline by a timer of its own. That timer may fire
// before ctx's does; then ctx is about to end, and it is ctx that ended the attempt.
func overdue(ctx context.Context) bool {
	d, ok := ctx.Deadline()
	return ok && !time.Now().Before(d)
}

// handshakeError marks a failure of the TLS handshake.
type handshakeError struct{ error }

func (e handshakeError) Unwrap() error { return e.error }

func (n *node) connect(ctx context.Context) (*conn, error) {
	var d net.Dialer
	raw, err := d.DialContext(ctx, "tcp", n.addr)
	if err != nil {
		return nil, err
	}
	c := &conn{node: n, raw: raw, nc: raw}
	if n.tls != nil {
		conf := n.tls()
		if conf.ServerName == "" {
			conf = conf.Clone()
			conf.ServerName = n.name
		}
		t := tls.Client(raw, conf)
		if err := t.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return nil, handshakeError{err}
		}
		c.nc = t
	}
	c.probe = wire.NewProbe(raw)
	c.r.Reset(c.nc)
	return c, nil
}

// connectError classifies an error of connecting. late says that ConnectTimeout has passed.
func connectError(err error, late bool, timeout time.Duration) *ConnectError {
	var dns *net.DNSError
	var timed net.Error
	var hs handshakeError
	switch {
	case errors.As(err, &dns) && !late:
		return &ConnectError{Unresolved, err}
	case late, errors.As(err, &timed) && timed.Timeout():
		return &ConnectError{TimedOut, fmt.Errorf("after %v: %w", timeout, err)}
	case errors.As(err, &hs):
		return &ConnectError{Handshake, hs.error}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &ConnectError{Refused, err}
	}
	return &ConnectError{Other, err}
}
