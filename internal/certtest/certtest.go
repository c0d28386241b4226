// Package certtest makes certificates for tests.
//
// It is for tests only. Nothing of the program imports it.
package certtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates for one test.
type Authority struct {
	// File has the authority's own certificate, PEM.
	File string
	// Pool has it, too.
	Pool *x509.CertPool

	t      testing.TB
	dir    string
	cert   *x509.Certificate
	key    *ecdsa.PrivateKey
	serial int64
}

// New makes an authority whose files are in a folder of the test's own.
func New(t testing.TB) *Authority {
	t.Helper()
	a := &Authority{t: t, dir: t.TempDir(), Pool: x509.NewCertPool(), serial: 1}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	a.Pool.AddCert(a.cert)
	a.File = a.write("ca.pem", "CERTIFICATE", der)
	return a
}

func (a *Authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// Issue makes a certificate for a name, and returns its files. It is good for servers of that name and for clients. The name by-address
// has the address 127.0.0.1, too. A second certificate of one name replaces the first one's files. A name that begins with spiffe: is a
// workload's: the certificate has no subject, only that alternative name, and its files are named workload.
func (a *Authority) Issue(name string) (cert, key string) {
	a.t.Helper()
	return a.issue(name, func(*x509.Certificate) {})
}

// Changed is Pair of a certificate that change has changed before the authority signed it.
func (a *Authority) Changed(name string, change func(*x509.Certificate)) tls.Certificate {
	a.t.Helper()
	return a.load(a.issue(name, change))
}

func (a *Authority) issue(name string, change func(*x509.Certificate)) (cert, key string) {
	a.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	if name == "by-address" {
		template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	if u, err := url.Parse(name); err == nil && u.Scheme == "spiffe" {
		template.Subject, template.DNSNames, template.URIs = pkix.Name{}, nil, []*url.URL{u}
		name = "workload"
	}
	change(template)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &k.PublicKey, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	kder, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", der), a.write(name+".key", "EC PRIVATE KEY", kder)
}

// Pair is Issue's certificate with its key, as the tls package wants it.
func (a *Authority) Pair(name string) tls.Certificate {
	a.t.Helper()
	return a.load(a.Issue(name))
}

func (a *Authority) load(cert, key string) tls.Certificate {
	a.t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		a.t.Fatal(err)
	}
	return pair
}
