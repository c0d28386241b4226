// Package secure is the protection of optimist's listeners: TLS with certificates from files, certificates of clients, and a
// token. It follows the files of secrets when they change, also for connections to the engine.
//
// It doesn't say who may do what: the listeners do. Its values may be used by several goroutines.
package secure

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/asn1"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Files name what a listener's TLS is made of, as PEM.
type Files struct {
	Cert     string // the listener's certificate, and those between it and its authority
	Key      string // its key, not encrypted
	ClientCA string // the authorities of clients' certificates; empty: clients need none
}

// Options are how a listener's TLS is used.
type Options struct {
	Files
	// ClientsMay lets clients without a certificate in, though ClientCA is set. A certificate that is shown must be good.
	ClientsMay bool
	// Log gets a line when changed files are in force, or can't be used. Default: nobody does.
	Log *slog.Logger
	// Now is for tests. Default time.Now.
	Now func() time.Time
}

// NewTLS is the configuration of a listener: TLS 1.2 and later, HTTP/1.1, and the files' content as it is at each handshake. A file
// that changes counts within a second. The error says which file can't be used, and why; it holds nothing of the files' content.
func NewTLS(o Options) (*tls.Config, error) {
	parse := func(files [][]byte) (*tls.Config, error) { return parseTLS(&o, files) }
	f, err := follow(o.Log, o.Now, parse, o.Cert, o.Key, o.ClientCA)
	if err != nil {
		return nil, err
	}
	c := base()
	c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.get(), nil }
	return c, nil
}

// base is what all configurations have in common. Sessions aren't resumed: a client whose certificate isn't trusted any more would come
// back by what it once got.
func base() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true}
}

func parseTLS(o *Options, files [][]byte) (*tls.Config, error) {
	c := base()
	pair, err := tls.X509KeyPair(files[0], files[1])
	if err != nil {
		return nil, fmt.Errorf("the certificate %s and the key %s can't be used: %w", o.Cert, o.Key, err)
	}
	c.Certificates = []tls.Certificate{pair}
	if o.ClientCA == "" {
		return c, nil
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(files[2]) {
		return nil, fmt.Errorf("%s: %w", o.ClientCA, errNoCertificate)
	}
	c.ClientAuth = tls.RequireAndVerifyClientCert
	if o.ClientsMay {
		c.ClientAuth = tls.VerifyClientCertIfGiven
	}
	return c, nil
}

var errNoCertificate = errors.New("there is no certificate in it")

// Subject is the identity in a client's certificate: its subject and its alternative names, as they stand in it. It stays the same when
// the certificate is renewed. It is nil for a client that has shown none.
func Subject(s *tls.ConnectionState) []byte {
	if len(s.VerifiedChains) == 0 {
		return nil
	}
	cert := s.VerifiedChains[0][0]
	subject := append([]byte(nil), cert.RawSubject...)
	for i := range cert.Extensions {
		if cert.Extensions[i].Id.Equal(alternativeNames) {
			subject = append(subject, cert.Extensions[i].Value...)
		}
	}
	return subject
}

// alternativeNames is the extension's number (RFC 5280 §4.2.1.6). Certificates of machines often have no other names.
var alternativeNames = asn1.ObjectIdentifier{2, 5, 29, 17}

// ErrPlain is what a client is told that speaks HTTP to a port that speaks TLS.
var ErrPlain = errors.New("this port speaks TLS: the URL must begin with https")

// PlainHTTP returns the connection of a handshake that failed because the client speaks HTTP without TLS, or nil if err is another error.
func PlainHTTP(err error) net.Conn {
	var record tls.RecordHeaderError
	if errors.As(err, &record) && looksLikeHTTP(record.RecordHeader[:]) {
		return record.Conn
	}
	return nil
}

// looksLikeHTTP reports whether what should be the head of a record is the beginning of a request without TLS.
func looksLikeHTTP(head []byte) bool {
	for _, method := range []string{"GET /", "HEAD ", "POST ", "PUT /", "DELET", "PATCH", "OPTIO"} {
		if bytes.Equal(head, []byte(method)) {
			return true
		}
	}
	return false
}
